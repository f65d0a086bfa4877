"""Events about pods: what `kubectl describe` shows, within what the API server accepts."""

from __future__ import annotations

import asyncio

import pytest

from pilotage.api.calls import Lane, ObjectReference
from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.event import EventCreation, EventFacts, shortened
from pilotage.calls.recorder import EventRecorder
from pilotage.testing import VirtualClock, pod
from tests.calls.captured_writes import CapturedWrites

FACTS = EventFacts(
    type="Warning",
    reason="FailedScheduling",
    action="Scheduling",
    note="0/1 nodes are available: 1 Insufficient cpu.",
    reporter="default-scheduler",
    instance="default-scheduler-host",
    time="2026-01-01T00:00:00.000000Z",
    name_suffix="18a",
)


async def test_an_event_is_about_one_version_of_a_pod() -> None:
    writer = CapturedWrites()
    await EventCreation(pod("p").namespace("team").uid("u").version(7).build(), FACTS).perform(writer)
    (write,) = writer.writes
    assert (write.verb, write.kind, write.key) == ("create", "Event", "team")
    assert write.body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "p.18a", "namespace": "team"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "type": "Warning",
        "note": "0/1 nodes are available: 1 Insufficient cpu.",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "team",
            "name": "p",
            "uid": "u",
            "resourceVersion": "7",
        },
    }


async def test_a_pod_with_the_longest_name_has_events_too() -> None:
    writer, long = CapturedWrites(), "p" * 253
    await EventCreation(pod(long).build(), FACTS).perform(writer)
    await EventCreation(ObjectReference("batch/v1", "Job", "default", long, "u"), FACTS).perform(writer)
    assert [write.body["metadata"]["name"] for write in writer.writes] == ["p" * 249 + ".18a"] * 2
    assert [write.body["regarding"]["name"] for write in writer.writes] == [long, long]


@pytest.mark.parametrize(
    ("note", "result"),
    [
        ("short", "short"),
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1020 + " ..."),
        ("ä" * 512, "ä" * 512),
        ("x" + "ä" * 600, "x" + "ä" * 509 + " ..."),
    ],
    ids=["short", "just fits", "cut", "two bytes each", "never inside a character"],
)
def test_notes_are_cut_to_what_the_api_server_accepts(note: str, result: str) -> None:
    assert shortened(note) == result
    assert len(shortened(note).encode()) <= 1024


async def test_the_recorder_sends_events_in_the_background_under_names_that_differ() -> None:
    writer, clock = CapturedWrites(), VirtualClock()
    dispatcher = Dispatcher(writer)
    recorder = EventRecorder(dispatcher, clock)
    for _ in range(3):
        recorder.record(pod("p").scheduler("mine").build(), "Normal", "Scheduled", "Binding", "assigned")
    assert dispatcher.queue.ready(Lane.EVENT) == 3 and writer.writes == []
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(dispatcher.run())
        await clock.settle()
        running.cancel()
    names = [write.body["metadata"]["name"] for write in writer.writes]
    assert len(set(names)) == 3 and all(name.startswith("p.") for name in names)
    body = writer.writes[0].body
    assert body["reportingController"] == "mine" and body["reportingInstance"].startswith("mine-")
    assert body["eventTime"] == "2026-01-01T00:00:00.000000Z"


async def test_what_is_recorded_as_new_never_becomes_a_series() -> None:
    """Events of workload queueing: the same reason again, about the same workload, says something else."""
    writer, clock = CapturedWrites(), VirtualClock()
    dispatcher = Dispatcher(writer)
    recorder = EventRecorder(dispatcher, clock)
    workload = ObjectReference("kueue.x-k8s.io/v1beta2", "Workload", "team", "w", "u")
    for victim in ("a", "b"):
        recorder.record_new(workload, "queueing", "Normal", "PreemptedWorkload", "PreemptedWorkload", victim)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(dispatcher.run())
        await clock.settle()
        running.cancel()
    assert [write.verb for write in writer.writes] == ["create", "create"]
    assert [write.body["note"] for write in writer.writes] == ["a", "b"]
    assert writer.writes[0].body["regarding"]["kind"] == "Workload"


async def test_while_pods_wait_for_their_turn_an_event_is_held_back_for_a_second_and_no_longer() -> None:
    clock, writer = VirtualClock(), CapturedWrites()
    dispatcher = Dispatcher(writer, clock)
    recorder = EventRecorder(dispatcher, clock)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(dispatcher.run())
        recorder.catch_up(is_busy=True)
        recorder.record(pod("p").build(), "Normal", "Scheduled", "Binding", "bound")
        for _ in range(7):
            await clock.advance(0.125)
            recorder.catch_up(is_busy=True)
        assert writer.writes == []
        await clock.advance(0.125)
        recorder.catch_up(is_busy=True)
        await clock.settle()
        assert [write.body["reason"] for write in writer.writes] == ["Scheduled"]
        running.cancel()
