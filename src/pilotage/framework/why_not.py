"""Why a pod fits on none of the nodes: who refused which, and with what words.

The first plugin that refuses a node is the one that counts for it, with all its reasons, as if the plugins had been
asked node by node.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pilotage.api.plugin import Plugin
from pilotage.api.state import CycleState
from pilotage.api.table import Mask
from pilotage.cluster.node_table import NodeTable
from pilotage.framework.contested import Contested
from pilotage.framework.diagnosis import SILENT, Diagnosis, Refused, Rejection
from pilotage.framework.node_questions import NodeQuestions
from pilotage.framework.profile import Profile, name_of
from pilotage.framework.refusal_memory import RefusalMemory
from pilotage.model import Pod


class WhyNot:
    """Finds out for the pods of one profile."""

    def __init__(
        self,
        profile: Profile,
        nodes: NodeTable,
        questions: NodeQuestions,
        contested: Contested,
        memory: RefusalMemory,
    ) -> None:
        self._profile = profile
        self._nodes = nodes
        self._questions = questions
        self._contested = contested
        self._memory = memory

    def diagnose(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis, allowed: Mask | None, judged: Mapping[int, Refused]
    ) -> None:
        """Write into `diagnosis` who refused which node; rows in `judged` have their verdict already."""
        size = len(self._nodes)
        open_rows = np.ones(size, dtype=np.bool_) if allowed is None else allowed.copy()
        for row, refused in judged.items():
            open_rows[row] = False
            _note(diagnosis, refused, _only(row, size))
        remembered = self._memory.verdicts(state, pod, open_rows)
        if remembered is not None:
            diagnosis.set_codes(*remembered)
            return
        verdicts = self._contested.verdicts(state, pod, open_rows)
        if verdicts is not None:
            for refused, mask in verdicts.groups(open_rows):
                _note(diagnosis, refused, mask)
            open_rows[verdicts.refused(open_rows)] = False
        for plugin in self._profile.filters:
            if name_of(plugin) in state.skip_filter:
                continue
            if not open_rows.any():
                break
            open_rows &= ~self._refused_by(state, pod, plugin, diagnosis, open_rows)

    def _refused_by(self, state: CycleState, pod: Pod, plugin: Plugin, diagnosis: Diagnosis, open_rows: Mask) -> Mask:
        """Nodes that others have refused are not looked at: what fails there must not stop the attempt."""
        name = name_of(plugin)
        rows = np.flatnonzero(open_rows)
        refused = np.zeros(len(open_rows), dtype=np.bool_)
        candidates = np.ones(len(rows), dtype=np.bool_)
        nodes = self._questions.table_of(rows)
        for found, reason, is_pending in self._questions.refusals(state, pod, plugin, nodes, rows, candidates):
            if not found.any():
                continue
            mask = np.zeros(len(open_rows), dtype=np.bool_)
            mask[rows[found]] = True
            refused |= mask
            diagnosis.add(Rejection(name, reason, mask, is_pending))
        return refused


def _only(row: int, size: int) -> Mask:
    mask = np.zeros(size, dtype=np.bool_)
    mask[row] = True
    return mask


def _note(diagnosis: Diagnosis, refused: Refused, rows: Mask) -> None:
    """One verdict about several rows."""
    for reason in refused.refusal.reasons or (SILENT,):
        diagnosis.add(Rejection(refused.plugin, reason, rows, refused.is_pending))
