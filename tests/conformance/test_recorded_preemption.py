"""What PostFilter does with pods that fit nowhere, against recorded answers of kube-scheduler: all of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest

from pilotage.api.state import CycleState
from pilotage.conformance.cases import ConformanceCase, load_cases
from pilotage.conformance.preemption import answer_preemption
from pilotage.conformance.replay import load, replay
from pilotage.cycle.placement import Unplaced, place
from pilotage.testing import node, pod

RECORDED = Path(__file__).parents[1] / "data" / "parity" / "preemption.jsonl.gz"


@lru_cache(maxsize=1)
def cases() -> tuple[ConformanceCase, ...]:
    return tuple(load_cases(RECORDED))


def test_our_answers_are_the_recorded_ones() -> None:
    different = {result.case.name: result.differences[:3] for result in replay(cases()) if not result.is_equal}
    assert not different, f"{len(different)} of {len(cases())} differ: {dict(list(different.items())[:5])}"


def test_the_cases_ask_for_every_outcome() -> None:
    assert len(cases()) == 275
    outcomes = Counter((case.expected["code"], case.expected["nomination"]) for case in cases())
    assert outcomes == {
        ("Success", "set"): 185,
        ("Unschedulable", "clear"): 58,
        ("Unschedulable", "keep"): 24,
        ("Error", "keep"): 8,
    }
    assert sum(case.expected["tie"] for case in cases()) == 18
    violations = [c["pdbViolations"] for case in cases() for c in case.expected["candidates"].values()]
    assert sum(number > 0 for number in violations) == 98


@pytest.mark.parametrize("field", ["candidates", "notCandidates", "nominatedNode", "message", "nomination", "tied"])
def test_a_wrong_answer_would_be_found(field: str) -> None:
    case = next(c for c in cases() if c.expected["candidates"] and c.expected["notCandidates"])
    spoilt = dataclasses.replace(case, expected={**case.expected, field: "something else"})
    (result,) = replay([spoilt])
    assert [path for path, _, _ in result.differences] == [field]


FREED = "deallocation of ResourceClaim completed, "


def test_a_claim_that_only_the_search_found_in_the_way_is_not_freed() -> None:
    """The recordings searched for victims before PostFilter; a scheduler does it after DynamicResources' turn."""
    freed = [case for case in cases() if case.expected["message"].startswith(FREED)]
    assert len(freed) == 5
    for case in freed:
        answer = answer_preemption(load(case), searched_before=False)
        assert answer["message"] == case.expected["message"].removeprefix(FREED)
        world = load(case)
        placed = place(world.engine, CycleState(), world.pod)
        assert isinstance(placed, Unplaced)
        assert placed.diagnosis.post_filter_message == answer["message"]


def test_a_claim_is_not_freed_because_of_a_node_that_another_filter_rejected() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    shy = (
        pod("shy")
        .node("a")
        .spec(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    )
    elsewhere = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["gone"]}
    claim = {
        "kind": "ResourceClaim",
        "metadata": {"namespace": "default", "name": "c", "uid": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1}}]}},
        "status": {
            "allocation": {
                "devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "0"}]},
                "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [elsewhere]}]},
            }
        },
    }
    waiting = pod("p").label("app", "x").requests(cpu="1")
    waiting = waiting.spec(resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
    objects = [node("a").json(), node("small").cpu("0").json(), shy.json(), waiting.json(), claim]
    world = load(ConformanceCase("own-1", "preemption", objects, "default/p", {}))
    placed = place(world.engine, CycleState(), world.pod)
    assert isinstance(placed, Unplaced)
    assert placed.diagnosis.post_filter_message.startswith("preemption: 0/2 nodes are available")
