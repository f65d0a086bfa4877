"""Labels of nodes as columns, made for the keys that are asked for.

Users who create pods decide which keys are asked for, so a key that no node has costs nothing: one look at the
keys that nodes have says so. Of keys that few nodes have just the rows are kept. Of the others a bounded number of
columns is kept, those that were asked for last. A change of a node touches the columns of the labels that changed.

The values of a key keep their codes while any node has the key, whether its column is kept or not. When most of them
are of nodes that are gone, or have other labels now, codes are given anew, with another list of values.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from pilotage.api.table import Codes
from pilotage.cluster.columns import MISSING, CodedColumn, Distinct
from pilotage.model import Node

_KEPT_BYTES: Final = 32 * 2**20
_LEAST_KEPT: Final = 64
_SPARE_VALUES: Final = 64
_FEW_ROWS: Final = 16
_NO_LABELS: Final[Mapping[str, str]] = {}
_NO_VALUES: Final[Distinct[str]] = Distinct()


class LabelColumns:
    """The labels of all rows."""

    __slots__ = ("_absent", "_capacity", "_columns", "_few", "_nodes_with", "_values")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._nodes_with: dict[str, int] = {}
        """By key."""
        self._few: dict[str, dict[int, str]] = {}
        """Rows and values of the keys that never more than a few nodes had."""
        self._values: dict[str, Distinct[str]] = {}
        """Of the keys that were asked for and that some node has."""
        self._columns: OrderedDict[str, CodedColumn[str]] = OrderedDict()
        """The one that was asked for last is at the end."""
        self._absent: Codes = np.empty(0, dtype=np.int32)

    def __contains__(self, key: str) -> bool:
        """Whether any node has this label."""
        return key in self._nodes_with

    @property
    def column_count(self) -> int:
        return len(self._columns)

    def keys(self) -> Iterable[str]:
        """The keys that have a column."""
        return self._columns.keys()

    def column(self, key: str, nodes: Sequence[Node]) -> tuple[Codes, Distinct[str]]:
        """Codes and values of a label; `nodes` are all of them, by row."""
        column = self._columns.get(key)
        if column is None:
            if key not in self._nodes_with:
                return self._missing_everywhere(len(nodes)), _NO_VALUES
            if key in self._few:
                return self._of_few(key, len(nodes))
            column = self._make(key, nodes)
        self._columns.move_to_end(key)
        return column.codes.values(len(nodes)), column.distinct

    def _missing_everywhere(self, size: int) -> Codes:
        if len(self._absent) != size:
            self._absent = np.full(size, MISSING, dtype=np.int32)
            self._absent.flags.writeable = False
        return self._absent

    def _make(self, key: str, nodes: Sequence[Node]) -> CodedColumn[str]:
        if len(self._columns) >= max(_LEAST_KEPT, _KEPT_BYTES // (4 * self._capacity)):
            self._columns.popitem(last=False)
        column = self._columns[key] = CodedColumn(self._capacity, self._values_of(key))
        column.fill([node.metadata.labels.get(key) for node in nodes])
        return column

    def _of_few(self, key: str, size: int) -> tuple[Codes, Distinct[str]]:
        values = self._values_of(key)
        codes: Codes = np.full(size, MISSING, dtype=np.int32)
        for row, value in self._few[key].items():
            codes[row] = values.code(value)
        codes.flags.writeable = False
        return codes, values

    def _values_of(self, key: str) -> Distinct[str]:
        values = self._values.get(key)
        if values is None:
            values = self._values[key] = Distinct()
        return values

    # --- nodes come, change and go -----------------------------------------------------------------------------

    def put(self, row: int, old: Mapping[str, str] | None, new: Mapping[str, str]) -> None:
        """The node of a row has other labels than before."""
        before = _NO_LABELS if old is None else old
        if before == new:
            return
        for key in before.keys() - new.keys():
            self._count(key, -1)
            self._write(row, key, None)
        for key, value in new.items():
            if (known := before.get(key)) != value:
                if known is None:
                    self._count(key, 1)
                self._write(row, key, value)

    def remove(self, row: int, labels: Mapping[str, str], last: int, last_labels: Mapping[str, str]) -> None:
        """The node of a row is gone, and the last row takes its place."""
        self.put(row, labels, _NO_LABELS if row == last else last_labels)
        if row != last:
            self.put(last, last_labels, _NO_LABELS)

    def _write(self, row: int, key: str, value: str | None) -> None:
        few, column = self._few.get(key), self._columns.get(key)
        if few is not None:
            _set_one_of_few(few, row, value)
            if len(few) > _FEW_ROWS:
                del self._few[key]
        elif column is not None:
            column.set(row, value)
        self._forget_if_unused(key)

    def _count(self, key: str, more: int) -> None:
        count = self._nodes_with.get(key, 0) + more
        if count:
            self._nodes_with[key] = count
        else:
            del self._nodes_with[key]
            self._few.pop(key, None)
        if count == 1 and more > 0:
            self._few[key] = {}
        if more < 0:
            self._forget_if_unused(key)

    def _forget_if_unused(self, key: str) -> None:
        """Only when a node has changed: those that keep codes of this key see that they may be others now."""
        values = self._values.get(key)
        count = self._nodes_with.get(key, 0)
        if values is not None and (not count or len(values) > 2 * count + _SPARE_VALUES):
            del self._values[key]
            self._columns.pop(key, None)

    def reserve(self, capacity: int) -> None:
        self._capacity = capacity
        for column in self._columns.values():
            column.codes.reserve(capacity)


def _set_one_of_few(few: dict[int, str], row: int, value: str | None) -> None:
    if value is None:
        few.pop(row, None)
    else:
        few[row] = value
