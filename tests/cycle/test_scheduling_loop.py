"""The whole scheduler: pods get nodes, failures are told and retried, and nothing is lost or counted twice."""

from __future__ import annotations

from pilotage.kube.errors import ApiStatusError
from pilotage.queue.sub_queues import SubQueue
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import LiveScheduler, live

ONE_CPU = node("a").cpu("1")
P = pod("p").requests(cpu="1")
BUSY = ApiStatusError(403, "Forbidden", "come back later")


async def test_a_pod_is_bound_to_a_node_that_fits() -> None:
    async with live() as world:
        await world.put(node("small").cpu("500m"), ONE_CPU, P)
        assert world.node_of("p") == "a"
        assert world.notes("p") == [("Scheduled", "Successfully assigned default/p to a")]
        assert world.requested() == {"small": 0, "a": 1000}
        assert not world.cluster.is_assumed(P.build().uid) and P.build().uid not in world.queue
        assert world.scheduler.metrics.schedule_attempts_total.values() == {("scheduled", "default-scheduler"): 1}


async def test_pods_that_were_there_before_the_start_are_scheduled_too() -> None:
    world = LiveScheduler()
    world.api.put_node(ONE_CPU)
    world.api.create_pod(P)
    world.scheduler.drain_inbox()
    assert world.queue.size(SubQueue.ACTIVE) == 1
    ticket = world.queue.pop()
    assert ticket is not None
    decision = world.scheduler.cycle.decide(ticket)
    assert decision is not None and decision.pod.node_name == "a"


async def test_a_pod_that_fits_nowhere_is_told_why_and_scheduled_when_a_node_comes() -> None:
    async with live() as world:
        await world.put(node("full").cpu("500m"), node("cordoned").unschedulable(), P)
        text = (
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. "
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
        )
        assert world.condition("p") == ("False", "Unschedulable", text)
        assert world.notes("p") == [("FailedScheduling", text)]
        assert world.queue.size(SubQueue.UNSCHEDULABLE) == 1
        await world.put(ONE_CPU)
        assert world.node_of("p") == "a"
        assert world.condition("p")[0] == "True"


async def test_a_pod_is_scheduled_when_what_is_in_its_way_leaves() -> None:
    async with live() as world:
        await world.put(ONE_CPU, pod("first").requests(cpu="1"), P)
        assert (world.node_of("first"), world.node_of("p")) == ("a", "")
        world.api.delete_pod("first")
        await world.settle()
        assert world.node_of("p") == "a"


async def test_a_pod_that_finished_makes_room() -> None:
    async with live() as world:
        await world.put(ONE_CPU, pod("job").requests(cpu="1"), P)
        world.api.update_pod(pod("job").requests(cpu="1").node("a").phase("Succeeded"))
        await world.settle()
        assert world.node_of("p") == "a"


async def test_an_unrelated_event_does_not_cause_an_attempt() -> None:
    async with live() as world:
        await world.put(node("full").cpu("500m"), P)
        attempts = world.attempts
        await world.put(node("full").cpu("500m").label("new", "label"), node("tiny").cpu("100m"))
        assert world.attempts == attempts


async def test_higher_priority_goes_first() -> None:
    async with live() as world:
        world.api.create_pod(P, pod("important").requests(cpu="1").priority(10))
        await world.put(ONE_CPU)
        await world.after(3)
        assert (world.node_of("important"), world.node_of("p")) == ("a", "")


async def test_pods_spread_over_nodes_and_no_node_takes_more_than_it_has() -> None:
    async with live() as world:
        await world.put(*(node(name).cpu("4") for name in "abc"))
        await world.put(*(pod(f"p{number}").requests(cpu="1") for number in range(20)))
        placed = [world.node_of(f"p{number}") for number in range(20)]
        assert sorted(placed) == sorted([""] * 8 + list("abc") * 4)
        assert world.requested() == {"a": 4000, "b": 4000, "c": 4000}
        assert world.queue.size(SubQueue.UNSCHEDULABLE) == 8


