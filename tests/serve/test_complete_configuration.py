"""The complete configuration says what applies, and means the same when it is read back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from pilotage.assembly import SchedulerOptions, options_from_configuration
from pilotage.cli.main import call
from pilotage.cli.scheduler_flags import SchedulerFlags
from pilotage.config.feature_gates import FEATURE_GATES, FeatureGates
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.config.load import parse_configuration
from pilotage.config.render import plain, render
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.serve.complete_configuration import complete_configuration

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
EXAMPLES = sorted([*CONFIGS.glob("*.yaml"), *CONFIGS.glob("*.json")])
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def written(configuration: SchedulerConfiguration, options: SchedulerOptions) -> str:
    return render(complete_configuration(configuration, options, []))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_means_the_same_when_it_is_read_back(path: Path) -> None:
    flags = SchedulerFlags(path)
    configuration = flags.read()
    loaded = flags.loaded(configuration)
    options = options_from_configuration(configuration, loaded)
    text = render(complete_configuration(configuration, options, flags.plugin_paths(configuration)))
    again = parse_configuration(text)
    assert all(os.path.isabs(name) for name in again.additions.plugin_files)
    assert len(again.additions.plugin_files) == len(configuration.additions.plugin_files)
    reloaded = options_from_configuration(again, loaded)
    assert reloaded.profiles == options.profiles
    assert (reloaded.backoff, reloaded.feature_gates) == (options.backoff, options.feature_gates)
    assert reloaded.calls_per_second == options.calls_per_second


@pytest.mark.parametrize(
    "profile",
    [
        "plugins: {score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 7}]}}",
        "plugins: {filter: {disabled: [{name: NodePorts}]}}",
        "plugins: {multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}]}}",
        "plugins: {multiPoint: {enabled: [{name: ImageLocality, weight: 9}, {name: NodeName}]}}",
        "plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}, filter: {enabled: [{name: NodeResourcesFit}]}}",
        "plugins: {permit: {disabled: [{name: '*'}]}, postFilter: {disabled: [{name: DefaultPreemption}]}}",
        "percentageOfNodesToScore: 30",
        "pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 5}}]",
    ],
)
def test_any_choice_of_plugins_survives(profile: str) -> None:
    before = parse_configuration(f"{HEAD}profiles:\n- {{schedulerName: a, {profile}}}\n- {{schedulerName: b}}\n")
    options = options_from_configuration(before)
    assert options_from_configuration(parse_configuration(written(before, options))).profiles == options.profiles


@pytest.mark.parametrize(
    "gate", [name for name, gate in FEATURE_GATES.items() if not gate.is_locked and not gate.needs]
)
def test_any_gate_survives(gate: str) -> None:
    """Also those that forbid arguments or take a plugin away."""
    chosen = {gate: not FEATURE_GATES[gate].default}
    if gate == "DRADeviceTaints":
        chosen["DRADeviceTaintRules"] = False
    gates = FeatureGates(chosen)
    before = SchedulerConfiguration()
    options = options_from_configuration(before, gates=gates)
    again = options_from_configuration(parse_configuration(written(before, options)))
    assert again.feature_gates == gates and again.profiles == options.profiles


def test_everything_is_filled_in() -> None:
    document, additions = yaml.safe_load_all(written(SchedulerConfiguration(), SchedulerOptions()))
    (profile,) = document["profiles"]
    names = [ref["name"] for ref in profile["plugins"]["multiPoint"]["enabled"]]
    assert names[:2] == ["SchedulingGates", "PrioritySort"] and "NodeResourcesFit" in names
    assert {"name": "TaintToleration", "weight": 3} in profile["plugins"]["multiPoint"]["enabled"]
    arguments = {entry["name"]: entry["args"] for entry in profile["pluginConfig"]}
    assert arguments["DefaultPreemption"]["minCandidateNodesAbsolute"] == 100
    assert profile["percentageOfNodesToScore"] == 0
    assert document["clientConnection"]["qps"] == -1 and document["clientConnection"]["burst"] == 100
    assert set(additions["featureGates"]) == set(FEATURE_GATES) and additions["cycleBudget"] == "500ms"


def test_flags_are_in_it_and_it_starts_the_same_scheduler(tmp_path: Path) -> None:
    written_to, again = tmp_path / "out.yaml", tmp_path / "again.yaml"
    lights = CONFIGS / "blinking_lights.py"
    gates = "NodeDeclaredFeatures=false"
    first = ["--plugin", os.path.relpath(lights), "--feature-gates", gates, "--leader-elect=false", "--kubeconfig=k"]
    assert call(["run", *first, "--write-config-to", str(written_to)]) == 0
    text = written_to.read_text()
    assert (
        str(lights.absolute()) in text
        and "NodeDeclaredFeatures: false" in text
        and f"kubeconfig: {Path('k').absolute()}" in text
    )
    assert call(["run", "--config", str(written_to), "--write-config-to", str(again)]) == 0
    assert again.read_text() == text
    assert call(["config", "check", str(written_to)]) == 0


def test_the_configuration_of_queueing_can_be_shown() -> None:
    assert plain(QueueingConfiguration())
