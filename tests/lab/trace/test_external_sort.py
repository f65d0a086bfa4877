"""Sorting by time, more than fits into memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotage.lab.trace.external_sort import in_order

from .making import gap


@given(st.lists(st.integers(0, 20)), st.integers(1, 5))
def test_records_come_by_time_and_equal_ones_stay_in_order(times: list[int], in_memory: int) -> None:
    records = [gap(float(at), float(number)) for number, at in enumerate(times)]
    found = list(in_order(records, in_memory))
    assert found == sorted(records, key=lambda record: record.at)
