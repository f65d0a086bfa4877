"""Existing pods grouped by what selectors can tell apart.

Pods of equal namespace, labels and termination state form a class; a class knows how many of its pods are on which
node. A label selector is then matched against the classes, which are few, and never against the pods, which are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from pilotage.api.indexes import PodClass
from pilotage.api.table import Scores
from pilotage.cluster.node_table import NodeTable
from pilotage.model import Pod

ClassKey = tuple[str, tuple[tuple[str, str], ...], bool]


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

    @staticmethod
    def count_per_row(classes: Iterable[PodClass], table: NodeTable) -> Scores:
        """How many pods of these classes are on each node of the table."""
        counts = np.zeros(len(table), dtype=np.int64)
        for pod_class in classes:
            for node_name, count in pod_class.on_node.items():
                row = table.row(node_name)
                if row is not None:
                    counts[row] += count
        return counts


def class_key(pod: Pod) -> ClassKey:
    """What decides the class of a pod."""
    memo = pod.spec.memo
    cached = memo.get(("class labels", id(pod.labels)))
    # The labels are kept beside the key so that the id cannot come to mean other labels.
    if cached is None or cached[0] is not pod.labels:
        cached = (pod.labels, tuple(sorted(pod.labels.items())))
        memo[("class labels", id(pod.labels))] = cached
    return pod.namespace, cached[1], pod.deletion_timestamp is not None
