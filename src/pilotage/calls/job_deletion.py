"""Delete a Job that is not wanted any more, with its pods."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance, is_not_found
from pilotage.model import KINDS
from pilotage.model.workloads import Job


class JobDeletion(ApiCall):
    """DELETE jobs; one that is gone already is no error."""

    __slots__ = ("_job",)

    kind: ClassVar[str] = "job_deletion"
    lane: ClassVar[Lane] = Lane.EVICT
    relevance: ClassVar[int] = Relevance.DELETION
    is_repeatable: ClassVar[bool] = True

    def __init__(self, job: Job) -> None:
        self._job = job

    @property
    def object_key(self) -> str:
        return f"{self._job.uid}/{self.kind}"

    async def perform(self, writer: ApiWriter) -> None:
        job = self._job
        options = {"preconditions": {"uid": job.uid}, "propagationPolicy": "Background"}
        try:
            await writer.delete(KINDS["jobs"], job.namespace, job.name, msgspec.json.encode(options))
        except Exception as error:
            if not is_not_found(error):
                raise
