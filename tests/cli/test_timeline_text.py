"""The story of a pod as people read it."""

from __future__ import annotations

import pytest

from pilotage.cli.explain_timeline import render_timeline
from pilotage.queue.timeline import Timeline, TimelineItem

NOON = 1_763_208_000.0


def told(*items: TimelineItem) -> list[str]:
    return render_timeline(Timeline("shop/web", "u", items)).splitlines()


def test_first_line_says_where_the_pod_is_and_every_step_has_its_time() -> None:
    lines = told(
        TimelineItem(NOON, "moved", "active", "UnscheduledPodAdd"),
        TimelineItem(NOON + 0.25, "tried", "1"),
        TimelineItem(NOON + 0.25, "rejected", "Fit,Taint", "0/1 nodes are available"),
        TimelineItem(NOON + 0.25, "moved", "unschedulable", "ScheduleAttemptFailure"),
        TimelineItem(NOON + 90.5, "asked", "Fit: QueueSkip", "NodeAdd n2", 3),
    )
    assert lines == [
        "shop/web: unschedulable after 1 attempt",
        "",
        "12:00:00.000      +0.000s  to active: UnscheduledPodAdd",
        "12:00:00.250      +0.250s  attempt 1",
        "12:00:00.250      +0.250s  rejected by Fit, Taint: 0/1 nodes are available",
        "12:00:00.250      +0.250s  to unschedulable: ScheduleAttemptFailure",
        "12:01:30.500     +90.500s  NodeAdd n2: Fit says QueueSkip (3 times within a second)",
    ]


@pytest.mark.parametrize(
    ("last", "state"),
    [
        (TimelineItem(NOON, "bound", "n1"), "bound to n1 after 1 attempt"),
        (TimelineItem(NOON, "left"), "left the queue after 1 attempt"),
        (TimelineItem(NOON, "failed", "", "boom"), "in its attempt number 1"),
    ],
)
def test_the_last_step_is_the_answer(last: TimelineItem, state: str) -> None:
    assert told(TimelineItem(NOON, "tried", "1"), last)[0] == f"shop/web: {state}"
