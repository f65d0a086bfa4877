"""How much is sent at once and per second, and when a failed try is repeated: pure arithmetic."""

from __future__ import annotations

import pytest

from pilotage.api.calls import Lane, ObjectChanged
from pilotage.calls.dispatcher import LaneLimit
from pilotage.calls.retry import DEFAULT_POLICIES, LanePolicy, Verdict, judge
from pilotage.calls.token_bucket import TokenBucket
from pilotage.calls.unobserved_writes import is_at_least
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.transport import TransportError
from pilotage.rng import seeded
from tests.calls.sample_calls import Binding, Status

BUSY = ApiStatusError(429, "TooManyRequests", "", 2.0)


# --- concurrency ------------------------------------------------------------------------------------------------------


def test_a_lane_that_was_throttled_grows_again_by_one_for_each_round() -> None:
    limit = LaneLimit(16)
    limit.throttled(2.0, now=0.0)
    assert limit.allowed == 8 and limit.paused_until == 2.0
    for _ in range(9):
        limit.answered(0.02, now=3.0)
    assert limit.allowed == 9
    for _ in range(500):
        limit.answered(0.02, now=4.0)
    assert limit.allowed == 16


def test_calls_that_were_in_flight_together_count_as_one_bad_news() -> None:
    limit = LaneLimit(16)
    limit.answered(0.5, now=0.0)
    for _ in range(16):
        limit.throttled(1.0, now=1.0)
    assert limit.allowed == 8
    limit.throttled(1.0, now=2.0)
    assert limit.allowed == 4


def test_without_connection_one_call_at_a_time_tries_after_pauses_that_grow() -> None:
    limit = LaneLimit(16)
    pauses, now = [], 0.0
    for _ in range(9):
        limit.lost(now)
        pauses.append(limit.paused_until - now)
        now = limit.paused_until
    assert limit.allowed == 1
    assert pauses == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])
    limit.answered(0.01, now)
    limit.lost(now)
    assert limit.paused_until - now == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("usual", "later", "is_cut"),
    [(0.02, 3.0, True), (2.0, 2.5, False), (0.02, 0.2, False)],
    ids=["a queue has built up", "far away, but steady", "slower, but quick"],
)
def test_a_server_with_a_queue_gets_less_and_one_far_away_does_not(usual: float, later: float, is_cut: bool) -> None:
    limit = LaneLimit(64)
    for number in range(20):
        limit.answered(usual, now=float(number))
    for number in range(20):
        limit.answered(later, now=100.0 + 10.0 * number)
    assert (limit.allowed < 64) is is_cut


# --- requests per second ----------------------------------------------------------------------------------------------


def test_a_bucket_gives_its_burst_and_then_as_much_per_second_as_it_may() -> None:
    bucket = TokenBucket(5.0, 3, now=0.0)
    assert [bucket.take(0.0) for _ in range(4)] == [True, True, True, False]
    assert bucket.next_at(0.0) == pytest.approx(0.2)
    assert bucket.take(0.2) and not bucket.take(0.2)
    assert sum(bucket.take(0.2 + step / 100) for step in range(1, 201)) == 10


def test_a_bucket_that_waited_long_is_no_fuller_than_its_burst() -> None:
    bucket = TokenBucket(1000.0, 2, now=0.0)
    assert sum(bucket.take(3600.0) for _ in range(10)) == 2


# --- trying again -----------------------------------------------------------------------------------------------------


class Anytime(Status):
    __slots__ = ()
    kind, retries_conflicts = "anytime", True


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (TransportError("", sent=False), Verdict.AGAIN),
        (TransportError("", sent=True), Verdict.UNCLEAR),
        (BUSY, Verdict.AGAIN),
        (ApiStatusError(500, "", ""), Verdict.UNCLEAR),
        (ApiStatusError(504, "", ""), Verdict.UNCLEAR),
        (ApiStatusError(409, "", ""), Verdict.FINAL),
        (ApiStatusError(404, "", ""), Verdict.FINAL),
        (ValueError(), Verdict.FINAL),
    ],
    ids=repr,
)
def test_what_a_failed_try_means(error: Exception, verdict: Verdict) -> None:
    assert judge(error, Binding("a")) is verdict


def test_a_conflict_is_no_answer_to_a_call_that_is_right_for_any_version() -> None:
    assert judge(ApiStatusError(409, "", ""), Anytime("a")) is Verdict.UNCLEAR


def test_conflict_with_another_object_of_the_same_name_is_final_for_every_call() -> None:
    """Looked at again and again, it stays another one: a status was tried for ten minutes after its pod was gone."""
    assert judge(ObjectChanged("another one"), Anytime("a")) is Verdict.FINAL


def test_pauses_grow_are_spread_and_respect_what_the_server_asks_for() -> None:
    policy, rng = LanePolicy(workers=1, tries=0, longest_pause=3.0, queue_seconds=60.0), seeded(1)
    failed = ApiStatusError(500, "", "")
    pauses = [policy.pause(tries, failed, rng) for tries in (1, 2, 3, 4, 5, 500)]
    bases = [0.01, 0.05, 0.25, 1.25, 3.0, 3.0]
    assert all(0.75 * base <= (pause or 0) <= 1.25 * base for pause, base in zip(pauses, bases, strict=True))
    assert len({policy.pause(1, failed, rng) for _ in range(20)}) > 10
    assert policy.pause(1, BUSY, rng) == 2.0


def test_after_the_last_try_there_is_no_pause() -> None:
    policy = DEFAULT_POLICIES[Lane.BIND]
    assert policy.pause(3, BUSY, seeded(1)) is not None and policy.pause(4, BUSY, seeded(1)) is None


@pytest.mark.parametrize(
    ("version", "other", "expected"),
    [("9", "10", False), ("10", "9", True), ("7", "7", True), ("", "1", False), ("1", "", True), ("b", "a", False)],
)
def test_versions_are_compared_as_numbers_and_unknown_ones_by_equality(
    version: str, other: str, expected: bool
) -> None:
    assert is_at_least(version, other) is expected
