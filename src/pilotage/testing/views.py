"""A node as a plugin sees it, made from builders: for tests that call a plugin directly.

    plugin.filter(CycleState(), pod("p").build(), node_view(node("a").cpu(2), pod("other").requests(cpu=1)))

What the pods on the node request is counted with the scheduler's own rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pilotage.api.views import NodeView
from pilotage.model import Node, Pod, non_zero_requests, pod_requests, quantity_milli, quantity_value
from pilotage.model.node import Taint
from pilotage.testing.builders import NodeBuilder, PodBuilder

_SCORED_WITH_DEFAULTS = ("cpu", "memory")


def node_view(node: Node | NodeBuilder, *pods: Pod | PodBuilder) -> NodeView:
    """The node with these pods on it."""
    built = node.build() if isinstance(node, NodeBuilder) else node
    return _View(built, tuple(pod.build() if isinstance(pod, PodBuilder) else pod for pod in pods))


@dataclass(frozen=True, slots=True)
class _View:
    node: Node
    pods: Sequence[Pod]

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.labels

    @property
    def taints(self) -> Sequence[Taint]:
        return self.node.spec.taints

    @property
    def unschedulable(self) -> bool:
        return self.node.spec.unschedulable

    @property
    def pod_count(self) -> int:
        return len(self.pods)

    def allocatable(self, resource: str) -> int:
        amount = self.node.status.allocatable.get(resource, "0")
        return quantity_milli(amount) if resource == "cpu" else quantity_value(amount)

    def requested(self, resource: str) -> int:
        return sum(pod_requests(pod.spec).get(resource, 0) for pod in self.pods)

    def non_zero_requested(self, resource: str) -> int:
        if resource not in _SCORED_WITH_DEFAULTS:
            return self.requested(resource)
        return sum(non_zero_requests(pod.spec)[_SCORED_WITH_DEFAULTS.index(resource)] for pod in self.pods)
