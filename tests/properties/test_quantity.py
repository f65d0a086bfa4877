"""Quantities against the official client's parser (on the forms that it gets right) and against themselves."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity as official_parse

from pilotage.model.quantity import (
    Format,
    QuantityError,
    format_quantity,
    parse_quantity,
    quantity_milli,
    quantity_value,
)

# The official parser has 28 digits and no rounding to nanos: stay within that.
whole_numbers = st.integers(-(10**9), 10**9).map(str)
decimals = st.decimals(-(10**6), 10**6, places=3, allow_nan=False, allow_infinity=False).map(lambda value: f"{value:f}")
suffixes = st.sampled_from(["", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
exponents = st.integers(-5, 20).map(lambda exponent: f"e{exponent}")
forms: st.SearchStrategy[Format] = st.sampled_from(["DecimalSI", "BinarySI", "DecimalExponent"])
exact_values = st.fractions(-(10**20), 10**20).map(lambda value: Fraction(round(value * 10**9), 10**9))


@given(st.one_of(whole_numbers, decimals), st.one_of(suffixes, exponents))
def test_parsed_value_equals_the_official_client(number: str, suffix: str) -> None:
    text = number + suffix
    assert parse_quantity(text) == Fraction(official_parse(text))


@given(exact_values, forms)
def test_formatted_value_reads_back_as_itself(value: Fraction, form: Format) -> None:
    text = format_quantity(value, form)
    assert parse_quantity(text) == value
    assert "." not in text


@given(st.text("0123456789.+-eEinumkKMGTP ", max_size=8))
def test_any_text_is_a_quantity_or_rejected_by_name(text: str) -> None:
    try:
        value = parse_quantity(text)
    except QuantityError as error:
        assert text in str(error)
    else:
        assert abs(quantity_value(text)) >= min(abs(value), 2**63 - 1)
        assert abs(quantity_milli(text)) >= min(abs(value * 1000), 2**63 - 1)
