"""Change the finalizers of a ClusterQueue, a ResourceFlavor or an AdmissionCheck."""

from __future__ import annotations

from typing import Any, ClassVar

from pilotage.calls.merge_patch import MergePatch
from pilotage.model.kinds import KindInfo


class QueueingObjectChange(MergePatch):
    """PATCH one of the objects that workload queueing reads."""

    __slots__ = ()

    kind: ClassVar[str] = "queueing_object_change"

    def __init__(self, resource: KindInfo, name: str, uid: str, patch: dict[str, Any]) -> None:
        super().__init__(resource, "", name, uid, patch)
