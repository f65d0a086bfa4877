"""The plan of a pod group: for each situation the next steps, and none that would be wrong in it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.jobs.adapters import marks, plain_pods
from pilotage.jobs.adapters.plain_pods import PodGroup
from pilotage.jobs.adapters.workload_draft import Drafting, DraftProblem, PriorityClasses, group_draft
from pilotage.jobs.controller.pod_plan import pod_steps, steps_without_pods
from pilotage.jobs.controller.steps import (
    PatchObject,
    RecordEvent,
    RemovePod,
    ReportFinished,
    ReportPodsReady,
    ReportReplacement,
    Step,
)
from pilotage.model import KINDS
from pilotage.model.kueue import ResourceFlavor, ResourceFlavorSpec, Workload
from pilotage.model.meta import ObjectMeta
from pilotage.testing.builders import PodBuilder, pod

FLAVORS = {
    name: ResourceFlavor(metadata=ObjectMeta(name=name), spec=ResourceFlavorSpec(node_labels={"pool": name}))
    for name in ("spot", "other")
}
SINCE = "2026-01-01T00:00:00Z"
QUEUED = ("QuotaReserved",)
ADMITTED = ("QuotaReserved", "Admitted")
SPOT = {"cpu": "spot"}
EVICTED = ("QuotaReserved", "Admitted", "Evicted")


def member(name: str, total: str = "2", cpu: str = "1") -> PodBuilder:
    grouped = pod(name).label(marks.QUEUE_NAME, "lq").label(marks.GROUP_NAME, "g").requests(cpu=cpu)
    return grouped.annotation(marks.GROUP_TOTAL_COUNT, total).uid(name)


def gated(name: str, total: str = "2", cpu: str = "1") -> PodBuilder:
    return member(name, total, cpu).gate(marks.GATE)


def group(*pods: PodBuilder) -> PodGroup:
    return plain_pods.group("g", [one.build() for one in pods])


WAITING = (gated("a"), gated("b"))
RUNNING = (member("a").phase("Running"), member("b").phase("Running"))


def workload(
    *true: str, active: bool = True, leaving: bool = False, held: bool = False, flavors: dict[str, str] = SPOT
) -> Workload:
    draft = group_draft(group(*WAITING), PriorityClasses())
    assert not isinstance(draft, DraftProblem)
    manifest = draft.manifest()
    manifest["metadata"] |= {"uid": "w", "resourceVersion": "5", "finalizers": [marks.IN_USE] if held else []}
    if leaving:
        manifest["metadata"]["deletionTimestamp"] = SINCE
    manifest["spec"]["active"] = active
    status: dict[str, Any] = {"conditions": [{"type": one, "status": "True", "reason": one} for one in true]}
    if "QuotaReserved" in true:
        names = [one["name"] for one in manifest["spec"]["podSets"]]
        assignments = [{"name": name, "flavors": flavors, "count": 2} for name in names]
        status["admission"] = {"clusterQueue": "cq", "podSetAssignments": assignments}
    decoded = KINDS["workloads"].decode(msgspec.json.encode({**manifest, "status": status}))
    assert isinstance(decoded, Workload)
    return decoded


def steps(members: PodGroup, its_workload: Workload | None) -> list[Step]:
    return list(pod_steps(members, its_workload, Drafting(lambda: group_draft(members, PriorityClasses())), FLAVORS))


def shown(found: list[Step]) -> list[str]:
    """Each step with what it is about."""
    return [_shown(step) for step in found]


def _shown(step: Step) -> str:
    match step:
        case PatchObject(subject=Workload()):
            return "release workload" if "finalizers" in step.patch["metadata"] else "change workload"
        case PatchObject():
            return f"start {step.subject.name}"
        case RemovePod():
            return f"delete {step.subject.name}: {step.reason}"
        case RecordEvent():
            return f"event {step.reason}"
        case ReportFinished():
            return f"finished {step.reason}"
        case ReportPodsReady():
            return f"ready {step.is_ready}"
        case ReportReplacement():
            return f"waits for replacement {step.is_waiting}: {step.reason}"
        case _:
            return type(step).__name__


SUCCEEDED = (member("a").phase("Succeeded"), member("b").phase("Succeeded"))


@pytest.mark.parametrize(
    ("pods", "its_workload", "expected"),
    [
        pytest.param(WAITING, None, ["CreateWorkload"], id="complete and gated"),
        pytest.param((gated("a"),), None, ["event WaitsForGroup"], id="a member is missing"),
        pytest.param((*WAITING, gated("c")), None, ["delete c: ExcessPod", "CreateWorkload"], id="one too many"),
        pytest.param((gated("a", "x"), gated("b", "x")), None, ["event ErrWorkloadCompose"], id="no total"),
        pytest.param(
            RUNNING, None, ["delete a: WorkloadDeleted", "delete b: WorkloadDeleted"], id="runs without a workload"
        ),
        pytest.param(SUCCEEDED, None, [], id="ended without a workload"),
        pytest.param(WAITING, workload(), [], id="waits for quota"),
        pytest.param(WAITING, workload(*ADMITTED), ["start a", "start b", "ready False"], id="admitted"),
        pytest.param(
            (*WAITING, gated("c")),
            workload(*ADMITTED),
            ["delete c: ExcessPod", "start a", "start b", "ready False"],
            id="admitted with one too many",
        ),
        pytest.param(
            (gated("a"), gated("b", cpu="7")),
            workload(*ADMITTED),
            ["start a", "event ErrWorkloadCompose", "ready False"],
            id="admitted and a member has another shape",
        ),
        pytest.param(RUNNING, workload(*ADMITTED), ["ready False"], id="admitted and started"),
        pytest.param(
            WAITING,
            workload(*ADMITTED, flavors={"cpu": "spot", "memory": "other"}),
            ["finished FailedToStart"],
            id="flavors conflict",
        ),
        pytest.param(SUCCEEDED, workload(*ADMITTED), ["finished Succeeded"], id="all succeeded"),
        pytest.param(SUCCEEDED, workload(*ADMITTED, "Finished", held=True), ["release workload"], id="finished"),
        pytest.param(SUCCEEDED, workload(*ADMITTED, "Finished"), [], id="finished and let go"),
        pytest.param(
            RUNNING,
            workload(*EVICTED),
            ["waits for replacement True: Evicted", "delete a: Evicted", "delete b: Evicted"],
            id="evicted while running",
        ),
        pytest.param(
            WAITING,
            workload(*EVICTED, "WaitingForReplacementPods"),
            ["waits for replacement False: Replaced", "ReportPodsGone"],
            id="replaced after an eviction",
        ),
        pytest.param(
            RUNNING,
            workload(active=False),
            ["waits for replacement True: Deactivated", "delete a: NotAdmitted", "delete b: NotAdmitted"],
            id="deactivated while running",
        ),
        pytest.param(
            RUNNING,
            workload(*ADMITTED, leaving=True, held=True),
            ["delete a: WorkloadDeleted", "delete b: WorkloadDeleted"],
            id="its workload is being deleted while it runs",
        ),
        pytest.param(
            SUCCEEDED, workload(*ADMITTED, leaving=True, held=True), ["release workload"], id="deleted after its end"
        ),
        pytest.param(SUCCEEDED, workload(*ADMITTED, leaving=True), [], id="deleted and let go"),
    ],
)
def test_the_next_steps(pods: tuple[PodBuilder, ...], its_workload: Workload | None, expected: list[str]) -> None:
    assert shown(steps(group(*pods), its_workload)) == expected


def test_a_pod_that_is_being_deleted_is_not_deleted_again() -> None:
    terminating = member("a").phase("Running").terminating()
    assert shown(steps(group(terminating, RUNNING[1]), None)) == ["delete b: WorkloadDeleted"]


@pytest.mark.parametrize(
    ("its_workload", "expected"),
    [
        pytest.param(
            workload(*EVICTED), ["waits for replacement True: Evicted", "ReportPodsGone"], id="evicted with quota"
        ),
        pytest.param(workload("Evicted"), ["waits for replacement True: Evicted"], id="evicted, quota is free"),
        pytest.param(workload("Evicted", "WaitingForReplacementPods"), [], id="waits already"),
        pytest.param(workload(*ADMITTED, held=True), ["RemoveWorkload", "release workload"], id="not wanted any more"),
        pytest.param(workload(*EVICTED, leaving=True, held=True), ["release workload"], id="being deleted"),
    ],
)
def test_the_next_steps_when_all_pods_are_gone(its_workload: Workload, expected: list[str]) -> None:
    assert shown(list(steps_without_pods(its_workload))) == expected


def test_the_event_of_a_mistake_says_what_is_wrong() -> None:
    [event] = steps(group(gated("a", "2"), gated("b", "3")), None)
    assert isinstance(event, RecordEvent)
    assert event.type == "Warning" and marks.GROUP_TOTAL_COUNT in event.message
