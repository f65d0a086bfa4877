"""Which runs a spec asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.config.problems import ConfigError
from pilotage.lab.sweep.spec import MOST_RUNS, read_spec
from tests.lab.sweep.specs import BOTH, faulty, fitting, runs, spec, trace


def test_all_combinations_in_the_order_of_the_spec(tmp_path: Path) -> None:
    found = runs(tmp_path, configurations=[{"name": "default"}, BOTH], seeds=2, ties=["scheduler", "first"])
    assert len({run.digest for run in found}) == len(found) == 3 * 2 * 2
    assert [(run.seed, run.ties) for run in found[:4]] == [
        (0, "scheduler"),
        (0, "first"),
        (1, "scheduler"),
        (1, "first"),
    ]
    assert "LeastAllocated" in found[4].config and "MostAllocated" in found[8].config


def test_arguments_replace_fields_and_leave_the_others(tmp_path: Path) -> None:
    args = {**fitting("MostAllocated"), "ignoredResources": ["example.com/x"]}
    profile = {"schedulerName": "default-scheduler", "pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({**config, "profiles": [profile]}))
    (run,) = runs(
        tmp_path,
        configurations=[
            {"name": "c", "config": "c.yaml", "arguments": {"NodeResourcesFit": [fitting("LeastAllocated")]}}
        ],
    )
    assert "example.com/x" in run.config and "LeastAllocated" in run.config and "MostAllocated" not in run.config


def test_the_name_of_a_run_follows_from_content_and_not_from_paths(tmp_path: Path) -> None:
    first, second = runs(tmp_path / "one"), runs(tmp_path / "two")
    assert [run.digest for run in first] == [run.digest for run in second]
    assert first[0].trace_path != second[0].trace_path


@pytest.mark.parametrize("what", ["trace", "plugin", "seed", "until"])
def test_another_input_is_another_run(tmp_path: Path, what: str) -> None:
    configurations = [faulty(tmp_path, once=True)]
    fields: dict[str, Any] = {"configurations": configurations, "seeds": [3]}
    (before,) = runs(tmp_path, **fields)
    path = spec(tmp_path, **fields)
    if what == "trace":
        trace(tmp_path, pods=13)
    elif what == "plugin":
        file = tmp_path / "faulty.py"
        file.write_text(file.read_text() + "# changed\n")
    else:
        path = spec(tmp_path, **fields | {"seed": {"seeds": [4]}, "until": {"until": "1h"}}[what])
    (after,) = read_spec(path)
    assert after.digest != before.digest


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"seeds": 0}, "seeds: Invalid value: 0"),
        ({"seeds": 2 * MOST_RUNS}, "1 to 100,000"),
        ({"seeds": 50_001, "configurations": [BOTH]}, "asks for 100,002 runs"),
        ({"ties": ["none"]}, 'ties[0]: Unsupported value: "none"'),
        ({"until": "soon"}, "until: "),
        ({"every": "0s"}, "must be more than nothing"),
        ({"traces": []}, "traces: Required value"),
        ({"traces": ["missing.gz"]}, "missing.gz: cannot be read"),
        ({"configurations": [{"name": "a"}, {"name": "a"}]}, 'Duplicate value: "a"'),
        ({"configurations": [{"name": "a", "arguments": {"X": []}}]}, "must be a list of objects"),
        ({"surprise": 1}, "surprise: unknown field"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        runs(tmp_path, **fields)
    assert text in str(raised.value)
