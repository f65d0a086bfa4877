"""The three ways to patch an object over HTTP, chosen by content type.

A patch is read first; it then says which fields it is about, so that no more of the object has to be decoded than it
can change. Applying it is pure: `current` never changes, and the result shares nothing with it, so that callers may go
on to default and admit the result in place and still compare it with the original. A rejected patch raises `ApiError`:
400 for what cannot be read, 415 for a content type that the kind does not support, 422 for a patch that does not fit
the object, 413 for one that asks for too much.
"""

from __future__ import annotations

from collections.abc import Set
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


class Patch:
    """A patch that was read. It can be applied once."""

    __slots__ = ("_changes", "_media_type")

    def __init__(self, content_type: str, body: bytes) -> None:
        self._media_type = content_type.partition(";")[0].strip().lower()
        if self._media_type not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH):
            raise _unsupported(JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH)
        try:
            self._changes = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ApiError(400, "BadRequest", f"error decoding patch: {error}") from None
        except RecursionError:
            raise _too_deep() from None

    def is_only_about(self, fields: Set[str]) -> bool:
        """Whether the other fields of the object can neither change nor matter."""
        return self._media_type != JSON_PATCH and isinstance(self._changes, dict) and self._changes.keys() <= fields

    def applied_to(self, kind: str, current: Json) -> Json:
        """The object that the patch makes of `current`."""
        try:
            match self._media_type:
                case "application/strategic-merge-patch+json":
                    patched: Any = _strategic_merge(kind, current, self._changes)
                case "application/merge-patch+json":
                    patched = merge_patch(msgspec.to_builtins(current), self._changes)
                case _:
                    patched = _json_patch(current, self._changes)
        except RecursionError:
            raise _too_deep() from None
        if not isinstance(patched, dict):
            raise ApiError(400, "BadRequest", f"the patch would turn the {kind} into something that is no object")
        return patched


def apply_patch(content_type: str, kind: str, current: Json, patch: bytes) -> Json:
    """The object that `patch` makes of `current`."""
    return Patch(content_type, patch).applied_to(kind, current)


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


def _strategic_merge(kind: str, current: Json, changes: Any) -> Json:
    fields = merge_fields(kind, current)
    if fields is None:
        raise _unsupported(JSON_PATCH, MERGE_PATCH)
    if not isinstance(changes, dict):
        raise ApiError(400, "BadRequest", "error decoding patch: a strategic merge patch is an object")
    try:
        return strategic_merge.merge(msgspec.to_builtins(current), changes, fields)
    except strategic_merge.MergeError as error:
        raise ApiError(400, "BadRequest", f"invalid strategic merge patch: {error}") from None


def _json_patch(current: Json, operations: Any) -> Any:
    try:
        return json_patch.apply_operations(msgspec.to_builtins(current), operations)
    except json_patch.FormatError as error:
        raise ApiError(400, "BadRequest", f"error decoding patch: {error}") from None
    except json_patch.OperationError as error:
        raise ApiError(422, "Invalid", f"{_REJECTED}: {error}") from None
    except json_patch.TooLarge as error:
        raise ApiError(413, "RequestEntityTooLarge", str(error)) from None


def _too_deep() -> ApiError:
    return ApiError(400, "BadRequest", "the patch is nested too deeply")


def _unsupported(*accepted: str) -> ApiError:
    message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return ApiError(415, "UnsupportedMediaType", message)
