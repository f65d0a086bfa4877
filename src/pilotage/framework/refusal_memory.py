"""What the filters say against each node, remembered for pods of equal content.

Pods that fit nowhere come in numbers: a Deployment that is too large, preemptors that wait for their victims. If all
filters look at the pod and one node only, who refuses a node, and why, holds for every equal pod until the node
changes, or what is promised there: one number per row says it, and only rows that changed are asked about again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from pilotage.api.plugin import Plugin
from pilotage.api.state import CycleState
from pilotage.api.table import Mask, Rows
from pilotage.cluster.node_table import NodeTable
from pilotage.cluster.nominations import Nominations
from pilotage.framework.combined_reasons import CombinedReasons
from pilotage.framework.contested import Contested
from pilotage.framework.diagnosis import Refused
from pilotage.framework.dry_run import DryRun
from pilotage.framework.node_questions import NodeQuestions
from pilotage.framework.plan import class_of
from pilotage.framework.profile import Profile, name_of
from pilotage.framework.refusal_codes import RefusalCodes
from pilotage.framework.row_changes import RowChanges
from pilotage.model import Pod

_KEPT_CLASSES = 64
_FEW_ROWS = 8

UNKNOWN = -2
FITS = -1


class _Refusals:
    """One number per row: a constant from above, or the number of what refuses the row."""

    __slots__ = ("changes", "codes", "refusals", "versions")

    def __init__(self, size: int, versions: Hashable, changes: RowChanges) -> None:
        self.versions = versions
        self.changes = changes
        self.codes: NDArray[np.int32] = np.full(size, UNKNOWN, dtype=np.int32)
        self.refusals = RefusalCodes()

    def forget_changed(self) -> bool:
        """False if there is nothing left that could be relied on."""
        changed = self.changes.since_last()
        # Reasons may name amounts: over time there can be more of them than nodes.
        if changed is None or len(self.refusals.refusals) > 2 * len(self.codes) + _FEW_ROWS:
            return False
        self.codes[changed] = UNKNOWN
        return True

    def note(self, row: int, refused: Refused | None) -> None:
        self.codes[row] = FITS if refused is None else self.refusals.number(refused)


class RefusalMemory:
    """Answers for the pods of one profile."""

    def __init__(
        self,
        profile: Profile,
        nodes: NodeTable,
        nominations: Nominations,
        questions: NodeQuestions,
        dry_run: DryRun,
        contested: Contested,
    ) -> None:
        self._profile = profile
        self._nodes = nodes
        self._nominations = nominations
        self._questions = questions
        self._dry_run = dry_run
        self._contested = contested
        self._classes: OrderedDict[Hashable, _Refusals] = OrderedDict()

    def verdicts(self, state: CycleState, pod: Pod, among: Mask) -> tuple[NDArray[np.int32], Sequence[Refused]] | None:
        """Who refuses which of these rows: by row a number (less than 0: nobody), and which refusal it stands for.

        None if a filter of the pod must be asked for every pod.
        """
        known = self._class_memory(state, pod)
        if known is None:
            return None
        own = self._nodes.row(self._nominations.node_of(pod.uid))
        unknown = among & (known.codes == UNKNOWN)
        if own is not None:
            # To the others of its class the node that is promised to this very pod is taken.
            unknown[own] = False
        self._judge(state, pod, known, unknown)
        codes = known.codes.copy()
        codes[~among] = UNKNOWN
        if own is not None and among[own]:
            refused = self._dry_run.refusal_as_promised(state, pod, own)
            codes[own] = FITS if refused is None else known.refusals.number(refused)
        return codes, known.refusals.refusals

    def _class_memory(self, state: CycleState, pod: Pod) -> _Refusals | None:
        shared = class_of(self._profile, state, pod)
        if shared is None:
            return None
        key = (shared.signature, pod.priority)
        known = self._classes.get(key)
        if known is None or known.versions != shared.versions or not known.forget_changed():
            changes = RowChanges(self._nodes, self._nominations)
            known = self._classes[key] = _Refusals(len(self._nodes), shared.versions, changes)
            if len(self._classes) > _KEPT_CLASSES:
                self._classes.popitem(last=False)
        self._classes.move_to_end(key)
        return known

    def _judge(self, state: CycleState, pod: Pod, known: _Refusals, unknown: Mask) -> None:
        """Beside the pods that are promised a node first, then on the node as it is."""
        rows = unknown.nonzero()[0]
        if not len(rows):
            return
        for row, refused in self._contested.refusals(state, pod, unknown):
            known.note(row, refused)
        rows = rows[known.codes[rows] == UNKNOWN]
        if len(rows) > _FEW_ROWS:
            self._judge_in_columns(state, pod, known, rows)
            return
        trial = self._dry_run.trial(state, pod)
        for row in rows.tolist():
            known.note(row, trial.refusal_now(row))

    def _judge_in_columns(self, state: CycleState, pod: Pod, known: _Refusals, rows: Rows) -> None:
        verdicts = np.full(len(rows), FITS, dtype=np.int32)
        for plugin in self._profile.filters:
            if name_of(plugin) in state.skip_filter:
                continue
            places = (verdicts == FITS).nonzero()[0]
            if not len(places):
                break
            verdicts[places] = self._codes_of(state, pod, plugin, known.refusals, rows[places])
        # Only now: a cycle may be interrupted in any plugin, and half a verdict must not be remembered.
        known.codes[rows] = verdicts

    def _codes_of(
        self, state: CycleState, pod: Pod, plugin: Plugin, refusals: RefusalCodes, rows: Rows
    ) -> NDArray[np.int32]:
        """What one plugin says of rows that nobody has refused so far."""
        combined = CombinedReasons(len(rows))
        everywhere = np.ones(len(rows), dtype=np.bool_)
        some, name = self._questions.table_of(rows), name_of(plugin)
        for found, reason, is_pending in self._questions.refusals(state, pod, plugin, some, rows, everywhere):
            state.budget.spend(len(rows) // 256 + 1)
            combined.add(found, reason, is_pending)
        codes = np.full(len(rows), FITS, dtype=np.int32)
        for refusal, found in combined.refusals():
            codes[found] = refusals.number(Refused(name, refusal))
        return codes
