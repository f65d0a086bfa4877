"""What the API server says when it rejects: one exception that renders as a `metav1.Status`.

kubectl and client libraries show these messages to people and branch on `reason` and `code`, so both are those of the
Kubernetes API server. Code raises an `ApiError` made by one of the constructors below; the HTTP layer turns it into
the answer. Resources are named as in the store: `pods`, `deployments.apps`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

FieldErrorType = Literal[
    "FieldValueRequired",
    "FieldValueInvalid",
    "FieldValueForbidden",
    "FieldValueNotSupported",
    "FieldValueDuplicate",
    "FieldValueTypeInvalid",
    "FieldValueNotFound",
    "FieldValueTooLong",
    "FieldValueTooMany",
]

_LABELS: Final[Mapping[str, str]] = {
    "FieldValueRequired": "Required value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueNotFound": "Not found",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
}
_WITHOUT_VALUE: Final = frozenset({"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong"})

_OMITTED: Final = object()
_LONGEST_SHOWN_VALUE: Final = 200


@dataclass(frozen=True, slots=True)
class FieldError:
    """One wrong field: `spec.containers[0].name: Required value`."""

    path: str
    problem: str = ""
    value: object = _OMITTED
    type: FieldErrorType = "FieldValueInvalid"

    def detail(self) -> str:
        """The sentence without the path, as it stands in `details.causes[].message`."""
        parts = [_LABELS[self.type]]
        if self.value is not _OMITTED and self.type not in _WITHOUT_VALUE:
            parts.append(_shown(self.value))
        if self.problem:
            parts.append(self.problem)
        return ": ".join(parts)

    def __str__(self) -> str:
        return f"{self.path}: {self.detail()}"


class ApiError(Exception):
    """A request rejected, as the API server would reject it."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after
        self.metadata: dict[str, Any] = {}

    def status(self) -> dict[str, Any]:
        """The `metav1.Status` that goes over the wire."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        details = dict(self.details or {})
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        if details:
            body["details"] = details
        body["code"] = self.code
        return body


def split_resource(resource: str) -> tuple[str, str]:
    """`deployments.apps` -> (`deployments`, `apps`); `pods` -> (`pods`, "")."""
    plural, _, group = resource.partition(".")
    return plural, group


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(resource: str, name: str, problem: str) -> ApiError:
    return ApiError(403, "Forbidden", f'{resource} "{name}" is forbidden: {problem}', _details(resource, name))


def not_found(resource: str, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{resource} "{name}" not found', _details(resource, name))


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed(verb: str, resource: str) -> ApiError:
    message = f'{verb} is not supported on resources of kind "{resource}"'
    return ApiError(405, "MethodNotAllowed", message, _details(resource, ""))


def not_acceptable(supported: Sequence[str]) -> ApiError:
    message = f"only the following media types are accepted: {', '.join(supported)}"
    return ApiError(406, "NotAcceptable", message)


def already_exists(resource: str, name: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f'{resource} "{name}" already exists', _details(resource, name))


def conflict(resource: str, name: str, problem: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {resource} "{name}": {problem}'
    return ApiError(409, "Conflict", message, _details(resource, name))


def modified(resource: str, name: str) -> ApiError:
    """Lost update: the writer read an older version than the stored one."""
    problem = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, problem)


def gone(message: str) -> ApiError:
    """The history (or the paged list) that was asked for is no longer kept: list again."""
    return ApiError(410, "Expired", message)


def too_large(message: str) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", message)


def unsupported_media_type(message: str) -> ApiError:
    return ApiError(415, "UnsupportedMediaType", message)


def invalid(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    """422: the object is well-formed but breaks the rules of its kind."""
    texts = [str(error) for error in errors]
    summary = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = kind
    details["causes"] = [{"reason": error.type, "message": error.detail(), "field": error.path} for error in errors]
    subject = f"{kind}.{group}" if group else kind
    return ApiError(422, "Invalid", f'{subject} "{name}" is invalid: {summary}', details)


def too_many_requests(message: str, *, retry_after: int = 0, causes: Sequence[Mapping[str, str]] = ()) -> ApiError:
    details: dict[str, Any] = {"causes": [dict(cause) for cause in causes]} if causes else {}
    return ApiError(429, "TooManyRequests", message, details, retry_after or None)


def internal_error(problem: str) -> ApiError:
    details = {"causes": [{"message": problem}]}
    return ApiError(500, "InternalError", f"Internal error occurred: {problem}", details)


def not_implemented(message: str) -> ApiError:
    return ApiError(501, "NotImplemented", message)


def too_large_resource_version(asked: int, current: int) -> ApiError:
    """The reader asks for a state that this server has not reached (it may have been restarted empty)."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return ApiError(504, "Timeout", f"Too large resource version: {asked}, current: {current}", details)


def _details(resource: str, name: str) -> dict[str, Any]:
    plural, group = split_resource(resource)
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    details["kind"] = plural
    return details


def _shown(value: object) -> str:
    if isinstance(value, (str, int, float, bool, list, dict)) or value is None:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
    else:
        text = str(value)
    return text if len(text) <= _LONGEST_SHOWN_VALUE else text[:_LONGEST_SHOWN_VALUE] + "..."
