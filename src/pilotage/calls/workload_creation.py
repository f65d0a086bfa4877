"""Create the Workload that stands for a job."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance, is_conflict
from pilotage.model import KINDS


class WorkloadCreation(ApiCall):
    """POST workloads; that it is there already is no error: its name is that of its job."""

    __slots__ = ("_manifest",)

    kind: ClassVar[str] = "workload_creation"
    lane: ClassVar[Lane] = Lane.EVICT
    relevance: ClassVar[int] = Relevance.BINDING
    is_repeatable: ClassVar[bool] = True

    def __init__(self, manifest: dict[str, Any]) -> None:
        self._manifest = manifest

    @property
    def object_key(self) -> str:
        metadata = self._manifest["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}/{self.kind}"

    async def perform(self, writer: ApiWriter) -> None:
        namespace = self._manifest["metadata"]["namespace"]
        try:
            await writer.create(KINDS["workloads"], namespace, msgspec.json.encode(self._manifest))
        except Exception as error:
            if not is_conflict(error):
                raise
