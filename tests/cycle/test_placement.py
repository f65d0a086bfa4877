"""Where a pod would go: a pure question to a profile and a cluster."""

from __future__ import annotations

import pytest

from pilotage.api import Bind, CycleState, NodeNames, Nominate, Plugin, QueuedPod, QueueSort, Reason, Reject
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import NoNodes, Placed, ProfileEngine, ProfileEngines, Unplaced, place
from pilotage.framework.profile import Profile
from pilotage.model import Pod
from pilotage.observe.metrics import Metrics
from pilotage.plugins import NodeAffinity, NodeName, NodeUnschedulable, TaintToleration
from pilotage.queue.hints import HintTable
from pilotage.testing import NodeBuilder, PodBuilder, VirtualClock, node, pod
from tests.default_plugins import default
from tests.framework.scripted_plugins import FIT, cluster_of, profile_of, scripted

FILTERS = (NodeName(), NodeUnschedulable(), TaintToleration(), default(NodeAffinity), FIT)
NO = Reject(Reason("No", "no"))


def placed(
    waiting: PodBuilder, *nodes: NodeBuilder, plugins: tuple[Plugin, ...] = FILTERS, cluster: Cluster | None = None
) -> Placed | Unplaced:
    cluster = cluster or cluster_of(*nodes)
    answer = place(ProfileEngine(profile_of(*plugins), cluster), CycleState(), waiting.build())
    cluster.check()
    return answer


def node_of(answer: Placed | Unplaced) -> str:
    assert isinstance(answer, Placed), answer
    return answer.node_name


def why(answer: Placed | Unplaced) -> str:
    assert isinstance(answer, Unplaced), answer
    return answer.diagnosis.message()


def test_the_best_node_is_taken() -> None:
    nodes = [node("small").cpu("2"), node("large").cpu("16"), node("closed").cpu("64").unschedulable()]
    assert node_of(placed(pod("p").requests(cpu="1"), *nodes)) == "large"


def test_asking_changes_nothing() -> None:
    cluster = cluster_of(node("a"))
    before = (cluster.nodes.mark, cluster.nodes.structure, cluster.placed_count)
    placed(pod("p").requests(cpu="1"), cluster=cluster)
    assert (cluster.nodes.mark, cluster.nodes.structure, cluster.placed_count) == before


def test_a_pod_that_fits_nowhere_is_told_why_node_by_node() -> None:
    nodes = [node("a").cpu("1"), node("b").cpu("1"), node("c").taint("t", "NoSchedule")]
    answer = placed(pod("p").requests(cpu="2"), *nodes)
    assert why(answer) == "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
    assert isinstance(answer, Unplaced) and answer.diagnosis.rejectors == {"NodeResourcesFit", "TaintToleration"}
    assert answer.nomination == Nominate("")


def test_without_nodes_no_one_is_to_blame() -> None:
    with pytest.raises(NoNodes, match="no nodes available to schedule pods"):
        placed(pod("p"))


def test_a_pod_that_names_its_node_goes_there() -> None:
    assert node_of(placed(pod("p").node("b"), node("a"), node("b"))) == "b"


def test_nodes_that_pre_filter_left_out_say_who_left_them_out() -> None:
    answer = placed(pod("p").node("b").requests(cpu="9"), node("a"), node("b"), node("c"))
    assert why(answer) == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeName]."
    )
    assert isinstance(answer, Unplaced) and answer.diagnosis.rejectors == {"NodeName", "NodeResourcesFit"}
    assert answer.diagnosis.resolvable() == []


def test_a_rejection_in_pre_filter_is_everyones_reason() -> None:
    refuser = scripted("Volumes", pre_filter=NO)
    answer = placed(pod("p"), node("a"), node("b"), plugins=(refuser, *FILTERS))
    assert why(answer) == "0/2 nodes are available: no."
    assert isinstance(answer, Unplaced)
    assert answer.diagnosis.rejectors == {"Volumes"} and answer.diagnosis.resolvable() == ["a", "b"]


def test_node_sets_that_exclude_each_other_blame_all_who_restricted() -> None:
    plugins = [scripted(name, pre_filter=NodeNames(frozenset([name.lower()]))) for name in "AB"]
    answer = placed(pod("p"), node("a"), node("b"), plugins=(*plugins, *FILTERS))
    assert why(answer) == "0/2 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously."
    assert isinstance(answer, Unplaced) and answer.diagnosis.rejectors == {"A", "B"}


def test_post_filter_is_asked_when_nothing_fits_and_only_then(calls: list[str]) -> None:
    helper = scripted("Preemption", post_filter=Nominate("a", "preemption: evicting 1 pod"))
    plugins = (*FILTERS, helper)
    assert node_of(placed(pod("p"), node("a"), plugins=plugins)) == "a" and calls == []
    answer = placed(pod("p").requests(cpu="9"), node("a"), plugins=plugins)
    assert why(answer) == "0/1 nodes are available: 1 Insufficient cpu. preemption: evicting 1 pod"
    assert isinstance(answer, Unplaced) and answer.nomination.node_name == "a"


def test_a_nominated_pod_takes_its_node_although_others_are_better() -> None:
    nodes = [node("large").cpu("64"), node("mine").cpu("1")]
    assert node_of(placed(pod("p").requests(cpu="1").nominated("mine"), *nodes)) == "mine"


@pytest.mark.parametrize("where", ["gone", "full"])
def test_a_nominated_node_that_does_not_fit_any_more_is_forgotten(where: str) -> None:
    waiting = pod("p").requests(cpu="1").nominated(where)
    assert node_of(placed(waiting, node("a"), node("full").cpu("500m"))) == "a"


def test_a_node_nominated_for_a_more_important_pod_is_not_taken() -> None:
    cluster = cluster_of(node("a").cpu("1"))
    cluster.nominations.nominate(pod("rival").priority(5).requests(cpu="1").build(), "a")
    answer = placed(pod("p").requests(cpu="1"), cluster=cluster)
    assert why(answer) == "0/1 nodes are available: 1 Insufficient cpu."


class Touchy(Plugin, QueueSort, Bind):
    def sort_key(self, queued: QueuedPod) -> tuple[float, ...]:
        if queued.pod.name == "bad":
            raise ValueError("boom")
        return (queued.timestamp,)

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> None: ...


def test_queue_sort_that_raises_falls_back_to_priority_and_is_counted() -> None:
    metrics = Metrics()
    engines = ProfileEngines(Cluster(), HintTable({}, metrics), metrics, VirtualClock())
    engines.add(Profile("s", [Touchy()], {}))
    sort_key = engines.sort_key
    assert sort_key(QueuedPod(pod("good").build(), 5.0, 0)) == (5.0,)
    assert sort_key(QueuedPod(pod("bad").priority(7).build(), 5.0, 0)) == (-7, 5.0)
    assert metrics.plugin_errors_total.value("Touchy") == 1
