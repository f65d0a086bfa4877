"""Numbers that may be written as a share of another: `2` or `"25%"`."""

from __future__ import annotations


def scaled_value(value: int | str, total: int, *, round_up: bool) -> int:
    """The number that `value` means out of `total`; ValueError if it is neither a number nor a percentage."""
    if isinstance(value, int):
        return value
    if not value.endswith("%") or not value[:-1].isdigit():
        raise ValueError(f'"{value}" is neither a number nor a percentage')
    share = int(value[:-1]) * total
    return -(-share // 100) if round_up else share // 100
