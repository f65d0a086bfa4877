"""Where a Job stands: what its pods and its own status say together, without any effects.

The status remembers pods that are long gone; a pod that ended is counted into it once, at the moment when its tracking
finalizer is removed. So at any time: ended so far = what the status says + ended pods that still carry the finalizer.

A pod that is being deleted before it ended counts as failed (with podReplacementPolicy Failed: only once it has ended).
How a Job ends is written twice: first that it will (FailureTarget, SuccessCriteriaMet), then, when no pod is left that
is still ending, that it has (Failed, Complete).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pilotage.sandbox.life.controllers.completion_indexes import parse_indexes
from pilotage.sandbox.life.controllers.conditions import find_condition
from pilotage.sandbox.life.controllers.job_policies import success_rule
from pilotage.sandbox.life.facts import PodFacts
from pilotage.sandbox.life.owned_pods import OwnedPods

Object: TypeAlias = dict[str, Any]

TRACKING: Final = "batch.kubernetes.io/job-tracking"
INDEX: Final = "batch.kubernetes.io/job-completion-index"
INTERIM: Final = {"Failed": "FailureTarget", "Complete": "SuccessCriteriaMet"}
"""What says how a Job ends while its last pods are still ending."""


@dataclass(frozen=True, slots=True)
class JobTally:
    """The pods of a Job by what they mean to it."""

    owned: OwnedPods
    new_succeeded: Sequence[PodFacts]
    """Ended well and not counted in the status yet."""
    new_failed: Sequence[PodFacts]
    completed_indexes: frozenset[int]
    """Of an Indexed Job, with those of `new_succeeded`."""
    succeeded: int
    """All that ever succeeded; of an Indexed Job, the number of completed indexes."""
    failed: int
    """All that ever failed."""
    failed_indexes: frozenset[int] = frozenset()
    """Of a Job with a limit per index: those that are given up."""


def tally(job: Object, owned: OwnedPods) -> JobTally:
    status: Object = job.get("status") or {}
    replaces_only_failed = job["spec"].get("podReplacementPolicy") == "Failed"
    uncounted = [pod for pod in owned.held_pods() if TRACKING in pod.finalizers]
    new_succeeded = [pod for pod in uncounted if pod.phase == "Succeeded"]
    new_failed = [pod for pod in uncounted if _has_failed(pod, replaces_only_failed)]
    indexes = parse_indexes(status.get("completedIndexes") or "") if is_indexed(job) else set()
    succeeded = (status.get("succeeded") or 0) + len(new_succeeded)
    if is_indexed(job):
        indexes.update(index for pod in new_succeeded if (index := index_of(pod)) is not None)
        succeeded = len(indexes)
    return JobTally(
        owned=owned,
        new_succeeded=new_succeeded,
        new_failed=new_failed,
        completed_indexes=frozenset(indexes),
        succeeded=succeeded,
        failed=(status.get("failed") or 0) + len(new_failed),
        failed_indexes=frozenset(parse_indexes(status.get("failedIndexes") or "")),
    )


def is_indexed(job: Object) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def index_of(pod: PodFacts) -> int | None:
    text = pod.labels.get(INDEX, "")
    return int(text) if text.isdigit() else None


def wanted_active(job: Object, now: JobTally) -> int:
    """How many pods should be running (or terminating, when those are waited for) at this moment."""
    spec = job["spec"]
    if spec.get("suspend"):
        return 0
    parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
    if completions is None:  # any success means that the work is done: no new pods from then on
        return min(now.owned.active, parallelism) if now.succeeded else parallelism
    return max(min(parallelism, int(completions) - now.succeeded - len(now.failed_indexes)), 0)


def free_indexes(job: Object, now: JobTally, count: int, delayed: Collection[int] = ()) -> list[int]:
    """The lowest `count` indexes that are neither done nor being worked on nor `delayed`."""
    busy: set[int | None] = {index_of(pod) for pod in now.owned.active_pods()}
    busy.update(delayed, now.failed_indexes)
    if job["spec"].get("podReplacementPolicy") == "Failed":
        busy.update(index_of(pod) for pod in now.owned.pods() if pod.is_deleting and not pod.is_finished)
    free: list[int] = []
    for index in range(job["spec"].get("completions") or 0):
        if len(free) == count:
            break
        if index not in busy and index not in now.completed_indexes:
            free.append(index)
    return free


def verdict(job: Object, now: JobTally, seconds_active: float | None) -> tuple[str, str, str] | None:
    """How the Job ends, as (condition, reason, message); None if it goes on."""
    spec = job["spec"]
    limit, deadline = spec.get("backoffLimit", 6), spec.get("activeDeadlineSeconds")
    if known := _decided(job):
        return known
    if now.failed > limit or _restarts_exceed(job, now.owned, limit):
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    if deadline is not None and seconds_active is not None and seconds_active >= deadline:
        return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
    return _verdict_on_indexes(job, now) or _verdict_on_completions(job, now)


def _decided(job: Object) -> tuple[str, str, str] | None:
    """What was decided before, while pods are still awaited."""
    for final, interim in INTERIM.items():
        condition = find_condition(job.get("status") or {}, interim)
        if condition is not None and condition.get("status") == "True":
            return final, condition.get("reason", ""), condition.get("message", "")
    return None


def _verdict_on_indexes(job: Object, now: JobTally) -> tuple[str, str, str] | None:
    spec = job["spec"]
    if not is_indexed(job):
        return None
    most, failed = spec.get("maxFailedIndexes"), len(now.failed_indexes)
    if most is not None and failed > most:
        return "Failed", "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
    rule = success_rule(job, now.completed_indexes)
    if rule is not None:
        return "Complete", "SuccessPolicy", f"Matched rules at index {rule}"
    if failed and failed + now.succeeded >= spec["completions"] and not now.owned.active:
        return "Failed", "FailedIndexes", "Job has failed indexes"
    return None


def _verdict_on_completions(job: Object, now: JobTally) -> tuple[str, str, str] | None:
    completions = job["spec"].get("completions")
    is_done = now.succeeded > 0 and not now.owned.active if completions is None else now.succeeded >= completions
    return ("Complete", "CompletionsReached", "Reached expected number of succeeded pods") if is_done else None


def _has_failed(pod: PodFacts, replaces_only_failed: bool) -> bool:
    return pod.phase == "Failed" or (pod.is_deleting and not pod.is_finished and not replaces_only_failed)


def _restarts_exceed(job: Object, owned: OwnedPods, limit: int) -> bool:
    """With restartPolicy OnFailure containers fail inside of their pod, and their restarts count."""
    if job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(pod.restarts for pod in owned.active_pods())
    return restarts > 0 and restarts >= limit
