"""Change the spec or the finalizers of a Workload."""

from __future__ import annotations

from typing import Any, ClassVar

from pilotage.calls.merge_patch import MergePatch
from pilotage.model import KINDS


class WorkloadChange(MergePatch):
    """PATCH workloads."""

    __slots__ = ()

    kind: ClassVar[str] = "workload_change"

    def __init__(self, namespace: str, name: str, uid: str, patch: dict[str, Any]) -> None:
        super().__init__(KINDS["workloads"], namespace, name, uid, patch)
