"""What the reconciler of a job wants done, as data: writes to the API server, and facts for the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pilotage.jobs.adapters.kinds.job_kind import AnyJob
from pilotage.jobs.adapters.workload_draft import WorkloadDraft
from pilotage.model.kueue import AdmissionCheck, ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload
from pilotage.model.pod import Pod

EventSubject = AnyJob | Pod | Workload | ClusterQueue | LocalQueue | Cohort | ResourceFlavor | AdmissionCheck


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """An event to be recorded."""

    subject: EventSubject
    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"
    is_recorded_once: bool = False
    """It is found again with every look at the object, and is recorded only if it differs from the last."""


@dataclass(frozen=True, slots=True)
class PatchObject:
    """Patch the object, if it still is as it was seen."""

    subject: EventSubject
    patch: dict[str, Any]
    subresource: str = ""
    event: RecordEvent | None = None
    """Recorded once it is done."""


@dataclass(frozen=True, slots=True)
class CreateWorkload:
    draft: WorkloadDraft
    event: RecordEvent | None = None


@dataclass(frozen=True, slots=True)
class RemoveWorkload:
    subject: Workload
    event: RecordEvent | None = None


@dataclass(frozen=True, slots=True)
class RemoveJob:
    subject: AnyJob
    event: RecordEvent | None = None


@dataclass(frozen=True, slots=True)
class RemovePod:
    """Delete a pod, and say in its status why."""

    subject: Pod
    reason: str
    message: str
    event: RecordEvent | None = None


@dataclass(frozen=True, slots=True)
class ReportPodsReady:
    key: str
    is_ready: bool


@dataclass(frozen=True, slots=True)
class ReportPodsGone:
    """The job of an evicted workload has stopped."""

    key: str


@dataclass(frozen=True, slots=True)
class ReportFinished:
    key: str
    reason: str
    message: str
    event: RecordEvent | None = None


@dataclass(frozen=True, slots=True)
class ReportReclaimable:
    key: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ReportReplacement:
    """Whether a pod group lacks members that have to be made anew."""

    key: str
    is_waiting: bool
    reason: str


Step = (
    RecordEvent
    | PatchObject
    | CreateWorkload
    | RemoveWorkload
    | RemoveJob
    | RemovePod
    | ReportPodsReady
    | ReportPodsGone
    | ReportFinished
    | ReportReclaimable
    | ReportReplacement
)
