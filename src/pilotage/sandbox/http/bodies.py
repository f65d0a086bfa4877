"""From the bytes of a request to an object: media types, size, syntax and, on request, unknown fields.

Whatever a client sends, the answer names what is wrong with it: 415 for a format that is not spoken here, 413 for too
much, 400 with the position for what is not JSON, 400 with the paths for unknown fields under `fieldValidation=Strict`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pilotage.kube_yaml import YamlProblem, YamlReader
from pilotage.sandbox.errors import FieldError, bad_request, invalid, too_large, unsupported_media_type
from pilotage.sandbox.http.exchange import Request
from pilotage.sandbox.http.protobuf import MEDIA_TYPE as PROTOBUF
from pilotage.sandbox.http.protobuf import decode_protobuf
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.kinds.strict_fields import repeated_keys, unknown_fields
from pilotage.sandbox.operations.field_management import ApplyRequest, Author, author_of, check_manager

MOST_BYTES: Final = 3 * 1024 * 1024

_decode = msgspec.json.Decoder().decode
_JSON_TYPES: Final = frozenset({"", "application/json", "*/*"})
APPLY_YAML: Final = "application/apply-patch+yaml"
_APPLY_CBOR: Final = "application/apply-patch+cbor"
_YAML_TYPES: Final = frozenset({"application/yaml", APPLY_YAML})
_MOST_YAML_VALUES: Final = 200_000
_VALIDATIONS: Final = ("Ignore", "Strict", "Warn")


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
    media_type = _media_type(request)
    if media_type in _JSON_TYPES:
        return _json(request.body)
    if media_type in _YAML_TYPES:
        return _yaml(request)
    if media_type == PROTOBUF:
        return decode_protobuf(request.body)
    raise unsupported_media_type(
        f'the body of the request was in an unknown format ("{media_type}") - accepted media types include: '
        f"application/json, application/yaml, {PROTOBUF}"
    )


def patch_in(request: Request) -> tuple[str, bytes]:
    """Content type and bytes of a patch that is no configuration to be applied."""
    check_size(len(request.body))
    if "force" in request.query:
        error = FieldError("force", "may not be specified for non-apply patch", type="FieldValueForbidden")
        raise invalid("PatchOptions", "meta.k8s.io", "", [error])
    return request.headers.get("content-type", ""), request.body


def is_apply(request: Request) -> bool:
    """Whether a PATCH brings a configuration to be applied."""
    media_type = _media_type(request)
    if media_type == _APPLY_CBOR:
        raise unsupported_media_type(f"{_APPLY_CBOR} is not read here; send {APPLY_YAML} (JSON is YAML, too)")
    return media_type == APPLY_YAML


def author_in(request: Request, resource_type: ResourceType) -> Author:
    """Who writes; ApiError 422 for a name that cannot be one."""
    name = request.query.get("fieldManager", "")
    if name:
        check_manager("CreateOptions" if request.method == "POST" else "UpdateOptions", name, is_needed=False)
    return author_of(name, request.headers.get("user-agent", ""), resource_type.api_version)


def apply_request_in(request: Request, resource_type: ResourceType, subresource: str) -> ApplyRequest:
    name = request.query.get("fieldManager", "")
    check_manager("PatchOptions", name, is_needed=True)
    config = object_in(request)
    author = author_of(name, "", resource_type.api_version)
    return ApplyRequest(config, author, subresource, request.flag("force"))


def is_dry_run(request: Request) -> bool:
    """`dryRun=All`; any other value is rejected, so that no dry run becomes a write."""
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
    if before is None:
        warnings += _repeated_fields(request)
    return _judged(wanted, resource_type, warnings)


def repetition_warnings(request: Request, resource_type: ResourceType) -> list[str]:
    """The same about fields that are there twice alone: a configuration with unknown ones is never applied."""
    wanted = request.query.get("fieldValidation", "")
    return [] if wanted in ("", "Ignore") else _judged(wanted, resource_type, _repeated_fields(request))


def _judged(wanted: str, resource_type: ResourceType, warnings: list[str]) -> list[str]:
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


def _repeated_fields(request: Request) -> list[str]:
    """About fields that stand in the body more than once: only the last one counts."""
    media_type = _media_type(request)
    if media_type in _JSON_TYPES:
        return [f'duplicate field "{path}"' for path in repeated_keys(request.body)]
    if media_type in _YAML_TYPES:
        return [f'line {problem.line}: key "{problem.path}" already set in map' for problem in _yaml_problems(request)]
    return []


def _yaml(request: Request) -> Any:
    """The first document of the body. Keys that are there twice are for `fieldValidation` to judge."""
    reader: YamlReader[Any] = YamlReader(lambda value, line: value, _MOST_YAML_VALUES)
    value = next(reader.documents(request.body), None)
    wrong = next((problem for problem in reader.problems if not problem.path), None)
    if wrong is not None:
        raise bad_request(f"error decoding YAML: {wrong.message}" + (f" (line {wrong.line})" if wrong.line else ""))
    return value


def _yaml_problems(request: Request) -> list[YamlProblem]:
    reader: YamlReader[Any] = YamlReader(lambda value, line: value, _MOST_YAML_VALUES)
    next(reader.documents(request.body), None)
    return [problem._replace(path=problem.path.rpartition(".")[2]) for problem in reader.problems]


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _json(body: bytes) -> Any:
    if not body:
        raise bad_request("the request has no body; an object in JSON is needed")
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the object provided is unrecognized (must be of type object): {error}") from None
    except RecursionError:
        raise bad_request("the object provided is nested too deeply") from None
