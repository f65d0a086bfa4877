"""Nodes that no eviction can help, found for many nodes at once.

As far as filters look at nodes and amounts only, they are asked about the columns of a table without those pods. What
they reject there needs no closer look: bringing pods back, or imagining nominated ones, cannot help. Who rejects first,
and why, is exact as long as no filter of another kind comes before, and no other pod is nominated to the node.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pilotage.api import points
from pilotage.api.plugin import Plugin, Sees
from pilotage.api.results import Reason, Reject
from pilotage.api.state import CycleState
from pilotage.api.table import Mask, Rows
from pilotage.cluster.lower_priority import WithoutLowerPriority
from pilotage.cluster.node_rows import NodeRows
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.framework.diagnosis import Rejected
from pilotage.framework.preemption.outcomes import HOPELESS, MAY_HELP, Outcomes
from pilotage.framework.preemption.victims import NO_VICTIMS
from pilotage.framework.profile import Profile, name_of
from pilotage.model import Pod

_MOST_REASONS = 62
"""As many have room in the bits of an integer; who rejects for more is asked again where it matters."""


class FirstStep:
    """Judges rows with the filters of one profile."""

    def __init__(self, profile: Profile, nodes: ClusterNodeTable) -> None:
        self._nodes = nodes
        self._filters = tuple((name_of(plugin), plugin) for plugin in profile.filters)

    def judge(self, state: CycleState, pod: Pod, rows: Rows, nominated: Mask, outcomes: Outcomes) -> None:
        """Note in `outcomes` what can be said of these rows; `nominated` says which of them others may claim."""
        lower = self._nodes.below(pod.priority)
        has_victims: Mask = lower.count.values(len(self._nodes))[rows] > 0
        outcomes.codes[rows[~has_victims]] = outcomes.rejections.number(NO_VICTIMS)
        rows, nominated = rows[has_victims], nominated[has_victims]
        table = NodeRows(WithoutLowerPriority(self._nodes, lower), rows)
        is_exact = True
        still_open = np.ones(len(rows), dtype=np.bool_)
        for name, plugin in self._filters:
            if name in state.skip_filter:
                continue
            masks = _rejections(plugin, state, pod, table, still_open) if _sees_columns_only(plugin) else None
            if masks is None:
                is_exact = False
            if not masks:
                continue
            here = np.logical_or.reduce([mask for mask, _ in masks])
            outcomes.codes[rows[here]] = HOPELESS
            if is_exact and len(masks) <= _MOST_REASONS:
                _name_rejections(name, masks, rows, ~nominated, outcomes)
            still_open &= ~here
        outcomes.codes[rows[still_open]] = MAY_HELP


def _sees_columns_only(plugin: Plugin) -> bool:
    return plugin.filter_sees <= Sees.AMOUNTS and isinstance(plugin, points.VectorFilter)


def _rejections(
    plugin: Plugin, state: CycleState, pod: Pod, table: NodeRows, still_open: Mask
) -> list[tuple[Mask, Reason]] | None:
    """What a filter rejects; None if it fails: then each node is tried, and has its own error."""
    assert isinstance(plugin, points.VectorFilter)
    try:
        found = [(mask & still_open, reason) for mask, reason in plugin.filter_all(state, pod, table)]
    except Exception:
        return None
    return [(mask, reason) for mask, reason in found if mask.any()]


def _name_rejections(
    plugin: str, masks: Sequence[tuple[Mask, Reason]], rows: Rows, named: Mask, outcomes: Outcomes
) -> None:
    """Rows that one plugin rejects for the same set of reasons get the same number."""
    sets = np.zeros(len(rows), dtype=np.int64)
    for bit, (mask, _) in enumerate(masks):
        sets |= (mask & named).astype(np.int64) << bit
    for wanted in np.unique(sets[sets > 0]).tolist():
        reasons = [reason for bit, (_, reason) in enumerate(masks) if wanted >> bit & 1]
        outcomes.codes[rows[sets == wanted]] = outcomes.rejections.number(Rejected(plugin, Reject(*reasons)))
