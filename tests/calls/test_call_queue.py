"""Which calls are sent: one pending and one in flight per object, the more relevant wins, everybody is told once."""

from __future__ import annotations

import pytest

from pilotage.api.calls import ApiCall, CallDropped, Ending, Lane, Outcome, Seen, Why
from pilotage.calls.call_queue import CallQueue, CallSlot
from tests.calls.sample_calls import Binding, Deletion, Event, Farewell, LastDeletion, Note, SampleCall, Status, Writing


class Desk:
    """A call queue and what its customers were told."""

    def __init__(self) -> None:
        self.queue = CallQueue()
        self.told: list[tuple[str, str]] = []
        self.now = 0.0

    def submit(self, *calls: SampleCall | Writing) -> None:
        for call in calls:
            self.queue.add(call, lambda outcome, text=call.text: self._tell(text, outcome), self.now)
            self.queue.check()

    def _tell(self, text: str, outcome: Outcome) -> None:
        self.told.append((text, str(outcome.error) if outcome.error else outcome.ending.value))

    def take(self, lane: Lane) -> CallSlot:
        slot = self.queue.next(lane)
        assert slot is not None
        return slot

    def sent(self, lane: Lane) -> list[str]:
        """Send everything of a lane; what was sent, in order."""
        texts = []
        while (slot := self.queue.next(lane)) is not None:
            texts.append(slot.call.text)  # type: ignore[attr-defined]
            self.queue.done(slot)
            self.queue.check()
        return texts


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_calls_of_a_lane_are_sent_in_order(desk: Desk) -> None:
    desk.submit(Status("a"), Status("b"), Binding("c"))
    assert desk.queue.ready(Lane.STATUS) == 2 and not desk.queue.is_idle
    assert desk.sent(Lane.STATUS) == ["status a", "status b"]
    assert desk.sent(Lane.BIND) == ["binding c"]
    assert desk.told == [("status a", "done"), ("status b", "done"), ("binding c", "done")]
    assert desk.queue.is_idle


def test_a_call_that_completes_something_goes_before_those_that_wait(desk: Desk) -> None:
    desk.submit(Deletion("a"), Deletion("b"), LastDeletion("c"))
    assert desk.sent(Lane.EVICT) == ["last deletion c", "deletion a", "deletion b"]


def test_a_call_that_comes_to_complete_something_goes_first_from_then_on(desk: Desk) -> None:
    """Two want the same object to go, and for the second one it is the last."""
    desk.submit(Deletion("a"), Turning("b"), Turning("b", "again"))
    assert desk.sent(Lane.EVICT) == ["again", "deletion a"]


def test_a_call_that_completes_something_goes_first_when_its_object_is_free(desk: Desk) -> None:
    desk.submit(Status("c"))
    status = desk.take(Lane.STATUS)
    desk.submit(Deletion("a"), LastDeletion("c"))
    desk.queue.done(status)
    assert desk.sent(Lane.EVICT) == ["last deletion c", "deletion a"]


class Turning(Deletion):
    """The second one completes something."""

    __slots__ = ()
    kind = "turning"

    @property
    def goes_first(self) -> bool:
        return self.text == "again"

    def merged_with(self, newer: ApiCall) -> ApiCall:
        return newer


def test_what_went_wrong_is_reported(desk: Desk) -> None:
    desk.submit(Status("a"))
    desk.queue.failed(desk.take(Lane.STATUS), OSError("gone"))
    assert desk.told == [("status a", "gone")] and desk.queue.is_idle


def test_calls_of_one_kind_are_merged_and_the_older_ones_are_told_so(desk: Desk) -> None:
    desk.submit(Status("a", "1"), Status("a", "2"), Status("a", "3"))
    assert desk.queue.pending == 1 and desk.told == [("1", "overwritten"), ("2", "overwritten")]
    assert desk.sent(Lane.STATUS) == ["1+2+3"]
    assert desk.told[2:] == [("3", "done")]


def test_a_merged_call_keeps_its_place(desk: Desk) -> None:
    desk.submit(Status("a", "1"), Status("b"), Status("a", "2"))
    assert desk.sent(Lane.STATUS) == ["1+2", "status b"]


