"""Bind a pod to a node."""

from __future__ import annotations

from typing import ClassVar

from pilotage.api.calls import ApiCall, ApiWriter, Lane, ObjectChanged, Relevance, Seen
from pilotage.calls.pod_status import read_pod
from pilotage.model import Pod


class PodBinding(ApiCall):
    """POST pods/binding; the API server sets the node name and the PodScheduled condition."""

    __slots__ = ("_node_name", "_pod")

    kind: ClassVar[str] = "pod_binding"
    lane: ClassVar[Lane] = Lane.BIND
    relevance: ClassVar[int] = Relevance.BINDING
    settles_doubt: ClassVar[bool] = True

    def __init__(self, pod: Pod, node_name: str) -> None:
        self._pod = pod
        self._node_name = node_name

    @property
    def object_key(self) -> str:
        return self._pod.uid

    async def perform(self, writer: ApiWriter) -> None:
        pod = self._pod
        await writer.bind(pod.namespace, pod.name, pod.uid, self._node_name)

    async def look(self, writer: ApiWriter) -> Seen:
        found = await read_pod(writer, self._pod)
        if not found.node_name:
            return Seen(False)
        if found.node_name != self._node_name:
            raise ObjectChanged(f"pod {found.key} is bound to {found.node_name} already, not to {self._node_name}")
        return Seen(True)
