"""Suspend, steer, start or restore a Job."""

from __future__ import annotations

from typing import Any, ClassVar

from pilotage.calls.merge_patch import MergePatch
from pilotage.model import KINDS
from pilotage.model.workloads import Job


class JobChange(MergePatch):
    """PATCH jobs, or jobs/status."""

    __slots__ = ()

    kind: ClassVar[str] = "job_change"

    def __init__(self, job: Job, patch: dict[str, Any], subresource: str = "") -> None:
        super().__init__(KINDS["jobs"], job.namespace, job.name, job.uid, patch, subresource)
