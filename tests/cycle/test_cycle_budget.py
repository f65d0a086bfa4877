"""A pod whose cycle costs too much is put aside, and nobody else waits for it."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator

import pytest

from pilotage.api import BudgetExceeded, CycleState, Filter, NodeView, Plugin, PreFilter, Rejection, Reserve
from pilotage.api.table import NodeTable
from pilotage.clock import thread_cpu_seconds
from pilotage.config.kinds import PilotageConfiguration, SchedulerConfiguration
from pilotage.model import Pod
from pilotage.queue.sub_queues import SubQueue
from pilotage.testing import PodBuilder, node, pod
from tests.cycle.live_scheduler import live

LITTLE = SchedulerConfiguration(additions=PilotageConfiguration(cycle_budget=0.02))


class Costly(Plugin, PreFilter, Filter):
    """Never comes to an end with pods that say so; notes whom it was asked about, and what the cycle may spend."""

    asked: list[str] = []  # noqa: RUF012
    limits: dict[str, float] = {}  # noqa: RUF012

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        self.asked.append(pod.name)
        self.limits[pod.name] = state.budget.limit_seconds

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        while pod.labels.get("costs") == "much":
            state.budget.spend()
        return None


class CollectsGarbage(Plugin, Filter):
    """Five times the budget, all of it in the collector."""

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        began = thread_cpu_seconds()
        while thread_cpu_seconds() - began < 0.1:
            gc.collect()
        state.budget.check()
        return None


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    Costly.asked.clear()
    Costly.limits.clear()


def costly(name: str, cpu: str = "1") -> PodBuilder:
    return pod(name).label("costs", "much").requests(cpu=cpu)


async def test_a_costly_pod_is_put_aside_with_plugin_and_cost_and_others_are_scheduled() -> None:
    async with live(Costly, configuration=LITTLE) as world:
        await world.put(node("a").cpu("8"), costly("p"), pod("q"))
        status, reason, message = world.condition("p")
        assert (status, reason) == ("False", "SchedulingBudgetExceeded")
        assert re.match(r'plugin "Costly" \(Filter\) used up the CPU time of the cycle: \d+\.\d\d s', message)
        assert "allowed are 0.02 s" in message and "raise cycleBudget" in message
        assert ("FailedScheduling", message) in world.notes("p")
        assert world.node_of("q") == "a"
        assert world.scheduler.metrics.cycle_budget_exceeded_total.values() == {("Costly",): 1}


async def test_garbage_collections_are_not_counted() -> None:
    async with live(CollectsGarbage, configuration=LITTLE) as world:
        await world.put(node("a").cpu("8"), pod("p"))
        assert world.node_of("p") == "a"
        assert world.scheduler.metrics.cycle_budget_exceeded_total.values() == {}
    assert not gc.callbacks or all("cycle_budget" not in callback.__module__ for callback in gc.callbacks)


async def test_it_is_tried_again_later_and_later() -> None:
    async with live(Costly, configuration=LITTLE) as world:
        await world.put(node("a").cpu("8"), costly("p"))
        tried = []
        for second in range(1, 240):
            before = len(Costly.asked)
            await world.after(1)
            tried += [second] * (len(Costly.asked) - before)
        assert [later - sooner for sooner, later in zip([0, *tried], tried, strict=False)] == pytest.approx(
            [30, 60, 120], abs=2
        )


async def test_events_do_not_bring_it_back_sooner() -> None:
    async with live(Costly, configuration=LITTLE) as world:
        await world.put(node("a").cpu("8"), costly("p"))
        for name in "bcd":
            await world.put(node(name).cpu("8"))
            await world.after(2)
        assert Costly.asked == ["p"]


async def test_equal_pods_are_not_tried_for_a_while() -> None:
    async with live(Costly, configuration=LITTLE) as world:
        await world.put(node("a").cpu("8"), costly("p"), costly("p2"), costly("other", cpu="2"))
        assert Costly.asked == ["p", "other"]
        assert world.condition("p2") == world.condition("p")


async def test_the_pods_of_its_namespace_have_less_for_a_minute() -> None:
    async with live(Costly, configuration=LITTLE) as world:
        await world.put(node("a").cpu("8"), costly("p"), pod("q"), pod("r").namespace("elsewhere"))
        assert Costly.limits == {"p": 0.02, "q": 0.01, "r": 0.02}
        assert world.node_of("q") == "a"


async def test_after_a_minute_they_have_all_of_it_again() -> None:
    async with live(Costly, configuration=LITTLE) as world:
        await world.put(node("a").cpu("8"), costly("p"))
        world.api.delete_pod("p")
        await world.after(61)
        await world.put(pod("q"))
        assert Costly.limits["q"] == 0.02


async def test_the_next_leader_tries_others_first() -> None:
    async with live(Costly, configuration=LITTLE) as world:
        condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingBudgetExceeded"}
        aside = costly("p").status(conditions=[condition])
        await world.put(node("a").cpu("8"), aside, pod("q"))
        assert Costly.asked == ["q"]
        assert {entry.home for entry in world.queue.entries()} == {SubQueue.ERROR_BACKOFF}
        await world.after(32)
        assert Costly.asked == ["q", "p"]


class CostlyReserve(Plugin, Reserve):
    given_back: list[str] = []  # noqa: RUF012

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        raise BudgetExceeded(0.7, 0.5)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.given_back.append(pod.name)


async def test_a_place_is_given_back_if_reserving_costs_too_much() -> None:
    async with live(CostlyReserve) as world:
        await world.put(node("a").cpu("1"), pod("p").requests(cpu="1"))
        assert world.condition("p")[1] == "SchedulingBudgetExceeded"
        assert CostlyReserve.given_back == ["p"]
        assert not world.cluster.is_assumed(world.api.pods["default/p"]["metadata"]["uid"])
