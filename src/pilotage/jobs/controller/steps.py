"""What the reconciler of a job wants done, as data: writes to the API server, and facts for the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pilotage.jobs.adapters.workload_draft import WorkloadDraft
from pilotage.model.kueue import AdmissionCheck, ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload
from pilotage.model.pod import Pod
from pilotage.model.workloads import Job

Subject = Job | Pod | Workload | ClusterQueue | LocalQueue | Cohort | ResourceFlavor | AdmissionCheck


@dataclass(frozen=True, slots=True)
class Note:
    """An event to be recorded."""

    subject: Subject
    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"
    is_told_once: bool = False
    """It is found again with every look at the object, and is told only if it differs from what was told last."""


@dataclass(frozen=True, slots=True)
class Change:
    """Patch the object, if it still is as it was seen."""

    subject: Subject
    patch: dict[str, Any]
    subresource: str = ""
    note: Note | None = None
    """Recorded once it is done."""


@dataclass(frozen=True, slots=True)
class CreateWorkload:
    draft: WorkloadDraft
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class RemoveWorkload:
    workload: Workload
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class RemoveJob:
    job: Job
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class RemovePod:
    """Delete a pod, and say in its status why."""

    pod: Pod
    reason: str
    message: str
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class TellReady:
    key: str
    is_ready: bool


@dataclass(frozen=True, slots=True)
class TellGone:
    """The job of an evicted workload has stopped."""

    key: str


@dataclass(frozen=True, slots=True)
class TellFinished:
    key: str
    reason: str
    message: str
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class TellReclaimable:
    key: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TellReplacement:
    """Whether a pod group lacks members that have to be made anew."""

    key: str
    is_waiting: bool
    reason: str


Step = (
    Note
    | Change
    | CreateWorkload
    | RemoveWorkload
    | RemoveJob
    | RemovePod
    | TellReady
    | TellGone
    | TellFinished
    | TellReclaimable
    | TellReplacement
)
