"""Growable NumPy columns and interning: string work done once, integer work done per node.

`Column` is an array that grows by doubling and drops a row by moving the last one into its place, so that rows stay
dense. `CodedColumn` holds a small integer per row for a hashable value (a label value, a set of taints): what depends
on the value alone is computed once per distinct value and spread to the rows by indexing.

Names of resources come from all users who may create a pod or run a node, thousands of them in one object. A column
costs as much as there are nodes, so only what many nodes have is one (`Amounts`); of other resources just the rows are
kept that have some. What no row has is forgotten: the cost is that of the amounts that are there. Sums are exact;
columns show at most what an int64 holds, however many pods claim to need that much.

What plugins derive from one node's own facts (the share of its memory that is in use, the balance of its resources) is
kept in the form in which they need it (`DerivedColumns`), and worked out anew for nodes that have changed only. The
derivation is handed in with every question, so that nothing here holds a plugin; the columns that were asked for last
are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import DTypeLike, NDArray

from pilotage.api.table import NodeTable, Scores
from pilotage.cluster.node_rows import NodeRows
from pilotage.model.quantity import MAX_INT64

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

    def without(self, gone: Column) -> Column:
        """A column of its own with the values that are left without these."""
        left = Column(self._values.dtype, len(self._values), self.fill)
        np.subtract(self._values, gone._values, out=left._values)
        return left

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


_ALWAYS_COLUMNS: Final = ("cpu", "memory", "pods", "ephemeral-storage")
_FEW_ROWS: Final = 64


class Amounts:
    """One family of amounts: what nodes offer, or what pods request."""

    __slots__ = ("_beyond", "_capacity", "_columns", "_few", "_filled")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._columns = {resource: Column(np.int64, capacity) for resource in _ALWAYS_COLUMNS}
        self._filled: dict[str, int] = {}
        """How many rows have some, of each column that may go again."""
        self._few: dict[str, dict[int, int]] = {}
        """Of the other resources: the rows that have some."""
        self._beyond: dict[tuple[str, int], int] = {}
        """Sums that a column cannot hold."""

    def __contains__(self, resource: str) -> bool:
        """False if no row has any."""
        return resource in self._few or resource in self._columns

    def names(self) -> Iterator[str]:
        yield from self._columns
        yield from self._few

    @property
    def column_count(self) -> int:
        return len(self._columns)

    def column(self, resource: str, size: int) -> Scores:
        """The first `size` rows, read-only; valid until something changes."""
        column = self._columns.get(resource)
        if column is not None:
            return column.values(size)
        shown: Scores = np.zeros(size, dtype=np.int64)
        for row, amount in self._few.get(resource, {}).items():
            shown[row] = min(amount, MAX_INT64)
        shown.flags.writeable = False
        return shown

    def at(self, row: int, resource: str) -> int:
        """What a row has, exactly."""
        column = self._columns.get(resource)
        if column is None:
            few = self._few.get(resource)
            return 0 if few is None else few.get(row, 0)
        shown: int = column.item(row)
        return shown if shown != MAX_INT64 else self._beyond.get((resource, row), shown)

    def add(self, row: int, resource: str, amount: int) -> None:
        if resource in _ALWAYS_COLUMNS and not self._beyond:
            column = self._columns[resource]
            total = column.item(row) + amount
            if total < MAX_INT64:
                column.put(row, total)
                return
        self.set(row, resource, self.at(row, resource) + amount)

    def set(self, row: int, resource: str, amount: int) -> None:
        column = self._columns.get(resource)
        if column is None:
            self._set_one_of_few(row, resource, amount)
            return
        before = column[row]
        self._beyond.pop((resource, row), None)
        if amount > MAX_INT64:
            self._beyond[resource, row] = amount
            amount = MAX_INT64
        column[row] = amount
        if (before == 0) != (amount == 0) and resource not in _ALWAYS_COLUMNS:
            self._count(resource, 1 if amount else -1)

    def _set_one_of_few(self, row: int, resource: str, amount: int) -> None:
        few = self._few.get(resource)
        if amount:
            if few is None:
                few = self._few[resource] = {}
            few[row] = amount
            if len(few) > _FEW_ROWS:
                self._make_column(resource, self._few.pop(resource))
        elif few is not None and few.pop(row, None) is not None and not few:
            del self._few[resource]

    def _make_column(self, resource: str, few: dict[int, int]) -> None:
        self._columns[resource] = Column(np.int64, self._capacity)
        self._filled[resource] = 0
        for row, amount in few.items():
            self.set(row, resource, amount)

    def _count(self, resource: str, more: int) -> None:
        filled = self._filled[resource] = self._filled[resource] + more
        if more < 0 and filled < _FEW_ROWS // 2:
            rows = np.flatnonzero(self._columns[resource].values(self._capacity)).tolist()
            self._few[resource] = {row: self.at(row, resource) for row in rows}
            for row in rows:
                self._beyond.pop((resource, row), None)
            del self._columns[resource], self._filled[resource]

    def without(self, gone: Amounts) -> Amounts:
        """Amounts of their own: what is left without these, which are part of them."""
        left = Amounts(self._capacity)
        are_exact = not self._beyond and not gone._beyond
        nothing = Column(np.int64, self._capacity)
        left._columns = {
            resource: column.without(gone._columns.get(resource, nothing) if are_exact else nothing)
            for resource, column in self._columns.items()
        }
        left._filled = {name: int(np.count_nonzero(left._columns[name]._values)) for name in self._filled}
        left._few = {resource: dict(rows) for resource, rows in self._few.items()}
        left._beyond = dict(self._beyond)
        for resource in gone.names():
            if not are_exact or resource not in gone._columns or resource not in self._columns:
                for row in gone._rows_with(resource):
                    left.add(row, resource, -gone.at(row, resource))
        return left

    def _rows_with(self, resource: str) -> list[int]:
        few = self._few.get(resource)
        return list(few) if few is not None else np.flatnonzero(self._columns[resource]._values).tolist()

    def move(self, source: int, target: int) -> None:
        """Put what row `source` has into row `target`, and nothing into `source`."""
        for resource in list(self.names()):
            amount = self.at(source, resource)
            if amount or self.at(target, resource):
                self.set(target, resource, amount)
                self.set(source, resource, 0)

    def reserve(self, capacity: int) -> None:
        """Columns must be this long from now on."""
        self._capacity = capacity
        for column in self._columns.values():
            column.reserve(capacity)


Derive = Callable[[NodeTable], NDArray[Any]]

_KEPT_DERIVED: Final = 16


class LoggedTable(NodeTable, Protocol):
    """A table that knows which of its rows have changed."""

    structure: int

    @property
    def mark(self) -> int: ...

    def changed_since(self, mark: int) -> list[int] | None: ...


class _Derived(Struct, eq=False):
    values: NDArray[Any]
    shown: NDArray[Any]
    """The same, read-only."""
    structure: int
    mark: int


class DerivedColumns:
    """What was derived from the nodes of one table."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, _Derived] = OrderedDict()

    def column(self, key: Hashable, derive: Derive, nodes: LoggedTable) -> NDArray[Any]:
        """The column of this name as of now, read-only; its last axis has an entry for each node."""
        known = self._known.get(key)
        if known is not None and known.structure == nodes.structure:
            changed = nodes.changed_since(known.mark)
            if changed is not None and len(changed) * 4 <= len(nodes):
                if changed:
                    some = NodeRows(nodes, np.array(changed, dtype=np.int64))
                    known.values[..., changed] = _checked(derive(some), len(changed))
                    known.mark = nodes.mark
                self._known.move_to_end(key)
                return known.shown
        values = np.array(_checked(derive(nodes), len(nodes)))
        shown = values.view()
        shown.flags.writeable = False
        self._known[key] = _Derived(values, shown, nodes.structure, nodes.mark)
        self._known.move_to_end(key)
        if len(self._known) > _KEPT_DERIVED:
            self._known.popitem(last=False)
        return shown


def _checked(values: object, size: int) -> NDArray[Any]:
    column = np.asarray(values)
    if column.ndim == 0 or column.shape[-1] != size:
        raise ValueError(f"expected a derived column with {size} entries in its last axis, got shape {column.shape}")
    return column
