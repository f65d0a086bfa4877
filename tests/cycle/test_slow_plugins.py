"""A plugin that takes too long is named while it does, with the pod and the line."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pilotage.api import CycleState, Filter, NodeView, Plugin, PreEnqueue, Rejection
from pilotage.api.budget import UNLIMITED, Budget, BudgetExceeded
from pilotage.clock import SystemClock
from pilotage.cycle.slow_plugins import SlowPlugins, is_foreign
from pilotage.model import Pod
from pilotage.observe.metrics import Metrics
from pilotage.testing import node, pod
from pilotage.testing.views import node_view


class HandClock:
    """A clock whose time is set by hand, in the middle of a plugin if need be."""

    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody sleeps here")


class Slow(Plugin, Filter, PreEnqueue):
    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        self.work()
        return None

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        self.work()
        return None


class Watched:
    """A loop that runs one plugin, and what the watch saw of it after each number of seconds."""

    def __init__(self, *seconds: float) -> None:
        self.clock, self.metrics = HandClock(), Metrics()
        self.slow = SlowPlugins(self.clock, self.metrics, UNLIMITED)
        self.seconds = seconds
        self.plugin = Slow(self.work)

    def work(self) -> None:
        for now in self.seconds:
            self.clock.now = now
            self.slow.look(sys._getframe())

    def filter(self) -> None:
        self.plugin.filter(CycleState(), pod("p").build(), node_view(node("a")))

    def cycle(self) -> None:
        self.slow.begin()
        self.filter()
        self.slow.end()


def test_a_slow_plugin_is_counted_and_named_with_pod_and_line(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(1.5)
    with caplog.at_level(logging.WARNING):
        watched.cycle()
    (record,) = caplog.records
    text = record.getMessage()
    assert "pod=default/p plugin=Slow method=filter seconds=1.5" in text
    assert f"{__file__}:" in text
    assert watched.metrics.slow_plugin_total.values() == {("Slow",): 1}


def test_one_that_hangs_is_counted_once_and_named_again_and_again(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(0.9, 1.0, 1.2, 1.9, 2.1, 3.0, 4.3)
    watched.cycle()
    assert [round(float(r.getMessage().split("seconds=")[1].split()[0]), 1) for r in caplog.records] == [1.0, 2.1, 4.3]
    assert watched.metrics.slow_plugin_total.values() == {("Slow",): 1}


def test_quick_plugins_are_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(0.5)
    watched.cycle()
    watched.seconds = (1.2,)  # 0.7 s after the start of the second cycle
    watched.cycle()
    assert caplog.records == [] and not watched.metrics.slow_plugin_total.values()


def test_what_happens_between_cycles_is_not_a_plugins_fault(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(0.1)
    watched.cycle()
    watched.seconds = (9.0,)
    watched.filter()
    watched.slow.begin()
    watched.clock.now = 99.0
    watched.slow.look(sys._getframe())
    assert caplog.records == []


def test_a_real_thread_sees_a_plugin_that_waits(caplog: pytest.LogCaptureFixture) -> None:
    """The plugin goes on when it has been reported: this test cannot be too early, and hangs if nobody looks."""
    reported = threading.Event()

    clock, metrics = HandClock(), Metrics()
    slow = SlowPlugins(clock, metrics, UNLIMITED, limit_seconds=0.01)

    def wait() -> None:
        clock.now = 5.0
        assert reported.wait(60)

    handler = _Signal(reported)
    logger = logging.getLogger("pilotage.cycle.slow_plugins")
    logger.addHandler(handler)
    try:
        with slow.watching():
            slow.begin()
            Slow(wait).pre_enqueue(pod("p").build())
            slow.end()
    finally:
        logger.removeHandler(handler)
    assert metrics.slow_plugin_total.values() == {("Slow",): 1}
    assert "method=pre_enqueue" in caplog.text and "pod=default/p" in caplog.text


class _Signal(logging.Handler):
    def __init__(self, event: threading.Event) -> None:
        super().__init__()
        self._event = event

    def emit(self, record: logging.LogRecord) -> None:
        self._event.set()


def spin() -> None:
    while True:
        pass


@pytest.mark.parametrize("is_in_cycle", [True, False])
def test_someone_elses_plugin_is_interrupted_in_a_cycle_only(is_in_cycle: bool) -> None:
    """Outside of a cycle (hints, gates) an exception at any place could leave the queue half-changed."""
    budget = Budget(0.01)
    slow = SlowPlugins(SystemClock(), Metrics(), budget, limit_seconds=0.02)
    looks = 0

    def work() -> None:
        nonlocal looks
        while looks < 5 or is_in_cycle:
            looks += 1
            threading.Event().wait(0.03)

    with slow.watching():
        budget.begin(0.01)
        slow.begin()
        slow.may_interrupt = is_in_cycle
        if is_in_cycle:
            with pytest.raises(BudgetExceeded):
                Slow(spin).filter(CycleState(budget), pod("p").build(), node_view(node("a")))
        else:
            Slow(work).filter(CycleState(budget), pod("p").build(), node_view(node("a")))
        slow.may_interrupt = False
        slow.end()


def test_our_own_code_is_never_cut_short() -> None:
    verdicts = []

    def ask() -> None:
        verdicts.append(is_foreign(sys._getframe()))

    plugin = Slow(ask)
    plugin.filter(CycleState(), pod("p").build(), node_view(node("a")))
    ours: dict[str, Any] = {
        "__name__": "pilotage.cluster.node_table",
        "ask": lambda frame: verdicts.append(is_foreign(frame)),
    }
    exec("import sys\ndef column(): ask(sys._getframe())", ours)
    Slow(ours["column"]).filter(CycleState(), pod("p").build(), node_view(node("a")))
    assert verdicts == [True, False]
