"""Pods placed on a cluster in memory, one after the other, as the scheduler would: and taken back again."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pilotage.api.state import CycleState
from pilotage.api.table import Mask
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import NoNodes, Placed, ProfileEngine, place
from pilotage.framework.diagnosis import rejection_text
from pilotage.framework.errors import PluginError
from pilotage.model import Pod
from pilotage.model.pod import PodStatus


class Unplaceable(Exception):
    """The pod fits nowhere; the text says why."""


def as_new(pod: Pod, name: str = "") -> Pod:
    """The pod as it was before anything was decided about it, or another one of this name that is its equal."""
    fields = {"name": name, "uid": f"{pod.namespace}/{name}"} if name else {}
    return msgspec.structs.replace(pod, node_name="", deletion_timestamp=None, status=PodStatus(), **fields)


class Placing:
    """Pods that were placed here count on their nodes until they are taken back."""

    def __init__(self, cluster: Cluster, engines: Mapping[str, ProfileEngine]) -> None:
        self._cluster = cluster
        self._engines = engines
        self._placed: list[tuple[ProfileEngine, CycleState, Pod]] = []

    def place(self, pod: Pod, within: Mask | None = None) -> str:
        """The node that the pod is on now; Unplaceable if there is none."""
        engine = self._engines.get(pod.spec.scheduler_name)
        if engine is None:
            known = ", ".join(self._engines)
            raise Unplaceable(f'it is scheduled by "{pod.spec.scheduler_name}", which is no profile here ({known})')
        try:
            return self._place(engine, pod, within)
        except (NoNodes, PluginError) as error:
            raise Unplaceable(str(error)) from error

    def _place(self, engine: ProfileEngine, pod: Pod, within: Mask | None) -> str:
        gated = engine.runner.pre_enqueue(pod)
        if gated is not None:
            raise Unplaceable(rejection_text(gated.rejection))
        self._cluster.settle()
        state = CycleState()
        found = place(engine, state, pod, within=within, asks_post_filter=False)
        if not isinstance(found, Placed):
            raise Unplaceable(found.diagnosis.message())
        assumed = pod.with_node(found.node_name)
        self._cluster.assume(assumed)
        self._placed.append((engine, state, assumed))
        rejected = engine.runner.reserve(state, assumed, found.node_name)
        if rejected is not None:
            self._take_back_last()
            raise Unplaceable(rejection_text(rejected.rejection))
        return found.node_name

    def take_back(self) -> None:
        """All of them."""
        while self._placed:
            self._take_back_last()

    def _take_back_last(self) -> None:
        engine, state, pod = self._placed.pop()
        engine.runner.unreserve(state, pod, pod.node_name)
        self._cluster.forget(pod.uid)
