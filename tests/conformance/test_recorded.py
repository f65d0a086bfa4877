"""Whole decisions against recorded ones of kube-scheduler: who rejects which node and why, scores, and the choice.

The cases of `resources` and `affinity` are answered completely: nothing is left out, so every difference is a failure.
The counts below make sure that the cases still ask what they are there for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from pilotage.conformance.cases import ConformanceCase, load_cases
from pilotage.conformance.replay import ConformanceResult, replay
from pilotage.testing import node, pod

ROOT = Path(__file__).parents[2]
_SHARED, _OWN = ROOT.parent / "shared" / "parity", ROOT / "tests" / "data" / "parity"
FILES = ("resources", "affinity")

REFUSED_AT_LEAST = {
    "NodeResourcesFit": 1400,
    "NodeAffinity": 690,
    "TaintToleration": 350,
    "NodeUnschedulable": 180,
    "": 400,
}
"""Nodes that each plugin is recorded to reject; "" are those that PreFilter left out."""
SCORED_AT_LEAST = {
    "NodeResourcesFit": 1800,
    "TaintToleration": 1800,
    "NodeResourcesBalancedAllocation": 1700,
    "NodeAffinity": 280,
}


@lru_cache(maxsize=len(FILES))
def cases(file: str) -> tuple[ConformanceCase, ...]:
    where = _SHARED if _SHARED.is_dir() else _OWN
    return tuple(load_cases(where / f"{file}.jsonl.gz"))


def differing(results: Iterator[ConformanceResult]) -> list[tuple[str, str, Any, Any]]:
    return [(r.case.name, path, expected, ours) for r in results for path, expected, ours in r.differences]


@pytest.mark.parametrize("file", FILES)
def test_our_decisions_are_the_recorded_ones(file: str) -> None:
    found = differing(replay(cases(file)))
    assert not found, f"{len(found)} differences, the first are {found[:5]}"


def test_a_wrong_answer_would_be_found() -> None:
    """The comparison itself: the same case with one recorded score changed."""
    case = next(case for case in cases("resources") if case.expected["scores"])
    scores = {name: dict(score) for name, score in case.expected["scores"].items()}
    first = min(scores)
    scores[first]["total"] += 1
    spoilt = ConformanceCase(
        case.name, case.kind, case.objects, case.pod, {**case.expected, "scores": scores}, case.config
    )
    assert [path for _, path, _, _ in differing(replay([spoilt]))] == [f"scores.{first}.total"]


def test_the_cases_ask_about_every_plugin_often_enough() -> None:
    rejected: Counter[str] = Counter()
    scored: Counter[str] = Counter()
    for file in FILES:
        assert len(cases(file)) == 220
        for case in cases(file):
            rejected.update(status["plugin"] for status in case.expected["filter"].values() if status is not None)
            for score in case.expected["scores"].values():
                scored.update(list(score["raw"]))
    assert {plugin: rejected[plugin] for plugin, least in REFUSED_AT_LEAST.items() if rejected[plugin] < least} == {}
    assert {plugin: scored[plugin] for plugin, least in SCORED_AT_LEAST.items() if scored[plugin] < least} == {}


def test_without_score_plugins_every_node_that_fits_has_a_total_of_one() -> None:
    """As kube-scheduler's `prioritizeNodes` says; no recorded case is without score plugins."""
    profile = {"schedulerName": "default-scheduler", "plugins": {"score": {"disabled": [{"name": "*"}]}}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    objects = [node("a").json(), node("b").unschedulable().json(), pod("p").json()]
    (result,) = replay([ConformanceCase("own-1", "filter-score", objects, "default/p", {}, config)])
    assert result.answer["scores"] == {"a": {"total": 1, "plugins": {}, "raw": {}}}
    assert result.answer["choice"] == ["a"]
