"""What the filters say against each node, remembered for pods of equal content.

Pods that fit nowhere come in numbers: a Deployment that is too large, preemptors that wait for their victims. If all
filters look at the pod and one node only, who refuses a node, and why, holds for every equal pod until the node
changes: one number per row says it, and only rows that changed are asked about again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator

import numpy as np
from numpy.typing import NDArray

from pilotage.api.plugin import Plugin
from pilotage.api.results import Pending, Reason, Reject
from pilotage.api.state import CycleState
from pilotage.api.table import Mask, Rows
from pilotage.cluster.node_table import NodeTable
from pilotage.framework.diagnosis import Refused
from pilotage.framework.dry_run import DryRun
from pilotage.framework.node_questions import NodeQuestions
from pilotage.framework.plan import class_of
from pilotage.framework.profile import Profile, name_of
from pilotage.framework.refusal_codes import RefusalCodes
from pilotage.model import Pod

_KEPT_CLASSES = 64
_FEW_ROWS = 8

UNKNOWN = -2
FITS = -1


class _Refusals:
    """One number per row: a constant from above, or the number of what refuses the row."""

    __slots__ = ("codes", "mark", "refusals", "structure", "versions")

    def __init__(self, nodes: NodeTable, versions: Hashable) -> None:
        self.structure = nodes.structure
        self.versions = versions
        self.mark = nodes.mark
        self.codes: NDArray[np.int32] = np.full(len(nodes), UNKNOWN, dtype=np.int32)
        self.refusals = RefusalCodes()

    def forget_changed(self, nodes: NodeTable) -> bool:
        """False if there is nothing left that could be relied on."""
        changed = nodes.changed_since(self.mark) if self.structure == nodes.structure else None
        # Reasons may name amounts: over time there can be more of them than nodes.
        if changed is None or len(self.refusals.refusals) > 2 * len(nodes) + _FEW_ROWS:
            return False
        self.mark = nodes.mark
        self.codes[changed] = UNKNOWN
        return True


class RefusalMemory:
    """Answers for the pods of one profile."""

    def __init__(self, profile: Profile, nodes: NodeTable, questions: NodeQuestions, dry_run: DryRun) -> None:
        self._profile = profile
        self._nodes = nodes
        self._questions = questions
        self._dry_run = dry_run
        self._classes: OrderedDict[Hashable, _Refusals] = OrderedDict()

    def groups(self, state: CycleState, pod: Pod, among: Mask) -> Iterator[tuple[Refused, Mask]] | None:
        """Who refuses which of these rows; None if a filter of the pod must be asked for every pod."""
        shared = class_of(self._profile, state, pod)
        if shared is None:
            return None
        known = self._classes.get(shared.signature)
        if known is None or known.versions != shared.versions or not known.forget_changed(self._nodes):
            known = self._classes[shared.signature] = _Refusals(self._nodes, shared.versions)
            if len(self._classes) > _KEPT_CLASSES:
                self._classes.popitem(last=False)
        self._classes.move_to_end(shared.signature)
        self._judge(state, pod, known, (among & (known.codes == UNKNOWN)).nonzero()[0])
        return _grouped(known, among)

    def _judge(self, state: CycleState, pod: Pod, known: _Refusals, rows: Rows) -> None:
        if len(rows) > _FEW_ROWS:
            self._judge_in_columns(state, pod, known, rows)
            return
        if not len(rows):
            return
        trial = self._dry_run.trial(state, pod)
        for row in rows.tolist():
            refused = trial.refusal_now(row)
            known.codes[row] = FITS if refused is None else known.refusals.number(refused)

    def _judge_in_columns(self, state: CycleState, pod: Pod, known: _Refusals, rows: Rows) -> None:
        for plugin in self._profile.filters:
            if name_of(plugin) in state.skip_filter:
                continue
            if not len(rows):
                return
            codes = self._codes_of(state, pod, plugin, known.refusals, rows)
            known.codes[rows] = codes
            rows = rows[codes == FITS]

    def _codes_of(
        self, state: CycleState, pod: Pod, plugin: Plugin, refusals: RefusalCodes, rows: Rows
    ) -> NDArray[np.int32]:
        """What one plugin says of rows that nobody has refused so far."""
        codes = np.full(len(rows), FITS, dtype=np.int32)
        reasons: dict[int, tuple[Reason, ...]] = {}
        everywhere = np.ones(len(rows), dtype=np.bool_)
        some, name = self._questions.table_of(rows), name_of(plugin)
        for found, reason, is_pending in self._questions.refusals(state, pod, plugin, some, rows, everywhere):
            # A row that is refused for one more reason changes over to the combination of its reasons.
            for code in np.unique(codes[found]).tolist():
                joined = (*reasons.get(code, ()), reason)
                number = refusals.number(Refused(name, Pending(*joined) if is_pending else Reject(*joined)))
                reasons[number] = joined
                codes[found & (codes == code)] = number
        return codes


def _grouped(known: _Refusals, among: Mask) -> Iterator[tuple[Refused, Mask]]:
    codes = known.codes
    refused = codes[among & (codes >= 0)]
    for number in np.bincount(refused).nonzero()[0].tolist():
        yield known.refusals[number], among & (codes == number)