@pytest.mark.parametrize(
    ("first", "second"), [(Status("a"), Binding("a")), (Status("a"), Deletion("a")), (Binding("a"), Deletion("a"))]
)
def test_a_more_relevant_call_takes_the_place_of_a_pending_one(
    desk: Desk, first: SampleCall, second: SampleCall
) -> None:
    desk.submit(first, second)
    assert desk.told == [(first.text, "overwritten")]
    assert desk.sent(first.lane) == [] and desk.sent(second.lane) == [second.text]
    assert desk.told[1:] == [(second.text, "done")]


def test_a_less_relevant_call_is_not_worth_sending_and_moves_no_one(desk: Desk) -> None:
    desk.submit(Binding("a"), Binding("b"), Status("a"))
    assert desk.told == [("status a", "skipped")]
    assert desk.sent(Lane.BIND) == ["binding a", "binding b"]


def test_a_less_relevant_call_is_not_sent_during_a_more_relevant_one(desk: Desk) -> None:
    desk.submit(Binding("a"))
    flying = desk.take(Lane.BIND)
    desk.submit(Status("a"))
    assert desk.told == [("status a", "skipped")]
    desk.queue.done(flying)
    assert desk.sent(Lane.STATUS) == []


def test_the_relevance_of_what_is_in_flight_counts_also_while_something_waits_behind_it(desk: Desk) -> None:
    desk.submit(Binding("a"))
    flying = desk.take(Lane.BIND)
    desk.submit(Deletion("a"), Status("a"), Binding("a", "again"))
    assert desk.told == [("status a", "skipped"), ("again", "skipped")]
    assert desk.queue.done(flying) is Lane.EVICT


@pytest.mark.parametrize(("second", "sent"), [(Status("a", "2"), "1+2"), (Binding("a", "2"), "2")])
def test_an_object_has_one_call_in_flight(desk: Desk, second: SampleCall, sent: str) -> None:
    """What waits behind a call of its kind says both: the first may still fail."""
    desk.submit(Status("a", "1"))
    flying = desk.take(Lane.STATUS)
    desk.submit(second, Status("b"))
    assert desk.queue.in_flight == 1
    assert desk.sent(Lane.BIND) == [] and desk.sent(Lane.STATUS) == ["status b"]
    assert desk.queue.done(flying) is second.lane
    assert desk.sent(second.lane) == [sent]
    assert ("1", "done") in desk.told and ("2", "done") in desk.told


def test_who_wants_the_same_waits_for_the_one_that_is_sent(desk: Desk) -> None:
    desk.submit(Farewell("a", "1"), Farewell("a", "2"))
    flying = desk.take(Lane.EVICT)
    desk.submit(Farewell("a", "3"))
    desk.queue.done(flying)
    assert desk.told == [("1", "done"), ("2", "done"), ("3", "done")] and desk.queue.is_idle


def test_events_of_one_pod_do_not_replace_each_other(desk: Desk) -> None:
    desk.submit(Event("a/1"), Event("a/2"), Binding("a"))
    assert desk.sent(Lane.EVENT) == ["event a/1", "event a/2"]


def test_who_is_told_may_submit_again() -> None:
    """The outcome of a replaced call comes after its successor has taken the place."""
    queue, told = CallQueue(), []

    def insist(outcome: Outcome) -> None:
        told.append(outcome.ending)
        queue.add(Status("a", "again"), lambda outcome: told.append(outcome.ending), 0.0)

    queue.add(Status("a"), insist, 0.0)
    queue.add(Binding("a"), lambda outcome: told.append(outcome.ending), 0.0)
    queue.check()
    assert told == [Ending.OVERWRITTEN, Ending.SKIPPED] and queue.ready(Lane.BIND) == 1


