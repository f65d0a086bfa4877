"""What the policies of a Job say about a pod that failed and about the indexes that are done: pure decisions.

`podFailurePolicy` says for each failed pod whether it counts, ends its index or ends the Job; the first rule that
matches decides. `successPolicy` says which completed indexes are enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pilotage.sandbox.life.controllers.completion_indexes import parse_indexes

Object: TypeAlias = dict[str, Any]
Action: TypeAlias = Literal["Count", "Ignore", "FailIndex", "FailJob"]

INDEX_FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"


class PodFailure(NamedTuple):
    """What a failed pod means to its Job."""

    action: Action
    message: str = ""
    """Why the Job fails."""


_COUNTED: Final = PodFailure("Count")


def judge_failure(job: Object, pod: Object) -> PodFailure:
    """What the failure policy says about this pod, which has failed."""
    metadata = pod["metadata"]
    name = f"{metadata['namespace']}/{metadata['name']}"
    for index, rule in enumerate((job["spec"].get("podFailurePolicy") or {}).get("rules") or ()):
        action: Action = rule["action"]
        if rule.get("onExitCodes") is not None:
            status = _container_with_code(pod, rule["onExitCodes"])
            if status is None:
                continue
            code = status["state"]["terminated"]["exitCode"]
            what = f"Container {status['name']} for pod {name} failed with exit code {code}"
        else:
            condition = _matching_condition(pod, rule.get("onPodConditions") or ())
            if condition is None:
                continue
            what = f"Pod {name} has condition {condition}"
        return PodFailure(action, f"{what} matching {action} rule at index {index}")
    return _COUNTED


def success_rule(job: Object, completed: Set[int]) -> int | None:
    """The number of the success rule that the completed indexes fulfil."""
    if not completed:
        return None
    for number, rule in enumerate((job["spec"].get("successPolicy") or {}).get("rules") or ()):
        wanted, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        if wanted is None:
            if count is not None and len(completed) >= count:
                return number
            continue
        required = parse_indexes(wanted)
        done = len(required & completed)
        if required and done >= (len(required) if count is None else count):
            return number
    return None


def failures_before(pod: Object) -> int:
    """How often the index of this pod had failed before it."""
    text = (pod["metadata"].get("annotations") or {}).get(INDEX_FAILURES, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _container_with_code(pod: Object, requirement: Object) -> Object | None:
    name, values = requirement.get("containerName"), requirement.get("values") or ()
    is_in = requirement.get("operator") == "In"
    for status in _container_statuses(pod):
        code = ((status.get("state") or {}).get("terminated") or {}).get("exitCode") or 0
        if code and name in (None, status["name"]) and (code in values) == is_in:
            return status
    return None


def _container_statuses(pod: Object) -> Iterator[Object]:
    status = pod.get("status") or {}
    yield from status.get("containerStatuses") or ()
    yield from status.get("initContainerStatuses") or ()


def _matching_condition(pod: Object, patterns: Iterable[Object]) -> str | None:
    wanted = {(pattern["type"], pattern.get("status", "True")) for pattern in patterns}
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((one["type"] for one in conditions if (one["type"], one.get("status")) in wanted), None)
