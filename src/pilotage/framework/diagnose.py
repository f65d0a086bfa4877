"""Why a pod fits on none of the nodes: who rejected which, and with what words.

The first plugin that rejects a node is the one that counts for it, with all its reasons, as if the plugins had been
asked node by node.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pilotage.api.plugin import Plugin
from pilotage.api.state import CycleState
from pilotage.api.table import Mask
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.framework.diagnosis import SILENT, Diagnosis, Rejected, RejectedRows
from pilotage.framework.node_questions import NodeQuestions
from pilotage.framework.nominated_pods_filter import NominatedPodsFilter
from pilotage.framework.profile import Profile, name_of
from pilotage.framework.rejection_memory import RejectionMemory
from pilotage.model import Pod


class WhyNot:
    """Finds out for the pods of one profile."""

    def __init__(
        self,
        profile: Profile,
        nodes: ClusterNodeTable,
        questions: NodeQuestions,
        contested: NominatedPodsFilter,
        memory: RejectionMemory,
    ) -> None:
        self._profile = profile
        self._nodes = nodes
        self._questions = questions
        self._contested = contested
        self._memory = memory

    def diagnose(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis, allowed: Mask | None, judged: Mapping[int, Rejected]
    ) -> None:
        """Write into `diagnosis` who rejected which node; rows in `judged` have their verdict already."""
        size = len(self._nodes)
        open_rows = np.ones(size, dtype=np.bool_) if allowed is None else allowed.copy()
        for row, rejected in judged.items():
            open_rows[row] = False
            _note(diagnosis, rejected, _only(row, size))
        remembered = self._memory.verdicts(state, pod, open_rows)
        if remembered is not None:
            diagnosis.set_codes(*remembered)
            return
        verdicts = self._contested.verdicts(state, pod, open_rows)
        if verdicts is not None:
            for rejected, mask in verdicts.groups(open_rows):
                _note(diagnosis, rejected, mask)
            open_rows[verdicts.rejected(open_rows)] = False
        for plugin in self._profile.filters:
            if name_of(plugin) in state.skip_filter:
                continue
            if not open_rows.any():
                break
            open_rows &= ~self._rejected_by(state, pod, plugin, diagnosis, open_rows)

    def _rejected_by(self, state: CycleState, pod: Pod, plugin: Plugin, diagnosis: Diagnosis, open_rows: Mask) -> Mask:
        """Nodes that others have rejected are not looked at: what fails there must not stop the attempt."""
        name = name_of(plugin)
        rows = np.flatnonzero(open_rows)
        rejected = np.zeros(len(open_rows), dtype=np.bool_)
        candidates = np.ones(len(rows), dtype=np.bool_)
        nodes = self._questions.table_of(rows)
        for found, reason, is_pending in self._questions.rejections(state, pod, plugin, nodes, rows, candidates):
            if not found.any():
                continue
            mask = np.zeros(len(open_rows), dtype=np.bool_)
            mask[rows[found]] = True
            rejected |= mask
            diagnosis.add(RejectedRows(name, reason, mask, is_pending))
        return rejected


def _only(row: int, size: int) -> Mask:
    mask = np.zeros(size, dtype=np.bool_)
    mask[row] = True
    return mask


def _note(diagnosis: Diagnosis, rejected: Rejected, rows: Mask) -> None:
    """One verdict about several rows."""
    for reason in rejected.rejection.reasons or (SILENT,):
        diagnosis.add(RejectedRows(rejected.plugin, reason, rows, rejected.is_pending))
