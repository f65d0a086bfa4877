"""What is written can be read back as the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.config.kinds import PilotageConfiguration, SchedulerConfiguration
from pilotage.config.load import default_configuration, load_configuration, parse_configuration
from pilotage.config.render import plain, render
from pilotage.plugins.args import DynamicResourcesArgs, NodeAffinityArgs, NodeResourcesFitArgs

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
EXAMPLES = sorted([*CONFIGS.glob("*.yaml"), *CONFIGS.glob("*.json")])


def test_the_default_configuration_is_written_complete() -> None:
    text = render(default_configuration())
    for line in ("parallelism: 16", "leaseDuration: 15s", "percentageOfNodesToScore: 0", "kubeconfig: ''"):
        assert line in text
    assert parse_configuration(text).scheduler == default_configuration().scheduler


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_survives_writing_and_reading(path: Path) -> None:
    before = load_configuration(path)
    after = parse_configuration(render(before))
    assert plain(after.scheduler) == plain(before.scheduler)
    assert after.additions == before.additions


def test_additions_are_only_written_if_there_are_any() -> None:
    assert "---" not in render(default_configuration())
    additions = PilotageConfiguration(("a.py",), {"X": False})
    assert parse_configuration(render(SchedulerConfiguration(additions=additions))).additions == additions


def test_arguments_are_written_as_files_have_them() -> None:
    assert plain(DynamicResourcesArgs(None, 90.5)) == {"bindingTimeout": "1m30.5s"}
    assert plain(NodeAffinityArgs()) == {}
    assert plain(NodeResourcesFitArgs())["scoringStrategy"] == {
        "type": "LeastAllocated",
        "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
    }
