"""Quantities by example; the properties are in tests/properties/test_quantity.py."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pilotage.model import quantity
from pilotage.model.quantity import (
    MAX_INT64,
    Format,
    Quantity,
    QuantityError,
    canonical_quantity,
    format_quantity,
    parse_quantity,
    quantity_milli,
    quantity_value,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1", 1),
        ("100m", Fraction(1, 10)),
        ("1.5Gi", 3 * 2**29),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e-3", Fraction(1, 1000)),
        ("1E+2", 100),
        ("12E", 12 * 10**18),
        ("12Ei", 12 * 2**60),
        ("2k", 2000),
        ("3M", 3 * 10**6),
        ("1n", Fraction(1, 10**9)),
        ("5u", Fraction(5, 10**6)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("-1.5", Fraction(-3, 2)),
        ("+7", 7),
        ("007", 7),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        (2, 2),
        (0.1, Fraction(1, 10)),
        (1e21, 10**21),
    ],
)
def test_parse_quantity_reads_every_form_exactly(text: Quantity, value: Fraction | int) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *["", " ", "1 ", " 1", "1\n", ".", "+", "-", "--1", "m", "Ki", "1K", "1ki", "1mi", "1kk", "1Kii", "1e", "1e+"],
        *["1e3k", "1.2.3", "0x10", "1_000", "1,5", "NaN", "Infinity", "inf", "１", "1e1000", "1 Gi"],
    ],
)
def test_parse_quantity_rejects_what_kubernetes_rejects_and_names_the_text(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert f'"{text}"' in str(caught.value)


def test_parse_quantity_rejects_truth_values_even_after_the_equal_number_was_read() -> None:
    assert parse_quantity(1) == 1
    with pytest.raises(QuantityError, match="True"):
        parse_quantity(True)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_parse_quantity_rejects_numbers_that_are_none(number: float) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(number)


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        ("1", 1, 1000),
        ("100m", 1, 100),
        ("1n", 1, 1),
        ("1.0000001", 2, 1001),
        ("0.1n", 1, 1),
        ("-100m", -1, -100),
        ("0", 0, 0),
        ("1Ki", 1024, 1024000),
        ("100E", MAX_INT64, MAX_INT64),
        ("-100E", -MAX_INT64, -MAX_INT64),
    ],
)
def test_value_and_milli_round_away_from_zero_and_stay_within_int64(text: str, value: int, milli: int) -> None:
    assert (quantity_value(text), quantity_milli(text)) == (value, milli)


def test_anything_finer_than_a_nano_becomes_a_nano() -> None:
    assert parse_quantity("1e-30") == Fraction(1, 10**9)
    assert parse_quantity("-0.0000000001") == Fraction(-1, 10**9)


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (0, "DecimalSI", "0"),
        (Fraction(1, 10), "DecimalSI", "100m"),
        (1500, "DecimalSI", "1500"),
        (2000, "DecimalSI", "2k"),
        (-2000, "DecimalSI", "-2k"),
        (Fraction(3, 2), "DecimalSI", "1500m"),
        (12 * 10**18, "DecimalSI", "12E"),
        (1024, "BinarySI", "1Ki"),
        (1500, "BinarySI", "1500"),
        (3 * 2**29, "BinarySI", "1536Mi"),
        (0, "BinarySI", "0"),
        (Fraction(1, 2), "BinarySI", "500m"),
        (2000, "DecimalExponent", "2e3"),
        (Fraction(1, 10), "DecimalExponent", "100e-3"),
        (7, "DecimalExponent", "7"),
    ],
)
def test_format_quantity_writes_the_canonical_text(value: Fraction | int, form: Format, text: str) -> None:
    assert format_quantity(value, form) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1024", "1024"),
        ("2000", "2k"),
        ("1e3", "1e3"),
        (2, "2"),
        (0.5, "500m"),
        ("0", "0"),
    ],
)
def test_canonical_quantity_keeps_the_notation(text: Quantity, canonical: str) -> None:
    assert canonical_quantity(text) == canonical


@pytest.mark.parametrize("digits", [5_000, 100_000])
def test_numbers_of_thousands_of_digits_are_read(digits: int) -> None:
    assert quantity_value("0" * digits + "7") == 7
    assert quantity_value("0." + "0" * digits + "1") == 1, "some of it is not none of it"
    assert quantity_milli("1." + "9" * digits + "Ki") == 2_048_000
    assert quantity_value("9" * digits) == quantity_milli("9" * digits + "Ei") == MAX_INT64
    assert quantity_value("-" + "9" * digits) == -MAX_INT64


@pytest.mark.parametrize("text", ["9" * 400, "9" * 5_000 + "Ei", "9" * 1_000 + "e999", "0." + "1" * 5_000])
def test_the_longest_numbers_can_be_added_and_written(text: str) -> None:
    value = parse_quantity(text)
    assert quantity_value(format_quantity(value + value)) == min(-(-2 * value // 1), MAX_INT64)


def test_long_texts_are_not_remembered() -> None:
    before = quantity._known_nanos.cache_info().currsize
    for number in range(100):
        quantity_value("0" * 1000 + str(number))
    assert quantity._known_nanos.cache_info().currsize == before