def test_a_listener_that_raises_harms_no_one(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    def raises(outcome: Outcome) -> None:
        raise RuntimeError("oops")

    desk.queue.add(Status("a"), raises, 0.0)
    assert desk.sent(Lane.STATUS) == ["status a"] and "oops" in caplog.text


# --- trying again -----------------------------------------------------------------------------------------------------


def test_a_failed_try_rests_and_goes_first_when_it_is_due(desk: Desk) -> None:
    desk.submit(Status("a"))
    desk.queue.retry(desk.take(Lane.STATUS), 5.0, is_in_doubt=False)
    desk.queue.check()
    desk.submit(Status("b"))
    assert desk.queue.next_due() == 5.0 and desk.queue.wake(4.9) == set()
    assert desk.queue.wake(5.0) == {Lane.STATUS} and desk.queue.next_due() is None
    assert desk.sent(Lane.STATUS) == ["status a", "status b"]
    assert desk.told == [("status a", "done"), ("status b", "done")]


def test_a_resting_call_is_merged_and_overtaken_like_any_other(desk: Desk) -> None:
    desk.submit(Status("a", "1"))
    desk.queue.retry(desk.take(Lane.STATUS), 5.0, is_in_doubt=True)
    desk.submit(Status("a", "2"))
    assert desk.told == [("1", "overwritten")] and desk.sent(Lane.STATUS) == []
    desk.submit(Binding("a"))
    assert desk.sent(Lane.BIND) == ["binding a"]
    assert desk.queue.wake(9.0) == set() and desk.sent(Lane.STATUS) == []


def test_a_call_that_says_more_takes_over_from_a_failed_try(desk: Desk) -> None:
    desk.submit(Status("a", "1"))
    flying = desk.take(Lane.STATUS)
    desk.submit(Status("a", "2"))
    assert desk.queue.retry(flying, 5.0, is_in_doubt=True) is None
    assert desk.told == [("1", "overwritten")]
    desk.queue.wake(5.0)
    slot = desk.take(Lane.STATUS)
    assert slot.tries == 2 and desk.queue.is_in_doubt(slot)


def test_a_more_relevant_call_does_not_wait_for_the_next_try(desk: Desk) -> None:
    desk.submit(Status("a"))
    flying = desk.take(Lane.STATUS)
    desk.submit(Binding("a"))
    assert desk.queue.retry(flying, 5.0, is_in_doubt=False) is Lane.BIND
    assert desk.told == [("status a", "overwritten")] and desk.sent(Lane.BIND) == ["binding a"]


def test_calls_that_wait_too_long_have_failed(desk: Desk) -> None:
    patience = dict.fromkeys(Lane, 10.0)
    desk.submit(Status("a"), Status("b"), Status("c"))
    desk.queue.retry(desk.take(Lane.STATUS), 100.0, is_in_doubt=False)
    desk.now = 8.0
    desk.submit(Status("c", "newer"))
    assert desk.queue.expire(10.0, patience) == 0
    assert desk.queue.expire(10.5, patience) == 2
    desk.queue.check()
    assert {text for text, told in desk.told if "not done after 10 s" in told or "not done after 11 s" in told} == {
        "status a",
        "status b",
    }
    assert desk.sent(Lane.STATUS) == ["status c+newer"], "what was renewed is not old"


def test_at_the_end_everything_that_waits_is_dropped_and_reported(desk: Desk) -> None:
    desk.submit(Status("a"), Binding("b"), Status("c"))
    flying = desk.take(Lane.BIND)
    desk.submit(Deletion("b"))
    dropped = desk.queue.drop(CallDropped("the end"))
    assert sorted(slot.key for slot in dropped) == ["a", "b", "c"]
    assert desk.told == [("status a", "the end"), ("status c", "the end"), ("deletion b", "the end")]
    desk.queue.done(flying)
    assert desk.queue.is_idle


# --- what need not be sent --------------------------------------------------------------------------------------------

OLD = Note("1", "old")


def test_a_call_without_effect_is_not_sent(desk: Desk) -> None:
    desk.submit(Writing(OLD, "old"))
    assert desk.told == [("old", "skipped")] and desk.queue.is_idle


def test_a_change_that_is_taken_back_before_it_was_sent_is_never_sent(desk: Desk) -> None:
    desk.submit(Writing(OLD, "new"), Writing(OLD, "old"))
    assert desk.told == [("new", "overwritten"), ("old", "skipped")] and desk.queue.is_idle


def test_a_change_that_is_taken_back_while_it_is_in_flight_is_sent_after_it(desk: Desk) -> None:
    desk.submit(Writing(OLD, "new"))
    flying = desk.take(Lane.STATUS)
    desk.submit(Writing(OLD, "old"))
    assert desk.told == []
    desk.queue.done(flying, "2")
    assert desk.sent(Lane.STATUS) == ["old"]


def test_the_same_change_is_not_sent_again_after_it_was_done(desk: Desk) -> None:
    desk.submit(Writing(OLD, "new"))
    flying = desk.take(Lane.STATUS)
    desk.submit(Writing(OLD, "new"))
    assert desk.queue.done(flying, "2") is None
    assert desk.told == [("new", "skipped"), ("new", "done")] and desk.queue.is_idle


def test_after_a_failure_the_call_behind_it_is_judged_by_what_the_server_has(desk: Desk) -> None:
    desk.submit(Writing(OLD, "new"))
    flying = desk.take(Lane.STATUS)
    desk.submit(Writing(OLD, "old"))
    desk.queue.failed(flying, OSError("refused"))
    assert desk.told == [("old", "skipped"), ("new", "refused")] and desk.queue.is_idle


@pytest.mark.parametrize("is_given_up", [True, False])
def test_in_doubt_nothing_is_taken_for_pointless(desk: Desk, is_given_up: bool) -> None:
    """The first write may have happened: that we knew the old text before it says nothing."""
    desk.submit(Writing(OLD, "new"))
    flying = desk.take(Lane.STATUS)
    if is_given_up:
        desk.queue.failed(flying, OSError("lost"), is_in_doubt=True)
    else:
        desk.queue.retry(flying, 1.0, is_in_doubt=True)
    desk.submit(Writing(OLD, "old"))
    desk.queue.sync("a", Note("1", "old"))
    desk.queue.wake(1.0)
    slot = desk.take(Lane.STATUS)
    assert desk.queue.is_in_doubt(slot)
    desk.queue.looked(slot, Seen(False))
    desk.queue.done(slot, "3")
    desk.submit(Writing(Note("3", "old"), "old"))
    assert desk.told[-1] == ("old", "skipped"), "the doubt is over"


def test_a_doubt_outlives_the_call_that_was_overtaken(desk: Desk) -> None:
    desk.submit(Writing(OLD, "new"))
    desk.queue.retry(desk.take(Lane.STATUS), 1.0, is_in_doubt=True)
    desk.submit(Binding("a"))
    desk.queue.failed(desk.take(Lane.BIND), OSError("refused"))
    desk.submit(Writing(OLD, "old"))
    assert desk.queue.is_in_doubt(desk.take(Lane.STATUS))


# --- objects from the watch -------------------------------------------------------------------------------------------


def test_an_object_shows_what_is_on_its_way(desk: Desk) -> None:
    assert desk.queue.sync("a", OLD) is OLD
    desk.submit(Writing(OLD, "new"))
    assert desk.queue.sync("a", Note("2", "old", "x")) == Note("2", "new", "x")
    flying = desk.take(Lane.STATUS)
    assert desk.queue.sync("a", Note("3", "old", "y")) == Note("3", "new", "y")
    desk.submit(Writing(OLD, "newer"))
    assert desk.queue.shown("a", Note("3", "old", "y")) == Note("3", "newer", "y")
    desk.queue.failed(flying, OSError("refused"))
    assert desk.queue.shown("a", Note("3", "old", "y")) == Note("3", "newer", "y")


def test_a_done_change_is_shown_until_the_servers_own_version_arrives(desk: Desk) -> None:
    desk.submit(Writing(OLD, "new"))
    desk.queue.done(desk.take(Lane.STATUS), "5")
    assert desk.queue.sync("a", Note("4", "old", "x")) == Note("4", "new", "x")
    assert desk.queue.sync("a", Note("5", "new", "x")) == Note("5", "new", "x")
    other = Note("6", "theirs", "x")
    assert desk.queue.sync("a", other) is other


def test_a_change_that_the_watch_has_shown_before_the_answer_is_not_laid_over_it(desk: Desk) -> None:
    desk.submit(Writing(OLD, "new"))
    flying = desk.take(Lane.STATUS)
    desk.queue.sync("a", Note("6", "theirs"))
    desk.queue.done(flying, "5")
    later = Note("7", "theirs", "x")
    assert desk.queue.sync("a", later) is later


def test_a_pending_call_learns_that_someone_else_has_done_it(desk: Desk) -> None:
    desk.submit(Writing(OLD, "new"))
    theirs = Note("2", "new", "x")
    assert desk.queue.sync("a", theirs) is theirs
    assert desk.told == [("new", "skipped")] and desk.queue.is_idle


def test_a_pending_call_learns_that_it_has_work_again(desk: Desk) -> None:
    """What is compared with is what the server has now, not what it had when the call came."""
    desk.submit(Writing(OLD, "new"))
    desk.queue.sync("a", Note("2", "theirs"))
    desk.submit(Writing(Note("2", "theirs"), "old"))
    assert desk.sent(Lane.STATUS) == ["old"]


def test_what_someone_else_wrote_after_us_is_not_taken_for_ours(desk: Desk) -> None:
    desk.submit(Writing(OLD, "new"))
    flying = desk.take(Lane.STATUS)
    desk.submit(Writing(OLD, "new"))
    desk.queue.sync("a", Note("6", "theirs"))
    desk.queue.done(flying, "5")
    assert desk.sent(Lane.STATUS) == ["new"]


def test_an_old_version_that_arrives_late_does_not_hide_what_was_done(desk: Desk) -> None:
    desk.submit(Writing(OLD, "new"))
    desk.queue.done(desk.take(Lane.STATUS), "5")
    desk.submit(Writing(Note("1", "new"), "old"))
    desk.queue.sync("a", Note("4", "old"))
    assert desk.sent(Lane.STATUS) == ["old"]


def test_what_was_read_is_shown_until_the_watch_brings_it(desk: Desk) -> None:
    desk.submit(Writing(OLD, "new"))
    slot = desk.take(Lane.STATUS)
    desk.queue.looked(slot, Seen(False, Note("7", "theirs", "x")))
    desk.queue.failed(slot, OSError("refused"))
    assert desk.queue.shown("a", OLD) == Note("7", "theirs", "x")
    arrived = Note("7", "theirs", "x")
    assert desk.queue.sync("a", arrived) is arrived


def test_nothing_is_sent_to_an_object_that_is_gone(desk: Desk) -> None:
    desk.submit(Writing(OLD, "new"))
    desk.queue.forget("a")
    assert desk.told == [("new", "skipped")] and desk.queue.is_idle


# --- call types of others ---------------------------------------------------------------------------------------------


class Broken(Writing):
    __slots__ = ()
    kind = "broken"

    def merged_with(self, newer: ApiCall) -> ApiCall:
        raise RuntimeError("cannot merge")

    def is_pointless(self) -> bool:
        raise RuntimeError("cannot compare")

    def rebase(self, obj: Note) -> None:
        raise RuntimeError("cannot rebase")

    def applied_to(self, obj: Note) -> Note:
        raise RuntimeError("cannot apply")


def test_a_broken_call_type_harms_only_itself(desk: Desk) -> None:
    desk.submit(Broken(OLD, "1"), Broken(OLD, "2"))
    assert desk.told == [("2", "cannot merge")]
    arrived = Note("2", "x")
    assert desk.queue.sync("a", arrived) is arrived
    assert desk.sent(Lane.STATUS) == ["1"]


def test_two_types_cannot_share_a_kind(desk: Desk) -> None:
    class Impostor(Status):
        __slots__ = ()

    desk.submit(Status("a"))
    with pytest.raises(TypeError, match=r'Impostor: calls of the kind "status" are those of .*Status; choose another'):
        desk.submit(Impostor("b"))
    assert desk.queue.types.relevances() == {"status": 10}


def test_the_reason_is_reported_with_the_outcome() -> None:
    queue, told = CallQueue(), []
    for call in (Status("a"), Binding("a"), Status("a")):
        queue.add(call, told.append, 0.0)
    queue.forget("a")
    assert [outcome.why for outcome in told] == [Why.MORE_RELEVANT_CAME, Why.LESS_RELEVANT, Why.OBJECT_GONE]
