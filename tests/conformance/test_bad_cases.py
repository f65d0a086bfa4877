"""Files of cases that nobody could answer: the message says which case and what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pilotage.cli.conformance import conformance
from pilotage.testing import node, pod


def case_of(*objects: dict[str, Any], asked: str = "default/p") -> str:
    return json.dumps({"name": "own-1", "kind": "filter-score", "objects": objects, "pod": asked, "expected": {}})


WAITING, NODE = pod("p").json(), node("n").json()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (case_of(WAITING, asked="default/other"), "own-1: no pod default/other among the objects"),
        (case_of(WAITING | {"status": {"phase": "Failed"}}), "own-1: no pod default/p among the objects"),
        (case_of(WAITING, {"metadata": {"name": "x"}}), "own-1: an object of the unknown kind None"),
        (case_of(WAITING, NODE | {"kind": "Nod"}), "own-1: an object of the unknown kind 'Nod'"),
        (case_of(WAITING | {"metadata": 5}), "own-1: Pod: metadata: expected object"),
        (case_of(WAITING | {"spec": WAITING["spec"] | {"schedulerName": "mine"}}), "own-1: no profile for"),
        ("{}", "line 1: not a recorded case"),
        ("[", "line 1: not a recorded case"),
    ],
)
def test_the_message_names_case_and_problem(tmp_path: Path, line: str, problem: str) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(line)
    result = CliRunner().invoke(conformance, [str(file)])
    assert result.exit_code == 2
    assert problem in result.output
