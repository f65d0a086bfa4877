"""The three ways to patch an object over HTTP, chosen by content type.

`apply_patch` is pure: it never changes `current`, and its result shares nothing with it, so that callers may go on to
default and admit the result in place and still compare it with the original. A refused patch raises `ApiError`:
400 for what cannot be read, 415 for a content type that the kind does not support, 422 for a patch that does not fit
the object, 413 for one that asks for too much.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.rules import json_patch, strategic_merge
from pilotage.sandbox.rules.merge_keys import merge_fields

Json = dict[str, Any]

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"

_REJECTED: Final = "the server rejected our request due to an error in our request"


def apply_patch(content_type: str, kind: str, current: Json, patch: bytes) -> Json:
    """The object that `patch` makes of `current`."""
    media_type = content_type.partition(";")[0].strip().lower()
    try:
        match media_type:
            case "application/strategic-merge-patch+json":
                patched: Any = _strategic_merge(kind, current, patch)
            case "application/merge-patch+json":
                patched = merge_patch(msgspec.to_builtins(current), _decode(patch))
            case "application/json-patch+json":
                patched = _json_patch(current, patch)
            case _:
                raise _unsupported(JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH)
    except RecursionError:
        raise ApiError(400, "BadRequest", "the patch is nested too deeply") from None
    if not isinstance(patched, dict):
        raise ApiError(400, "BadRequest", f"the patch would turn the {kind} into something that is no object")
    return patched


def merge_patch(target: Any, patch: Any) -> Any:
    """JSON merge patch (RFC 7386); both arguments are consumed."""
    if not isinstance(patch, dict):
        return patch
    if not isinstance(target, dict):
        target = {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            target[key] = merge_patch(target.get(key), value)
        else:
            target[key] = value
    return target


def _strategic_merge(kind: str, current: Json, patch: bytes) -> Json:
    fields = merge_fields(kind, current)
    if fields is None:
        raise _unsupported(JSON_PATCH, MERGE_PATCH)
    changes = _decode(patch)
    if not isinstance(changes, dict):
        raise ApiError(400, "BadRequest", "error decoding patch: a strategic merge patch is an object")
    try:
        return strategic_merge.merge(msgspec.to_builtins(current), changes, fields)
    except strategic_merge.MergeError as error:
        raise ApiError(400, "BadRequest", f"invalid strategic merge patch: {error}") from None


def _json_patch(current: Json, patch: bytes) -> Any:
    try:
        return json_patch.apply_operations(msgspec.to_builtins(current), _decode(patch))
    except json_patch.FormatError as error:
        raise ApiError(400, "BadRequest", f"error decoding patch: {error}") from None
    except json_patch.OperationError as error:
        raise ApiError(422, "Invalid", f"{_REJECTED}: {error}") from None
    except json_patch.TooLarge as error:
        raise ApiError(413, "RequestEntityTooLarge", str(error)) from None


def _decode(patch: bytes) -> Any:
    try:
        return msgspec.json.decode(patch)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(400, "BadRequest", f"error decoding patch: {error}") from None


def _unsupported(*accepted: str) -> ApiError:
    message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return ApiError(415, "UnsupportedMediaType", message)
