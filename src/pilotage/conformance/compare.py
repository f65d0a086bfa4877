"""Where two answers differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MISSING = object()


def differences(expected: Any, actual: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(path, expected, actual) for everything that is not the same."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted(expected.keys() | actual.keys()):
            here = f"{path}.{key}" if path else key
            yield from differences(expected.get(key, MISSING), actual.get(key, MISSING), here)
    elif expected != actual:
        yield path, expected, actual


def answer_differences(expected: Any, actual: Any) -> list[tuple[str, Any, Any]]:
    """Differences between two answers; that both end in an error is enough, whatever its text."""
    if isinstance(expected.get("error"), str) and isinstance(actual.get("error"), str):
        return []
    return list(differences(expected, actual))


def shown(value: Any) -> str:
    return "(nothing)" if value is MISSING else repr(value)
