"""The plan of a Job: for each situation the next steps, and none that would be wrong in it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.jobs.adapters import batch_job, marks
from pilotage.jobs.adapters.pod_set_info import pod_set_infos
from pilotage.jobs.adapters.workload_draft import Drafting, DraftProblem, PriorityClasses, job_draft
from pilotage.jobs.controller.job_plan import job_steps
from pilotage.jobs.controller.steps import (
    PatchObject,
    RecordEvent,
    ReportFinished,
    ReportPodsReady,
    ReportReclaimable,
    Step,
)
from pilotage.model import KINDS
from pilotage.model.kueue import ResourceFlavor, ResourceFlavorSpec, Workload
from pilotage.model.meta import ObjectMeta
from pilotage.model.workloads import Job

FLAVORS = {
    "spot": ResourceFlavor(metadata=ObjectMeta(name="spot"), spec=ResourceFlavorSpec(node_labels={"pool": "spot"}))
}
STARTED = "2026-01-01T00:00:00Z"


def job(*, suspend: bool = True, parallelism: int = 2, steered: bool = False, status: Any = None, **meta: Any) -> Job:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    labels = {marks.POD_SET: "main"} if steered else {}
    obj = {
        "metadata": {
            "name": "j",
            "namespace": "ns",
            "uid": "u",
            "resourceVersion": "1",
            "labels": {marks.QUEUE_NAME: "lq"},
            **meta,
        },
        "spec": {
            "suspend": suspend,
            "parallelism": parallelism,
            "completions": 4,
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "nodeSelector": {"pool": "spot"} if steered else {}},
            },
        },
        "status": status or {},
    }
    decoded = KINDS["jobs"].decode(msgspec.json.encode(obj))
    assert isinstance(decoded, Job)
    return decoded


def workload(*true: str, active: bool = True, leaving: bool = False, count: int = 2, **status: Any) -> Workload:
    draft = job_draft(job(), PriorityClasses(), "lq")
    assert not isinstance(draft, DraftProblem)
    manifest = draft.manifest()
    manifest["metadata"] |= {"uid": "w", "resourceVersion": "5"}
    if leaving:
        manifest["metadata"]["deletionTimestamp"] = STARTED
    manifest["spec"]["active"] = active
    if "QuotaReserved" in true:
        assignment = {"name": "main", "flavors": {"cpu": "spot"}, "count": count}
        status["admission"] = {"clusterQueue": "cq", "podSetAssignments": [assignment]}
    status["conditions"] = [{"type": one, "status": "True", "reason": one} for one in true]
    decoded = KINDS["workloads"].decode(msgspec.json.encode({**manifest, "status": status}))
    assert isinstance(decoded, Workload)
    return decoded


RESERVED = ("QuotaReserved",)
ADMITTED = ("QuotaReserved", "Admitted")
EVICTED = ("QuotaReserved", "Admitted", "Evicted")


def steps(one: Job, its_workload: Workload | None) -> list[Step]:
    return list(job_steps(one, its_workload, Drafting(lambda: job_draft(one, PriorityClasses(), "lq")), FLAVORS))


def names(found: list[Step]) -> list[str]:
    """Kinds of steps; a change with what it changes."""
    told = []
    for step in found:
        if isinstance(step, PatchObject):
            what = "workload" if isinstance(step.subject, Workload) else "job"
            part = step.subresource or ",".join(sorted(set(step.patch) - {"metadata"})) or "finalizers"
            told.append(f"{what} {part} {step.event.reason if step.event else ''}".strip())
        else:
            told.append(type(step).__name__)
    return told


RUNNING = {"active": 2, "ready": 2, "startTime": STARTED}


@pytest.mark.parametrize(
    ("one", "its_workload", "expected"),
    [
        pytest.param(job(suspend=False), None, ["job spec Suspended"], id="submitted running"),
        pytest.param(job(), None, ["CreateWorkload"], id="submitted suspended"),
        pytest.param(job(), workload(), [], id="waits"),
        pytest.param(job(suspend=False), workload(), ["job spec Stopped"], id="runs without admission"),
        pytest.param(job(), workload(*RESERVED), [], id="reserved waits for checks"),
        pytest.param(job(), workload(*ADMITTED), ["job spec Started"], id="admitted"),
        pytest.param(
            job(status={"startTime": STARTED}), workload(*ADMITTED), ["job status"], id="admitted with a start time"
        ),
        pytest.param(job(steered=True), workload(*ADMITTED), ["job spec"], id="admitted while still steered"),
        pytest.param(
            job(suspend=False, steered=True, status=RUNNING), workload(*ADMITTED), ["ReportPodsReady"], id="runs"
        ),
        pytest.param(
            job(suspend=False, status=RUNNING), workload(*ADMITTED), ["job spec Stopped"], id="let go by hand"
        ),
        pytest.param(
            job(suspend=False, steered=True, parallelism=3), workload(*ADMITTED), ["RemoveWorkload"], id="resized"
        ),
        pytest.param(
            job(suspend=False, steered=True, status=RUNNING), workload(*EVICTED), ["job spec Stopped"], id="evicted"
        ),
        pytest.param(
            job(steered=True, status={"active": 2, "startTime": STARTED}),
            workload(*EVICTED),
            ["job status"],
            id="evicted, pods on their way out",
        ),
        pytest.param(job(steered=True), workload(*EVICTED), ["job spec", "ReportPodsGone"], id="evicted, pods gone"),
        pytest.param(job(), workload(*EVICTED), ["ReportPodsGone"], id="evicted and restored"),
        pytest.param(
            job(suspend=False, steered=True), workload(*ADMITTED, active=False), ["job spec Stopped"], id="deactivated"
        ),
        pytest.param(job(parallelism=1), workload(), ["workload spec UpdatedWorkload"], id="changed while it waits"),
        pytest.param(job(parallelism=1), workload(*RESERVED), ["RemoveWorkload"], id="changed while reserved"),
        pytest.param(
            job(suspend=False, steered=True), workload(*ADMITTED, leaving=True), ["job spec Stopped"], id="leaving"
        ),
        pytest.param(job(steered=True), workload(leaving=True), ["job spec"], id="leaving, not restored yet"),
        pytest.param(job(), workload(leaving=True), ["workload finalizers"], id="leaving, restored"),
        pytest.param(job(), workload("Finished"), ["workload finalizers"], id="finished"),
        pytest.param(job(suspend=False, deletionTimestamp=STARTED), workload(*ADMITTED), [], id="job is being deleted"),
        pytest.param(
            job(deletionTimestamp=STARTED), workload(leaving=True), ["workload finalizers"], id="foreground deletion"
        ),
    ],
)
def test_next_steps(one: Job, its_workload: Workload | None, expected: list[str]) -> None:
    assert names(steps(one, its_workload)) == expected


def test_the_end_is_reported_with_its_reason() -> None:
    ended = {"conditions": [{"type": "Failed", "status": "True", "message": "too many failures"}]}
    [step] = steps(job(suspend=False, steered=True, status=ended), workload(*ADMITTED))
    assert isinstance(step, ReportFinished) and (step.reason, step.message) == ("Failed", "too many failures")
    assert steps(job(status=ended), None) == [], "a job that has ended needs no workload any more"


def test_readiness_and_spare_pods_are_reported() -> None:
    status = {"active": 1, "ready": 1, "succeeded": 3, "startTime": STARTED}
    told = steps(job(suspend=False, steered=True, status=status), workload(*ADMITTED))
    assert told == [
        ReportPodsReady("ns/" + workload().name, True),
        ReportReclaimable("ns/" + workload().name, {"main": 1}),
    ]


def test_a_missing_class_is_a_warning_and_no_workload() -> None:
    one = job(labels={marks.QUEUE_NAME: "lq", marks.PRIORITY_CLASS: "none"})
    [step] = steps(one, None)
    assert isinstance(step, RecordEvent) and (step.type, step.reason) == ("Warning", "WorkloadPriorityClassNotFound")


def test_the_start_follows_the_admission() -> None:
    admitted = workload(*ADMITTED)
    [step] = steps(job(), admitted)
    infos = pod_set_infos(admitted, FLAVORS)
    assert isinstance(step, PatchObject) and isinstance(infos, list)
    assert step.patch == batch_job.start_patch(job(), infos[0])
    assert step.patch["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "spot"}


def test_contradicting_checks_fail_the_workload() -> None:
    checks = [
        {"name": name, "state": "Ready", "podSetUpdates": [{"name": "main", "nodeSelector": {"zone": name}}]}
        for name in ("a", "b")
    ]
    [step] = steps(job(), workload(*ADMITTED, admissionChecks=checks))
    assert isinstance(step, ReportFinished) and step.reason == "FailedToStart"
    assert 'zone is to be "a" and "b"' in step.message
