"""What is deleted when the time for which it is kept is over."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.jobs.adapters import marks
from pilotage.jobs.configuration.kinds import WorkloadRetention
from pilotage.jobs.controller.objects import Objects
from pilotage.jobs.controller.retention import Retention, removal
from pilotage.jobs.controller.steps import PatchObject, RemoveJob, RemovePod, RemoveWorkload
from pilotage.model import KINDS
from pilotage.model.kueue import Workload
from pilotage.testing import VirtualClock
from pilotage.testing.builders import pod

SINCE = "2026-01-01T00:00:00Z"
DEACTIVATED = {"type": "Evicted", "status": "True", "reason": "DeactivatedDueToRequeuingLimitExceeded"}
FINISHED = {"type": "Finished", "status": "True", "reason": "Succeeded"}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}


def workload(condition: dict[str, Any], since: str | None = SINCE, **metadata: Any) -> Workload:
    shown = {**condition, "message": "why", **({"lastTransitionTime": since} if since else {})}
    found = KINDS["workloads"].decode(
        msgspec.json.encode(
            {
                "metadata": {"name": "w", "namespace": "ns", "uid": "w", "resourceVersion": "1", **metadata},
                "spec": {"active": condition is FINISHED, "podSets": []},
                "status": {"conditions": [shown]},
            }
        )
    )
    assert isinstance(found, Workload)
    return found


def objects(*found: tuple[str, Any]) -> Objects:
    made = Objects()
    for kind, obj in found:
        made.put(kind, obj)
    return made


def job(**metadata: Any) -> Any:
    return KINDS["jobs"].decode(
        msgspec.json.encode({"metadata": {"name": "j", "namespace": "ns", "uid": "j", **metadata}})
    )


def member(name: str) -> Any:
    return pod(name).namespace("ns").uid(name).label(marks.QUEUE_NAME, "lq").label(marks.GROUP_NAME, "g")


def shown(*arguments: Any) -> list[str]:
    return [f"{type(step).__name__} {step.subject.name}" for step in removal(*arguments)]


@pytest.mark.parametrize(
    ("over", "known", "expected"),
    [
        pytest.param(workload(FINISHED), objects(), ["RemoveWorkload w"], id="finished"),
        pytest.param(
            workload(FINISHED, finalizers=[marks.IN_USE]),
            objects(),
            ["RemoveWorkload w", "PatchObject w"],
            id="finished and held by us",
        ),
        pytest.param(
            workload(FINISHED, finalizers=[marks.IN_USE], deletionTimestamp=SINCE),
            objects(),
            ["PatchObject w"],
            id="finished and being deleted",
        ),
        pytest.param(workload(DEACTIVATED), objects(), ["RemoveWorkload w"], id="deactivated without an owner"),
        pytest.param(
            workload(DEACTIVATED, ownerReferences=[JOB]), objects(("Job", job())), ["RemoveJob j"], id="of a Job"
        ),
        pytest.param(
            workload(DEACTIVATED, ownerReferences=[JOB]),
            objects(("Job", job(deletionTimestamp=SINCE))),
            [],
            id="of a Job that is being deleted",
        ),
        pytest.param(workload(DEACTIVATED, ownerReferences=[JOB]), objects(), [], id="of a Job that is gone"),
        pytest.param(
            workload(DEACTIVATED, labels={marks.GROUP_NAME: "g"}),
            objects(("Pod", member("a").build()), ("Pod", member("b").terminating().build())),
            ["RemovePod a"],
            id="of a pod group",
        ),
    ],
)
def test_what_is_deleted(over: Workload, known: Objects, expected: list[str]) -> None:
    assert shown(over, known) == expected
    assert all(isinstance(step, RemoveWorkload | RemoveJob | RemovePod | PatchObject) for step in removal(over, known))


def test_a_workload_is_due_after_its_time_and_looked_at_again_later() -> None:
    clock = VirtualClock()
    retention = Retention(WorkloadRetention(after_finished=60.0), clock)
    over = workload(FINISHED)
    retention.see(over)
    due = retention.next_due()
    assert due is not None
    clock.step(max(due - clock.time(), 0.0))
    assert retention.is_over(over) and retention.take_due() == ["ns/w"]
    assert retention.next_due() == clock.time() + 60.0, "a deletion that failed is tried again"
    retention.forget("ns/w")
    assert retention.next_due() is None


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param(workload(FINISHED, since=None), id="without a time"),
        pytest.param(workload(DEACTIVATED), id="no such policy"),
    ],
)
def test_what_has_no_end_is_kept(kept: Workload) -> None:
    retention = Retention(WorkloadRetention(after_finished=60.0), VirtualClock())
    retention.see(kept)
    assert retention.next_due() is None and not retention.is_over(kept)
