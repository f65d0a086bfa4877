"""New cases out of recorded ones: the same seed gives the same, and each is a problem that can be asked about."""

from __future__ import annotations

import copy
import gzip
import json
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.conformance.tools import tool

ROOT = Path(__file__).parents[2]


def _tool() -> ModuleType:
    return tool("case_alterations")


def _recorded(theme: str) -> list[dict[str, Any]]:
    with gzip.open(ROOT / "tests" / "data" / "parity" / f"{theme}.jsonl.gz") as lines:
        return [json.loads(line) for line in islice(lines, 20)]


@pytest.mark.parametrize("theme", ["mixed", "hints", "preemption"])
def test_cases_are_new_sound_and_the_same_for_a_seed(theme: str) -> None:
    tool, cases = _tool(), _recorded(theme)
    before = copy.deepcopy(cases)
    made = list(islice(tool.altered(cases, 7), 30))
    assert cases == before, "what was recorded stays as it is"
    assert made == list(islice(tool.altered(cases, 7), 30))
    assert made != list(islice(tool.altered(cases, 8), 30))
    recorded = [case["objects"] for case in cases]
    assert sum(case["objects"] not in recorded for case in made) > 20
    for case in made:
        keys = [tool.key(obj) for obj in case["objects"]]
        assert len(set(keys)) == len(keys) and "expected" not in case
        assert ("Pod", *case["pod"].split("/")) in keys


def test_after_an_event_the_cluster_has_the_new_object() -> None:
    tool = _tool()
    for case in islice(tool.altered(_recorded("hints"), 3), 60):
        new = case["newObject"]
        if new is not None:
            assert [obj for obj in case["objects"] if tool.key(obj) == tool.key(new)] in ([new], [])


def test_alterations_lead_where_differences_were_found() -> None:
    made = list(islice(_tool().altered(_recorded("mixed"), 5), 300))
    text = [json.dumps(case) for case in made]
    for part in ('"disabled": [{"name": "*"}]', '"azureDisk"', '"kind": "VolumeAttachment"', "us-east1-b__us-east1-c"):
        assert any(part in case for case in text), part
    pods = [obj for case in made for obj in case["objects"] if obj["kind"] == "Pod"]
    assert any("deletionTimestamp" in pod["metadata"] for pod in pods)
    assert any(pod["status"].get("nominatedNodeName") for pod in pods if "status" in pod)
    waiting = [pod for pod in pods if not pod["spec"].get("nodeName")]
    assert not any("containerStatuses" in pod.get("status", {}) for pod in waiting), "no kubelet has seen them"
