"""Background tasks of plugins, and what they do when the scheduler ends: nothing of it can end the scheduler."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, ClassVar

import pytest

from pilotage.api import Handle, Node, ObjectReference, Plugin, Pod, PostBind
from pilotage.cycle.plugin_tasks import CLOSE_SECONDS
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import LiveScheduler, live


class Worker(Plugin, PostBind):
    """Counts what its task does; the test says how each round ends."""

    log: ClassVar[list[str]] = []
    rounds: ClassVar[list[BaseException | None]] = []
    closing: ClassVar[BaseException | float | None] = None
    swallows: ClassVar[bool] = False

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        handle.run_in_background(self.poll)

    async def poll(self) -> None:
        self.log.append(f"{self._handle.clock.monotonic():g} {self._handle.profile_name}")
        if self.rounds:
            error = self.rounds.pop(0)
            if error is not None:
                raise error
            return
        try:
            await self._handle.clock.sleep(1e6)
        except asyncio.CancelledError:
            self.log.append("cancelled")
            raise

    async def post_bind(self, state: Any, pod: Pod, node_name: str) -> None:
        self._handle.record_event(self._handle.node(node_name).node, "Normal", "Took", "Binding", pod.name)  # type: ignore[union-attr]

    async def close(self) -> None:
        self.log.append("closed")
        if isinstance(self.closing, BaseException):
            raise self.closing
        if self.closing is not None:
            await self._handle.clock.sleep(self.closing)
        self._handle.record_event(
            ObjectReference("example.com/v1", "Farm", "team", "f"), "Normal", "Closed", "Ending", "bye"
        )


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"log": [], "rounds": [], "closing": None}.items():
        monkeypatch.setattr(Worker, name, value)


def begun() -> list[str]:
    return [line.split()[0] for line in Worker.log if line.endswith("default-scheduler")]


async def test_it_runs_from_the_start_to_an_orderly_end_and_then_the_plugin_closes() -> None:
    world = LiveScheduler([Worker])
    assert Worker.log == [], "nothing runs before the scheduler does"
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(world.scheduler.run())
        await world.put(node("a"), pod("p"))
        assert len(begun()) == 1
        world.scheduler.end()
        await world.clock.advance(0.1)
        assert running.done()
    assert Worker.log[1:] == ["cancelled", "closed"]
    told = {(event["reason"], event["regarding"]["kind"], event["metadata"]["namespace"]) for event in world.api.events}
    assert {("Took", "Node", "default"), ("Closed", "Farm", "team")} <= told, "what close() writes is sent"


async def test_a_task_that_raises_is_counted_logged_once_and_run_again(caplog: pytest.LogCaptureFixture) -> None:
    Worker.rounds[:] = [ValueError("one"), ValueError("two"), asyncio.CancelledError(), SystemExit(3), KeyError("five")]
    async with live(Worker) as world:
        await world.put(node("a"), pod("p"))
        await world.after(200)
        assert world.node_of("p") == "a"
        assert world.scheduler.metrics.plugin_errors_total.value("Worker") == 5
    gaps = [float(after) - float(before) for before, after in zip(begun(), begun()[1:], strict=False)]
    assert gaps == [1, 2, 4, 8, 16]
    logged = [record for record in caplog.records if "plugin failed" in record.message]
    assert [record.message.split("error=")[1].split(":")[0] for record in logged] == [
        "ValueError", "CancelledError", "SystemExit", "KeyError",
    ]  # fmt: skip
    assert all(record.exc_info and "Background poll" in record.message for record in logged)


async def test_a_task_that_returns_is_over() -> None:
    Worker.rounds[:] = [None]
    async with live(Worker) as world:
        await world.after(300)
        assert len(begun()) == 1
        assert world.scheduler.metrics.plugin_errors_total.total() == 0


@pytest.mark.parametrize("closing", [RuntimeError("no"), asyncio.CancelledError(), 1e6])
async def test_a_close_that_fails_or_hangs_does_not_hold_the_end_up(
    closing: BaseException | float, caplog: pytest.LogCaptureFixture
) -> None:
    Worker.closing = closing
    world = LiveScheduler([Worker])
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(world.scheduler.run())
        await world.settle()
        world.scheduler.end()
        await world.clock.advance(CLOSE_SECONDS + 1)
        assert running.done() and running.exception() is None
    with caplog.at_level(logging.WARNING):
        told = " ".join(record.message for record in caplog.records)
    assert "did not end within 5 s" in told if isinstance(closing, float) else "point=Close" in told


async def test_a_scheduler_that_is_stopped_at_once_closes_nothing() -> None:
    async with live(Worker):
        pass
    assert Worker.log[1:] == ["cancelled"]


class NotAsync(Plugin, PostBind):
    def __init__(self, handle: Handle) -> None:
        handle.run_in_background(lambda: None)  # type: ignore[arg-type,return-value]

    async def post_bind(self, state: Any, pod: Pod, node_name: str) -> None: ...


def test_what_is_no_coroutine_function_is_reported_at_the_start() -> None:
    with pytest.raises(Exception, match="run_in_background takes a method written as async def"):
        LiveScheduler([NotAsync])


class Namer(Plugin, PostBind):
    """An event about something whose kind nobody knows."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    async def post_bind(self, state: Any, pod: Pod, node_name: str) -> None:
        document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n"}}
        self._handle.record_event(document, "Warning", "Seen", "Looking", "a document")
        for wrong in (object(), {"kind": "X"}, Node):
            with pytest.raises(TypeError, match="an event cannot refer to"):
                self._handle.record_event(wrong, "Normal", "No", "No", "no")
        self._handle.record_event(pod, "Normal", "Done", "Binding", "asserted")


async def test_events_are_about_any_object() -> None:
    async with live(Namer) as world:
        await world.put(node("a"), pod("p"))
        await world.after(2)
        found = {event["reason"]: event["regarding"] for event in world.api.events}
    assert found["Done"]["name"] == "p", "no assertion in the plugin failed"
    assert (found["Seen"]["apiVersion"], found["Seen"]["kind"], found["Seen"]["namespace"]) == (
        "apps/v1", "Deployment", "n",
    )  # fmt: skip
