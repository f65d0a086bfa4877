"""Growable NumPy columns and interning: string work done once, integer work done per node.

`Column` is an array that grows by doubling and drops a row by moving the last one into its place, so that rows stay
dense. `CodedColumn` holds a small integer per row for a hashable value (a label value, a set of taints): what depends
on the value alone is computed once per distinct value and spread to the rows by indexing.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

V = TypeVar("V", bound=Hashable)

MISSING = -1


class Column:
    """One value per node row."""

    __slots__ = ("_values", "_view", "fill")

    def __init__(self, dtype: DTypeLike, capacity: int, fill: int = 0) -> None:
        self.fill = fill
        self._values: NDArray[Any] = np.full(capacity, fill, dtype=dtype)
        self._view: NDArray[Any] | None = None

    def __setitem__(self, row: int, value: int) -> None:
        self._values[row] = value

    def __getitem__(self, row: int) -> int:
        value: int = self._values.item(row)
        return value

    def add(self, row: int, amount: int) -> None:
        self._values[row] += amount

    def values(self, size: int) -> NDArray[Any]:
        """The first `size` rows, read-only; valid until the table changes."""
        view = self._view
        if view is None or len(view) != size:
            view = self._view = self._values[:size]
            view.flags.writeable = False
        return view

    def reserve(self, capacity: int) -> None:
        grown = np.full(capacity, self.fill, dtype=self._values.dtype)
        grown[: len(self._values)] = self._values
        self._values = grown
        self._view = None

    def move(self, source: int, target: int) -> None:
        """Put the value of row `source` into row `target` and blank `source`."""
        self._values[target] = self._values[source]
        self._values[source] = self.fill


class CodedColumn(Generic[V]):
    """An interned value per node row; `MISSING` where there is none."""

    __slots__ = ("_code_of", "codes", "distinct")

    def __init__(self, capacity: int) -> None:
        self.codes = Column(np.int32, capacity, fill=MISSING)
        self.distinct: list[V] = []
        self._code_of: dict[V, int] = {}

    def set(self, row: int, value: V | None) -> None:
        if value is None:
            self.codes[row] = MISSING
            return
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = len(self.distinct)
            self.distinct.append(value)
        self.codes[row] = code
