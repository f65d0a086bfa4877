"""Random nodes and pods in the cluster state against a model that remembers the objects and computes all anew.

A follower keeps a column of its own up to date by the change log alone, as the shared columns of the evaluation do: if
a touched row were missing in the log, the follower would be wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.state import Cluster
from pilotage.model import Pod
from pilotage.testing import NodeBuilder, PodBuilder, node, pod

RESOURCES = ("cpu", "memory", "pods", "example.com/gpu")
LABELS = ("disk", "topology.kubernetes.io/zone")
names = st.sampled_from([f"n{number}" for number in range(12)])
picks = st.integers(0, 10**6)


@st.composite
def nodes(draw: st.DrawFn) -> NodeBuilder:
    built = node(draw(names)).cpu(draw(st.integers(0, 9))).memory(draw(st.integers(0, 9)))
    if draw(st.booleans()):
        built = built.allocatable("example.com/gpu", draw(st.integers(0, 3)))
    for label in LABELS:
        if (value := draw(st.sampled_from(["", "x", "y"]))) != "":
            built = built.label(label, value)
    for key in draw(st.lists(st.sampled_from("ab"), max_size=2, unique=True)):
        built = built.taint(key, "NoSchedule")
    return built.unschedulable() if draw(st.booleans()) else built


@st.composite
def requests(draw: st.DrawFn) -> dict[str, str]:
    wanted = draw(st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.integers(0, 5)))
    return {resource: str(amount) for resource, amount in wanted.items()}


class Naive:
    """What should be in the columns, computed from the objects."""

    def __init__(self, nodes: dict[str, NodeBuilder], pods: dict[str, Pod]) -> None:
        self._nodes = nodes
        self._pods = pods

    def allocatable(self, name: str, resource: str) -> int:
        amount = int(self._nodes[name].json()["status"]["allocatable"].get(resource, "0"))
        return amount * 1000 if resource == "cpu" else amount

    def pods_on(self, name: str) -> list[Pod]:
        return [built for built in self._pods.values() if built.node_name == name]

    def requested(self, name: str, resource: str) -> int:
        return sum(self._request(built, resource, 0) for built in self.pods_on(name))

    def scored(self, name: str, resource: str) -> int:
        default = {"cpu": 100, "memory": 200 * 2**20}.get(resource, 0)
        return sum(self._request(built, resource, default) for built in self.pods_on(name))

    @staticmethod
    def _request(built: Pod, resource: str, default: int) -> int:
        wanted = built.spec.containers[0].resources.requests
        if resource not in wanted:
            return default
        return int(wanted[resource]) * (1000 if resource == "cpu" else 1)


class ClusterLives(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.nodes: dict[str, NodeBuilder] = {}
        self.pods: dict[str, Pod] = {}
        self.assumed: set[str] = set()
        self.born = 0
        self.follower = Follower(self.cluster.nodes)

    @initialize(some=st.lists(nodes(), min_size=2, max_size=8))
    def begin(self, some: list[NodeBuilder]) -> None:
        for built in some:
            self.put_node(built)

    # --- nodes -------------------------------------------------------------------------------------------------

    @rule(built=nodes())
    def put_node(self, built: NodeBuilder) -> None:
        self.cluster.put_node(built.build())
        self.nodes[built.build().name] = built

    @rule(name=names)
    def remove_node(self, name: str) -> None:
        self.cluster.remove_node(name)
        self.nodes.pop(name, None)

    @rule()
    def look_at_labels(self) -> None:
        """Label columns exist from the first look on."""
        for label in LABELS:
            self.cluster.nodes.labels(label)

    # --- pods --------------------------------------------------------------------------------------------------

    @rule(name=names, wanted=requests(), is_assumed=st.booleans())
    def place(self, name: str, wanted: dict[str, str], is_assumed: bool) -> None:
        self.born += 1
        built = self._pod(f"p{self.born}", name, wanted).build()
        if is_assumed:
            self.cluster.assume(built)
            self.assumed.add(built.uid)
        else:
            self.cluster.put_pod(built)
        self.pods[built.uid] = built

    @precondition(lambda self: self.pods)
    @rule(pick=picks, wanted=requests(), moves=st.booleans(), name=names)
    def confirm_or_update(self, pick: int, wanted: dict[str, str], moves: bool, name: str) -> None:
        old = self._picked(pick)
        new = self._pod(old.name, name if moves else old.node_name, wanted).build()
        assert self.cluster.put_pod(new) is old
        self.pods[new.uid] = new
        self.assumed.discard(new.uid)

    @precondition(lambda self: self.pods)
    @rule(pick=picks)
    def forget(self, pick: int) -> None:
        picked = self._picked(pick)
        expected = picked if picked.uid in self.assumed else None
        assert self.cluster.forget(picked.uid) is expected
        if expected is not None:
            del self.pods[picked.uid]

    @precondition(lambda self: self.pods)
    @rule(pick=picks)
    def remove(self, pick: int) -> None:
        picked = self._picked(pick)
        assert self.cluster.remove_pod(picked.uid) is picked
        del self.pods[picked.uid]

    @staticmethod
    def _pod(name: str, node_name: str, wanted: dict[str, str]) -> PodBuilder:
        return pod(name).node(node_name).requests(wanted)

    def _picked(self, pick: int) -> Pod:
        return self.pods[sorted(self.pods)[pick % len(self.pods)]]

    # --- always ------------------------------------------------------------------------------------------------

    @invariant()
    def columns_are_what_the_objects_say(self) -> None:
        table = self.cluster.nodes
        self.cluster.check()
        assert sorted(table.names) == sorted(self.nodes)
        naive = Naive(self.nodes, self.pods)
        for resource in RESOURCES:
            assert _by_name(table, table.allocatable(resource)) == {
                n: naive.allocatable(n, resource) for n in self.nodes
            }
            assert _by_name(table, table.requested(resource)) == {n: naive.requested(n, resource) for n in self.nodes}
            assert _by_name(table, table.non_zero_requested(resource)) == {
                n: naive.scored(n, resource) for n in self.nodes
            }
        assert _by_name(table, table.pod_count) == {n: len(naive.pods_on(n)) for n in self.nodes}

    @invariant()
    def facts_of_nodes_are_what_the_objects_say(self) -> None:
        table = self.cluster.nodes
        specs = {name: built.json()["spec"] for name, built in self.nodes.items()}
        assert _by_name(table, table.unschedulable) == {n: s.get("unschedulable", False) for n, s in specs.items()}
        codes, sets = table.taint_sets()
        taints = {name: [t.key for t in sets[code]] for name, code in zip(table.names, codes, strict=True)}
        assert taints == {name: [t["key"] for t in spec.get("taints", [])] for name, spec in specs.items()}
        for label in LABELS:
            codes, values = table.labels(label)
            found = {n: None if c < 0 else values[c] for n, c in zip(table.names, codes, strict=True)}
            assert found == {name: built.build().labels.get(label) for name, built in self.nodes.items()}

    @invariant()
    def pods_are_known(self) -> None:
        assert self.cluster.placed_count == len(self.pods)
        assert all(self.cluster.placed_pod(uid) is built for uid, built in self.pods.items())
        assert {uid for uid in self.pods if self.cluster.is_assumed(uid)} == self.assumed & set(self.pods)

    @invariant()
    def the_change_log_is_enough_to_follow(self) -> None:
        self.follower.catch_up()
        table = self.cluster.nodes
        assert self.follower.free == table.free("cpu").tolist()


class Follower:
    """Keeps `free("cpu")` by looking only at rows that the log names."""

    def __init__(self, table: ClusterNodeTable) -> None:
        self._table = table
        self._mark = table.mark
        self._structure = table.structure
        self.free: list[int] = table.free("cpu").tolist()

    def catch_up(self) -> None:
        table = self._table
        changed = table.changed_since(self._mark)
        if changed is None or table.structure != self._structure:
            self.free = table.free("cpu").tolist()
        else:
            for row in changed:
                self.free[row] = int(table.free("cpu")[row])
        self._mark, self._structure = table.mark, table.structure


def _by_name(table: ClusterNodeTable, column: Any) -> dict[str, Any]:
    assert isinstance(column, np.ndarray) and len(column) == len(table)
    return dict(zip(table.names, column.tolist(), strict=True))


TestClusterLives = ClusterLives.TestCase
TestClusterLives.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
