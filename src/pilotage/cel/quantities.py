"""Kubernetes' quantity library for CEL.

The CEL library takes plain values only, so a quantity is a map with one entry that holds its exact value in one
spelling: equal quantities are equal maps, and no other value of an expression looks like one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from pilotage.model.quantity import MAX_INT64, QuantityError, parse_quantity

CelQuantity: TypeAlias = Mapping[str, str]
_KEY = "quantity"


def encode(text: str | int | float) -> CelQuantity:
    return _encoded(parse_quantity(text))


def _encoded(value: Fraction) -> CelQuantity:
    return {_KEY: str(value)}


def _value(quantity: CelQuantity) -> Fraction:
    return Fraction(quantity[_KEY])


def is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def compare(left: CelQuantity, right: CelQuantity) -> int:
    a, b = _value(left), _value(right)
    return (a > b) - (a < b)


def sign(quantity: CelQuantity) -> int:
    value = _value(quantity)
    return (value > 0) - (value < 0)


def is_integer(quantity: CelQuantity) -> bool:
    value = _value(quantity)
    return value.denominator == 1 and abs(value) <= MAX_INT64


def as_integer(quantity: CelQuantity) -> int:
    if not is_integer(quantity):
        raise ValueError("cannot convert value to integer")
    return int(_value(quantity))


def as_float(quantity: CelQuantity) -> float:
    return float(_value(quantity))


def add(left: CelQuantity, right: CelQuantity) -> CelQuantity:
    return _encoded(_value(left) + _value(right))


def subtract(left: CelQuantity, right: CelQuantity) -> CelQuantity:
    return _encoded(_value(left) - _value(right))


def with_integer(operation: Callable[[CelQuantity, CelQuantity], CelQuantity]) -> Callable[[Any, int], CelQuantity]:
    """The same operation with a plain integer on the right."""
    return lambda left, right: operation(left, _encoded(Fraction(right)))
