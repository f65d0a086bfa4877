"""Existing pods grouped by what selectors can distinguish.

Pods of equal namespace, labels and termination state form a class; a class knows how many of its pods are on which
node. A label selector is then matched against the classes, which are few, and never against the pods, which are many.

Topology spread and pod affinity ask the same few questions for every pod of a workload: how many pods of some classes
are on each node. A question that was asked is remembered with its answer, one count per node row. Which questions a
class matches is worked out once, so a pod that comes or goes changes one entry of just those answers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import NDArray

from pilotage.api.budget import UNLIMITED, Budget
from pilotage.api.indexes import PodClass
from pilotage.api.table import Scores
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.model import Pod
from pilotage.model.frozen_map import FrozenMap

ClassKey = tuple[str, FrozenMap, bool]


class PodClasses:
    """All classes that have at least one pod on a node."""

    def __init__(self) -> None:
        self._classes: dict[ClassKey, PodClass] = {}

    def __len__(self) -> int:
        return len(self._classes)

    def add(self, pod: Pod, node_name: str) -> None:
        key = class_key(pod)
        pod_class = self._classes.get(key)
        if pod_class is None:
            pod_class = self._classes[key] = PodClass(pod.namespace, pod.labels, key[2])
        pod_class.on_node[node_name] = pod_class.on_node.get(node_name, 0) + 1

    def remove(self, pod: Pod, node_name: str) -> None:
        key = class_key(pod)
        pod_class = self._classes[key]
        left = pod_class.on_node[node_name] - 1
        if left:
            pod_class.on_node[node_name] = left
            return
        del pod_class.on_node[node_name]
        if not pod_class.on_node:
            del self._classes[key]

    def where(self, wanted: Callable[[PodClass], bool]) -> list[PodClass]:
        return [pod_class for pod_class in self._classes.values() if wanted(pod_class)]

    def weigh_per_row(self, weigh: Callable[[PodClass], int], table: ClusterNodeTable, budget: Budget) -> Scores:
        """What the pods on each node of the table weigh together; a class is asked for the weight of one pod."""
        sums = np.zeros(len(table), dtype=np.int64)
        for pod_class in self._classes.values():
            budget.spend()
            weight = weigh(pod_class)
            if not weight:
                continue
            budget.spend(len(pod_class.on_node))
            for node_name, count in pod_class.on_node.items():
                row = table.row(node_name)
                if row is not None:
                    sums[row] += weight * count
        return sums


def class_key(pod: Pod) -> ClassKey:
    """What decides the class of a pod. Labels are shared between pods and know their hash."""
    return pod.namespace, pod.labels, pod.deletion_timestamp is not None


_KEPT_QUESTIONS = 1024
_KEPT_CLASSES = 16_384
_MOST_LABELS = 256
"""Nothing is remembered of classes with more labels."""

Question = Callable[[PodClass], bool]


class _Answer:
    """One question and its counts per row."""

    __slots__ = ("counts", "is_kept", "structure", "view", "wanted")

    def __init__(self, wanted: Question) -> None:
        self.wanted = wanted
        self.is_kept = True

    def set(self, structure: int, counts: NDArray[np.int64]) -> None:
        self.structure = structure
        self.counts = counts
        self.view = counts.view()
        self.view.flags.writeable = False


class _Matched:
    """The answers that count the pods of one class, among the first `judged` questions."""

    __slots__ = ("answers", "judged")

    def __init__(self) -> None:
        self.answers: list[_Answer] = []
        self.judged = 0


class SelectorCounts:
    """Counts per node row for questions about pod classes.

    Questions are numbered in the order in which they were first asked. A class knows up to which number it has looked
    at them: what was asked since is judged when the next pod of the class comes or goes.
    """

    def __init__(self, nodes: ClusterNodeTable, classes: PodClasses) -> None:
        self._nodes = nodes
        self._classes = classes
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()
        self._asked: list[_Answer] = []
        self._matched: dict[ClassKey, _Matched] = {}

    def per_row(self, key: Hashable, wanted: Question, budget: Budget = UNLIMITED) -> Scores:
        """Number of pods of wanted classes per row, read-only. `key` identifies the question: equal keys must mean
        equal questions."""
        answer = self._answers.get(key)
        if answer is None:
            answer = self._ask(key, wanted, budget)
        else:
            self._answers.move_to_end(key)
        if answer.structure != self._nodes.structure:
            self._count(answer, budget)
        return answer.view

    def _ask(self, key: Hashable, wanted: Question, budget: Budget) -> _Answer:
        answer = _Answer(wanted)
        self._count(answer, budget)
        self._answers[key] = answer
        self._asked.append(answer)
        if len(self._answers) > _KEPT_QUESTIONS:
            self._answers.popitem(last=False)[1].is_kept = False
        if len(self._asked) > 2 * _KEPT_QUESTIONS:
            self._forget_classes()
        return answer

    def _count(self, answer: _Answer, budget: Budget) -> None:
        counts = self._classes.weigh_per_row(answer.wanted, self._nodes, budget)
        answer.set(self._nodes.structure, counts)

    def _forget_classes(self) -> None:
        """Number the questions that are still kept anew, and let every class judge them again."""
        self._asked = [answer for answer in self._asked if answer.is_kept]
        self._matched.clear()

    def note(self, pod: Pod, node_name: str, sign: int) -> None:
        """A pod came (+1) or went (-1)."""
        if not self._asked:
            return
        row = self._nodes.row(node_name)
        if row is None:
            return
        structure = self._nodes.structure
        for answer in self._counting(pod):
            # Answers of an older structure are counted anew when they are next asked for.
            if answer.structure == structure:
                answer.counts[row] += sign

    def _counting(self, pod: Pod) -> list[_Answer]:
        """The answers that count this pod."""
        key = class_key(pod)
        matched = self._matched.get(key)
        if matched is None:
            if len(self._matched) >= _KEPT_CLASSES:
                self._forget_classes()
            matched = _Matched()
            if len(pod.labels) <= _MOST_LABELS:
                self._matched[key] = matched
        if matched.judged < len(self._asked):
            pod_class = PodClass(pod.namespace, pod.labels, key[2])
            matched.answers += [a for a in self._asked[matched.judged :] if a.is_kept and a.wanted(pod_class)]
            matched.judged = len(self._asked)
        return matched.answers
