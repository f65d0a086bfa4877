"""Evict a pod for the sake of a more important one: say why in its status, then delete it.

Not the eviction subresource: disruption budgets were considered when the victim was chosen, and are advice here.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance, is_not_found
from pilotage.calls.pod_status import PodCondition, PodStatusPatch
from pilotage.model import KINDS, Pod


class VictimEviction(ApiCall):
    """PATCH pods/status with the condition DisruptionTarget, then DELETE; a pod that is gone already is no error."""

    __slots__ = ("_condition", "_deleted", "_pod")

    kind: ClassVar[str] = "victim_eviction"
    lane: ClassVar[Lane] = Lane.EVICT
    relevance: ClassVar[Relevance] = Relevance.DELETION

    def __init__(self, pod: Pod, condition: PodCondition) -> None:
        self._pod = pod
        self._condition = condition
        self._deleted: list[str] = []

    @property
    def was_there(self) -> bool:
        """Was it this call, or one that it was merged with, that deleted the pod?"""
        return bool(self._deleted)

    @property
    def object_key(self) -> str:
        return self._pod.uid

    def merged_with(self, newer: ApiCall) -> ApiCall:
        """Two preemptors may want the same pod to go: it goes once, and both are told the same."""
        assert isinstance(newer, VictimEviction)
        newer._deleted = self._deleted
        return self

    async def perform(self, writer: ApiWriter) -> None:
        pod = self._pod
        # A pod that was recreated under the same name is nobody's victim.
        options = msgspec.json.encode({"preconditions": {"uid": pod.uid}})
        try:
            await PodStatusPatch(pod, self._condition, None).perform(writer)
            await writer.delete(KINDS["pods"], pod.namespace, pod.name, options)
        except Exception as error:
            if not is_not_found(error):
                raise
            return
        self._deleted.append(pod.uid)
