"""Exact arithmetic on Kubernetes quantities such as `100m`, `1.5Gi`, `1e3` and `12E`.

A quantity is a decimal number with a decimal suffix (n u m, none, k M G T P E), a binary suffix (Ki ... Ei) or a
decimal exponent (e3, E-2). Values are `Fraction`s, never floats: 0.1 + 0.2 of a core must be 0.3. As in Kubernetes
anything finer than a nano is rounded away from zero, so that a tiny request never becomes none. JSON numbers are
accepted where people write `cpu: 1`.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Final, Literal

import msgspec

PATTERN = (
    r"(?P<sign>[+-]?)(?=\.?[0-9])(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?0*[0-9]{1,3}))?"
)
"""The grammar. Exponents of more than three digits are beyond every use and would only burn memory."""

Quantity = Annotated[str, msgspec.Meta(pattern=rf"^(?a:{PATTERN})\Z")] | int | float
"""How a quantity stands in JSON: usually a string, sometimes a bare number. Checked when an object is decoded."""

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

MAX_INT64 = 2**63 - 1
_NANO: Final = 10**9
_LONGEST_KEPT: Final = 64
_MOST_DIGITS: Final = 1000
"""Before and after the point. A longer number is the largest of so many digits; Kubernetes' own integers have 19."""
NOT_A_QUANTITY = "not a quantity: write a number with an optional suffix, e.g. 100m, 1.5Gi, 2"
_GRAMMAR = re.compile(PATTERN, re.ASCII)
_BINARY = {suffix: 1024**power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)}
_DECIMAL_EXPONENTS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()} | {0: ""}


class QuantityError(ValueError):
    """A text that is no Kubernetes quantity."""


def parse_quantity(text: Quantity) -> Fraction:
    """The exact value of `text`; QuantityError (which names the text) if it is no quantity."""
    return Fraction(quantity_nanos(text), _NANO)


def quantity_nanos(text: Quantity) -> int:
    """The same in billionths, which is a whole number for every quantity: quick to add and to compare."""
    # Texts come from everybody; long ones are read again instead of being kept.
    return _read(text) if isinstance(text, str) and len(text) > _LONGEST_KEPT else _known_nanos(text)


def quantity_value(text: Quantity) -> int:
    """The value in whole units, rounded up (away from zero), within the range of an int64."""
    return _round_away(quantity_nanos(text), _NANO)


def quantity_milli(text: Quantity) -> int:
    """The value in thousandths, rounded up (away from zero), within the range of an int64."""
    return _round_away(quantity_nanos(text), _NANO // 1000)


def resource_amount(resource: str, nanos: int) -> int:
    """A quantity as scheduling counts it: cpu in thousandths, everything else in units, rounded up."""
    return _round_away(nanos, _NANO // 1000 if resource == "cpu" else _NANO)


def _read(text: Quantity) -> int:
    found = _GRAMMAR.fullmatch(text if isinstance(text, str) else _write_number(text))
    if found is None:
        raise QuantityError(f'"{text}" is {NOT_A_QUANTITY}')
    whole, part = found["whole"].lstrip("0"), (found["part"] or "").rstrip("0")
    if len(whole) > _MOST_DIGITS:
        whole, part = "9" * _MOST_DIGITS, ""
    if len(part) > _MOST_DIGITS:
        part = part[:_MOST_DIGITS] + "1"  # there is more, which matters when it is rounded
    suffix = found["suffix"] or ""
    digits = int(whole + part or "0") * _BINARY.get(suffix, 1)
    exponent = int(found["exponent"]) if found["exponent"] else _DECIMAL_EXPONENTS.get(suffix, 0)
    scale = 9 + exponent - len(part)
    nanos: int = digits * 10**scale if scale >= 0 else -(-digits // 10**-scale)
    return -nanos if found["sign"] == "-" else nanos


_known_nanos: Final = lru_cache(maxsize=65536, typed=True)(_read)


def format_quantity(value: Fraction | int, form: Format = "DecimalSI") -> str:
    """The canonical text: no fraction, the largest suffix that keeps the number whole, as Kubernetes writes it."""
    exact = _at_least_nano(Fraction(value))
    if form == "BinarySI" and exact.denominator == 1:
        return _format_binary(exact.numerator)
    return _format_decimal(exact, "e" if form == "DecimalExponent" else "")


def quantity_form(text: Quantity) -> Format:
    """The notation of a text: a sum or a product of it is written the same way."""
    found = _GRAMMAR.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return "DecimalSI"
    if found["suffix"] in _BINARY:
        return "BinarySI"
    return "DecimalExponent" if found["exponent"] else "DecimalSI"


def canonical_quantity(text: Quantity) -> str:
    """The same quantity as Kubernetes writes it: `1000m` is `1`, `1024Mi` is `1Gi`."""
    return format_quantity(parse_quantity(text), quantity_form(text))


def _write_number(number: float) -> str:
    if isinstance(number, bool):
        raise QuantityError(f"{number} is not a quantity: write a number or a string such as 100m")
    return repr(number)


def _at_least_nano(exact: Fraction) -> Fraction:
    nanos = exact * 1_000_000_000
    if nanos.denominator == 1:
        return exact
    whole = -(-abs(nanos).numerator // nanos.denominator)
    return Fraction(whole if exact > 0 else -whole, 1_000_000_000)


def _round_away(nanos: int, unit: int) -> int:
    whole = min(-(-abs(nanos) // unit), MAX_INT64)
    return whole if nanos >= 0 else -whole


def _format_binary(number: int) -> str:
    for suffix, factor in reversed(_BINARY.items()):
        if number and number % factor == 0:
            return f"{number // factor}{suffix}"
    return str(number)


def _format_decimal(exact: Fraction, exponent_mark: str) -> str:
    if not exact:
        return "0"
    for exponent in (18, 15, 12, 9, 6, 3, 0, -3, -6, -9):
        scaled = exact / Fraction(10) ** exponent
        if scaled.denominator == 1:
            suffix = f"{exponent_mark}{exponent}" if exponent_mark and exponent else _DECIMAL_SUFFIXES[exponent]
            return f"{scaled.numerator}{suffix}"
    raise AssertionError("a quantity is a multiple of a nano")
