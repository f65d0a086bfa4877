"""Growable NumPy columns and interning: string work done once, integer work done per node.

`Column` is an array that grows by doubling and drops a row by moving the last one into its place, so that rows stay
dense. `CodedColumn` holds a small integer per row for a hashable value (a label value, a set of taints): what depends
on the value alone is computed once per distinct value and spread to the rows by indexing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

V = TypeVar("V", bound=Hashable)

MISSING = -1


class Column:
    """One value per node row."""

    __slots__ = ("_values", "_view", "fill", "item", "put")

    def __init__(self, dtype: DTypeLike, capacity: int, fill: int = 0) -> None:
        self.fill = fill
        self._values: NDArray[Any] = np.full(capacity, fill, dtype=dtype)
        self._view: NDArray[Any] | None = None
        self.item: Callable[[int], Any] = self._values.item
        """The value of a row, as a plain number; for those who ask millions of times."""
        self.put: Callable[[int, int], None] = self._values.__setitem__
        """Set the value of a row, in the same way."""

    def __setitem__(self, row: int, value: int) -> None:
        self._values[row] = value

    def __getitem__(self, row: int) -> int:
        value: int = self._values.item(row)
        return value

    def add(self, row: int, amount: int) -> None:
        self._values[row] = self._values.item(row) + amount

    def fill_first(self, values: Sequence[int]) -> None:
        """Set as many rows as there are values."""
        self._values[: len(values)] = values

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
        self.item, self.put = grown.item, grown.__setitem__

    def move(self, source: int, target: int) -> None:
        """Put the value of row `source` into row `target` and blank `source`."""
        self._values[target] = self._values[source]
        self._values[source] = self.fill


class Distinct(list[V], Generic[V]):
    """Values in the order of their codes; finding the code of a value is one look."""

    __slots__ = ("_code_of",)

    def __init__(self) -> None:
        super().__init__()
        self._code_of: dict[V, int] = {}

    def code(self, value: V) -> int:
        """The code of a value; a new one gets the next."""
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = len(self)
            self.append(value)
        return code

    def index(self, value: V, *bounds: Any) -> int:
        """ValueError if the value has no code, as of any list."""
        if bounds:
            return super().index(value, *bounds)
        code = self._code_of.get(value)
        if code is None:
            raise ValueError(f"{value!r} is not among the values")
        return code


class CodedColumn(Generic[V]):
    """An interned value per node row; `MISSING` where there is none."""

    __slots__ = ("codes", "distinct")

    def __init__(self, capacity: int, distinct: Distinct[V] | None = None) -> None:
        self.codes = Column(np.int32, capacity, fill=MISSING)
        self.distinct: Distinct[V] = Distinct() if distinct is None else distinct

    def set(self, row: int, value: V | None) -> None:
        self.codes[row] = MISSING if value is None else self.distinct.code(value)

    def fill(self, values: Iterable[V | None]) -> None:
        """The values of the first rows."""
        code = self.distinct.code
        self.codes.fill_first([MISSING if value is None else code(value) for value in values])
