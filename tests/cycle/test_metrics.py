"""What a running scheduler tells in numbers."""

from __future__ import annotations

from typing import ClassVar

from prometheus_client.parser import text_string_to_metric_families

from pilotage.api import Filter, Permit, Plugin, Reject, Wait
from pilotage.api.plugin import Registration
from pilotage.api.results import Reason
from pilotage.api.state import CycleState
from pilotage.api.views import NodeView
from pilotage.framework.plugin_meter import PAUSE_SECONDS
from pilotage.model import Pod
from pilotage.observe.exposition import render
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import live

PROFILE = "default-scheduler"


class Picky(Plugin, Filter):
    made: ClassVar[list[Plugin]] = []

    def __init__(self) -> None:
        self.made[:] = [self]

    def registrations(self) -> list[Registration]:
        return []

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Reject | None:
        if pod.name == "broken":
            raise RuntimeError("cannot say")
        return Reject(Reason("NotYou", "not you")) if pod.name == "rejected" else None


class Holds(Plugin, Permit):
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Wait | None:
        return Wait(5.0) if pod.name == "held" else None


async def test_attempts_are_counted_by_result_and_measured() -> None:
    async with live(Picky) as world:
        await world.put(node("a"), pod("p"), pod("q"), pod("rejected"), pod("broken"))
        metrics = world.scheduler.metrics
        assert metrics.schedule_attempts_total.values() == {
            ("scheduled", PROFILE): 2,
            ("unschedulable", PROFILE): 1,
            ("error", PROFILE): 1,
        }
        assert metrics.scheduling_attempt_duration_seconds.count("scheduled", PROFILE) == 2
        assert metrics.scheduling_algorithm_duration_seconds.count() == 3
        assert metrics.pod_scheduling_attempts.child().counts[0] == 2
        assert metrics.pod_scheduling_sli_duration_seconds.count("1") == 2


async def test_sizes_are_read_when_the_metrics_are() -> None:
    async with live(Picky) as world:
        await world.put(node("a"), pod("p"), pod("rejected"), pod("closed").gate("later"))
        metrics = world.scheduler.metrics
        assert metrics.pending_pods.values() == {
            ("active",): 0,
            ("backoff",): 0,
            ("unschedulable",): 1,
            ("gated",): 1,
            ("incomplete",): 0,
            ("pending",): 0,
        }
        assert metrics.unschedulable_pods.values() == {("Picky", PROFILE): 1, ("SchedulingGates", PROFILE): 1}
        assert metrics.cache_size.values() == {("nodes",): 1, ("pods",): 1, ("assumed_pods",): 0}
        assert metrics.inflight_events.values() == {("PodPopped",): 0}
        assert metrics.queued_entities.value("gated", "pod") == 1
        assert metrics.queue_incoming_pods_total.value("unschedulable", "ScheduleAttemptFailure") == 1
        assert metrics.queue_incoming_entities_total.value("active", "UnscheduledPodAdd", "pod") == 2


async def test_plugins_are_measured_where_they_were_asked() -> None:
    async with live(Picky) as world:
        for name in ("p", "rejected"):
            await world.put(node("a"), node("b"), pod(name))
            await world.after(PAUSE_SECONDS * 2)
        metrics = world.scheduler.metrics
        plugins = metrics.plugin_execution_duration_seconds
        # Once per cycle, not once per node.
        assert plugins.count("Picky", "Filter", "Success") == 2
        assert plugins.count("NodeResourcesFit", "PreFilter", "Success") == 2
        assert plugins.count("NodeResourcesFit", "Score", "Success") >= 1
        assert plugins.count("NodeAffinity", "PreFilter", "Skip") == 2
        assert plugins.count("DefaultPreemption", "PostFilter", "Unschedulable") == 1
        points = metrics.framework_extension_point_duration_seconds
        for point, status in (("PreFilter", "Success"), ("Filter", "Success"), ("PreEnqueue", "Success")):
            assert points.count(point, status, PROFILE) == 2, point
        for point in ("Reserve", "Bind"):
            assert points.count(point, "Success", PROFILE) == 1, point
        assert points.count("PostFilter", "Unschedulable", PROFILE) == 1