async def test_pods_of_other_schedulers_are_left_alone_but_count_where_they_run() -> None:
    async with live() as world:
        await world.put(ONE_CPU, pod("foreign").scheduler("other").requests(cpu="1"))
        assert world.node_of("foreign") == "" and world.attempts == 0
        world.api.update_pod(pod("foreign").scheduler("other").requests(cpu="1").node("a"))
        await world.put(P)
        assert world.node_of("p") == ""


async def test_without_nodes_a_pod_is_retried_by_time() -> None:
    async with live() as world:
        await world.put(P)
        assert world.condition("p") == ("False", "Unschedulable", "no nodes available to schedule pods")
        assert world.queue.size(SubQueue.ERROR_BACKOFF) == 1
        await world.put(ONE_CPU)
        assert world.node_of("p") == ""
        await world.after(3)
        assert world.node_of("p") == "a"


# --- bindings that go wrong -------------------------------------------------------------------------------------------


async def test_a_failed_binding_gives_the_place_back_and_is_retried() -> None:
    async with live() as world:
        world.api.reject_bindings.append(BUSY)
        await world.put(ONE_CPU, P)
        assert world.node_of("p") == "" and world.requested() == {"a": 0}
        status, reason, message = world.condition("p")
        assert (status, reason) == ("False", "SchedulerError")
        assert message.startswith('running Bind plugin "DefaultBinder": come back later')
        assert world.queue.size(SubQueue.ERROR_BACKOFF) == 1
        await world.after(3)
        assert world.node_of("p") == "a" and world.requested() == {"a": 1000}
        assert [reason for reason, _ in world.notes("p")] == ["FailedScheduling", "Scheduled"]


async def test_the_place_of_a_failed_binding_is_open_to_others() -> None:
    async with live() as world:
        world.api.reject_bindings.append(BUSY)
        world.api.latency = 1
        await world.put(ONE_CPU, P, pod("q").requests(cpu="1"))
        assert world.requested() == {"a": 1000} and world.queue.size(SubQueue.UNSCHEDULABLE) == 1
        await world.after(2)
        await world.after(5)
        assert sorted([world.node_of("p"), world.node_of("q")]) == ["", "a"]
        assert len(world.api.bindings) == 1


async def test_a_binding_that_succeeded_without_an_answer_is_not_repeated() -> None:
    async with live() as world:
        world.api.lose_answers.append(OSError("connection reset"))
        await world.put(ONE_CPU, P)
        await world.after(60)
        assert world.node_of("p") == "a" and len(world.api.bindings) == 1
        assert world.requested() == {"a": 1000} and P.build().uid not in world.queue


async def test_a_pod_deleted_while_it_is_bound_frees_its_place_at_once() -> None:
    async with live() as world:
        world.api.latency = 10
        await world.put(ONE_CPU, P, pod("q").requests(cpu="1"))
        world.api.delete_pod("p")
        await world.settle()
        assert world.cluster.is_assumed(pod("q").build().uid)
        await world.after(60)
        assert world.node_of("q") == "a" and [name for _, name, _ in world.api.bindings] == ["q"]
        assert P.build().uid not in world.queue and world.requested() == {"a": 1000}


async def test_a_pod_that_begins_to_terminate_while_it_is_bound_frees_its_place() -> None:
    async with live() as world:
        world.api.latency = 10
        await world.put(ONE_CPU, P)
        world.api.update_pod(P.terminating())
        await world.settle()
        assert world.requested() == {"a": 0}
        await world.after(20)
        assert world.node_of("p") == "" and world.api.bindings == []


async def test_a_pod_recreated_while_its_namesake_is_bound_is_scheduled_for_itself() -> None:
    async with live() as world:
        world.api.latency = 5
        await world.put(ONE_CPU, P.uid("old"))
        world.api.delete_pod("p")
        world.api.create_pod(P.uid("new"))
        await world.after(30)
        assert world.node_of("p") == "a" and world.api.pods["default/p"]["metadata"]["uid"] == "new"
        assert len(world.api.bindings) == 1 and world.requested() == {"a": 1000}
        assert [reason for reason, _ in world.notes("p")] == ["Scheduled"]


