from __future__ import annotations

import asyncio
import json
import logging

import pytest

from pilotage.kube.transport import Response

from .lease_world import LEASE_PATH, LeaseWorld


async def test_first_candidate_leads_and_renews_with_one_write_each_time() -> None:
    world = LeaseWorld()
    elector, cable = world.candidate("one")
    async with asyncio.TaskGroup() as tasks:
        await elector.acquire()
        assert elector.is_leading
        first = await world.spec()
        assert first["holderIdentity"] == "one" and first["leaseTransitions"] == 0
        holding = tasks.create_task(elector.hold())
        await world.clock.advance(0.0)
        cable.requests.clear()
        await world.clock.advance(60.0)
        assert elector.is_leading and not holding.done()
        assert set(cable.requests) == {("PUT", LEASE_PATH)} and len(cable.requests) == 30
        later = await world.spec()
        assert later["renewTime"] > first["renewTime"] and later["acquireTime"] == first["acquireTime"]
        holding.cancel()


async def test_standby_takes_over_when_the_leader_vanishes_and_not_before_it_has_stopped() -> None:
    world = LeaseWorld()
    first, cable = world.candidate("one")
    second, _ = world.candidate("two")
    async with asyncio.TaskGroup() as tasks:
        await first.acquire()
        holding = tasks.create_task(first.hold())
        waiting = tasks.create_task(second.acquire())
        await world.clock.advance(60.0)
        assert not waiting.done() and not second.is_leading
        cable.is_cut = True
        cut_at, stopped_at, taken_at = world.clock.monotonic(), 0.0, 0.0
        while not taken_at:
            await world.clock.advance(0.1)
            assert not (first.is_leading and second.is_leading)
            stopped_at = stopped_at or (0.0 if first.is_leading else world.clock.monotonic())
            taken_at = world.clock.monotonic() if second.is_leading else 0.0
        assert stopped_at - cut_at <= 10.0 + 0.2
        assert taken_at - stopped_at >= 4.0, "the lease outlives the renew deadline"
        assert taken_at - cut_at <= 15.0 + 0.2, "it has seen the last renewal at once"
        assert "could not be renewed for 10 s" in await holding
        assert (await world.spec())["leaseTransitions"] == 1


async def test_standby_that_may_not_watch_the_lease_takes_over_a_retry_period_later_at_most() -> None:
    world = LeaseWorld()
    first, cable = world.candidate("one")
    second, blindfold = world.candidate("two")
    blindfold.stream_refusal = Response(403, {}, b'{"kind": "Status", "reason": "Forbidden", "message": "no"}')
    async with asyncio.TaskGroup() as tasks:
        await first.acquire()
        holding = tasks.create_task(first.hold())
        waiting = tasks.create_task(second.acquire())
        await world.clock.advance(60.0)
        assert not waiting.done()
        cable.is_cut = True
        await world.clock.advance(15.0 + 2.4 + 0.2)
        assert second.is_leading and holding.done()


async def test_released_lease_is_taken_at_once() -> None:
    world = LeaseWorld()
    first, _ = world.candidate("one")
    second, _ = world.candidate("two")
    async with asyncio.TaskGroup() as tasks:
        await first.acquire()
        holding = tasks.create_task(first.hold())
        waiting = tasks.create_task(second.acquire())
        await world.clock.advance(30.0)
        holding.cancel()
        await first.release()
        assert not first.is_leading
        await world.clock.advance(0.1)
        assert (await world.spec())["holderIdentity"] == "two"
        assert waiting.done() and second.is_leading


async def test_lease_is_given_back_although_the_answer_to_the_bid_never_came() -> None:
    world = LeaseWorld()
    elector, cable = world.candidate("one")
    cable.loses_answers = True
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(elector.acquire())
        await world.clock.advance(0.1)
        assert not elector.is_leading and (await world.spec())["holderIdentity"] == "one"
        asking.cancel()
    cable.loses_answers = False
    await elector.release()
    assert (await world.spec())["holderIdentity"] == ""


async def test_lease_is_given_back_although_the_answer_to_the_last_renewal_never_came() -> None:
    world = LeaseWorld()
    elector, cable = world.candidate("one")
    async with asyncio.TaskGroup() as tasks:
        await elector.acquire()
        holding = tasks.create_task(elector.hold())
        cable.loses_answers = True
        await world.clock.advance(2.5)
        holding.cancel()
    cable.loses_answers = False
    await elector.release()
    assert (await world.spec())["holderIdentity"] == ""


