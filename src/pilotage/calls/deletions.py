"""Delete a Workload that stands for nothing any more, or a Job that is not wanted any more, with its pods."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance, is_not_found
from pilotage.model import KINDS
from pilotage.model.kueue import Workload
from pilotage.model.workloads import Job


class _Deletion(ApiCall):
    """DELETE just this object; one that is gone already is no error."""

    __slots__ = ("_object",)

    resource: ClassVar[str]
    options: ClassVar[Mapping[str, str]] = MappingProxyType({})
    lane: ClassVar[Lane] = Lane.EVICT
    relevance: ClassVar[int] = Relevance.DELETION
    is_repeatable: ClassVar[bool] = True

    def __init__(self, obj: Workload | Job) -> None:
        self._object = obj

    @property
    def object_key(self) -> str:
        return f"{self._object.uid}/{self.kind}"

    async def perform(self, writer: ApiWriter) -> None:
        obj = self._object
        options = msgspec.json.encode({"preconditions": {"uid": obj.uid}, **self.options})
        try:
            await writer.delete(KINDS[self.resource], obj.namespace, obj.name, options)
        except Exception as error:
            if not is_not_found(error):
                raise


class WorkloadDeletion(_Deletion):
    kind: ClassVar[str] = "workload_deletion"
    resource: ClassVar[str] = "workloads"


class JobDeletion(_Deletion):
    kind: ClassVar[str] = "job_deletion"
    resource: ClassVar[str] = "jobs"
    options: ClassVar[Mapping[str, str]] = MappingProxyType({"propagationPolicy": "Background"})
