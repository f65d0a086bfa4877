"""Pre-queueing hints: which plugin is asked about which pods, plugin by plugin as KEP-6132 says."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pilotage.api import Action, Affected, ClusterEvent, Filter, Hint, Plugin, Resource, narrows, on_event
from pilotage.model import Pod
from pilotage.observe.metrics import Metrics
from pilotage.plugins import PrioritySort
from pilotage.queue.hints import UNREGISTERED, HintSwitches, HintTable
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.queue.sub_queues import SubQueue
from pilotage.testing import node, pod
from tests.queue.waiting_room import NODE_ADDED, NODE_LABEL, StoppedClock, always, judge

NODE = node("n").build()
CHANGED = (NODE_LABEL, NODE, NODE)


class Room:
    """A queue that tells of narrowings."""

    def __init__(self, *plugins: Plugin, switches: HintSwitches | None = None) -> None:
        self.metrics = Metrics()
        table = HintTable({"default-scheduler": plugins}, self.metrics, switches)
        self.queue = SchedulingQueue(
            StoppedClock(), sort_key=PrioritySort().sort_key, gatekeeper=lambda pod: None, hints=table
        )

    @property
    def errors(self) -> list[str]:
        return [plugin for (plugin,) in self.metrics.queueing_hint_errors_total.values()]

    @property
    def narrowings(self) -> list[tuple[str, ...]]:
        """(plugin, result) of those that were counted, in the order of their first time."""
        return list(self.metrics.pre_queueing_hint_evaluations_total.values())

    def rejected(self, plugin: str, *names: str) -> None:
        for name in names:
            self.queue.add(pod(name).build())
            ticket = self.queue.pop()
            assert ticket is not None
            self.queue.give_back(ticket, ticket.pod, frozenset([plugin]), frozenset())

    def woken(self, event: ClusterEvent, old: Any, new: Any) -> list[str]:
        self.queue.on_event(event, old, new)
        self.queue.check()
        return sorted(entry.pod.name for entry in self.queue.entries() if entry.home is not SubQueue.UNSCHEDULABLE)


def narrowing(plugin_name: str, answer: Affected | Exception, asked: list[str] | None = None) -> Plugin:
    """A plugin whose narrowing gives one answer, and whose hint always says Queue."""

    class Narrow(Plugin):
        name = plugin_name

        @on_event(Resource.NODE, Action.UPDATE_NODE_LABEL)
        def judged(self, pod: Pod, old: Any, new: Any) -> Hint:
            if asked is not None:
                asked.append(pod.name)
            return Hint.QUEUE

        @narrows(Resource.NODE, Action.UPDATE_NODE_LABEL)
        def affected(self, old: Any, new: Any) -> Affected:
            if isinstance(answer, Exception):
                raise answer
            return answer

    return Narrow()


def test_only_the_named_pods_are_judged() -> None:
    asked: list[str] = []
    room = Room(narrowing("Narrow", Affected.pods(["default/b", "default/nobody", "other/c"]), asked))
    room.rejected("Narrow", "a", "b", "c")
    assert room.woken(*CHANGED) == ["b"]
    assert asked == ["b"] and room.narrowings == [("Narrow", "narrowed")]


def test_a_named_pod_that_another_plugin_rejected_is_left_alone() -> None:
    room = Room(narrowing("Narrow", Affected.pods(["default/a"])), judge("Deaf", always, NODE_ADDED))
    room.rejected("Deaf", "a")
    assert room.woken(*CHANGED) == []


def test_no_one_named_means_no_one() -> None:
    room = Room(narrowing("Narrow", Affected.pods([])))
    room.rejected("Narrow", "a")
    assert room.woken(*CHANGED) == []


def test_a_plugin_that_says_all_widens_only_itself() -> None:
    room = Room(narrowing("Wide", Affected.all()), narrowing("Narrow", Affected.pods(["default/m1"])))
    room.rejected("Wide", "w1", "w2")
    room.rejected("Narrow", "m1", "m2")
    assert room.woken(*CHANGED) == ["m1", "w1", "w2"]
    assert room.narrowings == [("Wide", "all_pods"), ("Narrow", "narrowed")]


def test_a_plugin_without_narrowing_sees_all_its_pods() -> None:
    room = Room(judge("Simple", always, NODE_LABEL), narrowing("Narrow", Affected.pods(["default/m1"])))
    room.rejected("Simple", "s1", "s2")
    room.rejected("Narrow", "m1", "m2")
    assert room.woken(*CHANGED) == ["m1", "s1", "s2"]


def test_a_narrowing_that_fails_means_all_pods_of_its_plugin_and_is_counted() -> None:
    room = Room(narrowing("Broken", RuntimeError("no index")), narrowing("Narrow", Affected.pods([])))
    room.rejected("Broken", "a", "b")
    room.rejected("Narrow", "m")
    assert room.woken(*CHANGED) == ["a", "b"]
    assert room.errors == ["Broken"] and room.narrowings == [("Narrow", "narrowed")]


class Several(Plugin):
    """Two narrowings of one event, and one event that has none."""

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    def judged(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE

    @narrows(Resource.NODE, Action.UPDATE_NODE_LABEL)
    def some(self, old: Any, new: Any) -> Affected:
        return Affected.pods(["default/a"])

    @narrows(Resource.NODE, Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT)
    def others(self, old: Any, new: Any) -> Affected:
        return Affected.pods(["default/b"])


def test_several_narrowings_of_a_plugin_add_up() -> None:
    room = Room(Several())
    room.rejected("Several", "a", "b", "c")
    assert room.woken(*CHANGED) == ["a", "b"]


def test_an_action_that_is_not_narrowed_concerns_all_pods() -> None:
    room = Room(Several())
    room.rejected("Several", "a", "b", "c")
    assert room.woken(NODE_ADDED, None, NODE) == ["a", "b", "c"]
    assert room.narrowings == []


def test_one_registration_without_narrowing_is_enough_to_see_all_pods() -> None:
    class Half(Several):
        always_queue_on = (NODE_LABEL,)

        def registrations(self) -> Any:
            first, *rest = super().registrations()
            return [type(first)(first.event, None), *rest]

    room = Room(Half())
    room.rejected("Half", "a", "c")
    assert room.woken(*CHANGED) == ["a", "c"]


def test_an_event_without_objects_is_not_narrowed() -> None:
    room = Room(narrowing("Narrow", Affected.pods([])))
    room.rejected("Narrow", "a")
    assert room.woken(NODE_LABEL, None, None) == ["a"]


def test_what_a_pod_missed_in_flight_is_not_narrowed() -> None:
    room = Room(narrowing("Narrow", Affected.pods([])))
    room.queue.add(pod("p").build())
    ticket = room.queue.pop()
    assert ticket is not None
    room.queue.on_event(*CHANGED)
    assert room.queue.give_back(ticket, ticket.pod, frozenset(["Narrow"]), frozenset()) is SubQueue.BACKOFF


def test_with_the_gate_off_narrowings_are_not_asked() -> None:
    room = Room(narrowing("Narrow", Affected.pods([])), switches=HintSwitches(narrowing=False))
    room.rejected("Narrow", "a", "b")
    assert room.woken(*CHANGED) == ["a", "b"] and room.narrowings == []


def test_with_hints_off_a_registered_event_is_enough() -> None:
    def never(waiting: Pod, old: Any, new: Any) -> Hint:
        return Hint.SKIP

    room = Room(judge("Fit", never, NODE_LABEL), switches=HintSwitches(hints=False))
    room.rejected("Fit", "a")
    assert room.woken(NODE_ADDED, None, NODE) == []
    assert room.woken(*CHANGED) == ["a"]


def test_narrowings_are_asked_even_if_no_one_waits() -> None:
    """They may keep books of their own."""
    room = Room(narrowing("Narrow", Affected.pods(["default/a"])))
    assert room.woken(*CHANGED) == [] and [plugin for plugin, _ in room.narrowings] == ["Narrow"]


def test_narrowing_is_reported_in_the_debug_log(caplog: pytest.LogCaptureFixture) -> None:
    room = Room(narrowing("Narrow", Affected.pods(["default/a"])))
    room.rejected("Narrow", "a")
    with caplog.at_level(logging.DEBUG, "pilotage.queue.hints"):
        room.woken(*CHANGED)
    assert [record.getMessage() for record in caplog.records] == [
        "PreQueueingHint narrowed pod set: plugin=Narrow event=NodeUpdateNodeLabel pods=1"
    ]


# --- plugins that register nothing ------------------------------------------------------------------------------------


def test_a_plugin_that_registers_nothing_hears_of_what_kube_scheduler_says_such_plugins() -> None:
    class Silent(Plugin, Filter):
        def filter(self, state: Any, pod: Any, node: Any) -> None:
            return None

    table = HintTable({"default-scheduler": [Silent()]}, Metrics())
    heard = {resource for resource in Resource if table.routes(ClusterEvent(resource, Action.ADD))}
    assert heard == {event.resource for event in UNREGISTERED}
    assert not heard & {Resource.RESOURCE_SLICE, Resource.VOLUME_ATTACHMENT}


def test_a_plugin_that_says_that_it_wants_nothing_hears_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Deaf(Plugin, Filter):
        def filter(self, state: Any, pod: Any, node: Any) -> None:
            return None

        def registrations(self) -> list[Any]:
            return []

    table = HintTable({"default-scheduler": [Deaf()]}, Metrics())
    assert not any(table.routes(ClusterEvent(resource, Action.ADD)) for resource in Resource)
    assert not caplog.records
