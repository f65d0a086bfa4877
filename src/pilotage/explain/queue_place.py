"""Where a pod is in the queue of a running scheduler, since when, and when it is tried again."""

from __future__ import annotations

from typing import Any

from pilotage.model.durations import go_duration
from pilotage.queue.report import QueuedPodReport, QueueReport


def queue_place(report: QueueReport, uid: str) -> dict[str, Any]:
    """What the scheduler's own queue says of the pod; empty if it is not in it."""
    parts = {
        "in flight": report.in_flight,
        "active": report.active,
        "backoff": report.backoff,
        "unschedulable": report.unschedulable,
        "gated": report.gated,
    }
    for part, pods in parts.items():
        for pod in pods:
            if pod.uid == uid:
                return _facts(part, pod)
    return {}


def _facts(part: str, pod: QueuedPodReport) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "place": "error backoff" if pod.is_error else part,
        "since": f"{go_duration(round(pod.waiting_seconds))} ago",
        "attempts": pod.attempts,
    }
    if pod.backoff_seconds > 0:
        facts["backoff left"] = go_duration(round(pod.backoff_seconds, 1))
    if pod.rejectors:
        facts["waits for events of"] = ", ".join(pod.rejectors)
    if pod.gated_by:
        facts["gated by"] = pod.gated_by
    return facts
