"""Implements `pilotage.api.WhatIf`: one pod's filters and scores, asked about nodes as they would be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from pilotage.api.budget import Budget
from pilotage.api.results import Rejection
from pilotage.api.state import CycleState
from pilotage.api.views import NodeView
from pilotage.api.what_if import HypotheticalNode
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.framework.diagnosis import ABSENT_PLUGIN
from pilotage.framework.dry_run import DryRunNode
from pilotage.framework.evaluation import Evaluator
from pilotage.framework.runner import Runner, no_node_left
from pilotage.model import Pod

MOST_NESTED: Final = 3


class Nesting:
    """How deep questions are in each other: a plugin that is asked may ask in turn, and so on for ever."""

    __slots__ = ("_depth",)

    def __init__(self) -> None:
        self._depth = 0

    def __enter__(self) -> None:
        if self._depth >= MOST_NESTED:
            raise RecursionError(
                "what_if is asked from within what_if, again and again: a plugin must not ask about a pod for which it "
                "asks again itself"
            )
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1


class ProfileWhatIf:
    """The pod after a PreFilter of its own: nothing that a scheduling cycle has in its state is touched."""

    def __init__(
        self, runner: Runner, evaluator: Evaluator, nodes: ClusterNodeTable, nesting: Nesting, pod: Pod, budget: Budget
    ) -> None:
        """`nesting` is the same for all that may be asked within each other."""
        self.pod = pod
        self._nesting = nesting
        self._nodes = nodes
        self._evaluator = evaluator
        self._state = CycleState(budget)
        with nesting:
            self._pre_filtered = runner.pre_filter(self._state, pod)
        self._filters = evaluator.dry_run.filters_of(self._state, pod)

    @property
    def rejection(self) -> tuple[str, Rejection] | None:
        rejected = self._pre_filtered.rejected
        return None if rejected is None else (rejected.plugin, rejected.rejection)

    def on(self, node_name: str) -> WhatIfNode:
        row = self._nodes.row(node_name)
        if row is None:
            raise KeyError(f'there is no node "{node_name}"')
        return WhatIfNode(self, row, self._filters.node(row))

    def scores(self, nodes: Sequence[HypotheticalNode]) -> Mapping[str, int]:
        by_name = {node.name: node.view for node in nodes}
        if len(by_name) < len(nodes):
            raise ValueError("scores: each node once, please: the answer is by name")
        rows = np.array([self._nodes.row(name) for name in by_name], dtype=np.int64)
        state = self._state.clone()
        state.skip_score = set()
        with self._nesting:
            totals = self._evaluator.totals_on(state, self.pod, rows, list(by_name.values()))
        return dict(zip(by_name, totals.tolist(), strict=True))

    def rejection_on(self, row: int, node: DryRunNode) -> tuple[str, Rejection] | None:
        """What rejects a row with these pods on it: PreFilter, or a filter."""
        if self.rejection is not None:
            return self.rejection
        allowed = self._pre_filtered.allowed
        if allowed is not None and not allowed[row]:
            return ABSENT_PLUGIN, no_node_left(self._pre_filtered.restricting)
        rivals = self._evaluator.dry_run.rivals_on(self.pod, self._nodes.names[row])
        with self._nesting:
            rejected = (node.rejection_beside(rivals) if rivals else None) or node.rejection()
        return None if rejected is None else (rejected.plugin, rejected.rejection)


class WhatIfNode:
    """Implements `pilotage.api.HypotheticalNode`."""

    __slots__ = ("_node", "_row", "_what_if")

    def __init__(self, what_if: ProfileWhatIf, row: int, node: DryRunNode) -> None:
        self._what_if = what_if
        self._row = row
        self._node = node

    @property
    def name(self) -> str:
        return self._node.view.name

    @property
    def view(self) -> NodeView:
        return self._node.view

    def add(self, pod: Pod) -> None:
        if self._has(pod):
            raise ValueError(f'pod {pod.key} is on node "{self.name}" already')
        self._node.add(pod)

    def remove(self, pod: Pod) -> None:
        if not self._has(pod):
            raise ValueError(f'pod {pod.key} is not on node "{self.name}"')
        self._node.remove(pod)

    def rejection(self) -> tuple[str, Rejection] | None:
        return self._what_if.rejection_on(self._row, self._node)

    def _has(self, pod: Pod) -> bool:
        return any(other.uid == pod.uid for other in self._node.view.pods)
