"""Errors about fields: one constructor per type of error."""

from __future__ import annotations

from collections.abc import Iterable

from pilotage.sandbox.errors import FieldError

Errors = list[FieldError]

IMMUTABLE = "field is immutable"
NOT_NEGATIVE = "must be greater than or equal to 0"


def required(path: str, problem: str = "") -> FieldError:
    return FieldError(path, problem, "", "FieldValueRequired")


def invalid(path: str, value: object, problem: str) -> FieldError:
    return FieldError(path, problem, value, "FieldValueInvalid")


def wrong_type(path: str, value: object, problem: str) -> FieldError:
    return FieldError(path, problem, value, "FieldValueTypeInvalid")


def forbidden(path: str, problem: str) -> FieldError:
    return FieldError(path, problem, "", "FieldValueForbidden")


def duplicate(path: str, value: object) -> FieldError:
    return FieldError(path, "", value, "FieldValueDuplicate")


def not_found(path: str, value: object) -> FieldError:
    return FieldError(path, "", value, "FieldValueNotFound")


def not_supported(path: str, value: object, supported: Iterable[str]) -> FieldError:
    names = ", ".join(f'"{name}"' for name in supported)
    return FieldError(path, f"supported values: {names}", value, "FieldValueNotSupported")
