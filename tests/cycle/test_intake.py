"""From watch events to cluster and queue: who is queued, what counts where, and which events that is for others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.api.events import ClusterEvent
from pilotage.calls.call_queue import CallQueue
from pilotage.cluster.state import Cluster
from pilotage.cycle.inbox import Inbox
from pilotage.cycle.intake import Intake
from pilotage.framework.waiting_pods import WaitingPods
from pilotage.model import KINDS, DecodeError, WatchEvent
from pilotage.observe.metrics import Metrics
from pilotage.plugins import PrioritySort
from pilotage.queue.entry import Home
from pilotage.queue.hints import HintTable
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.testing import NodeBuilder, PodBuilder, VirtualClock, node, pod


class ListeningQueue(SchedulingQueue):
    """A real queue that also notes which events it hears of."""

    heard: list[str]

    def on_event(self, event: ClusterEvent, old: Any, new: Any, *, up_to_priority: int | None = None) -> int:
        limit = "" if up_to_priority is None else f" up to {up_to_priority}"
        self.heard.append(f"{event.label}{limit}")
        return super().on_event(event, old, new, up_to_priority=up_to_priority)


class Gateway:
    """An intake with its cluster and queue; what is put in takes effect at once."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.queue = ListeningQueue(
            VirtualClock(),
            sort_key=PrioritySort().sort_key,
            gatekeeper=lambda pod: None,
            hints=HintTable({"default-scheduler": ()}, Metrics()),
        )
        self.queue.heard = []
        self.inbox = Inbox()
        self.metrics = Metrics()
        self.intake = Intake(
            self.cluster,
            self.queue,
            self.inbox,
            ["default-scheduler"],
            WaitingPods(),
            VirtualClock(),
            self.metrics.event_handling_duration_seconds,
            CallQueue(),
        )
        self._version = 0

    def see(self, *builders: PodBuilder | NodeBuilder, change: str = "MODIFIED") -> list[str]:
        """Deliver new versions; returns the events that this is for others."""
        for builder in builders:
            self._version += 1
            built = builder.version(self._version).build()
            kind = "Node" if isinstance(builder, NodeBuilder) else "Pod"
            self.intake.apply(kind, [WatchEvent(change, built)])
        return self._heard()

    def lose(self, builder: PodBuilder | NodeBuilder) -> list[str]:
        return self.see(builder, change="DELETED")

    def list(self, kind: str, *builders: PodBuilder | NodeBuilder) -> list[str]:
        self.intake.replace(kind, [builder.build() for builder in builders])
        return self._heard()

    def _heard(self) -> list[str]:
        self.inbox.drain()
        self.queue.check()
        self.cluster.check()
        heard, self.queue.heard = self.queue.heard, []
        return heard

    def home(self, builder: PodBuilder) -> Home | None:
        entry = self.queue.entry(builder.build().uid)
        return None if entry is None else entry.home

    @property
    def requested(self) -> dict[str, int]:
        nodes = self.cluster.nodes
        return dict(zip(nodes.names, nodes.requested("cpu").tolist(), strict=True))


P = pod("p").requests(cpu="1")
ON_A = P.node("a")


@pytest.fixture
def gate() -> Gateway:
    gate = Gateway()
    gate.see(node("a"), node("b"))
    return gate


def test_nothing_takes_effect_before_the_loop_looks() -> None:
    gate = Gateway()
    gate.intake.apply("Node", [WatchEvent("ADDED", node("a").build())])
    assert len(gate.cluster.nodes) == 0
    gate.inbox.drain()
    assert len(gate.cluster.nodes) == 1


# --- nodes ------------------------------------------------------------------------------------------------------------


def test_a_node_is_told_when_it_comes_changes_and_goes() -> None:
    gate = Gateway()
    assert gate.see(node("a")) == ["NodeAdd"]
    assert gate.see(node("a")) == []
    assert gate.see(node("a").cpu("9")) == ["NodeUpdateNodeAllocatable"]
    assert gate.cluster.nodes.allocatable("cpu").tolist() == [9000]
    assert gate.lose(node("a")) == ["NodeDelete"]
    assert len(gate.cluster.nodes) == 0
    assert gate.lose(node("a")) == []


def test_one_change_of_a_node_may_be_several_events() -> None:
    gate = Gateway()
    gate.see(node("a").unschedulable().taint("t", "NoSchedule"))
    assert gate.see(node("a").label("l", "x")) == ["NodeUpdateNodeTaint", "NodeUpdateNodeLabel", "NodeUpdateNodeTaint"]


