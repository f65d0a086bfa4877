"""Jobs: run pods until enough of them have succeeded, or too many have failed.

Every call takes stock (`job_tally`), counts pods that ended, decides whether the Job is over, and if not brings the
number of running pods to what is wanted. After failures new pods wait: 10 s, 20 s, 40 s, ... A suspended Job has no
running pods and no startTime. A finished one is deleted after ttlSecondsAfterFinished.

Pods carry the finalizer `batch.kubernetes.io/job-tracking` until they are counted. It is removed before the status is
written: a crash in between forgets a pod, so that its work is done again, but never counts one twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pilotage.sandbox.life.controllers.completion_indexes import format_indexes, parse_indexes
from pilotage.sandbox.life.controllers.conditions import find_condition, has_condition, set_condition
from pilotage.sandbox.life.controllers.controller import (
    BATCH,
    CHILD_DELAY,
    ControllerContext,
    Due,
    Interest,
    Object,
    pause_after_batch,
)
from pilotage.sandbox.life.controllers.job_groups import JobGroups
from pilotage.sandbox.life.controllers.job_pods import JobPods
from pilotage.sandbox.life.controllers.job_policies import failures_before, judge_failure
from pilotage.sandbox.life.controllers.job_tally import (
    INTERIM,
    TRACKING,
    JobTally,
    free_indexes,
    index_of,
    is_indexed,
    tally,
    verdict,
    wanted_active,
)
from pilotage.sandbox.life.controllers.replicaset import least_missed
from pilotage.sandbox.life.facts import PodFacts
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.life.owned_pods import OwnedPods
from pilotage.sandbox.storage.store import Key

JOBS: Final = "jobs.batch"

_OWN_NAME: Final = "kubernetes.io/job-controller"
_FIRST_BACKOFF_SECONDS: Final = 10.0
_LONGEST_BACKOFF_SECONDS: Final = 600.0
_FAILURE_POLICIES: Final = ("podFailurePolicy", "backoffLimitPerIndex")


@dataclass(frozen=True, slots=True)
class _Backoff:
    failures: int
    until: float


class JobController:
    name = "job"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._pods = JobPods(context)
        self._groups = JobGroups(context)
        self._backoffs: dict[str, _Backoff] = {}
        self._index_backoffs: dict[str, dict[int, _Backoff]] = {}
        """Of Jobs with a limit per index: the failures of each index that is tried again."""
        self._being_written: Key | None = None
        """The Job whose status is being written: there is nothing to do about what was done just now."""

    def interests(self) -> Mapping[str, Interest]:
        return {JOBS: self._job_seen, "pods": self._pod_seen}

    def reconcile(self, key: Key) -> float | None:
        if key.resource == "pods":
            return self._let_orphan_go(key)
        job = self._context.read(key)
        if job is None or job["spec"].get("managedBy", _OWN_NAME) != _OWN_NAME:
            return None
        owned = self._context.index.owned_pods(job["metadata"]["uid"])
        if "deletionTimestamp" not in job["metadata"] and not _is_finished(job):
            return self._sync(key, job, owned)
        for pod in [*owned.held_pods(), *owned.active_pods()]:
            self._pods.release(pod)
        return self._expire(job)

    def _job_seen(self, seen: ObservedChange) -> Iterable[Due]:
        if seen.new is not None:
            return () if seen.key == self._being_written else (Due(seen.key),)
        self._backoffs.pop(seen.facts.uid, None)
        self._index_backoffs.pop(seen.facts.uid, None)
        return [Due(pod.key) for pod in self._context.index.owned_pods(seen.facts.uid).pods()]

    def _pod_seen(self, seen: ObservedChange) -> Iterable[Due]:
        owner = seen.facts.controller or (seen.old.controller if seen.old is not None else None)
        if owner is None or owner.kind != "Job" or _counts_as_before(seen):
            return ()
        if self._context.index.by_uid(owner.uid) is not None:
            return (Due(Key(JOBS, seen.key.namespace, owner.name), CHILD_DELAY),)
        return (Due(seen.key),) if seen.new is not None and TRACKING in seen.new.finalizers else ()

    def _let_orphan_go(self, key: Key) -> float | None:
        """A pod whose Job is gone is not counted any more."""
        pod = self._context.index.pod(key)
        owner = pod.controller if pod is not None else None
        if pod is not None and owner is not None and self._context.index.by_uid(owner.uid) is None:
            self._pods.release(pod)
        return None

    def _sync(self, key: Key, job: Object, owned: OwnedPods) -> float | None:
        group = self._groups.of(job, owned)
        now = tally(job, owned)
        status: Object = dict(job.get("status") or {})
        status["conditions"] = [dict(condition) for condition in status.get("conditions") or ()]
        self._record_suspension(job, status)
        is_all_counted = self._count_ended(job, now, status)
        now = tally({**job, "status": status}, owned)
        end = verdict({**job, "status": status}, now, self._seconds_active(status))
        again: float | None = None
        try:
            if end is None:
                again = self._manage(job, now, group)
            elif is_all_counted:
                self._finish(now, status, end)
        finally:  # a rejected creation must not lose what was counted
            self._write_status(key, job, status)
        if not is_all_counted:
            return 0.0
        return None if end is not None else _earliest(again, self._seconds_to_deadline(job, status))

    def _record_suspension(self, job: Object, status: Object) -> None:
        now = self._context.timestamp()
        if job["spec"].get("suspend"):
            status.pop("startTime", None)
            set_condition(status, "Suspended", "True", now, reason="JobSuspended", message="Job suspended")
            return
        if has_condition(status, "Suspended"):
            set_condition(status, "Suspended", "False", now, reason="JobResumed", message="Job resumed")
        status.setdefault("startTime", now)

    def _count_ended(self, job: Object, now: JobTally, status: Object) -> bool:
        """Count a batch of ended pods into the status; True if none is left uncounted."""
        ended = [*now.new_succeeded, *now.new_failed]
        has_policy = any(job["spec"].get(field) is not None for field in _FAILURE_POLICIES)
        good: list[PodFacts] = []
        failures = 0
        for pod in ended[:BATCH]:
            obj = self._context.read(pod.key) if has_policy and pod.phase != "Succeeded" else None
            if not self._pods.release(pod):
                continue
            if pod.phase == "Succeeded":
                good.append(pod)
            else:
                failures += obj is None or self._count_failure(job, obj, pod, status)
        self._note_failures(job, failures, len(good))
        status["failed"] = (status.get("failed") or 0) + failures
        if is_indexed(job):
            indexes = parse_indexes(status.get("completedIndexes") or "")
            indexes.update(index for pod in good if (index := index_of(pod)) is not None)
            status["completedIndexes"], status["succeeded"] = format_indexes(indexes), len(indexes)
        else:
            status["succeeded"] = (status.get("succeeded") or 0) + len(good)
        return len(ended) <= BATCH

    def _count_failure(self, job: Object, pod: Object, facts: PodFacts, status: Object) -> bool:
        """Do as the policies say about a failed pod; False if it does not count."""
        failure = judge_failure(job, pod)
        if failure.action == "Ignore":
            return False
        if failure.action == "FailJob" and not has_condition(status, INTERIM["Complete"]):
            now = self._context.timestamp()
            reason = "PodFailurePolicy"
            set_condition(status, INTERIM["Failed"], "True", now, reason=reason, message=failure.message)
        index, limit = index_of(facts), job["spec"].get("backoffLimitPerIndex")
        if index is None or limit is None:
            return True
        count = failures_before(pod) + 1
        if failure.action == "FailIndex" or count > limit:
            indexes = parse_indexes(status.get("failedIndexes") or "") | {index}
            status["failedIndexes"] = format_indexes(indexes)
        else:
            until = self._context.clock.monotonic() + _delay_after(count)
            self._index_backoffs.setdefault(job["metadata"]["uid"], {})[index] = _Backoff(count, until)
        return True

    def _note_failures(self, job: Object, failures: int, successes: int) -> None:
        uid = job["metadata"]["uid"]
        if successes:
            self._backoffs.pop(uid, None)
        if failures and job["spec"].get("backoffLimitPerIndex") is None:
            known = self._backoffs.get(uid)
            total = failures + (known.failures if known else 0)
            self._backoffs[uid] = _Backoff(total, self._context.clock.monotonic() + _delay_after(total))

    def _finish(self, now: JobTally, status: Object, end: tuple[str, str, str]) -> None:
        condition, reason, message = end
        time = self._context.timestamp()
        discarded = now.owned.active_pods()
        for pod in discarded:
            self._pods.discard(pod)
        if condition == "Failed":
            status["failed"] += len(discarded)
        set_condition(status, INTERIM[condition], "True", time, reason=reason, message=message)
        if now.owned.active or now.owned.leaving:
            return  # the last of them brings the Job back here
        if condition == "Complete":
            status["completionTime"] = time
        set_condition(status, condition, "True", time, reason=reason, message=message)

    def _manage(self, job: Object, now: JobTally, group: str) -> float | None:
        """Create or delete a batch of pods; returns when to go on with it, None if the number is right."""
        waited_for = now.owned.leaving if job["spec"].get("podReplacementPolicy") == "Failed" else 0
        missing = wanted_active(job, now) - now.owned.active
        if missing < 0:
            for pod in least_missed(now.owned.active_pods())[: min(-missing, BATCH)]:
                self._pods.discard(pod)
            return 0.0 if -missing > BATCH else None
        missing -= waited_for
        if missing <= 0 or job["spec"].get("suspend"):
            return None
        uid, clock = job["metadata"]["uid"], self._context.clock
        backoff = self._backoffs.get(uid)
        wait = 0.0 if backoff is None else backoff.until - clock.monotonic()
        if wait > 0:
            return wait
        count = min(missing, BATCH)
        indexes: Sequence[int | None] = [None] * count
        backoffs = self._index_backoffs.get(uid, {})
        waits = {index: one.until - clock.monotonic() for index, one in backoffs.items()}
        delayed = {index: wait for index, wait in waits.items() if wait > 0}
        if is_indexed(job):
            indexes = free_indexes(job, now, count, delayed)
        self._pods.create(job, indexes, group, {index: one.failures for index, one in backoffs.items()})
        return pause_after_batch(missing) if missing > BATCH else min(delayed.values(), default=None)

    def _write_status(self, key: Key, job: Object, status: Object) -> None:
        owned = self._context.index.owned_pods(job["metadata"]["uid"])
        status["active"], status["ready"], status["terminating"] = owned.active, owned.ready, owned.leaving
        for name in ("active", "succeeded", "failed", "conditions", "completedIndexes", "failedIndexes"):
            if not status.get(name):
                status.pop(name, None)
        if status != job.get("status"):
            job["status"] = status
            # A Job that has just ended is looked at once more: it may have a ttlSecondsAfterFinished.
            self._being_written = None if _is_finished(job) else key
            try:
                self._context.write_status(key, job)
            finally:
                self._being_written = None

    def _seconds_active(self, status: Object) -> float | None:
        start = status.get("startTime")
        return None if start is None else -self._context.seconds_until(start, 0.0)

    def _seconds_to_deadline(self, job: Object, status: Object) -> float | None:
        deadline, start = job["spec"].get("activeDeadlineSeconds"), status.get("startTime")
        if deadline is None or start is None or _is_finished(job):
            return None
        return max(self._context.seconds_until(start, deadline), 0.0)

    def _expire(self, job: Object) -> float | None:
        ttl, status = job["spec"].get("ttlSecondsAfterFinished"), job.get("status") or {}
        end = find_condition(status, "Complete") or find_condition(status, "Failed")
        facts = self._context.index.by_uid(job["metadata"]["uid"])
        if ttl is None or end is None or facts is None or facts.is_deleting:
            return None
        wait = self._context.seconds_until(end["lastTransitionTime"], ttl)
        if wait > 0:
            return wait
        self._context.delete(facts, propagationPolicy="Foreground")
        return None


def _counts_as_before(seen: ObservedChange) -> bool:
    """Whether the change of a pod (it got a node, say) is none that its Job counts by."""
    old, new = seen.old, seen.new
    if not isinstance(old, PodFacts) or not isinstance(new, PodFacts) or old.uid != new.uid:
        return False
    before = (old.phase, old.is_ready, old.is_deleting, old.restarts, old.controller)
    return before == (new.phase, new.is_ready, new.is_deleting, new.restarts, new.controller)


def _delay_after(failures: int) -> float:
    return min(_FIRST_BACKOFF_SECONDS * 2.0 ** min(failures - 1, 10), _LONGEST_BACKOFF_SECONDS)


def _is_finished(job: Object) -> bool:
    status = job.get("status") or {}
    return has_condition(status, "Complete") or has_condition(status, "Failed")


def _earliest(*times: float | None) -> float | None:
    return min((time for time in times if time is not None), default=None)