async def test_lease_that_another_one_wrote_to_meanwhile_is_given_back_after_a_second_look() -> None:
    world = LeaseWorld()
    elector, _ = world.candidate("one")
    await elector.acquire()
    label = b'{"metadata": {"labels": {"a": "b"}}}'
    await world.plain.request("PATCH", LEASE_PATH, body=label, content_type="application/merge-patch+json")
    await elector.release()
    lease = await world.lease()
    assert (lease["spec"]["holderIdentity"], lease["metadata"]["labels"]) == ("", {"a": "b"})


async def test_events_tell_of_the_beginning_and_the_end_of_leading() -> None:
    world = LeaseWorld()
    elector, _ = world.candidate("one")
    async with asyncio.TaskGroup() as tasks:
        await elector.acquire()
        holding = tasks.create_task(elector.hold())
        await world.clock.advance(1.0)
        holding.cancel()
    await elector.release()
    answer = await world.plain.request("GET", "/apis/events.k8s.io/v1/namespaces/kube-system/events")
    events = json.loads(answer.body)["items"]
    assert [(event["reason"], event["note"]) for event in events] == [
        ("LeaderElection", "one became leader"),
        ("LeaderElection", "one stopped leading"),
    ]
    assert events[0]["regarding"]["kind"] == "Lease" and events[0]["reportingController"] == "default-scheduler"


async def test_leader_that_hangs_in_a_request_stops_at_the_deadline() -> None:
    world = LeaseWorld()
    elector, cable = world.candidate("one")
    async with asyncio.TaskGroup() as tasks:
        await elector.acquire()
        holding = tasks.create_task(elector.hold())
        cable.hangs = True
        await world.clock.advance(9.9)
        assert elector.is_leading
        await world.clock.advance(0.2)
        assert not elector.is_leading and holding.done()


async def test_one_stuck_request_does_not_cost_the_lease() -> None:
    world = LeaseWorld()
    elector, cable = world.candidate("one")
    async with asyncio.TaskGroup() as tasks:
        await elector.acquire()
        holding = tasks.create_task(elector.hold())
        cable.hangs = True
        await world.clock.advance(3.0)
        cable.hangs = False
        await world.clock.advance(30.0)
        assert elector.is_leading and not holding.done()
        holding.cancel()


async def test_leader_whose_lease_was_taken_by_force_stops_at_its_next_renewal() -> None:
    world = LeaseWorld()
    elector, _ = world.candidate("one")
    async with asyncio.TaskGroup() as tasks:
        await elector.acquire()
        holding = tasks.create_task(elector.hold())
        await world.clock.advance(4.5)
        patch = b'{"spec": {"holderIdentity": "usurper", "leaseDurationSeconds": 15}}'
        await world.plain.request("PATCH", LEASE_PATH, body=patch, content_type="application/merge-patch+json")
        await world.clock.advance(2.0)
        assert not elector.is_leading
        assert await holding == "usurper holds the lease kube-system/kube-scheduler now"


async def test_deleted_lease_is_made_again_by_its_holder() -> None:
    world = LeaseWorld()
    elector, _ = world.candidate("one")
    async with asyncio.TaskGroup() as tasks:
        await elector.acquire()
        holding = tasks.create_task(elector.hold())
        await world.plain.request("DELETE", LEASE_PATH)
        await world.clock.advance(15.0)
        assert elector.is_leading and (await world.spec())["holderIdentity"] == "one"
        holding.cancel()


async def test_missing_permission_is_reported_once_with_the_rule_that_grants_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = LeaseWorld()
    elector, cable = world.candidate("one")
    cable.rejection = Response(403, {}, b'{"kind": "Status", "reason": "Forbidden", "message": "no"}')
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(elector.acquire())
        with caplog.at_level(logging.WARNING):
            await world.clock.advance(20.0)
        rule = '- {apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get", "create", "update"]}'
        assert [record.getMessage().endswith(rule) for record in caplog.records] == [True]
        cable.rejection = None
        await world.clock.advance(3.0)
        assert waiting.done() and elector.is_leading
