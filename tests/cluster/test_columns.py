"""Growable columns and interned values."""

from __future__ import annotations

import numpy as np

from pilotage.cluster.columns import MISSING, CodedColumn, Column


def test_a_column_grows_and_fills_new_rows() -> None:
    column = Column(np.int64, 2, fill=7)
    column[0] = 1
    column.add(1, 5)
    column.reserve(4)
    assert column.values(4).tolist() == [1, 12, 7, 7]


def test_moving_a_row_blanks_the_old_place() -> None:
    column = Column(np.int64, 3)
    column[2] = 9
    column.move(2, 0)
    assert column.values(3).tolist() == [9, 0, 0]


def test_moving_a_row_onto_itself_blanks_it() -> None:
    """Removing the last row is a move of that row onto itself."""
    column = Column(np.int64, 1)
    column[0] = 9
    column.move(0, 0)
    assert column[0] == 0


def test_values_cannot_be_written_and_the_column_still_can() -> None:
    column = Column(np.int64, 1)
    assert not column.values(1).flags.writeable
    column[0] = 3
    assert column[0] == 3


def test_equal_values_have_one_code() -> None:
    column: CodedColumn[str] = CodedColumn(4)
    for row, value in enumerate(["x", None, "y", "x"]):
        column.set(row, value)
    assert column.codes.values(4).tolist() == [0, MISSING, 1, 0]
    assert column.distinct == ["x", "y"]
    column.set(0, None)
    assert column.codes[0] == MISSING
