"""A cluster with the default profile, and what evictions would do for a pod in it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from pilotage.api import CycleState
from pilotage.api.group_members import PodGroups
from pilotage.api.plugin import Plugin
from pilotage.api.preemption import Candidate
from pilotage.assembly import FrameworkHandle, SchedulerOptions, build_profiles
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import ProfileEngine, diagnose
from pilotage.framework.diagnosis import Rejected
from pilotage.framework.preemption.budgets import DisruptionBudgets
from pilotage.framework.preemption.search import Preemption
from pilotage.framework.preemption.units import VictimUnits
from pilotage.framework.preemption.victims import NoVictimNeeded, try_node
from pilotage.framework.preemption.walk import Walk
from pilotage.framework.profile import Profile
from pilotage.model import KINDS, Pod
from pilotage.rng import seeded
from pilotage.testing import NodeBuilder, PodBuilder, VirtualClock


def budget(
    name: str, allowed: int, *, namespace: str = "default", disrupted: tuple[str, ...] = (), **labels: str
) -> Any:
    """A disruption budget for the pods with these labels; without labels its selector is empty."""
    return KINDS["poddisruptionbudgets"].decode(
        msgspec.json.encode(
            {
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"selector": {"matchLabels": labels}},
                "status": {
                    "disruptionsAllowed": allowed,
                    "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
                },
            }
        )
    )


class PreemptionWorld:
    """Nodes and pods; plugins besides the default ones may be given."""

    def __init__(self, *objects: NodeBuilder | PodBuilder, plugins: tuple[Plugin, ...] = ()) -> None:
        self.cluster = Cluster()
        engines: dict[str, ProfileEngine] = {}
        handle = FrameworkHandle(self.cluster, VirtualClock(), seeded(1), engines=engines)
        default = build_profiles(SchedulerOptions(), handle)["default-scheduler"]
        weights = default.weights | {plugin.plugin_name(): 1 for plugin in plugins}
        self.profile = Profile("default-scheduler", (*default.plugins, *plugins), weights)
        self.engine = ProfileEngine(self.profile, self.cluster)
        engines["default-scheduler"] = self.engine
        self.put(*objects)

    def put(self, *objects: Any) -> None:
        for obj in objects:
            if isinstance(obj, NodeBuilder):
                self.cluster.put_node(obj.build())
            elif isinstance(obj, PodBuilder):
                self._put_pod(obj.build())
            else:
                self.cluster.put_object("PodDisruptionBudget", obj)

    def _put_pod(self, pod: Pod) -> None:
        self.cluster.put_object("Pod", pod)
        if pod.node_name:
            self.cluster.put_pod(pod)
        else:
            self.cluster.nominations.follow(None, pod)

    def search(self, pod: Pod, wanted: int | None = None, *, fresh: bool = False) -> Walk:
        """What a search over all nodes that evictions may help finds; `fresh` remembers nothing of earlier ones."""
        state, rows = self._rejected(pod)
        preemption = self._forgetful() if fresh else self.engine.preemption
        return preemption.search(state, pod, rows, len(rows) + 1 if wanted is None else wanted)

    def one_by_one(self, pod: Pod) -> dict[str, Candidate | Rejected | None]:
        """The same node by node, without columns and memory; None where the attempt goes wrong."""
        state, rows = self._rejected(pod)
        dry_run, nodes = self.engine.evaluator.dry_run, self.cluster.nodes
        found: dict[str, Candidate | Rejected | None] = {}
        for row in rows.tolist():
            rivals = dry_run.rivals_on(pod, nodes.names[row])
            try:
                found[nodes.names[row]] = try_node(dry_run.filters_of(state, pod), row, rivals, self._units())
            except NoVictimNeeded:
                found[nodes.names[row]] = None
        return found

    def victims(self, pod: PodBuilder) -> dict[str, list[str]]:
        """Names of the victims on each candidate node, the most important first."""
        return {c.node_name: [victim.name for victim in c.victims] for c in self.search(pod.build()).candidates}

    def fits(self, pod: Pod, node_name: str, without: list[Pod]) -> bool:
        """Would the pod fit on a node without these pods, as the filters see it?"""
        state = CycleState()
        self.engine.runner.pre_filter(state, pod)
        row = self.cluster.nodes.row(node_name)
        assert row is not None
        place = self.engine.evaluator.dry_run.filters_of(state, pod).node(row)
        for gone in without:
            place.remove(gone)
        rivals = self.engine.evaluator.dry_run.rivals_on(pod, node_name)
        return place.rejection() is None and (not rivals or place.rejection_beside(rivals) is None)

    def _rejected(self, pod: Pod) -> tuple[CycleState, np.ndarray[Any, np.dtype[np.int64]]]:
        state = CycleState()
        outcome = self.engine.runner.pre_filter(state, pod)
        return state, diagnose(self.engine, state, pod, outcome).resolvable_rows()

    def _units(self) -> VictimUnits:
        return VictimUnits(self.cluster.index(DisruptionBudgets), self.cluster.index(PodGroups))

    def _forgetful(self) -> Preemption:
        cluster = self.cluster
        return Preemption(
            self.profile, self.engine.evaluator.dry_run, cluster.nodes, cluster.nominations, self._units()
        )
