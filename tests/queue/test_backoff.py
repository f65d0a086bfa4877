"""How long a failed pod waits, and the rounding to whole seconds."""

from __future__ import annotations

import pytest

from pilotage.queue.backoff import BackoffPolicy
from pilotage.queue.sub_queues import QueuedPodInfo
from pilotage.testing import pod


def entry(*, at: float = 100.0, rejections: int = 0, errors: int = 0) -> QueuedPodInfo:
    return QueuedPodInfo(pod("p").build(), at, unschedulable_count=rejections, consecutive_errors=errors)


@pytest.mark.parametrize(("count", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (100, 10)])
def test_the_wait_doubles_up_to_the_maximum(count: int, seconds: int) -> None:
    assert BackoffPolicy().until(entry(rejections=count)) == 100 + seconds
    assert BackoffPolicy().until(entry(errors=count)) == 100 + seconds


def test_a_pod_that_never_failed_does_not_wait() -> None:
    assert BackoffPolicy().until(entry()) == 0


def test_errors_in_a_row_count_before_rejections() -> None:
    assert BackoffPolicy().until(entry(rejections=4, errors=1)) == 101


def test_a_maximum_of_nothing_switches_backoff_off() -> None:
    assert BackoffPolicy(max_seconds=0).until(entry(rejections=3)) == 0


def test_an_initial_wait_above_the_maximum_is_cut() -> None:
    assert BackoffPolicy(initial_seconds=20, max_seconds=5).until(entry(rejections=1)) == 105


def test_a_huge_number_of_failures_is_still_the_maximum() -> None:
    assert BackoffPolicy(max_seconds=600).until(entry(rejections=10**6)) == 700


@pytest.mark.parametrize(
    ("now", "is_over"), [(101.4, False), (101.5, False), (101.99, False), (102.0, True), (102.1, True)]
)
def test_a_backoff_ends_with_the_second_in_which_it_runs_out(now: float, is_over: bool) -> None:
    policy = BackoffPolicy()
    until = policy.until(entry(at=100.5, rejections=1))
    assert until == 101
    assert policy.is_over(until, now) is is_over
