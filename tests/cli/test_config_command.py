"""`pilotage config`: everything that is wrong at once, and the defaults as a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.assembly import SchedulerOptions, options_from_configuration
from pilotage.cli.errors import ExitCode
from pilotage.cli.main import call
from pilotage.config.load import parse_configuration

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
EXAMPLES = sorted([*CONFIGS.glob("*.yaml"), *CONFIGS.glob("*.json")])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_configurations_as_users_have_them_are_valid(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["config", "check", str(path)]) == ExitCode.OK
    assert capsys.readouterr().out.startswith(f"{path} is valid: ")


def test_all_problems_are_shown_with_line_path_and_suggestion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "paralelism: 3\n"
        "podInitialBackoffSeconds: 0\n"
        "profiles:\n"
        "- schedulerName: gpu\n"
        "  plugins:\n"
        "    filter:\n"
        "      disabled:\n"
        "      - name: TaintTolerations\n"
        "  pluginConfig:\n"
        "  - name: InterPodAffinity\n"
        "    args:\n"
        "      hardPodAffinityWeight: 200\n"
        "      ignorePreferredTerms: true\n"
        "---\n"
        "apiVersion: config.pilotage.dev/v1alpha1\n"
        "kind: PilotageConfiguration\n"
        "featureGates: {GenericWorklod: true}\n"
    )
    assert call(["config", "check", str(file)]) == ExitCode.BAD_INPUT
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.replace(str(file), "F").splitlines() == [
        'error: F: featureGates: unrecognized feature gate: GenericWorklod (did you mean "GenericWorkload"?)',
        'error: F:3: paralelism: unknown field (did you mean "parallelism"?)',
        "error: F:4: podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
        'error: F:10: profiles[0].plugins.filter.disabled[0]: profile "gpu": unknown plugin "TaintTolerations" '
        '(did you mean "TaintToleration"?)',
        "error: F:14: profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 200: "
        "not in valid range [0-100]",
        "error: F:15: profiles[0].pluginConfig[0].args.ignorePreferredTerms: unknown field "
        '(did you mean "ignorePreferredTermsOfExistingPods"?)',
    ]


def test_a_file_that_is_not_there_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["config", "check", "none.yaml"]) == ExitCode.BAD_INPUT
    assert capsys.readouterr().err == "error: none.yaml: cannot be read: no such file or directory\n"


def test_a_plugin_file_that_the_configuration_names_is_looked_for_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("apiVersion: config.pilotage.dev/v1alpha1\nkind: PilotageConfiguration\npluginFiles: [mine.py]\n")
    assert call(["config", "check", str(file)]) == ExitCode.BAD_INPUT
    assert f"{tmp_path / 'mine.py'}: there is no such file" in capsys.readouterr().err


def test_plugins_of_the_command_line_may_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.yaml"
    file.write_text('{"plugins": {"score": [{"name": "BlinkingLights"}]}}')
    assert call(["config", "check", str(file)]) == ExitCode.BAD_INPUT
    assert 'unknown plugin "BlinkingLights"' in capsys.readouterr().err
    assert call(["config", "check", str(file), "--plugin", str(CONFIGS / "blinking_lights.py")]) == ExitCode.OK


def test_the_defaults_are_a_configuration_that_means_the_same_as_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["config", "defaults"]) == ExitCode.OK
    text = capsys.readouterr().out
    assert "- name: TaintToleration\n        weight: 3\n" in text
    assert "kind: NodeResourcesFitArgs" in text
    options = options_from_configuration(parse_configuration(text))
    assert options.profiles == SchedulerOptions().profiles
    assert options.backoff == SchedulerOptions().backoff


def test_a_profile_that_does_not_wait_for_the_members_of_gangs_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- {schedulerName: d}\n"
        "- {schedulerName: s, plugins: {multiPoint: {disabled: [{name: GangScheduling}]}}}\n"
    )
    assert call(["config", "check", str(file)]) == ExitCode.OK
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "GangScheduling" in line]
    assert 'profile "s": GangScheduling is disabled: gangs are still placed all or nothing' in said


def test_the_configuration_of_workload_queueing_is_checked_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kueue.yaml"
    head = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
    file.write_text(head + "waitForPodsReady: {timeout: 5m}\n")
    assert call(["config", "check", str(file)]) == 0
    assert "workload queueing, eviction of workloads that are not ready after 5m0s" in capsys.readouterr().out
    file.write_text(head + "waitForPodsReady: {timout: 5m}\n")
    assert call(["config", "check", str(file)]) == 2
    assert 'kueue.yaml:3: waitForPodsReady.timout: unknown field (did you mean "timeout"?)' in capsys.readouterr().err
