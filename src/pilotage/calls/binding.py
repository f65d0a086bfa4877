"""Bind a pod to a node."""

from __future__ import annotations

from typing import ClassVar

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance
from pilotage.model import Pod


class PodBinding(ApiCall):
    """POST pods/binding; the API server sets the node name and the PodScheduled condition."""

    __slots__ = ("_node_name", "_pod")

    kind: ClassVar[str] = "pod_binding"
    lane: ClassVar[Lane] = Lane.BIND
    relevance: ClassVar[Relevance] = Relevance.BINDING

    def __init__(self, pod: Pod, node_name: str) -> None:
        self._pod = pod
        self._node_name = node_name

    @property
    def object_key(self) -> str:
        return self._pod.uid

    async def perform(self, writer: ApiWriter) -> None:
        pod = self._pod
        await writer.bind(pod.namespace, pod.name, pod.uid, self._node_name)
