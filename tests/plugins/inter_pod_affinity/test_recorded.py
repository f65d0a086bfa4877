"""The plugin alone against recorded decisions of kube-scheduler: what it skips, rejects, scores, and its hints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pilotage.api import Action, CycleState, Skip
from pilotage.cluster.node_rows import NodeRows
from pilotage.cluster.node_view import ImaginedNode, RowView
from pilotage.conformance.cases import ConformanceCase, load_cases
from pilotage.conformance.replay import replay
from pilotage.conformance.world import load_cluster
from pilotage.model import Pod
from tests.plugins.inter_pod_affinity.affinity_world import AffinityWorld
from tests.plugins.one_plugin import registered

NAME = "InterPodAffinity"
WEIGHT = 2
RECORDED = Path(__file__).parents[2] / "data" / "parity"
AFFINITY = [
    case
    for case in load_cases(RECORDED / "affinity.jsonl.gz")
    # Otherwise another plugin rejected the pod before this one was asked.
    if case.expected["preFilter"]["code"] == "Success"
]


class RecordedWorld(AffinityWorld):
    """The cluster of a recorded case with just this plugin."""

    def __init__(self, case: ConformanceCase) -> None:
        super().__init__([], cluster=load_cluster(case.objects))
        self.asked: Pod = self.cluster.objects("Pod")[case.pod]
        self.state = CycleState()
        self.is_skipped = isinstance(self.plugin.pre_filter(self.state, self.asked, self.cluster.nodes), Skip)

    def messages(self, node_name: str) -> list[str]:
        """Why the node is rejected, now or once the pods that are nominated to it are there."""
        view = self.cluster.node_view(node_name)
        assert view is not None
        beside, state = ImaginedNode(view), self.state.clone()
        for rival in self.cluster.nominations.on(node_name):
            if rival.priority >= self.asked.priority and rival.uid != self.asked.uid:
                beside.add(rival)
                self.plugin.add_pod(state, self.asked, rival, beside)
        rejection = self.plugin.filter(state, self.asked, beside) or self.plugin.filter(self.state, self.asked, view)
        return [] if rejection is None else [reason.message for reason in rejection.reasons]

    def scored(self, feasible: list[str]) -> dict[str, tuple[int, int]]:
        """(raw, weighted) for each feasible node; empty if scoring is skipped."""
        nodes, pod, state = self.cluster.nodes, self.asked, self.state
        rows = np.flatnonzero(nodes.rows_of(frozenset(feasible)))
        some = NodeRows(nodes, rows)
        if isinstance(self.plugin.pre_score(state, pod, some), Skip):
            return {}
        raw = self.plugin.score_all(state, pod, some)
        assert raw.tolist() == [self.plugin.score(state, pod, RowView(nodes, row)) for row in rows.tolist()]
        weighted = self.plugin.normalize(state, pod, raw) * WEIGHT
        return {nodes.names[row]: (int(raw[at]), int(weighted[at])) for at, row in enumerate(rows.tolist())}


@pytest.mark.parametrize("case", AFFINITY, ids=[case.name for case in AFFINITY])
def test_affinity_is_judged_as_recorded(case: ConformanceCase) -> None:
    world, expected = RecordedWorld(case), case.expected
    assert world.is_skipped == (NAME in expected["preFilter"]["skipped"])
    for node_name, status in expected["filter"].items():
        if status is None or status["plugin"] == NAME:
            found = [] if world.is_skipped else world.messages(node_name)
            assert found == ([] if status is None else status["reasons"]), node_name
    if expected["scores"]:
        assert world.scored(list(expected["scores"])) == {
            name: (score["raw"][NAME], score["plugins"][NAME])
            for name, score in expected["scores"].items()
            if NAME in score["raw"]
        }


def test_hints_are_as_recorded() -> None:
    cases = [case for case in load_cases(RECORDED / "hints.jsonl.gz") if case.plugin == NAME]
    assert len(cases) == 130
    assert {result.case.name: result.differences for result in replay(cases) if not result.is_equal} == {}


def test_events_are_registered_as_recorded() -> None:
    actions = {name.replace("_", "").lower(): action for name, action in Action.__members__.items()}
    recorded: list[dict[str, Any]] = json.loads((RECORDED / "registered-events.json").read_bytes())[NAME]
    wanted = {event["resource"]: sum(actions[name.lower()] for name in event["actions"]) for event in recorded}
    ours = {resource.value: int(action) for resource, action in registered(AffinityWorld([]).plugin)}
    assert ours == wanted | {"Namespace": Action.ADD | Action.UPDATE | Action.DELETE}, (
        "kube-scheduler has no such event"
    )
    assert all(event["hasHint"] for event in recorded)