# --- pending pods -----------------------------------------------------------------------------------------------------


def test_a_pending_pod_of_ours_is_queued(gate: Gateway) -> None:
    assert gate.see(P) == [] and gate.home(P) is Home.ACTIVE


def test_a_pending_pod_of_another_scheduler_is_not(gate: Gateway) -> None:
    foreign = P.scheduler("other")
    assert gate.see(foreign) == [] and gate.home(foreign) is None
    assert gate.lose(foreign) == []


def test_a_pending_pod_that_changes_is_updated_in_the_queue(gate: Gateway) -> None:
    gate.see(P)
    gate.see(P.priority(7))
    entry = gate.queue.entry(P.build().uid)
    assert entry is not None and entry.pod.priority == 7


def test_the_same_version_again_changes_nothing(gate: Gateway) -> None:
    gate.see(P)
    known = gate.cluster.objects("Pod")["default/p"]
    gate.list("Pod", P.priority(7).version(known.resource_version))
    entry = gate.queue.entry(P.build().uid)
    assert entry is not None and entry.pod.priority == 0


def test_a_pending_pod_that_goes_leaves_the_queue(gate: Gateway) -> None:
    gate.see(P)
    assert gate.lose(P) == [] and gate.home(P) is None
    gate.see(P)
    assert gate.see(P.phase("Failed")) == [] and gate.home(P) is None


def test_a_recreated_pod_takes_the_place_of_its_namesake(gate: Gateway) -> None:
    gate.see(P.uid("old"))
    gate.see(P.uid("new"))
    assert gate.home(P.uid("old")) is None and gate.home(P.uid("new")) is Home.ACTIVE


def test_a_late_word_about_a_pod_that_was_recreated_is_ignored(gate: Gateway) -> None:
    gate.see(P.uid("new"))
    assert gate.lose(P.uid("old")) == []
    assert gate.home(P.uid("new")) is Home.ACTIVE


# --- assigned pods ----------------------------------------------------------------------------------------------------


def test_an_assigned_pod_counts_and_is_told(gate: Gateway) -> None:
    assert gate.see(ON_A) == ["AssignedPodAdd"]
    assert gate.requested == {"a": 1000, "b": 0}
    assert gate.see(ON_A.label("l", "x")) == ["AssignedPodUpdatePodLabel"]
    assert gate.see(ON_A.label("l", "x").requests(cpu="500m")) == ["AssignedPodUpdatePodScaleDown"]
    assert gate.requested == {"a": 500, "b": 0}
    assert gate.lose(ON_A) == ["AssignedPodDelete"]
    assert gate.requested == {"a": 0, "b": 0}


def test_a_pending_pod_that_is_assigned_leaves_the_queue(gate: Gateway) -> None:
    gate.see(P)
    assert gate.see(ON_A) == ["AssignedPodAdd"]
    assert gate.home(P) is None and gate.requested == {"a": 1000, "b": 0}


def test_the_word_about_an_assumed_pod_confirms_it(gate: Gateway) -> None:
    gate.see(P)
    gate.cluster.assume(ON_A.build())
    assert gate.see(ON_A) == ["AssignedPodAdd"]
    assert not gate.cluster.is_assumed(P.build().uid) and gate.requested == {"a": 1000, "b": 0}


def test_a_finished_pod_does_not_count(gate: Gateway) -> None:
    gate.see(ON_A)
    assert gate.see(ON_A.phase("Succeeded")) == ["AssignedPodDelete"]
    assert gate.requested == {"a": 0, "b": 0}
    assert gate.see(ON_A.phase("Succeeded")) == []


def test_a_recreated_assigned_pod_frees_the_place_of_its_namesake(gate: Gateway) -> None:
    gate.see(ON_A.uid("old"))
    assert gate.see(P.node("b").uid("new")) == ["AssignedPodDelete", "AssignedPodAdd"]
    assert gate.requested == {"a": 0, "b": 1000}


# --- assumed pods -----------------------------------------------------------------------------------------------------


def assumed(gate: Gateway) -> None:
    """A pod that is being bound to node a."""
    gate.see(P)
    assert gate.queue.pop() is not None
    gate.cluster.assume(ON_A.build())


