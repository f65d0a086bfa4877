"""The framework without a scheduler: would this pod fit on these nodes, and where would it go?

For autoscalers and other tools that must think as the scheduler does (KEP-624, "interactions with Cluster Autoscaler").
Nothing is watched and nothing is written: nodes, pods and other objects are what the program puts in, as JSON (a dict
as it comes from an API server) or as objects of `pilotage.model`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pilotage.api.plugin import Plugin
from pilotage.api.state import CycleState
from pilotage.assembly import watched_kinds
from pilotage.clock import Clock, SystemClock
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import Placed, ProfileEngine, diagnose, place
from pilotage.explain.engine import put, thinking_engines
from pilotage.framework.diagnosis import Diagnosis
from pilotage.library.configured import configured
from pilotage.model import KindInfo, Pod

Given = Mapping[str, Any] | Any
"""An object as JSON, or as a class of `pilotage.model`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Where a pod fits."""

    nodes: list[str]
    """Names of the nodes on which it fits, in the order in which the scheduler walks them."""
    best: str | None
    """The one that the scheduler would take."""
    reasons: dict[str, list[str]] = field(default_factory=dict)
    """Why it does not fit on the others, by node name."""

    def __bool__(self) -> bool:
        return bool(self.nodes)


class Framework:
    """A profile over a cluster that is put together by hand."""

    def __init__(
        self,
        *objects: Given,
        config: Path | str | None = None,
        plugins: Sequence[type[Plugin]] = (),
        clock: Clock | None = None,
    ) -> None:
        """`config` is a KubeSchedulerConfiguration file; `plugins`, and those of the files that it names, run beside
        the default ones.

        ConfigError or ProfileError if that does not work out.
        """
        _, options = configured(config, plugins)
        self._cluster = Cluster(kinds=watched_kinds(options))
        self._engines = thinking_engines(self._cluster, clock or SystemClock(), options)
        for obj in objects:
            self.put(obj)

    def put(self, obj: Given) -> None:
        """Add an object, or replace the one of that name. A pod with a node name takes its place there."""
        for kind, built in self._read(obj):
            put(self._cluster, kind, built)

    def remove(self, obj: Given) -> None:
        """Take an object away again; a pod leaves its place, a node goes with all that was on it."""
        for kind, built in self._read(obj):
            self._cluster.remove_object(kind, built.key)
            if isinstance(built, Pod):
                self._cluster.remove_pod(built.uid)
            elif kind == "Node":
                self._cluster.remove_node(built.name)

    def fits(self, pod: Given) -> Answer:
        """What the filters say of all nodes, and the choice among those that are left."""
        built = self._pod(pod)
        engine = self._engine(built)
        state = CycleState()
        diagnosis = diagnose(engine, state, built, engine.runner.pre_filter(state, built))
        reasons = {name: _messages(diagnosis, name) for name in _rejected(diagnosis)}
        nodes = engine.nodes
        fitting = [name for row in nodes.order.tolist() if (name := nodes.names[row]) not in reasons]
        placement = place(engine, CycleState(), built) if fitting else None
        return Answer(fitting, placement.node_name if isinstance(placement, Placed) else None, reasons)

    def assume(self, pod: Given, node_name: str) -> None:
        """From now on the pod counts on that node: to ask about several pods one after another."""
        self.put(self._pod(pod).with_node(node_name))

    def _read(self, given: Given) -> list[tuple[str, Any]]:
        """The object in each type that it is read in; ValueError if neither scheduling nor a plugin reads it."""
        kinds = self._cluster.kinds
        if not isinstance(given, Mapping):
            return [(key, given) for key in kinds.of_object(given)]
        found = kinds.of_manifest(given)
        if not found:
            message = f"scheduling does not read objects of kind {given.get('kind')!r}, and no plugin watches them"
            raise ValueError(message)
        return [(kind.kind, _decoded(given, kind)) for kind in found]

    def _pod(self, pod: Given) -> Pod:
        _, built = self._read(pod)[0]
        if not isinstance(built, Pod):
            raise TypeError(f"a pod is wanted, not a {type(built).__name__}")
        return built

    def _engine(self, pod: Pod) -> ProfileEngine:
        try:
            return self._engines[pod.spec.scheduler_name]
        except KeyError:
            known = ", ".join(self._engines)
            message = f'pod {pod.key} names the scheduler "{pod.spec.scheduler_name}"; the profiles are: {known}'
            raise ValueError(message) from None


def _decoded(obj: Mapping[str, Any], kind: KindInfo) -> Any:
    metadata = dict(obj.get("metadata") or {})
    if kind.namespaced:
        metadata.setdefault("namespace", "default")
    metadata.setdefault("uid", f"{kind.kind}/{metadata.get('namespace', '')}/{metadata.get('name', '')}")
    return kind.decode(msgspec.json.encode({**obj, "metadata": metadata}))


def _rejected(diagnosis: Diagnosis) -> list[str]:
    rejected = np.zeros(len(diagnosis.node_names), dtype=np.bool_)
    for rejection in diagnosis.rejections():
        rejected |= rejection.rows
    return [diagnosis.node_names[row] for row in rejected.nonzero()[0].tolist()]


def _messages(diagnosis: Diagnosis, name: str) -> list[str]:
    return [reason.message for reason in diagnosis.rejection(name).reasons]
