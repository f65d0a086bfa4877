"""Evict a pod for the sake of a more important one: say why in its status, then delete it.

Not the eviction subresource: disruption budgets were considered when the victim was chosen, and are advice here.

The answer of the DELETE is news that the watch will bring later, perhaps much later:

    a pod with time left, or with finalizers   it is terminating, and is shown so until the watch has caught up
    any other pod, a Status, 404               it is gone
    anything else                              it was accepted; what became of the pod only the watch shows
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from pilotage.api.calls import ApiCall, ApiWriter, Lane, ObjectChanged, Relevance, Seen, is_not_found
from pilotage.api.conditions import PodCondition
from pilotage.calls.pod_status import new_conditions, read_pod, write_status
from pilotage.model import KINDS, Pod


class Departure(msgspec.Struct, eq=False):
    """What is known of a victim's leaving; shared by all calls that want the same pod to go."""

    was_there: bool = False
    """It was one of these calls that deleted the pod."""
    is_gone: bool = False
    """There is no such pod any more."""
    leaving_at: str | None = None
    """The deletion timestamp of a pod that is still there."""
    node_name: str = ""
    """Where that pod is: the watch may not have shown its binding yet, and it keeps its place until it is gone."""


class VictimEviction(ApiCall):
    """PATCH pods/status with the condition DisruptionTarget, then DELETE; a pod that is gone already is no error."""

    __slots__ = ("_condition", "_goes_first", "_pod", "departure")

    kind: ClassVar[str] = "victim_eviction"
    lane: ClassVar[Lane] = Lane.EVICT
    relevance: ClassVar[int] = Relevance.DELETION
    joins: ClassVar[bool] = True

    def __init__(self, pod: Pod, condition: PodCondition, *, goes_first: bool = False) -> None:
        self._pod = pod
        self._condition = condition
        self._goes_first = goes_first
        self.departure = Departure()

    @property
    def object_key(self) -> str:
        return self._pod.uid

    @property
    def goes_first(self) -> bool:
        return self._goes_first

    def merged_with(self, newer: ApiCall) -> ApiCall:
        """Two preemptors may want the same pod to go: it goes once, and both get the same outcome."""
        assert isinstance(newer, VictimEviction)
        newer.departure = self.departure
        self._goes_first |= newer.goes_first
        return self

    def admits(self, newer: ApiCall) -> bool:
        self.merged_with(newer)
        return True

    def rebase(self, obj: Pod) -> None:
        self._pod = obj

    def applied_to(self, obj: Any) -> Any:
        """Nothing is anticipated: the API server may reject it."""
        pod: Pod = obj
        if self.departure.leaving_at is None or pod.is_terminating:
            return pod
        others = (known for known in pod.status.conditions if known.type != self._condition.type)
        status = replace(pod.status, conditions=(*others, self._condition.as_known()))
        node_name = pod.node_name or self.departure.node_name
        return replace(pod, deletion_timestamp=self.departure.leaving_at, node_name=node_name, status=status)

    async def perform(self, writer: ApiWriter) -> str | None:
        pod = self._pod
        # A pod that was recreated under the same name is no victim.
        options = msgspec.json.encode({"preconditions": {"uid": pod.uid}})
        try:
            status = new_conditions(pod, [self._condition])
            if status:
                await write_status(writer, pod, status)
            answer = await writer.delete(KINDS["pods"], pod.namespace, pod.name, options)
        except Exception as error:
            if not is_not_found(error):
                raise
            self.departure.is_gone = True
            return None
        self.departure.was_there = True
        return self._learn(answer)

    def _learn(self, answer: bytes) -> str | None:
        """Take in what the DELETE was answered; returns the version of a pod that is still there."""
        try:
            pod = _answer.decode(answer)
        except msgspec.DecodeError:
            return None
        self.departure.is_gone = pod.is_gone
        if pod.is_gone:
            return None
        self.departure.leaving_at = pod.metadata.deletion_timestamp
        self.departure.node_name = pod.spec.node_name
        return pod.metadata.resource_version or None

    async def look(self, writer: ApiWriter) -> Seen:
        """We asked for it and got no answer: if the pod goes, that is taken for the answer."""
        try:
            self._pod = await read_pod(writer, self._pod)
        except Exception as error:
            if not is_not_found(error) and not isinstance(error, ObjectChanged):
                raise
            self.departure.was_there = self.departure.is_gone = True
            return Seen(True)
        if not self._pod.is_terminating:
            return Seen(False)
        self.departure.was_there, self.departure.leaving_at = True, self._pod.deletion_timestamp
        self.departure.node_name = self._pod.node_name
        return Seen(True, self._pod)


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] = msgspec.field(default_factory=list)


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Answer(msgspec.Struct):
    kind: str
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)

    @property
    def is_gone(self) -> bool:
        if self.kind != "Pod":
            return self.kind == "Status"
        return not self.metadata.deletion_grace_period_seconds and not self.metadata.finalizers


_answer = msgspec.json.Decoder(_Answer)
