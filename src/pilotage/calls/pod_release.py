"""Let a pod go that was held back for workload queueing."""

from __future__ import annotations

from typing import Any, ClassVar

from pilotage.calls.merge_patch import MergePatch
from pilotage.model import KINDS, Pod


class PodRelease(MergePatch):
    """PATCH pods: without the gate, with the node selector and tolerations of its flavors."""

    __slots__ = ()

    kind: ClassVar[str] = "pod_release"

    def __init__(self, pod: Pod, patch: dict[str, Any]) -> None:
        super().__init__(KINDS["pods"], pod.namespace, pod.name, pod.uid, patch)
