"""Delete a Workload that stands for nothing any more."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance, is_not_found
from pilotage.model import KINDS
from pilotage.model.kueue import Workload


class WorkloadDeletion(ApiCall):
    """DELETE workloads; one that is gone already is no error."""

    __slots__ = ("_workload",)

    kind: ClassVar[str] = "workload_deletion"
    lane: ClassVar[Lane] = Lane.EVICT
    relevance: ClassVar[int] = Relevance.DELETION
    is_repeatable: ClassVar[bool] = True

    def __init__(self, workload: Workload) -> None:
        self._workload = workload

    @property
    def object_key(self) -> str:
        return f"{self._workload.uid}/{self.kind}"

    async def perform(self, writer: ApiWriter) -> None:
        workload = self._workload
        options = msgspec.json.encode({"preconditions": {"uid": workload.uid}})
        try:
            await writer.delete(KINDS["workloads"], workload.namespace, workload.name, options)
        except Exception as error:
            if not is_not_found(error):
                raise
