"""Why a pod fits nowhere: data first, the sentence that kube-scheduler would write second.

A node belongs to the first plugin that rejected it, with all reasons of that plugin. What was found out for this pod
alone comes as (mask, reason) pairs, what is known of its class as a column of numbers that stand for rejections.
Counting is done on masks and columns: nothing is formatted per node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from pilotage.api.results import Pending, Reason, Reject, Rejection
from pilotage.api.table import Mask

ABSENT_PLUGIN = ""
SILENT = Reason("Rejected", "")
"""For a rejection that gives no reason."""
_LONGEST_LIST: Final = 15 * 1024
"""Bytes. Two such lists, of Filter and of preemption, fit into a condition's message (32 KiB)."""


class Rejected(Struct, frozen=True):
    """A plugin's rejection together with its name."""

    plugin: str
    rejection: Rejection

    @property
    def is_pending(self) -> bool:
        return isinstance(self.rejection, Pending)


class RejectedRows(Struct, frozen=True):
    """The nodes that one plugin rejected for one reason."""

    plugin: str
    reason: Reason
    rows: Mask
    is_pending: bool = False


class Diagnosis(Struct, eq=False):
    """Everything known about why no node was feasible."""

    node_names: Sequence[str]
    masks: list[RejectedRows] = field(default_factory=list)
    """What was found out for this pod alone."""
    codes: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    """What is known of its class: by row the number of a rejection, less than 0 if there is none."""
    counts: list[tuple[int, Rejected, int]] = field(default_factory=list)
    """Of the numbers in that column: which rejection it is, and of how many rows."""
    rejectors: set[str] = field(default_factory=set)
    """Plugins whose events may help the pod."""
    pending: set[str] = field(default_factory=set)
    """Those of them that asked for a retry without backoff."""
    pre_filter: tuple[str, Rejection] | None = None
    """The plugin that rejected the pod before any node was looked at, and its rejection."""
    post_filter_message: str = ""

    def add(self, rejection: RejectedRows) -> None:
        self.masks.append(rejection)
        self._name(rejection.plugin, rejection.is_pending)

    def set_codes(self, codes: NDArray[np.int32], rejections: Sequence[Rejected]) -> None:
        """Take over a column, which must not change any more."""
        self.codes = codes
        rows_of = np.bincount(codes[codes >= 0]).tolist()
        self.counts = [(number, rejections[number], rows) for number, rows in enumerate(rows_of) if rows]
        for _, rejected, _ in self.counts:
            self._name(rejected.plugin, rejected.is_pending)

    def limit_to(self, rows: Mask) -> None:
        """Say it of these nodes only: no others were looked at."""
        plugins = self._plugins()
        self.node_names = [self.node_names[row] for row in rows.nonzero()[0].tolist()]
        limited = [replace(rejection, rows=rejection.rows[rows]) for rejection in self.masks]
        self.masks = [rejection for rejection in limited if rejection.rows.any()]
        if self.counts:
            self.codes = self.codes[rows]
            found = np.bincount(self.codes[self.codes >= 0], minlength=1)
            self.counts = [
                (number, rejected, int(found[number]))
                for number, rejected, _ in self.counts
                if number < len(found) and found[number]
            ]
        elsewhere = plugins - self._plugins()
        self.rejectors -= elsewhere
        self.pending -= elsewhere

    def _plugins(self) -> set[str]:
        """Those that rejected nodes."""
        return {one.plugin for one in self.masks} | {rejected.plugin for _, rejected, _ in self.counts}

    def _name(self, plugin: str, is_pending: bool) -> None:
        self.rejectors.add(plugin)
        if is_pending:
            self.pending.add(plugin)

    def rejections(self) -> Iterator[RejectedRows]:
        """Everything, as masks."""
        yield from self.masks
        for number, rejected, _ in self.counts:
            rows: Mask = self.codes == number
            for reason in rejected.rejection.reasons or (SILENT,):
                yield RejectedRows(rejected.plugin, reason, rows, rejected.is_pending)

    def message(self) -> str:
        """`0/5 nodes are available: 3 Insufficient cpu, 2 node(s) were unschedulable.`"""
        if self.pre_filter is not None:
            text = f"{_head(len(self.node_names))} {rejection_text(self.pre_filter[1])}."
        else:
            text = unavailable_text(len(self.node_names), self.reason_counts())
        return f"{text} {self.post_filter_message}" if self.post_filter_message else text

    def reason_counts(self) -> dict[str, int]:
        """On how many nodes each message applies."""
        counts: dict[str, int] = {}
        for rejection in self.masks:
            message = rejection.reason.message
            counts[message] = counts.get(message, 0) + int(np.count_nonzero(rejection.rows))
        for _, rejected, rows in self.counts:
            for reason in rejected.rejection.reasons:
                counts[reason.message] = counts.get(reason.message, 0) + rows
        counts.pop("", None)
        return counts

    def resolvable(self) -> list[str]:
        """Nodes where evicting pods might help."""
        return [self.node_names[row] for row in self.resolvable_rows().tolist()]

    def resolvable_rows(self) -> NDArray[np.int64]:
        found = self.codes >= 0 if self.counts else np.zeros(len(self.node_names), dtype=np.bool_)
        for rejection in self.masks:
            found |= rejection.rows
        for number, rejected, _ in self.counts:
            if rejected.is_pending or rejected.rejection.unresolvable:
                found &= self.codes != number
        for rejection in self.masks:
            if rejection.is_pending or rejection.reason.unresolvable:
                found &= ~rejection.rows
        return found.nonzero()[0]

    def rejection(self, node_name: str) -> Rejection:
        """Why one node was rejected; without reasons if no plugin gave any."""
        row = self.node_names.index(node_name)
        found = [rejection for rejection in self.rejections() if rejection.rows[row]]
        kind = Pending if any(rejection.is_pending for rejection in found) else Reject
        return kind(*(rejection.reason for rejection in found))

    def plugin_of(self, node_name: str) -> str:
        row = self.node_names.index(node_name)
        return next((rejection.plugin for rejection in self.rejections() if rejection.rows[row]), ABSENT_PLUGIN)


def unavailable_text(node_count: int, reason_counts: Mapping[str, int]) -> str:
    """How kube-scheduler sums up why no node will do. Reasons that would make it too long are counted."""
    counts = sorted(f"{count} {message}" for message, count in reason_counts.items())
    shown = _that_fit(counts)
    if shown < len(counts):
        counts[shown:] = [f"and {len(counts) - shown} more reasons"]
    return f"{_head(node_count)} {', '.join(counts)}." if counts else _head(node_count)


def _that_fit(texts: Sequence[str]) -> int:
    """How many of these texts may stand in a message."""
    length = 0
    for place, text in enumerate(texts):
        length += len(text.encode()) + 2
        if length > _LONGEST_LIST:
            return place
    return len(texts)


def _head(node_count: int) -> str:
    return f"0/{node_count} nodes are available:"


def rejection_text(rejection: Rejection) -> str:
    return ", ".join(reason.message for reason in rejection.reasons)


def single_node_diagnosis(plugin: str, rejection: Rejection, node_name: str) -> Diagnosis:
    """A rejection by Reserve or Permit: about the chosen node only."""
    diagnosis = Diagnosis(node_names=[node_name])
    diagnosis.set_codes(np.zeros(1, dtype=np.int32), [Rejected(plugin, rejection)])
    return diagnosis
