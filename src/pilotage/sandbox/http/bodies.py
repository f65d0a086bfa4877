"""From the bytes of a request to an object: media types, size, syntax and, on request, unknown fields.

Whatever a client sends, the answer names what is wrong with it: 415 for a format that is not spoken here, 413 for too
much, 400 with the position for what is not JSON, 400 with the paths for unknown fields under `fieldValidation=Strict`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pilotage.sandbox.errors import FieldError, bad_request, invalid, too_large, unsupported_media_type
from pilotage.sandbox.http.exchange import Request
from pilotage.sandbox.http.protobuf import MEDIA_TYPE as PROTOBUF
from pilotage.sandbox.http.protobuf import decode_protobuf
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.kinds.strict_fields import unknown_fields

MOST_BYTES: Final = 3 * 1024 * 1024

_decode = msgspec.json.Decoder().decode
_JSON_TYPES: Final = frozenset({"", "application/json", "*/*"})
_VALIDATIONS: Final = ("Ignore", "Strict", "Warn")
_SERVER_SIDE_APPLY: Final = frozenset({"application/apply-patch+yaml", "application/apply-patch+cbor"})


def check_size(length: int) -> None:
    if length > MOST_BYTES:
        raise too_large(
            f"Request entity too large: limit is {MOST_BYTES} bytes, the request has {length}; "
            "an object of this size cannot be stored"
        )


def object_in(request: Request) -> dict[str, Any]:
    """The object in the body; ApiError when there is none."""
    value = value_in(request)
    if not isinstance(value, dict):
        raise bad_request("the request body must be one JSON object")
    return value


def value_in(request: Request) -> Any:
    check_size(len(request.body))
    content_type = request.headers.get("content-type", "")
    if content_type in _JSON_TYPES:
        return _json(request.body)
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type in _JSON_TYPES:
        return _json(request.body)
    if media_type == PROTOBUF:
        return decode_protobuf(request.body)
    raise unsupported_media_type(
        f'the body of the request was in an unknown format ("{media_type}") - accepted media types include: '
        f"application/json, {PROTOBUF}"
    )


def patch_in(request: Request) -> tuple[str, bytes]:
    """Content type and bytes of a patch."""
    check_size(len(request.body))
    content_type = request.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() in _SERVER_SIDE_APPLY:
        raise unsupported_media_type(
            "server-side apply is not supported by this server; use client-side apply (kubectl apply without "
            "--server-side) or one of: application/json-patch+json, application/merge-patch+json, "
            "application/strategic-merge-patch+json"
        )
    return content_type, request.body


def is_dry_run(request: Request) -> bool:
    """`dryRun=All`; any other value is refused, so that no dry run becomes a write."""
    value = request.query.get("dryRun", "")
    if value in ("", "All"):
        return bool(value)
    error = FieldError("dryRun", 'supported values: "All"', value, "FieldValueNotSupported")
    raise invalid("CreateOptions", "meta.k8s.io", "", [error])


def field_warnings(
    request: Request, resource_type: ResourceType, obj: dict[str, Any], before: dict[str, Any] | None = None
) -> list[str]:
    """What `fieldValidation=Warn` has to say; ApiError 400 when it is `Strict` and there is something to say.

    Unknown fields that the object already had `before` are not this request's doing.
    """
    wanted = request.query.get("fieldValidation", "")
    if wanted in ("", "Ignore"):
        return []
    if wanted not in _VALIDATIONS:
        supported = "supported values: " + ", ".join(f'"{name}"' for name in _VALIDATIONS)
        error = FieldError("fieldValidation", supported, wanted, "FieldValueNotSupported")
        raise invalid("CreateOptions", "meta.k8s.io", "", [error])
    known = unknown_fields(resource_type, before) if before is not None else ()
    warnings = [f'unknown field "{path}"' for path in unknown_fields(resource_type, obj) if path not in known]
    if warnings and wanted == "Strict":
        kind = resource_type.kind
        problem = f"strict decoding error: {', '.join(warnings)}"
        raise bad_request(f'{kind} in version "{resource_type.version}" cannot be handled as a {kind}: {problem}')
    return warnings


def warning_headers(warnings: list[str]) -> tuple[tuple[str, str], ...]:
    """Warnings name fields as the client wrote them: what would end a header or its quotes is escaped."""
    printable = ("".join(c if c.isprintable() else "?" for c in warning) for warning in warnings)
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in printable)
    return tuple(("warning", f'299 - "{text}"') for text in quoted)


def _json(body: bytes) -> Any:
    if not body:
        raise bad_request("the request has no body; an object in JSON is needed")
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the object provided is unrecognized (must be of type object): {error}") from None
    except RecursionError:
        raise bad_request("the object provided is nested too deeply") from None
