"""Nodes that are promised to other pods, judged as if those pods were there already.

A pod may take a node only if it fits both beside the pods of the same or higher priority that are promised the node,
and without them. Hundreds of preemptors may wait for their nodes at a time, so what the filters say of a node beside
its promised pods is remembered per class of pods, as long as neither node nor promises change.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping

import numpy as np

from pilotage.api.state import CycleState
from pilotage.api.table import Mask, Rows
from pilotage.cluster.node_table import NodeTable
from pilotage.cluster.nominations import Nominations
from pilotage.framework.diagnosis import Refused
from pilotage.framework.dry_run import DryRun
from pilotage.framework.plan import class_of
from pilotage.framework.profile import Profile
from pilotage.framework.row_changes import RowChanges
from pilotage.model import Pod

_KEPT_CLASSES = 64


class _Verdicts:
    """What is known of contested rows for one class of pods."""

    def __init__(self, versions: Hashable, changes: RowChanges) -> None:
        self.versions = versions
        self.changes = changes
        self.rows: dict[int, None] = {}
        self.known: dict[int, Refused | None] = {}
        self.as_array: Rows | None = None

    def forget(self, row: int) -> None:
        self.known.pop(row, None)
        if row in self.rows:
            del self.rows[row]
            self.as_array = None

    def contest(self, row: int) -> None:
        self.rows[row] = None
        self.as_array = None

    def array(self) -> Rows:
        if self.as_array is None:
            self.as_array = np.array(list(self.rows), dtype=np.int64)
        return self.as_array


class Contested:
    """Answers for the pods of one profile."""

    def __init__(self, profile: Profile, dry_run: DryRun, nodes: NodeTable, nominations: Nominations) -> None:
        self._profile = profile
        self._dry_run = dry_run
        self._nodes = nodes
        self._nominations = nominations
        self._classes: OrderedDict[Hashable, _Verdicts] = OrderedDict()

    def refusals(self, state: CycleState, pod: Pod, among: Mask) -> Mapping[int, Refused]:
        """Of the rows in `among` those on which the pod does not fit beside the pods that are promised the node."""
        if not len(self._nominations):
            return {}
        verdicts = self._verdicts(state, pod)
        rows = verdicts.array()
        own = self._nodes.row(self._nominations.node_of(pod.uid))
        trial = self._dry_run.trial(state, pod)
        refused: dict[int, Refused] = {}
        for row in rows[among[rows]].tolist():
            if row == own:
                # The class's verdict counts this very pod among the promised ones.
                verdict = trial.refusal_beside(row, self._dry_run.rivals_on(pod, self._nodes.names[row]))
            elif row in verdicts.known:
                verdict = verdicts.known[row]
            else:
                verdict = verdicts.known[row] = trial.refusal_beside(
                    row, self._dry_run.rivals_on(pod, self._nodes.names[row])
                )
            if verdict is not None:
                refused[row] = verdict
        return refused

    def _verdicts(self, state: CycleState, pod: Pod) -> _Verdicts:
        shared = class_of(self._profile, state, pod)
        if shared is None:
            fresh = _Verdicts(None, RowChanges(self._nodes, self._nominations))
            self._contest(fresh, pod, self._all_rows())
            return fresh
        key = (shared.signature, pod.priority)
        known = self._classes.get(key)
        changed = None if known is None or known.versions != shared.versions else known.changes.since_last()
        if known is None or changed is None:
            known = self._classes[key] = _Verdicts(shared.versions, RowChanges(self._nodes, self._nominations))
            changed = self._all_rows()
            if len(self._classes) > _KEPT_CLASSES:
                self._classes.popitem(last=False)
        self._classes.move_to_end(key)
        for row in changed:
            known.forget(row)
        self._contest(known, pod, changed)
        return known

    def _all_rows(self) -> list[int]:
        return [row for row in map(self._nodes.row, self._nominations.nodes()) if row is not None]

    def _contest(self, verdicts: _Verdicts, pod: Pod, rows: Iterable[int]) -> None:
        names = self._nodes.names
        for row in rows:
            if any(rival.priority >= pod.priority for rival in self._nominations.on(names[row])):
                verdicts.contest(row)
