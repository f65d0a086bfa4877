"""A plugin may sign any field of a pod: pods that differ in it do not share its answers."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from pilotage.api import CycleState, NodeView, Plugin, Pod, Score
from pilotage.framework.evaluation import Evaluator
from pilotage.testing import node, pod
from pilotage.testing.builders import PodBuilder
from tests.framework.scripted_plugins import cluster_of, profile_of

WANT = "example.com/node"


class Annotated(Plugin, Score):
    """Prefers the node that an annotation names."""

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 100 * (node.name == self._wanted(pod))

    def sign(self, pod: Pod) -> Hashable:
        return self._wanted(pod)

    def _wanted(self, pod: Pod) -> str:
        return pod.annotations.get(WANT, "")


class Named(Annotated):
    """Prefers the node that the pod's own name begins with."""

    def _wanted(self, pod: Pod) -> str:
        return pod.name.partition("-")[0]


class Statused(Annotated):
    """Prefers the node that the pod is nominated to, as its status says."""

    def _wanted(self, pod: Pod) -> str:
        return pod.status.nominated_node_name


def pods(wanted: str) -> PodBuilder:
    return pod(f"{wanted}-0").uid(wanted).annotation(WANT, wanted).nominated(wanted)


@pytest.mark.parametrize("plugin", [Annotated(), Named(), Statused()], ids=lambda plugin: plugin.plugin_name())
def test_pods_of_one_spec_that_differ_there_get_answers_of_their_own(plugin: Plugin) -> None:
    cluster = cluster_of(node("a"), node("b"), node("c"))
    evaluator = Evaluator(profile_of(plugin), cluster.nodes, cluster.nominations)
    for wanted in ("b", "a", "c", "b", "c"):
        best = evaluator.best(CycleState(), pods(wanted).build(), None)
        assert best is not None and cluster.nodes.names[best.row] == wanted
