"""From watch events to cluster and queue: who is queued, what counts where, and which events that is for others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.api.events import ClusterEvent
from pilotage.assembly import WATCHED
from pilotage.calls.call_queue import CallQueue
from pilotage.clock import Clock
from pilotage.cluster.state import Cluster
from pilotage.cycle.inbox import Inbox
from pilotage.cycle.intake import EventDurations, Intake
from pilotage.framework.waiting_pods import WaitingPods
from pilotage.model import KINDS, DecodeError, Node, Pod, WatchEvent
from pilotage.observe.metrics import Metrics
from pilotage.plugins import PrioritySort
from pilotage.queue.hints import HintTable
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.queue.sub_queues import SubQueue
from pilotage.testing import NodeBuilder, PodBuilder, VirtualClock, node, pod
from tests.cycle.test_inbox import SlowClock


class ListeningQueue(SchedulingQueue):
    """A real queue that also notes which events it hears of."""

    heard: list[str]

    def on_event(self, event: ClusterEvent, old: Any, new: Any, *, up_to_priority: int | None = None) -> int:
        limit = "" if up_to_priority is None else f" up to {up_to_priority}"
        self.heard.append(f"{event.label}{limit}")
        return super().on_event(event, old, new, up_to_priority=up_to_priority)


class Gateway:
    """An intake with its cluster and queue; what is put in takes effect at once."""

    def __init__(self, clock: Clock | None = None) -> None:
        """With a clock, what is put in takes effect in slices of time."""
        self.metrics = Metrics()
        self.cluster = Cluster(self.metrics.skipped)
        self.queue = ListeningQueue(
            VirtualClock(),
            sort_key=PrioritySort().sort_key,
            gatekeeper=lambda pod: None,
            hints=HintTable({"default-scheduler": ()}, Metrics()),
        )
        self.queue.heard = []
        self.inbox = Inbox(clock=clock)
        self.intake = Intake(
            self.cluster,
            self.queue,
            self.inbox,
            CallQueue(),
            WaitingPods(),
            EventDurations(self.metrics, clock or VirtualClock()),
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

    def home(self, builder: PodBuilder) -> SubQueue | None:
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
    assert gate.see(P) == ["UnscheduledPodAdd"] and gate.home(P) is SubQueue.ACTIVE


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
    assert gate.lose(P) == ["UnscheduledPodDelete"] and gate.home(P) is None
    gate.see(P)
    assert gate.see(P.phase("Failed")) == ["UnscheduledPodDelete"] and gate.home(P) is None


def test_a_recreated_pod_takes_the_place_of_its_namesake(gate: Gateway) -> None:
    gate.see(P.uid("old"))
    gate.see(P.uid("new"))
    assert gate.home(P.uid("old")) is None and gate.home(P.uid("new")) is SubQueue.ACTIVE


def test_a_late_word_about_a_pod_that_was_recreated_is_ignored(gate: Gateway) -> None:
    gate.see(P.uid("new"))
    assert gate.lose(P.uid("old")) == []
    assert gate.home(P.uid("new")) is SubQueue.ACTIVE


# --- assigned pods ----------------------------------------------------------------------------------------------------


def test_an_assigned_pod_counts_and_is_reported(gate: Gateway) -> None:
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
    heard = gate.list("Pod", pod("new").version(99))
    assert heard == ["UnscheduledPodDelete", "AssignedPodDelete", "UnscheduledPodAdd"]
    assert gate.home(P) is None and gate.home(pod("new")) is SubQueue.ACTIVE
    assert gate.list("Node", node("b").version(98)) == ["NodeDelete"]
    assert list(gate.cluster.nodes.names) == ["b"]


def test_a_list_of_what_is_known_is_no_news(gate: Gateway) -> None:
    gate.see(ON_A)
    known = gate.cluster.objects("Pod")["default/p"]
    assert gate.list("Pod", ON_A.version(known.resource_version)) == []
    assert gate.cluster.objects("Pod")["default/p"] is known


def test_a_fresh_list_may_hold_a_recreated_pod(gate: Gateway) -> None:
    gate.see(ON_A.uid("old"))
    assert gate.list("Pod", P.uid("new").version(99)) == ["AssignedPodDelete", "UnscheduledPodAdd"]
    assert gate.home(P.uid("new")) is SubQueue.ACTIVE and gate.requested == {"a": 0, "b": 0}


def test_an_object_that_did_not_decode_is_passed_over(gate: Gateway) -> None:
    with pytest.raises(DecodeError) as caught:
        KINDS["pods"].decode(b'{"metadata": {"name": "p"}, "spec": 7}')
    gate.intake.apply("Pod", [WatchEvent("ADDED", caught.value), WatchEvent("ADDED", P.build())])
    gate.inbox.drain()
    assert gate.home(P) is SubQueue.ACTIVE


# --- everything else --------------------------------------------------------------------------------------------------


def test_other_objects_are_kept_and_reported_by_their_kind(gate: Gateway) -> None:
    claim = {"metadata": {"name": "c", "namespace": "default"}, "spec": {}}
    heard = []
    for change in ("ADDED", "MODIFIED", "DELETED"):
        obj = KINDS["persistentvolumeclaims"].decode(_json(claim))
        gate.intake.apply("PersistentVolumeClaim", [WatchEvent(change, obj)])
        heard += gate.see()
        assert bool(gate.cluster.objects("PersistentVolumeClaim")) == (change != "DELETED")
    assert heard == [f"PersistentVolumeClaim{action}" for action in ("Add", "Update", "Delete")]


@pytest.mark.parametrize("resource", [resource for resource in WATCHED if resource not in ("pods", "nodes")])
def test_whatever_is_watched_raises_events(gate: Gateway, resource: str) -> None:
    """A kind whose changes nobody can hear of would be a lost wake-up for whoever reads it."""
    if resource == "devicetaintrules":
        return  # They are changes of slices, see below.
    kind = KINDS[resource]
    obj = kind.decode(_json({"metadata": {"name": "x", "namespace": "default" if kind.namespaced else ""}}))
    gate.intake.apply(kind.kind, [WatchEvent(type_, obj) for type_ in ("ADDED", "MODIFIED", "DELETED")])
    name = f"{kind.group}/{kind.kind}" if kind.group else kind.kind
    assert gate.see() == [f"{name}{action}" for action in ("Add", "Update", "Delete")]


def test_a_recreated_pending_pod_and_one_of_another_scheduler(gate: Gateway) -> None:
    gate.see(P)
    assert gate.see(P.uid("new")) == ["UnscheduledPodDelete", "UnscheduledPodAdd"]
    assert gate.see(pod("q").scheduler("other")) == gate.lose(pod("q").scheduler("other")) == []


# --- device taint rules -----------------------------------------------------------------------------------------------


def _slice(name: str, driver: str, *devices: str) -> Any:
    spec = {"driver": driver, "pool": {"name": name}, "devices": [{"name": device} for device in devices]}
    return KINDS["resourceslices"].decode(_json({"metadata": {"name": name}, "spec": spec}))


def _rule(name: str = "r", key: str = "broken", **selector: str) -> Any:
    spec = {"deviceSelector": selector, "taint": {"key": key, "effect": "NoSchedule"}}
    return KINDS["devicetaintrules"].decode(_json({"metadata": {"name": name}, "spec": spec}))


class TaintRules:
    """A gate with two slices, and what a rule does to them."""

    def __init__(self) -> None:
        self.gate = Gateway()
        for one in (_slice("s1", "d", "d0", "d1"), _slice("s2", "e", "d0")):
            self.gate.intake.apply("ResourceSlice", [WatchEvent("ADDED", one)])
        self.gate.see()
        self.changed: list[tuple[str, list[str], list[str]]] = []
        self.gate.queue.on_event = self._on_event  # type: ignore[method-assign, assignment]

    def _on_event(self, event: ClusterEvent, old: Any, new: Any) -> int:
        assert event.label == "resource.k8s.io/ResourceSliceUpdate"
        self.changed.append((new.name, _taints(old), _taints(new)))
        return 0

    def see(self, rule: Any, type_: str = "MODIFIED") -> list[tuple[str, list[str], list[str]]]:
        self.gate.intake.apply("DeviceTaintRule", [WatchEvent(type_, rule)])
        self.gate.inbox.drain()
        changed, self.changed = self.changed, []
        return changed


def _taints(published: Any) -> list[str]:
    return [",".join(taint.key for taint in device.taints) for device in published.spec.devices]


def test_a_device_taint_rule_changes_the_slices_that_it_taints() -> None:
    world = TaintRules()
    assert world.see(_rule(driver="d", device="d1")) == [("s1", ["", ""], ["", "broken"])]
    assert world.see(_rule(driver="d", device="d1")) == [], "nothing that matters has changed"
    assert world.see(_rule(driver="d", pool="s1", device="d1")) == [], "the same devices"
    assert world.see(_rule(key="worn", driver="d", device="d1")) == [("s1", ["", "broken"], ["", "worn"])]
    assert world.see(_rule(key="worn", device="d0")) == [("s1", ["", "worn"], ["worn", ""]), ("s2", [""], ["worn"])]
    assert world.see(_rule(), "DELETED") == [("s1", ["worn", ""], ["", ""]), ("s2", ["worn"], [""])]
    assert world.see(_rule(), "DELETED") == []


def test_a_device_taint_rule_for_devices_that_are_not_there_changes_nothing() -> None:
    world = TaintRules()
    assert world.see(_rule(driver="f")) == world.see(_rule("other", driver="d", device="d7")) == []


def _json(obj: dict[str, Any]) -> bytes:
    return msgspec.json.encode(obj)


# --- nominations ------------------------------------------------------------------------------------------------------


def test_a_nomination_that_ends_is_told_to_pods_that_are_not_more_important(gate: Gateway) -> None:
    nominated = pod("p").priority(7).nominated("n")
    assert gate.see(nominated) == ["UnscheduledPodAdd"]
    assert gate.see(nominated.label("a", "b")) == []
    assert gate.see(nominated.nominated("m")) == ["AssignedPodDelete up to 7"]
    assert gate.lose(nominated.nominated("m")) == ["AssignedPodDelete up to 7", "UnscheduledPodDelete"]


def test_a_nomination_that_the_api_server_never_heard_of_is_reported_too(gate: Gateway) -> None:
    gate.see(pod("p").priority(7))
    gate.cluster.nominations.nominate(pod("p").priority(7).build(), "n")
    assert gate.lose(pod("p").priority(7)) == ["AssignedPodDelete up to 7", "UnscheduledPodDelete"]


def test_without_a_nomination_there_is_nothing_to_tell(gate: Gateway) -> None:
    gate.see(pod("p"))
    assert gate.lose(pod("p")) == ["UnscheduledPodDelete"]


# --- objects that cannot be taken in --------------------------------------------------------------------------------


def test_an_object_that_cannot_be_taken_in_is_skipped_and_its_neighbours_take_effect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gateway = Gateway()
    put = gateway.queue.add

    def add(pod: Pod) -> None:
        put(pod)
        if pod.name == "odd":
            raise RuntimeError("half done")

    monkeypatch.setattr(gateway.queue, "add", add)
    pods = [pod(name).version(1).build() for name in ("before", "odd", "after")]
    gateway.intake.apply("Pod", [WatchEvent("ADDED", one) for one in pods])
    gateway.inbox.drain()
    assert [one.uid in gateway.queue for one in pods] == [True, False, True]
    assert set(gateway.cluster.objects("Pod")) == {"default/before", "default/after"}
    assert gateway.metrics.skipped_objects_total.values() == {("Pod", "intake"): 1}
    assert [one.key for one in gateway.metrics.skipped] == ["default/odd"]
    monkeypatch.undo()
    gateway.see(pod("odd"))
    assert pods[1].uid in gateway.queue and not len(gateway.metrics.skipped)


def test_a_node_that_cannot_be_taken_in_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = Gateway()
    put = gateway.cluster.nodes.put_node

    def put_node(node: Node) -> None:
        put(node)
        if node.name == "odd":
            raise OverflowError("int too large")

    monkeypatch.setattr(gateway.cluster.nodes, "put_node", put_node)
    gateway.see(node("odd"), node("fine"))
    assert list(gateway.cluster.nodes.names) == ["fine"] and set(gateway.cluster.objects("Node")) == {"fine"}
    assert gateway.metrics.skipped_objects_total.values() == {("Node", "intake"): 1}


def test_news_that_fails_does_not_stop_the_news_behind_it() -> None:
    errors, done = Metrics(), []
    inbox = Inbox(errors.task_errors)

    def fail() -> None:
        raise KeyError("gone")

    for news in (lambda: done.append(1), fail, lambda: done.append(2)):
        inbox.put(news)
    assert inbox.drain() == 3 and done == [1, 2]
    assert errors.task_errors_total.values() == {("inbox",): 1}


@pytest.mark.parametrize("is_list", [True, False])
def test_many_objects_take_effect_in_slices_and_all_of_them(is_list: bool) -> None:
    """Pods that can be scheduled do not wait until a flood is over."""
    world = Gateway(SlowClock())
    nodes = [node(f"n{number}").version(1 + number).build() for number in range(12)]
    if is_list:
        world.intake.replace("Node", nodes)
    else:
        world.intake.apply("Node", [WatchEvent("ADDED", one) for one in nodes])
    seen = []
    while not world.inbox.is_empty:
        world.inbox.drain()
        seen.append(len(world.cluster.nodes))
    assert len(seen) > 2 and seen == sorted(seen)
    assert list(world.cluster.nodes.names) == [one.name for one in nodes]
