"""Errors about fields: one constructor per type of error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def one_of(path: str, value: str | None, supported: Sequence[str]) -> Errors:
    """An optional choice: absent and empty are left to defaulting."""
    return [] if not value or value in supported else [not_supported(path, value, supported)]


def at_least(path: str, value: int | None, least: int, problem: str = NOT_NEGATIVE) -> Errors:
    return [] if value is None or value >= least else [invalid(path, value, problem)]
