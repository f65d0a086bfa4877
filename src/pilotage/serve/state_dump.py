"""SIGUSR2: queue and cache into the log, as kube-scheduler does. For a scheduler whose pages cannot be asked."""

from __future__ import annotations

import logging
from typing import Final

from pilotage.cycle.report import scheduler_report
from pilotage.cycle.scheduling_loop import SchedulingLoop
from pilotage.queue.report import QueuedPodReport, Selection
from pilotage.serve.debug_pages import cluster_picture

log = logging.getLogger(__name__)

_MOST_LINES: Final = 1000
"""Of each part of the queue, and of the nodes."""


def dump_state(scheduler: SchedulingLoop) -> None:
    """One line for each pod in the queue, each node and each assumed pod; how many there are stands before them."""
    _dump_queue(scheduler)
    _dump_cache(scheduler)


def _dump_queue(scheduler: SchedulingLoop) -> None:
    report = scheduler_report(scheduler, Selection(_MOST_LINES))
    counts = report.counts
    log.info(
        "dump of the scheduling queue: active=%d backoff=%d unschedulable=%d gated=%d in_flight=%d recorded_events=%d",
        counts["active"],
        counts["backoff"],
        counts["unschedulable"],
        counts["gated"],
        counts["in_flight"],
        report.recorded_events,
    )
    for part, pods in report.parts().items():
        for pod in pods:
            _dump_pod("error-backoff" if pod.is_error else part.replace(" ", "-"), pod)
        _note_rest(part, counts[part.replace(" ", "_")] - len(pods))
    pending = sum(lane.pending for lane in report.calls.lanes.values())
    flying = sum(lane.in_flight for lane in report.calls.lanes.values())
    log.info("dump of the API calls: pending=%d in_flight=%d", pending, flying)


def _dump_pod(part: str, pod: QueuedPodReport) -> None:
    log.info(
        "queued pod: pod=%s queue=%s priority=%d attempts=%d waiting_seconds=%.0f backoff_seconds=%.0f "
        "plugins=%s gated_by=%s held_by=%s node=%s message=%s",
        f"{pod.namespace}/{pod.name}",
        part,
        pod.priority,
        pod.attempts,
        pod.waiting_seconds,
        pod.backoff_seconds,
        ",".join(pod.rejectors),
        pod.gated_by,
        ",".join(pod.held_by),
        pod.node,
        pod.message,
    )


def _dump_cache(scheduler: SchedulingLoop) -> None:
    picture = cluster_picture(scheduler.cluster, _MOST_LINES)
    counts = picture["counts"]
    log.info("dump of the cache: nodes=%d pods=%d assumed=%d", counts["nodes"], counts["pods"], counts["assumed"])
    for node in picture["nodes"]:
        log.info(
            "cached node: node=%s pods=%d requested=%s allocatable=%s nominated=%s",
            node["name"],
            node["pods"],
            _amounts(node["requested"]),
            _amounts(node["allocatable"]),
            ",".join(node["nominated"]),
        )
    _note_rest("nodes", counts["nodes"] - len(picture["nodes"]))
    for pod in picture["assumed"]:
        log.info("assumed pod: pod=%s", pod)
    _note_rest("assumed pods", counts["assumed"] - len(picture["assumed"]))


def _amounts(amounts: dict[str, float]) -> str:
    return ",".join(f"{resource}:{amount:.0f}" for resource, amount in amounts.items())


def _note_rest(what: str, count: int) -> None:
    if count > 0:
        log.info("%d more are not shown: part=%s", count, what)
