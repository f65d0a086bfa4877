"""Pods ready (KEP-1282): the condition, how long it may take, and how long a workload that was too slow waits."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from pilotage.jobs import conditions as c
from pilotage.jobs.cluster_queue import UNSCHEDULABLE_TIMEOUT, QueueState
from pilotage.jobs.configuration.kinds import RequeuingStrategy, WaitForPodsReady
from pilotage.jobs.record import WorkloadRecord
from pilotage.model.durations import parse_duration

_JITTER = 0.0001
TIMEOUT_ANNOTATION: Final = "queueing.pilotage.dev/pods-ready-timeout"
"""On a workload or its job: how long its own pods may take to start, instead of the administrator's timeout."""


def own_timeout(annotations: Mapping[str, str]) -> float | None:
    """Seconds, None if the usual timeout counts; ValueError if what is written is no duration above 0."""
    return _duration(annotations, TIMEOUT_ANNOTATION)


def own_unschedulable_timeout(annotations: Mapping[str, str]) -> float | None:
    """The same for pods that no node takes."""
    return _duration(annotations, UNSCHEDULABLE_TIMEOUT)


def _duration(annotations: Mapping[str, str], name: str) -> float | None:
    text = annotations.get(name)
    if text is None:
        return None
    seconds = parse_duration(text)
    if seconds <= 0:
        raise ValueError(text)
    return seconds


def unschedulable_deadline(record: WorkloadRecord, queue: QueueState) -> tuple[int, float] | None:
    """When one of its pods has waited for a node for too long, and how long that is."""
    if record.trouble is None or not record.is_admitted:
        return None
    try:
        own = own_unschedulable_timeout(record.seen.metadata.annotations)
    except ValueError:
        own = None
    seconds = queue.unschedulable_timeout if own is None else own
    return (record.trouble_since + _ceil(seconds), seconds) if seconds else None


def start_timeout(record: WorkloadRecord, settings: WaitForPodsReady) -> float:
    try:
        own = own_timeout(record.seen.metadata.annotations)
    except ValueError:
        return settings.timeout
    return settings.timeout if own is None else own


def condition(record: WorkloadRecord, is_ready: bool) -> tuple[bool, str, str]:
    """Status, reason and message of PodsReady, from what it was."""
    old = record.conditions.get(c.PODS_READY)
    if not record.is_admitted:
        return False, c.WAIT_FOR_START, "Not all pods are ready or succeeded"
    if is_ready:
        was_lost = old is not None and old.reason in (c.WAIT_FOR_RECOVERY, c.RECOVERED)
        return True, c.RECOVERED if was_lost else c.STARTED, "All pods reached readiness and the workload is running"
    if old is not None and (old.is_true or old.reason == c.WAIT_FOR_RECOVERY):
        return False, c.WAIT_FOR_RECOVERY, "At least one pod has failed, waiting for recovery" + _trouble(record)
    return False, c.WAIT_FOR_START, "Not all pods are ready or succeeded" + _trouble(record)


def _trouble(record: WorkloadRecord) -> str:
    found = record.trouble
    if found is None:
        return ""
    pods = "1 pod has" if found.count == 1 else f"{found.count} pods have"
    return f"; {pods} no node: {found.message}"


def deadline(record: WorkloadRecord, settings: WaitForPodsReady) -> tuple[int, str] | None:
    """When the workload has been unready too long, and the underlying cause; None if nothing is being timed."""
    ready = record.conditions.get(c.PODS_READY)
    if ready is not None and ready.is_true:
        return None
    if ready is not None and ready.reason == c.WAIT_FOR_RECOVERY:
        limit = settings.effective_recovery_timeout
        return (ready.since + _ceil(limit), c.WAIT_FOR_RECOVERY) if limit else None
    admitted = record.conditions.get(c.ADMITTED)
    assert admitted is not None
    return admitted.since + _ceil(start_timeout(record, settings)), c.WAIT_FOR_START


def _ceil(seconds: float) -> int:
    return int(-(-seconds // 1))


def backoff_seconds(requeues: int, strategy: RequeuingStrategy, rng: random.Random) -> float:
    """How long to wait after the n-th timeout: doubling from the base up to the cap, a little spread."""
    return _backoff(requeues, strategy) * (1 + rng.random() * _JITTER)


def latest_requeue(record: WorkloadRecord, strategy: RequeuingStrategy, now: int) -> int:
    """The end of the backoff of a workload that was too slow, if it were evicted now."""
    return now + _ceil(_backoff(record.requeue_count or 1, strategy) * (1 + _JITTER))


def _backoff(requeues: int, strategy: RequeuingStrategy) -> float:
    base, cap = strategy.backoff_base_seconds, strategy.backoff_max_seconds
    # Beyond 2^40 seconds the exact number means nothing, but an unlimited one would grow without end.
    delay = float(base * 2 ** min(max(requeues - 1, 0), 40))
    return min(delay, cap) if cap else delay
