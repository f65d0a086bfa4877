"""Calls are sent side by side; lanes do not wait for each other; what failed is tried again; nothing is left behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from msgspec.structs import replace

from pilotage.api.calls import ApiCall, CallDropped, CallExpired, CallOverwritten, CallSkipped, Lane, Outcome, Seen
from pilotage.calls.dispatcher import Dispatcher, DispatcherSettings
from pilotage.calls.retry import DEFAULT_POLICIES, LanePolicy
from pilotage.calls.synchronous_calls import SynchronousCalls
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.transport import TransportError
from pilotage.rng import seeded
from pilotage.testing import VirtualClock
from tests.calls.sample_calls import Binding, Deletion, Event, Looking, SampleCall, Settling, SlowServer, Status

TWO = {lane: replace(policy, workers=2) for lane, policy in DEFAULT_POLICIES.items()}


class Office:
    """A running dispatcher in front of a slow server."""

    def __init__(self, settings: DispatcherSettings | None = None) -> None:
        self.server = SlowServer()
        self.clock = VirtualClock()
        self.executed: list[tuple[str, bool, float]] = []
        self.dispatcher = Dispatcher(
            self.server,  # type: ignore[arg-type]
            self.clock,
            seeded(1),
            settings or DispatcherSettings(TWO),
            lambda *facts: self.executed.append(facts),
        )
        self.told: list[tuple[str, str]] = []

    async def submit(self, *calls: SampleCall) -> None:
        for call in calls:
            self.dispatcher.submit(call, lambda outcome, text=call.text: self._tell(text, outcome))
        await self.settle()

    def _tell(self, text: str, outcome: Outcome) -> None:
        self.told.append((text, repr(outcome.error) if outcome.error else outcome.ending.value))

    async def finish(self, text: str, error: Exception | None = None) -> None:
        self.server.finish(text, error)
        await self.settle()

    async def settle(self) -> None:
        await self.clock.settle()
        self.dispatcher.queue.check()


@asynccontextmanager
async def opened(settings: DispatcherSettings | None = None) -> AsyncIterator[Office]:
    office = Office(settings)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(office.dispatcher.run())
        await office.settle()
        yield office
        running.cancel()


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    async with opened() as office:
        yield office


async def test_calls_are_sent_and_their_outcome_told(office: Office) -> None:
    await office.submit(Status("a"))
    assert office.server.begun == ["status a"] and not office.dispatcher.is_idle
    await office.finish("status a")
    assert office.told == [("status a", "done")] and office.dispatcher.is_idle


async def test_a_slow_call_does_not_hold_up_the_next(office: Office) -> None:
    """There is room for two: the second must not wait for the first, however late it comes."""
    await office.submit(Status("a"))
    await office.submit(Status("b"))
    assert office.server.begun == ["status a", "status b"]


async def test_a_lane_sends_no_more_than_it_may(office: Office) -> None:
    await office.submit(*(Status(key) for key in "abcd"))
    assert office.server.begun == ["status a", "status b"]
    report = office.dispatcher.report(10)
    assert (report.lanes["status"].pending, report.lanes["status"].in_flight) == (2, 2)
    assert [call.state for call in report.calls] == ["in flight", "in flight", "ready", "ready"]
    await office.finish("status b")
    await office.finish("status a")
    assert office.server.begun == ["status a", "status b", "status c", "status d"]


async def test_a_full_lane_does_not_hold_up_another(office: Office) -> None:
    await office.submit(*(Status(key) for key in "abcdefgh"))
    await office.submit(Binding("x"))
    assert office.server.begun[-1] == "binding x"


@pytest.mark.parametrize("ahead", [Binding, Deletion])
async def test_events_are_sent_one_at_a_time_while_bindings_or_evictions_wait(ahead: type[SampleCall]) -> None:
    many = {lane: replace(policy, workers=2 if lane is not Lane.EVENT else 3) for lane, policy in TWO.items()}
    async with opened(DispatcherSettings(many)) as office:
        await office.submit(Event("1"), Event("2"))
        await office.submit(*(ahead(key) for key in "abc"))
        await office.submit(*(Event(key) for key in "345"))
        assert office.server.begun[-2:] == [f"{ahead.kind} a", f"{ahead.kind} b"]
        await office.finish("event 1")
        await office.finish("event 2")
        assert office.server.begun[-1] == "event 3", "they never stand still"
        await office.finish(f"{ahead.kind} a")
        await office.finish("event 3")
        assert office.server.begun[-3:] == [f"{ahead.kind} c", "event 4", "event 5"]
        for text in (f"{ahead.kind} b", f"{ahead.kind} c", "event 4", "event 5"):
            await office.finish(text)
        assert office.dispatcher.is_idle and len(office.told) == 8


async def test_a_binding_follows_the_status_of_its_pod_without_being_asked(office: Office) -> None:
    """It waits for a call of another lane; when that is done, nothing else needs to happen."""
    await office.submit(Status("p"))
    await office.submit(Binding("p"))
    assert office.server.begun == ["status p"]
    await office.finish("status p")
    assert office.server.begun == ["status p", "binding p"]
    await office.finish("binding p")
    assert office.told == [("status p", "done"), ("binding p", "done")]


async def test_a_second_status_of_a_pod_follows_the_first(office: Office) -> None:
    await office.submit(Status("p", "1"))
    await office.submit(Status("p", "2"))
    await office.finish("1")
    assert office.server.begun == ["1", "1+2"]


async def test_a_failure_is_reported_and_the_lane_goes_on(office: Office) -> None:
    await office.submit(*(Status(key) for key in "abc"))
    await office.finish("status a", OSError("refused"))
    await office.finish("status b")
    await office.finish("status c")
    assert office.told == [("status a", "OSError('refused')"), ("status b", "done"), ("status c", "done")]


async def test_every_try_is_measured(office: Office) -> None:
    await office.submit(Status("a"))
    await office.clock.advance(2)
    await office.finish("status a", answer(500))
    await office.clock.advance(1)
    await office.finish("status a")
    assert [facts[:2] for facts in office.executed] == [("status", False), ("status", True)]
    assert office.executed[0][2] == 2.0


# --- awaited calls ----------------------------------------------------------------------------------------------------


async def test_an_awaited_call_returns_when_it_is_done(office: Office) -> None:
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(office.dispatcher.perform(Binding("p")))
        await office.settle()
        assert not waiting.done()
        await office.finish("binding p")
        assert waiting.done() and waiting.exception() is None


async def test_an_awaited_call_raises_what_went_wrong(office: Office) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_fail_soon(office))
        with pytest.raises(OSError, match="conflict"):
            await office.dispatcher.perform(Binding("p"))


async def _fail_soon(office: Office) -> None:
    await office.settle()
    await office.finish("binding p", OSError("conflict"))


async def test_an_awaited_call_that_is_pointless_raises_that(office: Office) -> None:
    await office.submit(Binding("p"))
    with pytest.raises(CallSkipped, match="status of p: a more relevant call for the object is under way"):
        await office.dispatcher.perform(Status("p"))


async def test_an_awaited_call_that_is_overtaken_raises_that(office: Office) -> None:
    await office.submit(Status("p"))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_overtake(office))
        with pytest.raises(CallOverwritten, match="binding of p: a more relevant call for the object came"):
            await office.dispatcher.perform(Binding("p"))


async def _overtake(office: Office) -> None:
    await office.settle()
    await office.submit(Deletion("p"))


async def test_no_one_waits_for_a_caller_that_gave_up(office: Office) -> None:
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(office.dispatcher.perform(Binding("p")))
        await office.settle()
        waiting.cancel()
    await office.finish("binding p")
    assert office.server.ended == ["binding p"] and office.dispatcher.is_idle


async def test_a_failure_that_no_one_listens_to_is_logged(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        office.dispatcher.submit(Status("p"))
        await office.settle()
        await office.finish("status p", OSError("refused"))
    assert "call=status object=p error=refused" in caplog.text


# --- trying again -----------------------------------------------------------------------------------------------------


def answer(code: int, retry_after: float | None = None) -> ApiStatusError:
    return ApiStatusError(code, "", "no", retry_after)


UNSENT = TransportError("no connection", sent=False)
CUT = TransportError("cut off", sent=True)


@pytest.mark.parametrize("error", [answer(429), answer(500), answer(503), UNSENT, CUT, TimeoutError()], ids=repr)
async def test_what_may_pass_is_tried_again(office: Office, error: Exception) -> None:
    await office.submit(Status("a"))
    await office.finish("status a", error)
    assert office.told == [] and office.server.begun == ["status a"]
    await office.clock.advance(2)
    await office.finish("status a")
    assert office.server.begun == ["status a"] * 2 and office.told == [("status a", "done")]


@pytest.mark.parametrize(
    "error", [answer(400), answer(403), answer(404), answer(409), answer(422), OSError()], ids=repr
)
async def test_an_answer_is_final(office: Office, error: Exception) -> None:
    await office.submit(Status("a"))
    await office.finish("status a", error)
    await office.clock.advance(60)
    assert office.server.begun == ["status a"] and office.told == [("status a", repr(error))]


async def test_a_binding_is_given_up_after_four_tries_about_10_50_and_250_ms_apart(office: Office) -> None:
    await office.submit(Looking("a"))
    office.server.sees = Seen(False)
    starts = []
    for _ in range(4):
        starts.append(office.clock.monotonic())
        await office.finish("looking a", answer(500))
        if office.told:
            break
        while len(office.server.begun) == len(starts):
            await office.clock.advance(0.001)
    pauses = [later - before for before, later in pairwise(starts)]
    assert [round(pause / base, 1) for pause, base in zip(pauses, (0.01, 0.05, 0.25), strict=True)] == pytest.approx(
        [1, 1, 1], abs=0.35
    )
    assert len(starts) == 4 and office.told == [("looking a", repr(answer(500)))]


async def test_a_status_is_tried_until_it_has_become_old() -> None:
    policies = {**TWO, Lane.STATUS: LanePolicy(2, 0, 10.0, 100.0)}
    async with opened(DispatcherSettings(policies)) as office:
        office.server.is_slow = False
        office.server.send = _unreachable  # type: ignore[method-assign]
        await office.submit(Status("a"))
        await office.clock.advance(95)
        assert office.told == [] and len(office.executed) > 8
        await office.clock.advance(15)
        assert office.told and "CallExpired" in office.told[0][1] and office.dispatcher.is_idle


async def _unreachable(call: SampleCall) -> str | None:
    raise UNSENT


async def test_a_call_that_never_gets_its_turn_has_failed() -> None:
    impatient = {lane: replace(policy, queue_seconds=20) for lane, policy in TWO.items()}
    async with opened(DispatcherSettings(impatient)) as office:
        await office.submit(*(Binding(key) for key in "abc"))
        await office.clock.advance(26)
        assert [text for text, told in office.told if CallExpired.__name__ in told] == ["binding c"]
        assert office.dispatcher.queue.in_flight == 2, "what was sent is waited for"


async def test_after_429_the_lane_waits_as_long_as_it_was_asked_and_sends_less(office: Office) -> None:
    await office.submit(Status("a"), Status("b"), Status("c"), Binding("x"))
    await office.submit(Status("d"))
    await office.finish("binding x")
    await office.finish("status b")
    await office.finish("status a", answer(429, 7.0))
    await office.finish("status c", answer(429, 7.0))
    await office.clock.advance(6.9)
    assert sorted(office.server.begun) == ["binding x", "status a", "status b", "status c"]
    assert office.dispatcher.allowed(Lane.STATUS) == 1 and office.dispatcher.allowed(Lane.BIND) == 2
    await office.clock.advance(0.2)
    assert len(office.server.begun) == 5, "one at a time"
    await office.finish(office.server.begun[4])
    assert len(office.server.begun) == 7, "and more after a success"


async def test_a_newer_call_takes_the_place_of_one_that_rests(office: Office) -> None:
    await office.submit(Status("a"))
    await office.finish("status a", answer(500))
    await office.submit(Binding("a"))
    assert office.told == [("status a", "overwritten")] and office.server.begun == ["status a", "binding a"]


# --- lost answers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "begun", "told"),
    [
        (Seen(True), ["looking a"], "done"),
        (Seen(False), ["looking a", "looking a"], ""),
    ],
    ids=["it has happened", "it has not"],
)
@pytest.mark.parametrize("error", [CUT, answer(500), answer(504)], ids=repr)
async def test_after_a_lost_answer_someone_looks(
    office: Office, error: Exception, seen: Seen, begun: list[str], told: str
) -> None:
    await office.submit(Looking("a"))
    office.server.sees = seen
    await office.finish("looking a", error)
    await office.clock.advance(1)
    assert office.server.looked == ["looking a"] and office.server.begun == begun
    assert office.told == ([("looking a", told)] if told else [])


async def test_a_lost_answer_to_a_call_that_cannot_be_repeated_is_a_failure(office: Office) -> None:
    await office.submit(Binding("a"))
    await office.finish("binding a", CUT)
    await office.clock.advance(60)
    assert office.server.begun == ["binding a"] and office.told == [("binding a", repr(CUT))]


@pytest.mark.parametrize(("has_happened", "told"), [(True, "done"), (False, "overwritten")])
async def test_who_settles_a_doubt_is_not_overtaken(office: Office, has_happened: bool, told: str) -> None:
    """Simulation, seed 85: an eviction took the place of a binding that had happened, and the place was given away."""
    await office.submit(Settling("a"))
    await office.submit(Deletion("a"))
    office.server.sees = Seen(has_happened)
    await office.finish("settling a", CUT)
    assert office.told == [] and office.server.begun == ["settling a"], "nobody knows yet"
    await office.clock.advance(1)
    assert office.server.looked == ["settling a"]
    assert office.server.begun == ["settling a", "deletion a"]
    assert office.told == [("settling a", told)]


async def test_a_doubt_that_cannot_be_settled_is_a_failure(office: Office) -> None:
    async def look(call: SampleCall) -> Seen:
        raise UNSENT

    office.server.look = look  # type: ignore[method-assign]
    await office.submit(Settling("a"))
    await office.submit(Deletion("a"))
    await office.finish("settling a", CUT)
    await office.clock.advance(10)
    assert office.told == [("settling a", repr(CUT))]
    assert office.server.begun == ["settling a", "deletion a"]


async def test_looking_is_tried_again_too(office: Office) -> None:
    await office.submit(Looking("a"))
    looks = iter([UNSENT, CUT])

    async def look(call: SampleCall) -> Seen:
        error = next(looks, None)
        if error is not None:
            raise error
        return Seen(True)

    office.server.look = look  # type: ignore[method-assign]
    await office.finish("looking a", CUT)
    await office.clock.advance(5)
    assert office.server.begun == ["looking a"] and office.told == [("looking a", "done")]


async def test_a_call_that_gets_no_answer_is_given_up_and_looked_at(office: Office) -> None:
    await office.submit(Looking("a"), Binding("b"))
    await office.clock.advance(29)
    assert office.told == []
    await office.clock.advance(10)
    assert office.server.looked == ["looking a"]
    assert dict(office.told) == {"looking a": "done", "binding b": repr(TimeoutError("no answer after 30 s"))}
    office.server.is_slow = False
    await office.submit(Binding("c"))
    assert dict(office.told)["binding c"] == "done", "the workers are there for others"


# --- limits and the end -----------------------------------------------------------------------------------------------


async def test_a_limit_of_the_client_is_kept_and_shared_in_the_order_of_the_lanes() -> None:
    settings = DispatcherSettings(DEFAULT_POLICIES, calls_per_second=2.0, burst=3)
    async with opened(settings) as office:
        office.server.is_slow = False
        for call in [*(Event(f"e{n}") for n in range(3)), *(Status(f"s{n}") for n in range(3)), Binding("b")]:
            office.dispatcher.submit(call)
        await office.settle()
        assert sorted(office.server.begun) == ["binding b", "status s0", "status s1"]
        await office.clock.advance(0.5)
        assert office.server.begun[3:] == ["status s2"]
        office.dispatcher.submit(Binding("c"))
        await office.clock.advance(1.5)
        assert office.server.begun[4:] == ["binding c", "event e0", "event e1"]


async def test_at_the_end_calls_may_finish_for_a_while_and_the_rest_is_reported(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    await office.submit(*(Binding(key) for key in "abc"))
    async with asyncio.TaskGroup() as tasks:
        stopping = tasks.create_task(office.dispatcher.stop(5.0))
        await office.clock.advance(1)
        await office.finish("binding a")
        await office.finish("binding c")
        await office.submit(Status("d"), Status("e"), Status("f"))
        await office.clock.advance(5)
        assert stopping.result() == {"binding": 1, "status": 3}
    assert dict(office.told)["status f"] == repr(CallDropped("the scheduler ends"))
    assert "API calls were not finished: binding=1 status=3" in caplog.text


async def test_an_idle_dispatcher_ends_at_once(office: Office) -> None:
    assert await office.dispatcher.stop(60.0) == {}


async def test_calls_in_place_are_waited_for(office: Office) -> None:
    calls, told = SynchronousCalls(office.dispatcher), []
    calls.submit(Status("a"))
    calls.submit(Status("b"), told.append)
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(calls.settled())
        await office.settle()
        await office.finish("status a")
        assert not waiting.done()
        await office.finish("status b", answer(403))
        assert waiting.done() and len(told) == 1
    await calls.settled()


async def test_workers_end_with_the_dispatcher() -> None:
    office = Office()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(office.dispatcher.run())
        await office.submit(Status("a"))
        running.cancel()
    assert office.server.ended == []


async def test_calls_that_come_before_the_start_are_sent_at_the_start() -> None:
    office = Office()
    call: ApiCall = Status("a")
    office.dispatcher.submit(call)
    await office.settle()
    assert office.server.begun == []
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(office.dispatcher.run())
        await office.settle()
        assert office.server.begun == ["status a"]
        running.cancel()