async def test_a_pod_bound_by_someone_else_is_not_scheduled_any_more() -> None:
    async with live() as world:
        await world.put(node("a").cpu("500m"), node("b").cpu("500m"), P)
        await world.api.bind("default", "p", P.build().uid, "b")
        await world.settle()
        assert P.build().uid not in world.queue and world.requested() == {"a": 0, "b": 1000}
        await world.put(ONE_CPU)
        assert len(world.api.bindings) == 1


async def test_a_pod_bound_by_someone_else_while_we_bind_it_stays_where_it_is() -> None:
    async with live() as world:
        world.api.latency = 5
        await world.put(ONE_CPU, node("b").cpu("500m"), P)
        world.api.latency = 0
        await world.api.bind("default", "p", P.build().uid, "b")
        await world.after(30)
        assert world.node_of("p") == "b" and world.requested() == {"a": 0, "b": 1000}
        assert P.build().uid not in world.queue


async def test_a_pod_that_is_being_deleted_is_not_scheduled() -> None:
    async with live() as world:
        await world.put(ONE_CPU, P.terminating())
        assert world.api.bindings == [] and P.build().uid not in world.queue
        assert world.notes("p") == [("FailedScheduling", "skip schedule deleting pod: default/p")]


async def test_a_node_that_goes_while_a_pod_is_bound_to_it_does_no_harm() -> None:
    async with live() as world:
        world.api.latency = 5
        await world.put(ONE_CPU, P)
        world.api.delete_node("a")
        await world.after(10)
        assert world.node_of("p") == "a" and world.requested() == {}
        await world.put(ONE_CPU)
        assert world.requested() == {"a": 1000}


async def test_a_slow_status_patch_does_not_lose_the_binding_behind_it() -> None:
    async with live() as world:
        world.api.status_latency = 7
        await world.put(node("full").cpu("500m"), P)
        await world.put(ONE_CPU)
        assert world.node_of("p") == ""
        await world.after(7)
        assert world.node_of("p") == "a"


# --- what the scheduler missed ----------------------------------------------------------------------------------------


async def test_a_fresh_list_makes_good_what_the_watch_missed() -> None:
    async with live() as world:
        await world.put(ONE_CPU, node("b").cpu("1"), pod("gone").requests(cpu="1"), P, pod("q").requests(cpu="1"))
        assert world.node_of("q") == ""
        world.api.watch_is_cut = True
        world.api.delete_pod("gone")
        world.api.delete_node("b" if world.node_of("p") == "a" else "a")
        world.api.create_pod(pod("new").requests(cpu="10"))
        world.api.relist()
        await world.settle()
        assert list(world.requested().values()) == [1000] and world.node_of("q") == ""
        assert world.condition("new")[2].startswith("0/1 nodes are available: 1 Insufficient cpu. preemption: ")
        await world.put(node("c").cpu("1"))
        assert world.node_of("q") == "c"


async def test_a_list_that_says_nothing_new_changes_nothing() -> None:
    async with live() as world:
        await world.put(ONE_CPU, P, pod("q").requests(cpu="1"))
        attempts = world.attempts
        world.api.relist()
        await world.settle()
        assert world.attempts == attempts and world.requested() == {"a": 1000}


# --- the same again ---------------------------------------------------------------------------------------------------


async def busy_day() -> list[tuple[float, str, str]]:
    """Pods and nodes come and go, bindings are slow and fail: what is bound when and where."""
    async with live() as world:
        world.api.latency = 0.3
        for number in range(30):
            world.api.put_node(node(f"n{number % 7}").cpu(str(1 + number % 3)).zone("xyz"[number % 3]))
            world.api.create_pod(pod(f"p{number}").requests(cpu="400m").priority(number % 4))
            if number % 5 == 0:
                world.api.reject_bindings.append(BUSY)
            await world.after(0.7)
        await world.after(120)
        return world.api.bindings


async def test_the_same_day_happens_the_same_way_again() -> None:
    first = await busy_day()
    assert len(first) > 20 and len({name for _, name, _ in first}) == len(first)
    assert first == await busy_day()
