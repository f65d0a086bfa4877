"""CronJobs: a Job at each time of a schedule, unless the last one still runs and may not be run beside.

At most one Job is made per call, for the latest time that was missed; times before it are gone, as are those that are
later than `startingDeadlineSeconds` ago. The name of a Job comes from its time, so that none is made twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from pilotage.clock import parse_rfc3339, rfc3339
from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.life.controllers.conditions import find_condition, has_condition
from pilotage.sandbox.life.controllers.controller import (
    ControllerContext,
    Due,
    Interest,
    Object,
    controller_reference,
    itself,
    record_event,
)
from pilotage.sandbox.life.facts import ObjectFacts
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.rules.cron_schedule import CronSchedule, ScheduleError, parse_schedule
from pilotage.sandbox.storage.store import Key

CRON_JOBS: Final = "cronjobs.batch"

_JOBS: Final = "jobs.batch"
_SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_MOST_MISSED: Final = 10_000
"""A sandbox that slept for a year looks at no more times than this."""


class CronJobController:
    name = "cronjob"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def interests(self) -> Mapping[str, Interest]:
        return {CRON_JOBS: itself, _JOBS: _cron_job_of}

    def reconcile(self, key: Key) -> float | None:
        cron_job = self._context.read(key)
        if cron_job is None or "deletionTimestamp" in cron_job["metadata"]:
            return None
        jobs = self._jobs(cron_job)
        status: Object = dict(cron_job.get("status") or {})
        self._note_ended(status, jobs)
        self._forget_ended(cron_job, jobs)
        try:
            return self._start_if_due(key, cron_job, status, jobs)
        except ScheduleError as error:
            record_event(self._context, cron_job, "Warning", "UnparseableSchedule", str(error))
            return None
        finally:
            self._write_status(key, status)

    def _jobs(self, cron_job: Object) -> list[Object]:
        found = (f for f in self._context.index.dependents(cron_job["metadata"]["uid"]) if f.key.resource == _JOBS)
        jobs = [job for facts in found if _is_controlled(facts) and (job := self._context.read(facts.key))]
        return sorted(jobs, key=lambda job: (job["metadata"]["creationTimestamp"], job["metadata"]["name"]))

    def _note_ended(self, status: Object, jobs: Sequence[Object]) -> None:
        status["active"] = [_reference(job) for job in jobs if not _has_ended(job)]
        ends = [job["status"]["completionTime"] for job in jobs if (job.get("status") or {}).get("completionTime")]
        latest = max([*ends, status.get("lastSuccessfulTime") or ""])
        if latest:
            status["lastSuccessfulTime"] = latest

    def _forget_ended(self, cron_job: Object, jobs: Sequence[Object]) -> None:
        spec = cron_job["spec"]
        for condition, limit in (
            ("Complete", spec.get("successfulJobsHistoryLimit")),
            ("Failed", spec.get("failedJobsHistoryLimit")),
        ):
            ended = [job for job in jobs if has_condition(job.get("status") or {}, condition)]
            if limit is not None:
                for job in ended[: max(len(ended) - limit, 0)]:
                    self._delete(job)

    def _start_if_due(self, key: Key, cron_job: Object, status: Object, jobs: Sequence[Object]) -> float | None:
        """Make the Job that is due, if any; returns in how many seconds to look again."""
        spec, now = cron_job["spec"], self._context.clock.time()
        if spec.get("suspend"):
            return None
        schedule = parse_schedule(spec["schedule"], spec.get("timeZone"))
        since = parse_rfc3339(status.get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"])
        deadline = spec.get("startingDeadlineSeconds")
        earliest = since if deadline is None else max(since, now - deadline)
        due = latest_due(schedule, earliest, now)
        following = schedule.next_after(now)
        again = None if following is None else max(following - now, 0.0)
        if due is None:
            return again
        policy, active = spec.get("concurrencyPolicy"), [job for job in jobs if not _has_ended(job)]
        if active and policy == "Forbid":
            return again
        if active and policy == "Replace":
            for job in active:
                self._delete(job)
            status["active"] = []
        made = self._create(key, cron_job, due)
        if made is not None:
            status["active"] = [*(status.get("active") or ()), _reference(made)]
        status["lastScheduleTime"] = rfc3339(due)
        return again

    def _create(self, key: Key, cron_job: Object, due: float) -> Object | None:
        try:
            return self._context.api.create(_JOBS, key.namespace, new_job(cron_job, due))
        except ApiError as error:
            if error.reason == "AlreadyExists":
                return None
            record_event(self._context, cron_job, "Warning", "FailedCreate", f"Error creating job: {error.message}")
            raise

    def _delete(self, job: Object) -> None:
        facts = self._context.index.by_uid(job["metadata"]["uid"])
        if facts is not None:
            self._context.delete(facts, propagationPolicy="Background")

    def _write_status(self, key: Key, status: Object) -> None:
        if not status.get("active"):
            status.pop("active", None)
        cron_job = self._context.read(key)
        if cron_job is not None and status != cron_job.get("status"):
            cron_job["status"] = status
            self._context.write_status(key, cron_job)


def latest_due(schedule: CronSchedule, since: float, now: float) -> float | None:
    """The last time of the schedule after `since` that has come."""
    latest, at = None, since
    for _ in range(_MOST_MISSED):
        following = schedule.next_after(at)
        if following is None or following > now:
            return latest
        latest = at = following
    # There are more; times are equally far apart at that pace, so that a closer start finds the last one.
    return latest_due(schedule, now - 86_400.0, now) if now - at > 86_400.0 else latest


def new_job(cron_job: Object, due: float) -> Object:
    template, metadata = cron_job["spec"]["jobTemplate"], cron_job["metadata"]
    asked = template.get("metadata") or {}
    job: Object = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{metadata['name']}-{int(due) // 60}",
            "labels": dict(asked.get("labels") or {}),
            "annotations": {**(asked.get("annotations") or {}), _SCHEDULED: rfc3339(due)},
            "ownerReferences": [controller_reference(cron_job)],
        },
        "spec": msgspec.json.decode(msgspec.json.encode(template["spec"])),
    }
    return job


def _cron_job_of(seen: ObservedChange) -> Iterable[Due]:
    owner = seen.facts.controller
    if owner is None or owner.kind != "CronJob":
        return ()
    return (Due(Key(CRON_JOBS, seen.key.namespace, owner.name)),)


def _is_controlled(facts: ObjectFacts) -> bool:
    return facts.controller is not None and facts.controller.kind == "CronJob"


def _has_ended(job: Object) -> bool:
    status = job.get("status") or {}
    return find_condition(status, "Complete") is not None or find_condition(status, "Failed") is not None


def _reference(job: Object) -> Object:
    metadata = job["metadata"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "uid": metadata["uid"],
        "resourceVersion": metadata.get("resourceVersion", ""),
    }
