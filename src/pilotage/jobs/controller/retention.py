"""What is kept of workloads that are not needed any more, and for how long (objectRetentionPolicies).

A finished workload is deleted some time after its end. A workload that was deactivated by the system, not by a user,
takes its job with it: the creator of that job is not going to activate it again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final

from pilotage.clock import Clock
from pilotage.jobs.conditions import epoch
from pilotage.jobs.configuration.kinds import WorkloadRetention
from pilotage.jobs.controller.objects import Objects
from pilotage.jobs.controller.steps import PatchObject, RecordEvent, RemoveJob, RemovePod, RemoveWorkload
from pilotage.jobs.controller.workload_facts import condition, is_leaving, is_true, release_patch
from pilotage.model.kueue import Workload

_BY_THE_SYSTEM: Final = "DeactivatedDueTo"
_AGAIN_SECONDS: Final = 60.0
"""A deletion that failed is tried again."""


class Retention:
    def __init__(self, policy: WorkloadRetention, clock: Clock) -> None:
        self._policy = policy
        self._clock = clock
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._is_off = policy == WorkloadRetention()

    def see(self, workload: Workload) -> None:
        """A new version of a workload."""
        if self._is_off:
            return
        due = self._until(workload)
        if due is None:
            self._due.pop(workload.key, None)
        elif self._due.get(workload.key) != due:
            self._note(workload.key, due)

    def forget(self, key: str) -> None:
        self._due.pop(key, None)

    def next_due(self) -> float | None:
        """In seconds of the epoch."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take_due(self) -> list[str]:
        """Keys of workloads whose time is over."""
        now, found = self._clock.time(), []
        while (due := self.next_due()) is not None and due <= now:
            key = heapq.heappop(self._heap)[1]
            self._note(key, now + _AGAIN_SECONDS)
            found.append(key)
        return found

    def is_over(self, workload: Workload) -> bool:
        due = self._until(workload)
        return due is not None and due <= self._clock.time()

    def _note(self, key: str, due: float) -> None:
        self._due[key] = due
        heapq.heappush(self._heap, (due, key))

    def _until(self, workload: Workload) -> float | None:
        """Until when it is kept; None if without end."""
        if is_true(workload, "Finished"):
            return _after(workload, "Finished", self._policy.after_finished)
        evicted = condition(workload, "Evicted")
        is_ours = evicted is not None and evicted.status == "True" and evicted.reason.startswith(_BY_THE_SYSTEM)
        if workload.spec.active or not is_ours:
            return None
        return _after(workload, "Evicted", self._policy.after_deactivated_by_kueue)


def _after(workload: Workload, kind: str, seconds: float | None) -> float | None:
    since = condition(workload, kind)
    if seconds is None or since is None or not since.last_transition_time:
        return None
    at = epoch(since.last_transition_time)
    return at + seconds if at else None


def removal(workload: Workload, objects: Objects) -> Iterator[RemoveWorkload | RemoveJob | RemovePod | PatchObject]:
    """Delete a workload whose time is over, or the job that it stands for if that was deactivated."""
    subject = objects.subject_of(workload)
    if is_true(workload, "Finished") or subject is None or subject.kind == "Workload":
        if not is_leaving(workload):
            yield RemoveWorkload(workload)
        if (patch := release_patch(workload)) is not None:
            yield PatchObject(workload, patch)
        return
    evicted = condition(workload, "Evicted")
    why = f"It was deactivated, and the time for which that is kept is over: {evicted.message if evicted else ''}"
    if subject.kind in objects.kinds:
        job = objects.job(subject)
        if job is not None and job.metadata.deletion_timestamp is None:
            yield RemoveJob(job, RecordEvent(job, "Deleted", why))
        return
    for pod in objects.members(subject):
        if not pod.is_terminating:
            yield RemovePod(pod, "Deactivated", why)
