from __future__ import annotations

from pilotage.serve.service import LeadershipLost

from .replicas import world


async def test_one_of_two_replicas_schedules_and_the_other_follows() -> None:
    async with world() as cluster:
        first, _ = await cluster.start("first")
        second, _ = await cluster.start("second")
        await cluster.create_pods("a", "b")
        await cluster.clock.advance(5.0)
        assert await cluster.unbound() == []
        assert sum(first.wire.bound.values()) == 2 and not second.wire.bound
        assert first.service.is_scheduling and not second.service.is_scheduling
        known = second.process.scheduler.cluster.objects("Pod")
        assert {pod.name: bool(pod.node_name) for pod in known.values()} == {"a": True, "b": True}
        assert len(second.process.scheduler.cluster.nodes.names) == 3


async def test_standby_takes_over_from_a_leader_that_is_cut_off_and_no_pod_is_bound_twice() -> None:
    async with world() as cluster:
        first, _ = await cluster.start("first")
        second, _ = await cluster.start("second")
        await cluster.create_pods(*(f"early-{n}" for n in range(5)))
        await cluster.clock.advance(5.0)
        first.wire.is_cut = True
        await cluster.create_pods(*(f"late-{n}" for n in range(5)))
        await cluster.clock.advance(9.0)
        assert len(await cluster.unbound()) == 5
        await cluster.clock.advance(10.0)
        assert await cluster.unbound() == []
        assert isinstance(first.error, LeadershipLost)
        bound = first.wire.bound + second.wire.bound
        assert len(bound) == 10 and set(bound.values()) == {1}
        assert not first.wire.refused and not second.wire.refused


async def test_deposed_leader_that_comes_back_writes_nothing() -> None:
    """Its connection returns after its deadline has passed, with pods waiting: it has ended by then."""
    async with world() as cluster:
        first, running = await cluster.start("first")
        first.wire.is_cut = True
        await cluster.clock.advance(11.0)
        assert running.done() and not first.elector.is_leading
        first.wire.is_cut = False
        await cluster.create_pods("a")
        await cluster.clock.advance(30.0)
        assert await cluster.unbound() == ["a"]


async def test_stop_finishes_bindings_in_flight_then_gives_the_lease_back() -> None:
    async with world() as cluster:
        first, running = await cluster.start("first")
        first.wire.binding_seconds = 3.0
        await cluster.create_pods("a", "b", "c")
        await cluster.clock.advance(0.5)
        assert len(await cluster.unbound()) == 3
        first.service.stop()
        await cluster.clock.settle()
        await cluster.create_pods("too-late")
        await cluster.clock.advance(1.0)
        assert not running.done() and first.elector.is_leading
        await cluster.clock.advance(3.0)
        assert running.done() and first.error is None
        assert await cluster.unbound() == ["too-late"]
        events = await cluster.objects("/apis/events.k8s.io/v1/namespaces/default/events")
        assert sorted(e["regarding"]["name"] for e in events if e["reason"] == "Scheduled") == ["a", "b", "c"]
        leases = await cluster.objects("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")
        assert [lease["spec"]["holderIdentity"] for lease in leases] == [""]


async def test_standby_takes_over_at_once_after_an_orderly_stop() -> None:
    async with world() as cluster:
        first, running = await cluster.start("first")
        second, _ = await cluster.start("second")
        first.service.stop()
        await cluster.create_pods("a")
        await cluster.clock.advance(3.0)
        assert running.done() and first.error is None
        assert second.service.is_scheduling and await cluster.unbound() == []


async def test_a_new_leader_knows_what_the_last_one_bound_a_moment_ago_although_its_watches_lag() -> None:
    async with world(nodes=1) as cluster:
        first, _ = await cluster.start("first")
        second, _ = await cluster.start("second")
        (node,) = await cluster.objects("/api/v1/nodes")
        cpu = node["status"]["allocatable"]["cpu"]
        first.wire.binding_seconds = 2.0
        await cluster.create_pods("a", "b", cpu=cpu)
        await cluster.clock.advance(1.0)
        second.wire.lags = True
        first.service.stop()
        await cluster.clock.advance(20.0)
        assert second.service.is_scheduling and await cluster.unbound() == ["b"], "there is one place, and it is taken"
        assert not second.wire.bound and not second.wire.refused
        second.wire.lags = False


async def test_a_new_leader_that_cannot_list_goes_on_with_what_its_watches_tell() -> None:
    async with world() as cluster:
        first, _ = await cluster.start("first")
        second, _ = await cluster.start("second")
        second.wire.refuses_lists = True
        first.service.stop()
        await cluster.clock.advance(1.0)
        await cluster.create_pods("a")
        await cluster.clock.advance(25.0)
        assert await cluster.unbound() == ["a"]
        await cluster.clock.advance(10.0)
        assert await cluster.unbound() == []


async def test_standby_that_is_stopped_ends_without_having_scheduled() -> None:
    async with world() as cluster:
        await cluster.start("first")
        second, running = await cluster.start("second")
        second.service.stop()
        await cluster.clock.advance(1.0)
        assert running.done() and second.error is None and not second.wire.bound


async def test_standby_that_delays_its_cache_watches_nothing_until_it_leads() -> None:
    async with world() as cluster:
        first, _ = await cluster.start("first")
        second, _ = await cluster.start("second", delays_cache=True)
        await cluster.create_pods("a")
        await cluster.clock.advance(5.0)
        assert not second.process.has_synced
        assert len(second.process.scheduler.cluster.nodes.names) == 0
        first.service.stop()
        await cluster.create_pods("b")
        await cluster.clock.advance(5.0)
        assert second.process.has_synced and second.service.is_scheduling
        assert await cluster.unbound() == []


async def test_the_next_leader_states_for_itself_what_the_last_one_could_not_write() -> None:
    """Killed before its Events and conditions were written, the old leader leaves pods that nobody has judged."""
    async with world() as made:
        leader, task = await made.start("a")
        await made.start("bb")
        leader.wire.status_seconds = leader.wire.event_seconds = 1e6
        await made.create_pods("huge", cpu="10000")
        await made.clock.advance(5.0)
        (pod,) = await made.objects("/api/v1/namespaces/default/pods")
        assert not pod["status"].get("conditions")
        task.cancel()
        await made.clock.advance(20.0)
        (pod,) = await made.objects("/api/v1/namespaces/default/pods")
        assert [(c["type"], c["reason"]) for c in pod["status"]["conditions"]] == [("PodScheduled", "Unschedulable")]
        events = await made.objects("/apis/events.k8s.io/v1/namespaces/default/events")
        assert [event["reason"] for event in events if event["regarding"]["name"] == "huge"] == ["FailedScheduling"]
