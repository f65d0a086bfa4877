"""What PostFilter does with pods that fit nowhere, against recorded answers of kube-scheduler: all of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest

from pilotage.conformance.cases import Case, load_cases
from pilotage.conformance.replay import replay

RECORDED = Path(__file__).parents[1] / "data" / "parity" / "preemption.jsonl.gz"


@lru_cache(maxsize=1)
def cases() -> tuple[Case, ...]:
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
