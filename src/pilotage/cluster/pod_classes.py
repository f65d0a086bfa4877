"""Existing pods grouped by what selectors can tell apart.

Pods of equal namespace, labels and termination state form a class; a class knows how many of its pods are on which
node. A label selector is then matched against the classes, which are few, and never against the pods, which are many.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pilotage.api.budget import Budget
from pilotage.api.indexes import PodClass
from pilotage.api.table import Scores
from pilotage.cluster.node_table import NodeTable
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

    def weigh_per_row(self, weigh: Callable[[PodClass], int], table: NodeTable, budget: Budget) -> Scores:
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