def test_a_change_of_an_assumed_pod_is_no_reason_to_queue_it(gate: Gateway) -> None:
    assumed(gate)
    assert gate.see(P.label("l", "x")) == []
    assert gate.home(P) is None and gate.requested == {"a": 1000, "b": 0}


@pytest.mark.parametrize("how", ["deleted", "terminating"])
def test_an_assumed_pod_that_goes_frees_its_place_at_once(gate: Gateway, how: str) -> None:
    assumed(gate)
    heard = gate.lose(P) if how == "deleted" else gate.see(P.terminating())
    assert heard == ["AssignedPodDelete"] and gate.requested == {"a": 0, "b": 0}


# --- lists ------------------------------------------------------------------------------------------------------------


def test_what_is_not_in_a_fresh_list_is_gone(gate: Gateway) -> None:
    gate.see(P, pod("q").node("a"))
    assert gate.list("Pod", pod("new").version(99)) == ["AssignedPodDelete"]
    assert gate.home(P) is None and gate.home(pod("new")) is Home.ACTIVE
    assert gate.list("Node", node("b").version(98)) == ["NodeDelete"]
    assert list(gate.cluster.nodes.names) == ["b"]


def test_a_list_of_what_is_known_is_no_news(gate: Gateway) -> None:
    gate.see(ON_A)
    known = gate.cluster.objects("Pod")["default/p"]
    assert gate.list("Pod", ON_A.version(known.resource_version)) == []
    assert gate.cluster.objects("Pod")["default/p"] is known


def test_a_fresh_list_may_hold_a_recreated_pod(gate: Gateway) -> None:
    gate.see(ON_A.uid("old"))
    assert gate.list("Pod", P.uid("new").version(99)) == ["AssignedPodDelete"]
    assert gate.home(P.uid("new")) is Home.ACTIVE and gate.requested == {"a": 0, "b": 0}


def test_an_object_that_did_not_decode_is_passed_over(gate: Gateway) -> None:
    with pytest.raises(DecodeError) as caught:
        KINDS["pods"].decode(b'{"metadata": {"name": "p"}, "spec": 7}')
    gate.intake.apply("Pod", [WatchEvent("ADDED", caught.value), WatchEvent("ADDED", P.build())])
    gate.inbox.drain()
    assert gate.home(P) is Home.ACTIVE


# --- everything else --------------------------------------------------------------------------------------------------


def test_other_objects_are_kept_and_told_by_their_kind(gate: Gateway) -> None:
    claim = {"metadata": {"name": "c", "namespace": "default"}, "spec": {}}
    heard = []
    for change in ("ADDED", "MODIFIED", "DELETED"):
        obj = KINDS["persistentvolumeclaims"].decode(_json(claim))
        gate.intake.apply("PersistentVolumeClaim", [WatchEvent(change, obj)])
        heard += gate.see()
        assert bool(gate.cluster.objects("PersistentVolumeClaim")) == (change != "DELETED")
    assert heard == [f"PersistentVolumeClaim{action}" for action in ("Add", "Update", "Delete")]


def test_objects_that_no_event_is_about_are_only_kept(gate: Gateway) -> None:
    service = KINDS["services"].decode(_json({"metadata": {"name": "s", "namespace": "default"}, "spec": {}}))
    gate.intake.apply("Service", [WatchEvent("ADDED", service)])
    assert gate.see() == [] and gate.cluster.objects("Service") == {"default/s": service}


def _json(obj: dict[str, Any]) -> bytes:
    return msgspec.json.encode(obj)


# --- promises ---------------------------------------------------------------------------------------------------------


def test_a_promise_that_ends_is_told_to_pods_that_are_not_more_important(gate: Gateway) -> None:
    promised = pod("p").priority(7).nominated("n")
    assert gate.see(promised) == []
    assert gate.see(promised.label("a", "b")) == []
    assert gate.see(promised.nominated("m")) == ["AssignedPodDelete up to 7"]
    assert gate.lose(promised.nominated("m")) == ["AssignedPodDelete up to 7"]


def test_a_promise_that_the_api_server_never_heard_of_is_told_too(gate: Gateway) -> None:
    gate.see(pod("p").priority(7))
    gate.cluster.nominations.nominate(pod("p").priority(7).build(), "n")
    assert gate.lose(pod("p").priority(7)) == ["AssignedPodDelete up to 7"]


def test_without_a_promise_there_is_nothing_to_tell(gate: Gateway) -> None:
    gate.see(pod("p"))
    assert gate.lose(pod("p")) == []