async def test_plugins_have_their_own_classes_between_cycles() -> None:
    async with live(Picky) as world:
        await world.put(node("a"), pod("p"))
    assert [type(one) for one in Picky.made] == [Picky]


async def test_a_state_has_a_timer_only_while_its_cycle_is_measured() -> None:
    states: list[CycleState] = []
    timed: list[bool] = []

    class Watching(Plugin, Filter):
        def registrations(self) -> list[Registration]:
            return []

        def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Reject | None:
            states.append(state)
            timed.append(state.timer is not None)
            return None

    async with live(Watching) as world:
        await world.put(node("a"), *(pod(f"p{number}") for number in range(10)))
        assert world.attempts == 10 and timed == [True] + [False] * 9
        assert not any(state.timer for state in states), "the binding of a measured pod is no part of its cycle"


async def test_cycles_close_together_are_not_all_measured() -> None:
    async with live() as world:
        await world.put(node("a"), *(pod(f"p{number}") for number in range(10)))
        points = world.scheduler.metrics.framework_extension_point_duration_seconds
        assert points.count("Filter", "Success", PROFILE) == 1
        assert world.scheduler.metrics.plugin_evaluation_total.value("NodeResourcesFit", "Filter", PROFILE) == 10


async def test_an_error_of_a_plugin_is_a_status() -> None:
    async with live(Picky) as world:
        await world.put(node("a"), pod("broken"))
        metrics = world.scheduler.metrics
        assert metrics.plugin_execution_duration_seconds.count("Picky", "Filter", "Error") == 1
        assert metrics.framework_extension_point_duration_seconds.count("Filter", "Error", PROFILE) == 1


async def test_plugins_that_decline_are_not_counted_as_asked() -> None:
    async with live() as world:
        await world.put(node("a"), node("b"), pod("p"))
        evaluated = world.scheduler.metrics.plugin_evaluation_total
        assert evaluated.value("NodeResourcesFit", "PreFilter", PROFILE) == 1
        assert evaluated.value("NodeAffinity", "PreFilter", PROFILE) == 0
        assert evaluated.value("NodeAffinity", "Filter", PROFILE) == 0
        assert evaluated.value("TaintToleration", "Score", PROFILE) == 1


async def test_waits_for_permission_are_measured_by_how_they_end() -> None:
    async with live(Holds) as world:
        await world.put(node("a"), pod("held"))
        await world.after(5.0)
        line = world.scheduler.metrics.permit_wait_duration_seconds.child("Unschedulable")
        assert (line.count, line.sum) == (1, 5.0)


async def test_preemptions_are_counted_with_their_victims() -> None:
    async with live() as world:
        await world.put(node("a").cpu(1), pod("low").requests(cpu=1))
        await world.put(pod("high").requests(cpu=1).priority(10))
        metrics = world.scheduler.metrics
        assert metrics.preemption_attempts_total.total() == 1
        assert metrics.preemption_victims.child().sum == 1
        assert metrics.preemption_goroutines_execution_total.values() == {("success",): 1}


async def test_watch_events_and_hints_are_measured() -> None:
    async with live() as world:
        await world.put(node("a").cpu(1), pod("big").requests(cpu=2))
        await world.put(node("b").cpu(1))
        metrics = world.scheduler.metrics
        assert metrics.event_handling_duration_seconds.count("NodeAdd") == 2
        assert metrics.event_handling_duration_seconds.count("UnscheduledPodAdd") == 1
        hints = metrics.queueing_hint_execution_duration_seconds
        assert hints.count("NodeResourcesFit", "NodeAdd", "QueueSkip") == 1
        await world.put(node("c").cpu(2))
        assert hints.count("NodeResourcesFit", "NodeAdd", "Queue") == 1


async def test_everything_can_be_read_as_text() -> None:
    async with live() as world:
        await world.put(node("a"), pod("p"))
        families = {
            family.name: family
            for family in text_string_to_metric_families(render("", world.scheduler.metrics)[0].decode())
        }
    enabled = {sample.labels["name"]: sample.value for sample in families["kubernetes_feature_enabled"].samples}
    assert enabled["SchedulerQueueingHints"] == 1 and enabled["GenericWorkload"] == 1
    assert "scheduler_podgroup_schedule_attempts" in families
    assert families["kubernetes_build_info"].samples[0].labels["minor"] == "37"
