"""How many pods on each node match a selector, kept up to date.

Topology spread and pod affinity ask the same few questions for every pod of a workload. A question that was asked is
remembered with its answer, one count per node row; from then on a pod that comes or goes changes one entry of the
questions that its class matches, and which those are is worked out once per class.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import NDArray

from pilotage.api.indexes import PodClass
from pilotage.api.table import Scores
from pilotage.cluster.node_table import NodeTable
from pilotage.cluster.pod_classes import ClassKey, PodClasses, class_key
from pilotage.model import Pod

_KEPT_QUESTIONS = 512

Question = Callable[[PodClass], bool]


class _Answer:
    """One question and its counts per row."""

    __slots__ = ("counts", "matches", "structure", "wanted")

    def __init__(self, wanted: Question, structure: int, counts: NDArray[np.int64]) -> None:
        self.wanted = wanted
        self.structure = structure
        self.counts = counts
        self.matches: dict[ClassKey, bool] = {}


class SelectorCounts:
    """Counts per node row for questions about pod classes."""

    def __init__(self, nodes: NodeTable, classes: PodClasses) -> None:
        self._nodes = nodes
        self._classes = classes
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()

    def per_row(self, key: Hashable, wanted: Question) -> Scores:
        """Number of pods of wanted classes per row, read-only. `key` identifies the question: equal keys must mean
        equal questions."""
        answer = self._answers.get(key)
        if answer is None or answer.structure != self._nodes.structure:
            answer = self._answers[key] = self._count(wanted)
            if len(self._answers) > _KEPT_QUESTIONS:
                self._answers.popitem(last=False)
        else:
            self._answers.move_to_end(key)
        view = answer.counts.view()
        view.flags.writeable = False
        return view

    def _count(self, wanted: Question) -> _Answer:
        counts = self._classes.count_per_row(self._classes.where(wanted), self._nodes)
        return _Answer(wanted, self._nodes.structure, counts)

    def note(self, pod: Pod, node_name: str, sign: int) -> None:
        """A pod came (+1) or went (-1)."""
        if not self._answers:
            return
        row = self._nodes.row(node_name)
        if row is None:
            return
        key = class_key(pod)
        for answer in self._answers.values():
            # Answers of an older structure are counted anew when they are next asked for.
            if answer.structure == self._nodes.structure and self._is_wanted(answer, key, pod):
                answer.counts[row] += sign

    @staticmethod
    def _is_wanted(answer: _Answer, key: ClassKey, pod: Pod) -> bool:
        known = answer.matches.get(key)
        if known is None:
            known = answer.matches[key] = answer.wanted(PodClass(pod.namespace, pod.labels, key[2]))
        return known
