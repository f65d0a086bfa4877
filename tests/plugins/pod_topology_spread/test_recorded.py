"""The plugin alone against recorded decisions of kube-scheduler: what it skips, rejects, scores, and its hints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pilotage.api import Action, CycleState, NodeTable, Skip
from pilotage.cluster.node_rows import NodeRows
from pilotage.cluster.node_view import ImaginedNode, RowView
from pilotage.conformance.cases import ConformanceCase, load_cases
from pilotage.conformance.replay import replay
from pilotage.conformance.world import load_cluster
from pilotage.model import Pod
from tests.plugins.one_plugin import registered
from tests.plugins.pod_topology_spread.spread_world import SpreadWorld

NAME = "PodTopologySpread"
WEIGHT = 2
RECORDED = Path(__file__).parents[2] / "data" / "parity"
SPREAD = list(load_cases(RECORDED / "spread.jsonl.gz"))


class RecordedWorld(SpreadWorld):
    """The cluster of a recorded case with just this plugin."""

    def __init__(self, case: ConformanceCase) -> None:
        super().__init__([], cluster=load_cluster(case.objects))
        self.pod: Pod = self.cluster.objects("Pod")[case.pod]
        self.state = CycleState()
        self.is_skipped = isinstance(self.plugin.pre_filter(self.state, self.pod, self.cluster.nodes), Skip)

    def rejection(self, node_name: str) -> list[str]:
        """Why the node is rejected, now or once the pods that are nominated to it are there."""
        view = self.cluster.node_view(node_name)
        assert view is not None
        beside, state = ImaginedNode(view), self.state.clone()
        for rival in self.cluster.nominations.on(node_name):
            if rival.priority >= self.pod.priority and rival.uid != self.pod.uid:
                beside.add(rival)
                self.plugin.add_pod(state, self.pod, rival, beside)
        rejection = self.plugin.filter(state, self.pod, beside) or self.plugin.filter(self.state, self.pod, view)
        return [] if rejection is None else [reason.message for reason in rejection.reasons]

    def scored(self, feasible: list[str]) -> dict[str, tuple[int, int]]:
        """(raw, weighted) for each feasible node; empty if scoring is skipped."""
        nodes, pod, state = self.cluster.nodes, self.pod, self.state
        rows = np.flatnonzero(nodes.rows_of(frozenset(feasible)))
        table: NodeTable = NodeRows(nodes, rows)
        if isinstance(self.plugin.pre_score(state, pod, table), Skip):
            return {}
        raw = self.plugin.score_all(state, pod, table)
        assert raw.tolist() == [self.plugin.score(state, pod, RowView(nodes, row)) for row in rows.tolist()]
        weighted = self.plugin.normalize(state, pod, raw) * WEIGHT
        return {nodes.names[row]: (int(raw[at]), int(weighted[at])) for at, row in enumerate(rows.tolist())}


@pytest.mark.parametrize("case", SPREAD, ids=[case.name for case in SPREAD])
def test_spread_is_judged_as_recorded(case: ConformanceCase) -> None:
    world, expected = RecordedWorld(case), case.expected
    assert world.is_skipped == (NAME in expected["preFilter"]["skipped"])
    for node_name, status in expected["filter"].items():
        if status is None or status["plugin"] == NAME:
            found = [] if world.is_skipped else world.rejection(node_name)
            assert found == ([] if status is None else status["reasons"]), node_name
    if expected["scores"]:
        wanted = {
            name: (score["raw"][NAME], score["plugins"][NAME])
            for name, score in expected["scores"].items()
            if NAME in score["raw"]
        }
        assert world.scored(list(expected["scores"])) == wanted


def test_hints_are_as_recorded() -> None:
    cases = [case for case in load_cases(RECORDED / "hints.jsonl.gz") if case.plugin == NAME]
    assert len(cases) == 212
    assert {result.case.name: result.differences for result in replay(cases) if not result.is_equal} == {}


def test_events_are_registered_as_recorded() -> None:
    actions = {name.replace("_", "").lower(): action for name, action in Action.__members__.items()}
    recorded: list[dict[str, Any]] = json.loads((RECORDED / "registered-events.json").read_bytes())[NAME]
    wanted = {event["resource"]: sum(actions[name.lower()] for name in event["actions"]) for event in recorded}
    assert {resource.value: int(action) for resource, action in registered(SpreadWorld([]).plugin)} == wanted
    assert all(event["hasHint"] for event in recorded)
