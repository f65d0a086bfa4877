"""Evict a pod for the sake of a more important one: say why in its status, then delete it.

Not the eviction subresource: disruption budgets were considered when the victim was chosen, and are advice here.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, ObjectChanged, Relevance, Seen, is_not_found
from pilotage.api.conditions import PodCondition
from pilotage.calls.pod_status import new_conditions, read_pod, write_status
from pilotage.model import KINDS, Pod


class VictimEviction(ApiCall):
    """PATCH pods/status with the condition DisruptionTarget, then DELETE; a pod that is gone already is no error."""

    __slots__ = ("_condition", "_deleted", "_pod")

    kind: ClassVar[str] = "victim_eviction"
    lane: ClassVar[Lane] = Lane.EVICT
    relevance: ClassVar[int] = Relevance.DELETION
    joins: ClassVar[bool] = True

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

    def admits(self, newer: ApiCall) -> bool:
        self.merged_with(newer)
        return True

    def rebase(self, obj: Pod) -> None:
        self._pod = obj

    async def perform(self, writer: ApiWriter) -> None:
        pod = self._pod
        # A pod that was recreated under the same name is nobody's victim.
        options = msgspec.json.encode({"preconditions": {"uid": pod.uid}})
        try:
            status = new_conditions(pod, [self._condition])
            if status:
                await write_status(writer, pod, status)
            await writer.delete(KINDS["pods"], pod.namespace, pod.name, options)
        except Exception as error:
            if not is_not_found(error):
                raise
            return
        self._deleted.append(pod.uid)

    async def look(self, writer: ApiWriter) -> Seen:
        try:
            self._pod = await read_pod(writer, self._pod)
        except Exception as error:
            if not is_not_found(error) and not isinstance(error, ObjectChanged):
                raise
            is_going = True
        else:
            is_going = self._pod.is_terminating
        if is_going:
            # We asked for it and got no answer; that it goes is taken for the answer.
            self._deleted.append(self._pod.uid)
            return Seen(True)
        return Seen(False)
