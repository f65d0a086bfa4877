"""Queues played forward, held against a past that follows from arithmetic."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.lab.starts.pod_copies import Effort
from pilotage.lab.starts.queue_copies import QueueCopies, workload_starts
from pilotage.lab.starts.ranges import Calibration, fared
from tests.lab.starts.queue_world import SLOTS, START, QueuedRun, by_kind, manifests, runs

CONFIGURATION = QueueingConfiguration()
SMALL = Effort(copies=8, past=12, past_copies=4)


def test_those_who_wait_start_in_their_order_and_most_of_them_within_their_range() -> None:
    held = stated = 0
    for seed in range(3):
        all_runs = runs(seed, 150)
        now = all_runs[120].created
        found = workload_starts(by_kind(manifests(all_runs, now)), CONFIGURATION, START + now, SMALL)
        waiting = [run for run in all_runs if run.created <= now < run.admitted]
        assert found.keys() == {f"default/{run.name}" for run in waiting}
        ranges = [found[f"default/{run.name}"] for run in waiting]
        soonest = [one.soonest for one in ranges if one.soonest is not None]
        assert soonest == sorted(soonest)
        assert all(one.from_history == SLOTS for one in ranges)
        for run, one in zip(waiting, ranges, strict=True):
            assert one.soonest is not None and one.latest is not None
            held += one.soonest <= run.admitted - now <= one.latest
            stated += 1
    assert held / stated > 0.6, f"{held} of {stated}"


def test_four_of_five_past_starts_are_within_their_range_on_the_held_out_half() -> None:
    earlier: list[Any] = []
    later: list[Any] = []
    for seed in range(4):
        all_runs = runs(seed, 120)
        copies = QueueCopies(by_kind(manifests(all_runs, 1e9)), CONFIGURATION)
        past = copies.past_starts(Effort(past=20, past_copies=5))
        earlier += past[:10]
        later += past[10:]
    factor = Calibration.of(earlier).factor
    counted = fared(later, factor)
    assert counted is not None and counted.starts == 40
    assert 0.65 <= counted.within <= 0.95


def one_that_runs(**spec: Any) -> dict[str, list[Any]]:
    """The whole quota is taken, nothing has ever ended, and one waits."""
    taken = [QueuedRun(f"r{number}", f"job{number}", 0, 10, 10**6) for number in range(SLOTS)]
    objects = manifests([*taken, QueuedRun("next", "job", 50, 10**6, 10**7)], 100.0)
    for obj in objects:
        if obj["kind"] == "Workload":
            obj["spec"] |= spec
    return by_kind(objects)


def test_without_history_the_deadline_says_when() -> None:
    found = workload_starts(one_that_runs(maximumExecutionTimeSeconds=600), CONFIGURATION, START + 100, SMALL)
    start = found["default/next"]
    assert (start.from_history, start.from_deadline, start.without_end) == (0, SLOTS, 0)
    assert [start.soonest, start.latest] == pytest.approx([510, 510])
    assert start.past is None


def test_without_both_it_is_said_that_those_who_run_are_taken_to_stay() -> None:
    start = workload_starts(one_that_runs(), CONFIGURATION, START + 100, SMALL)["default/next"]
    assert start.without_end == SLOTS
    assert start.soonest is None and start.latest is None and start.started == 0


def test_the_same_is_said_twice() -> None:
    all_runs = runs(1, 80)
    now = all_runs[60].created
    said = [workload_starts(by_kind(manifests(all_runs, now)), CONFIGURATION, START + now, SMALL) for _ in range(2)]
    assert said[0] == said[1] and said[0]


def test_nobody_waits_nothing_is_said() -> None:
    all_runs = runs(1, 50)
    assert workload_starts(by_kind(manifests(all_runs, 1e9)), CONFIGURATION, START + 1e9) == {}
