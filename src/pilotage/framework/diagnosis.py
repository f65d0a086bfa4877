"""Why a pod fits nowhere: data first, the sentence that kube-scheduler would write second.

While filtering, each plugin leaves (mask, reason) pairs. A node belongs to the first plugin that refused it, with all
reasons of that plugin. Counting is done on the masks: nothing is formatted per node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pilotage.api.results import Pending, Reason, Refusal, Reject
from pilotage.api.table import Mask

ABSENT_PLUGIN = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """A plugin's refusal together with its name."""

    plugin: str
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class Rejection:
    """The nodes that one plugin refused for one reason."""

    plugin: str
    reason: Reason
    rows: Mask
    is_pending: bool = False


@dataclass(slots=True)
class Diagnosis:
    """Everything known about why no node was feasible."""

    node_names: Sequence[str]
    rejections: list[Rejection] = field(default_factory=list)
    rejectors: set[str] = field(default_factory=set)
    """Plugins whose events may help the pod."""
    pending: set[str] = field(default_factory=set)
    """Those of them that asked for a retry without backoff."""
    pre_filter: tuple[str, Refusal] | None = None
    """The plugin that refused the pod before any node was looked at, and its refusal."""
    post_filter_message: str = ""

    def message(self) -> str:
        """`0/5 nodes are available: 3 Insufficient cpu, 2 node(s) were unschedulable.`"""
        if self.pre_filter is not None:
            text = f"{_head(len(self.node_names))} {refusal_text(self.pre_filter[1])}."
        else:
            text = unavailable_text(len(self.node_names), self.reason_counts())
        return f"{text} {self.post_filter_message}" if self.post_filter_message else text

    def reason_counts(self) -> dict[str, int]:
        """On how many nodes each message applies."""
        counts: Counter[str] = Counter()
        for rejection in self.rejections:
            if rejection.reason.message:
                counts[rejection.reason.message] += int(np.count_nonzero(rejection.rows))
        return dict(counts)

    def resolvable(self) -> list[str]:
        """Nodes where evicting pods might help."""
        return [self.node_names[row] for row in self.resolvable_rows().tolist()]

    def resolvable_rows(self) -> NDArray[np.int64]:
        hopeless = np.zeros(len(self.node_names), dtype=np.bool_)
        refused = np.zeros(len(self.node_names), dtype=np.bool_)
        for rejection in self.rejections:
            refused |= rejection.rows
            if rejection.reason.unresolvable or rejection.is_pending:
                hopeless |= rejection.rows
        return np.flatnonzero(refused & ~hopeless)

    def refusal(self, node_name: str) -> Refusal:
        """Why one node was refused; without reasons if nobody said."""
        row = self.node_names.index(node_name)
        found = [rejection for rejection in self.rejections if rejection.rows[row]]
        kind = Pending if any(rejection.is_pending for rejection in found) else Reject
        return kind(*(rejection.reason for rejection in found))

    def plugin_of(self, node_name: str) -> str:
        row = self.node_names.index(node_name)
        return next((rejection.plugin for rejection in self.rejections if rejection.rows[row]), ABSENT_PLUGIN)


def unavailable_text(node_count: int, reason_counts: Mapping[str, int]) -> str:
    """How kube-scheduler sums up why no node will do."""
    counts = sorted(f"{count} {message}" for message, count in reason_counts.items())
    return f"{_head(node_count)} {', '.join(counts)}." if counts else _head(node_count)


def _head(node_count: int) -> str:
    return f"0/{node_count} nodes are available:"


def refusal_text(refusal: Refusal) -> str:
    return ", ".join(reason.message for reason in refusal.reasons)


def single_node_diagnosis(plugin: str, refusal: Refusal, node_name: str) -> Diagnosis:
    """A refusal by Reserve or Permit: about the chosen node only."""
    everywhere = np.ones(1, dtype=np.bool_)
    is_pending = isinstance(refusal, Pending)
    return Diagnosis(
        node_names=[node_name],
        rejections=[Rejection(plugin, reason, everywhere, is_pending) for reason in refusal.reasons],
        rejectors={plugin},
        pending={plugin} if is_pending else set(),
    )
