"""What the filters say against each node, remembered for pods of equal content.

Pods that fit nowhere come in numbers: a Deployment that is too large, preemptors that wait for their victims. If all
filters look at the pod and one node only, who rejects a node, and why, holds for every equal pod until the node
changes, or the pods nominated to it: one number per row says it, and only rows that changed are asked about again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pilotage.api.plugin import Plugin
from pilotage.api.state import CycleState
from pilotage.api.table import Mask, Rows
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.state import Nominations
from pilotage.framework.class_memory import ClassMemory
from pilotage.framework.combined_reasons import CombinedReasons
from pilotage.framework.diagnosis import Rejected
from pilotage.framework.dry_run import DryRun
from pilotage.framework.node_questions import NodeQuestions
from pilotage.framework.nominated_pods_filter import NominatedPodsFilter
from pilotage.framework.profile import Profile, name_of
from pilotage.framework.rejection_codes import RejectionCodes
from pilotage.model import Pod

_FEW_ROWS = 8

UNKNOWN = -2
FITS = -1


class _Rejections:
    """One number per row: a constant from above, or the number of what rejects the row."""

    __slots__ = ("codes", "rejections")

    def __init__(self, size: int) -> None:
        self.codes: NDArray[np.int32] = np.full(size, UNKNOWN, dtype=np.int32)
        self.rejections = RejectionCodes()

    def forget(self, rows: Sequence[int]) -> bool:
        """False if there is nothing left that could be relied on."""
        # Reasons may name amounts: over time there can be more of them than nodes.
        if len(self.rejections.rejections) > 2 * len(self.codes) + _FEW_ROWS:
            return False
        self.codes[rows] = UNKNOWN
        return True

    def note(self, row: int, rejected: Rejected | None) -> None:
        self.codes[row] = FITS if rejected is None else self.rejections.number(rejected)


class RejectionMemory:
    """Answers for the pods of one profile."""

    def __init__(
        self,
        profile: Profile,
        nodes: ClusterNodeTable,
        nominations: Nominations,
        questions: NodeQuestions,
        dry_run: DryRun,
        contested: NominatedPodsFilter,
    ) -> None:
        self._profile = profile
        self._nodes = nodes
        self._nominations = nominations
        self._questions = questions
        self._dry_run = dry_run
        self._contested = contested
        self._classes: ClassMemory[_Rejections] = ClassMemory(
            profile,
            nodes,
            nominations,
            make=lambda _: _Rejections(len(nodes)),
            update=lambda known, _, changed: known.forget(changed),
        )

    def verdicts(self, state: CycleState, pod: Pod, among: Mask) -> tuple[NDArray[np.int32], Sequence[Rejected]] | None:
        """Return who rejects which of these rows: by row a number (less than 0: none), and the rejection it stands for.

        None if a filter of the pod must be asked for every pod.
        """
        known = self._classes.get(state, pod)
        if known is None:
            return None
        own = self._nodes.row(self._nominations.node_of(pod.uid))
        unknown = among & (known.codes == UNKNOWN)
        if own is not None:
            # To the others of its class the nominated node of this very pod is taken.
            unknown[own] = False
        self._judge(state, pod, known, unknown)
        codes = known.codes.copy()
        codes[~among] = UNKNOWN
        if own is not None and among[own]:
            rejected = self._dry_run.rejection_as_nominated(state, pod, own)
            codes[own] = FITS if rejected is None else known.rejections.number(rejected)
        return codes, known.rejections.rejections

    def _judge(self, state: CycleState, pod: Pod, known: _Rejections, unknown: Mask) -> None:
        """Beside the pods that are nominated to a node first, then on the node as it is."""
        rows = unknown.nonzero()[0]
        if not len(rows):
            return
        for row, rejected in self._contested.rejections(state, pod, unknown):
            known.note(row, rejected)
        rows = rows[known.codes[rows] == UNKNOWN]
        if len(rows) > _FEW_ROWS:
            self._judge_in_columns(state, pod, known, rows)
            return
        filters = self._dry_run.filters_of(state, pod)
        for row in rows.tolist():
            known.note(row, filters.rejection_now(row))

    def _judge_in_columns(self, state: CycleState, pod: Pod, known: _Rejections, rows: Rows) -> None:
        verdicts = np.full(len(rows), FITS, dtype=np.int32)
        for plugin in self._profile.filters:
            if name_of(plugin) in state.skip_filter:
                continue
            places = (verdicts == FITS).nonzero()[0]
            if not len(places):
                break
            verdicts[places] = self._codes_of(state, pod, plugin, known.rejections, rows[places])
        # Only now: a cycle may be interrupted in any plugin, and half a verdict must not be remembered.
        known.codes[rows] = verdicts

    def _codes_of(
        self, state: CycleState, pod: Pod, plugin: Plugin, rejections: RejectionCodes, rows: Rows
    ) -> NDArray[np.int32]:
        """What one plugin says of rows that no plugin has rejected so far."""
        combined = CombinedReasons(len(rows))
        everywhere = np.ones(len(rows), dtype=np.bool_)
        some, name = self._questions.table_of(rows), name_of(plugin)
        for found, reason, is_pending in self._questions.rejections(state, pod, plugin, some, rows, everywhere):
            state.budget.spend(len(rows) // 256 + 1)
            combined.add(found, reason, is_pending)
        codes = np.full(len(rows), FITS, dtype=np.int32)
        for rejection, found in combined.rejections():
            codes[found] = rejections.number(Rejected(name, rejection))
        return codes
