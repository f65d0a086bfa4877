"""Columns against the naive scheduler: random clusters, random changes, the same verdicts and scores on every node.

One evaluator lives through all changes of a cluster, so its shared columns are refreshed row by row, in blocks and from
scratch, and must be right every time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.api import CycleState
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import ProfileEngine
from pilotage.framework.diagnosis import Diagnosis
from pilotage.framework.shared_columns import INFEASIBLE
from pilotage.plugins import (
    NodeAffinity,
    NodeName,
    NodeResourcesBalancedAllocation,
    NodeResourcesFit,
    NodeUnschedulable,
    TaintToleration,
)
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.default_plugins import default
from tests.framework.scripted_plugins import profile_of
from tests.properties.naive_scheduler import WEIGHTS, NaiveNode, raw_scores, rejection, weighted_scores

PLUGINS = (
    NodeName,
    NodeUnschedulable,
    TaintToleration,
    NodeAffinity,
    NodeResourcesFit,
    NodeResourcesBalancedAllocation,
)
PROFILE = profile_of(*(default(cls) for cls in PLUGINS), **WEIGHTS)
NAMES = [f"n{number}" for number in range(14)]
LABELS, VALUES = ("disk", "size"), ("ssd", "8", "64")
GI = 2**30

names = st.sampled_from(NAMES)
effects = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
keys, values = st.sampled_from(LABELS), st.sampled_from(VALUES)


@st.composite
def nodes(draw: st.DrawFn) -> NodeBuilder:
    built = node(draw(names)).cpu(f"{draw(st.sampled_from([0, 500, 1000, 4000]))}m")
    built = built.memory(draw(st.sampled_from([0, GI, 3 * GI]))).pods(draw(st.sampled_from([0, 1, 2, 110])))
    if draw(st.booleans()):
        built = built.allocatable("example.com/gpu", draw(st.integers(0, 2)))
    for label in LABELS:
        if (value := draw(st.sampled_from(["", *VALUES]))) != "":
            built = built.label(label, value)
    for key in draw(st.lists(st.sampled_from("ab"), max_size=2)):
        built = built.taint(key, draw(effects), draw(st.sampled_from(["", "x"])))
    return built.unschedulable() if draw(st.integers(0, 5)) == 0 else built


@st.composite
def requests(draw: st.DrawFn) -> dict[str, str]:
    wanted: dict[str, str] = {}
    if draw(st.booleans()):
        wanted["cpu"] = f"{draw(st.sampled_from([0, 1, 300, 900, 2000]))}m"
    if draw(st.booleans()):
        wanted["memory"] = str(draw(st.sampled_from([0, 1, GI // 3, 2 * GI])))
    if draw(st.integers(0, 4)) == 0:
        wanted["example.com/gpu"] = str(draw(st.integers(0, 2)))
    return wanted


@st.composite
def expressions(draw: st.DrawFn) -> dict[str, Any]:
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]))
    expression: dict[str, Any] = {"key": draw(keys), "operator": operator}
    if operator in ("In", "NotIn"):
        expression["values"] = draw(st.lists(values, min_size=1, max_size=2))
    elif operator in ("Gt", "Lt"):
        expression["values"] = [draw(st.sampled_from(["8", "10", "0"]))]
    return expression


terms = st.lists(expressions(), max_size=2).map(lambda found: {"matchExpressions": found})


@st.composite
def waiting_pods(draw: st.DrawFn) -> PodBuilder:
    built = pod(f"w{draw(st.integers(0, 99))}").requests(draw(requests()))
    for _ in range(draw(st.integers(0, 2))):
        value = draw(st.sampled_from([None, "", "x"]))
        built = built.tolerate(draw(st.sampled_from(["", "a", "b"])), draw(st.sampled_from(["", "NoSchedule"])), value)
    if draw(st.booleans()):
        built = built.tolerate("", draw(effects))
    if draw(st.integers(0, 3)) == 0:
        built = built.node_selector({draw(keys): draw(values)})
    if draw(st.integers(0, 2)) == 0:
        built = built.node_affinity_terms(*draw(st.lists(terms, max_size=2)))
    for key, value, weight in draw(st.lists(st.tuples(keys, values, st.integers(1, 100)), max_size=2)):
        built = built.prefer(key, [value], weight)
    return built.node(draw(names)) if draw(st.integers(0, 9)) == 0 else built


class Comparison:
    """The same cluster twice: in columns and as plain JSON."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.engine = ProfileEngine(PROFILE, self.cluster)
        self.nodes: dict[str, NodeBuilder] = {}
        self.pods: dict[str, PodBuilder] = {}

    def put_node(self, built: NodeBuilder) -> None:
        self.nodes[built.build().name] = built
        self.cluster.put_node(built.build())

    def remove_node(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.cluster.remove_node(name)

    def put_pod(self, node_name: str, wanted: dict[str, str]) -> None:
        built = pod(f"p{len(self.pods)}-{node_name}").requests(wanted).node(node_name)
        self.pods[built.build().uid] = built
        self.cluster.put_pod(built.build())

    def remove_pod(self, pick: int) -> None:
        if self.pods:
            uid = sorted(self.pods)[pick % len(self.pods)]
            del self.pods[uid]
            self.cluster.remove_pod(uid)

    def naive_nodes(self) -> list[NaiveNode]:
        """In the order of the rows."""
        pods = [built.json() for built in self.pods.values()]
        return [
            NaiveNode(self.nodes[name].json(), [p for p in pods if p["spec"]["nodeName"] == name])
            for name in self.cluster.nodes.names
        ]

    def compare(self, built: PodBuilder) -> None:
        naive, waiting = self.naive_nodes(), built.build()
        state = CycleState()
        self.engine.runner.pre_filter(state, waiting)
        expected = {node.name: rejection(built.json(), node) for node in naive}
        self._compare_rejections(state, built, expected)
        feasible = [node for node in naive if expected[node.name] is None]
        raw = raw_scores(built.json(), feasible)
        self._compare_scores(state, built, feasible, raw)
        totals = self.engine.evaluator.totals(state, waiting, None).tolist()
        assert [total == INFEASIBLE for total in totals] == [expected[node.name] is not None for node in naive]
        kept = [total for total in totals if total != INFEASIBLE]
        sums = [sum(parts) for parts in zip(*weighted_scores(raw).values(), strict=True)]
        if len(kept) > 1:
            # What is the same for all nodes may be left out of the totals.
            assert len({total - expected_total for total, expected_total in zip(kept, sums, strict=True)}) == 1

    def _compare_rejections(self, state: CycleState, built: PodBuilder, expected: dict[str, Any]) -> None:
        diagnosis = Diagnosis(node_names=tuple(self.cluster.nodes.names))
        self.engine.evaluator.diagnose(state, built.build(), diagnosis, None)
        found = {}
        for name in diagnosis.node_names:
            told = diagnosis.rejection(name)
            messages = sorted(reason.message for reason in told.reasons)
            found[name] = (diagnosis.plugin_of(name), told.unresolvable, messages) if messages else None
        assert found == expected

    def _compare_scores(
        self, state: CycleState, built: PodBuilder, feasible: list[NaiveNode], raw: dict[str, list[int]]
    ) -> None:
        rows = np.array([self.cluster.nodes.row(node.name) for node in feasible], dtype=np.int64)
        if not len(rows):
            return
        breakdown = self.engine.evaluator.score_breakdown(state.clone(), built.build(), rows)
        assert {name: scores.tolist() for name, (scores, _) in breakdown.items()} == raw
        assert {name: scores.tolist() for name, (_, scores) in breakdown.items()} == weighted_scores(raw)


changes = st.one_of(
    st.tuples(st.just("put_pod"), names, requests()),
    st.tuples(st.just("put_pod"), names, requests()),
    st.tuples(st.just("remove_pod"), st.integers(0, 99)),
    st.tuples(st.just("put_node"), nodes()),
    st.tuples(st.just("remove_node"), names),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(nodes(), max_size=14), st.lists(changes, max_size=12), st.lists(waiting_pods(), min_size=1, max_size=3))
def test_columns_say_what_the_naive_scheduler_says(
    some_nodes: list[NodeBuilder], some_changes: list[tuple[Any, ...]], some_pods: list[PodBuilder]
) -> None:
    comparison = Comparison()
    for built in some_nodes:
        comparison.put_node(built)
    for waiting in some_pods:
        comparison.compare(waiting)
    for change, *arguments in some_changes:
        getattr(comparison, change)(*arguments)
        for waiting in some_pods:
            comparison.compare(waiting)


@settings(max_examples=15, deadline=None)
@given(st.lists(nodes(), min_size=14, max_size=14, unique_by=lambda built: built.build().name), st.data())
def test_blocks_of_changed_rows_are_refreshed_rightly(some_nodes: list[NodeBuilder], data: st.DataObject) -> None:
    """Many nodes and up to a quarter of them changed at once: the refresh in columns, not row by row."""
    comparison = Comparison()
    for copy in range(4):
        for built in some_nodes:
            comparison.put_node(_renamed(built, copy))
    waiting = data.draw(waiting_pods())
    comparison.compare(waiting)
    for _ in range(3):
        for name in data.draw(st.lists(st.sampled_from(sorted(comparison.nodes)), min_size=9, max_size=12)):
            comparison.put_pod(name, data.draw(requests()))
        comparison.compare(waiting)


def _renamed(built: NodeBuilder, copy: int) -> NodeBuilder:
    obj = built.json()
    obj["metadata"]["name"] += f"-{copy}"
    return type(built)(obj)
