"""Write why a pod could not be scheduled, and which node it is nominated to, into its status.

A patch names what shall be so. What is sent is the difference to what the API server has, as far as we know. It is a
strategic merge patch, which is right for any version of the pod, so that a conflict is no reason to give up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

import msgspec
from msgspec.structs import replace

from pilotage.api.calls import ApiCall, ApiWriter, Lane, ObjectChanged, Relevance, Seen
from pilotage.api.conditions import PodCondition
from pilotage.model import KINDS, Pod

STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"


class PodStatusPatch(ApiCall):
    """PATCH pods/status with what changed and nothing else."""

    __slots__ = ("_base", "_conditions", "_nomination")

    kind: ClassVar[str] = "pod_status_patch"
    lane: ClassVar[Lane] = Lane.STATUS
    relevance: ClassVar[int] = Relevance.STATUS
    is_repeatable: ClassVar[bool] = True
    retries_conflicts: ClassVar[bool] = True

    def __init__(self, pod: Pod, *conditions: PodCondition, nomination: str | None = None) -> None:
        """`pod` as all readers see it. A nomination of "" clears it, None leaves it as it is."""
        self._base = pod
        self._conditions = conditions
        self._nomination = nomination

    @property
    def object_key(self) -> str:
        return self._base.uid

    def merged_with(self, newer: ApiCall) -> ApiCall:
        assert isinstance(newer, PodStatusPatch)
        said = {condition.type for condition in newer._conditions}
        kept = [condition for condition in self._conditions if condition.type not in said]
        nomination = self._nomination if newer._nomination is None else newer._nomination
        return PodStatusPatch(self._base, *kept, *newer._conditions, nomination=nomination)

    def rebase(self, obj: Any) -> None:
        self._base = obj

    def follow(self, done: ApiCall) -> None:
        self._base = done.applied_to(self._base)

    def is_pointless(self) -> bool:
        return not self._is_renominated(self._base) and all(c.is_in(self._base) for c in self._conditions)

    def applied_to(self, obj: Any) -> Any:
        pod: Pod = obj
        changes: dict[str, Any] = {}
        new = [condition for condition in self._conditions if not condition.is_in(pod)]
        if new:
            types = {condition.type for condition in new}
            kept = (condition for condition in pod.status.conditions if condition.type not in types)
            changes["conditions"] = (*kept, *(condition.as_known() for condition in new))
        if self._is_renominated(pod):
            changes["nominated_node_name"] = self._nomination
        return replace(pod, status=replace(pod.status, **changes)) if changes else pod

    async def perform(self, writer: ApiWriter) -> str | None:
        status = self._changes()
        return version_of(await write_status(writer, self._base, status)) if status else None

    async def look(self, writer: ApiWriter) -> Seen:
        self._base = await read_pod(writer, self._base)
        return Seen(self.is_pointless(), self._base)

    def _changes(self) -> dict[str, Any]:
        pod = self._base
        changes = new_conditions(pod, self._conditions)
        if self._is_renominated(pod):
            changes["nominatedNodeName"] = self._nomination or None
        return changes

    def _is_renominated(self, pod: Pod) -> bool:
        return self._nomination is not None and self._nomination != pod.status.nominated_node_name


def new_conditions(pod: Pod, wanted: Iterable[PodCondition]) -> dict[str, Any]:
    """What of a status is to be written so that the pod has these conditions; empty if it has them."""
    new = [condition.rendered(pod) for condition in wanted if not condition.is_in(pod)]
    return {"conditions": new} if new else {}


async def write_status(writer: ApiWriter, pod: Pod, status: Mapping[str, Any]) -> bytes:
    """Patch this part of the status; returns the pod as it is then."""
    # The uid makes the patch fail for a recreated pod of the same name.
    patch = {"metadata": {"uid": pod.uid}, "status": status}
    return await writer.patch(
        KINDS["pods"],
        pod.namespace,
        pod.name,
        msgspec.json.encode(patch),
        content_type=STRATEGIC_MERGE_PATCH,
        subresource="status",
    )


async def read_pod(writer: ApiWriter, wanted: Pod) -> Pod:
    """The pod as the API server has it now; raises if it is gone, also if another one has its name."""
    kind = KINDS["pods"]
    found: Pod = kind.decode(await writer.get(kind, wanted.namespace, wanted.name))
    if found.uid != wanted.uid:
        raise ObjectChanged(f"pod {wanted.key} is another one: its UID is {found.uid}, not {wanted.uid}")
    return found


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Written(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_written = msgspec.json.Decoder(_Written)


def version_of(answer: bytes) -> str | None:
    """The resource version of the object that a write was answered with; None if there is none in it."""
    try:
        return _written.decode(answer).metadata.resource_version or None
    except msgspec.DecodeError:
        return None
