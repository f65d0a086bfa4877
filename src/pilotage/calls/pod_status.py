"""Write why a pod could not be scheduled, and which node it is nominated to, into its status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance
from pilotage.model import KINDS, Pod


@dataclass(frozen=True, slots=True)
class PodCondition:
    """A condition to be written."""

    type: str
    status: str
    reason: str
    message: str
    observed_generation: int
    now: str


class PodStatusPatch(ApiCall):
    """PATCH pods/status with what changed and nothing else."""

    __slots__ = ("_condition", "_nominated_node_name", "_pod")

    kind: ClassVar[str] = "pod_status_patch"
    lane: ClassVar[Lane] = Lane.STATUS
    relevance: ClassVar[Relevance] = Relevance.STATUS

    def __init__(self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None) -> None:
        self._pod = pod
        self._condition = condition
        self._nominated_node_name = nominated_node_name

    @property
    def object_key(self) -> str:
        return self._pod.uid

    def merged_with(self, newer: ApiCall) -> ApiCall:
        assert isinstance(newer, PodStatusPatch)
        condition = newer._condition or self._condition
        name = self._nominated_node_name if newer._nominated_node_name is None else newer._nominated_node_name
        return PodStatusPatch(newer._pod, condition, name)

    async def perform(self, writer: ApiWriter) -> None:
        status = self._changes()
        if not status:
            return
        pod = self._pod
        # The uid makes the patch fail for a recreated pod of the same name.
        patch = {"metadata": {"uid": pod.uid}, "status": status}
        await writer.patch(
            KINDS["pods"],
            pod.namespace,
            pod.name,
            msgspec.json.encode(patch),
            content_type="application/strategic-merge-patch+json",
            subresource="status",
        )

    def _changes(self) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if self._condition is not None and not self._is_known(self._condition):
            changes["conditions"] = [self._rendered(self._condition)]
        name = self._nominated_node_name
        if name is not None and name != self._pod.status.nominated_node_name:
            changes["nominatedNodeName"] = name or None
        return changes

    def _is_known(self, wanted: PodCondition) -> bool:
        known = self._pod.status.condition(wanted.type)
        return known is not None and (
            known.status,
            known.reason,
            known.message,
            known.observed_generation,
        ) == (wanted.status, wanted.reason, wanted.message, wanted.observed_generation)

    def _rendered(self, condition: PodCondition) -> dict[str, Any]:
        known = self._pod.status.condition(condition.type)
        rendered: dict[str, Any] = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "lastProbeTime": None,
        }
        if condition.observed_generation:
            rendered["observedGeneration"] = condition.observed_generation
        if known is None or known.status != condition.status:
            rendered["lastTransitionTime"] = condition.now
        return rendered
