"""`pilotage plugin`: lists, a file to start from, checks."""

from __future__ import annotations

import hashlib
import logging
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pilotage.cli.errors import ExitCode
from pilotage.cli.main import call
from pilotage.cli.scheduler_flags import SchedulerFlags

CONFIGS = Path(__file__).parents[1] / "data" / "configs"
LIGHTS = str(CONFIGS / "blinking_lights.py")
DIGEST = hashlib.sha256(Path(LIGHTS).read_bytes()).hexdigest()


def rows(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    assert call(["plugin", "list", *arguments]) == ExitCode.OK
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split() == ["PROFILE", "POINT", "ORDER", "PLUGIN", "WEIGHT", "ORIGIN", "SHA256"]
    return [line.split() for line in lines]


def test_the_default_plugins_are_listed_point_by_point(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows([], capsys)
    assert found[0] == ["default-scheduler", "preEnqueue", "1", "SchedulingGates", "-", "built-in", "-"]
    filters = [row for row in found if row[1] == "filter"]
    assert [row[2] for row in filters] == [str(at) for at in range(1, len(filters) + 1)]
    assert [row[3] for row in filters][:3] == ["NodeName", "NodeUnschedulable", "TaintToleration"]
    assert ["default-scheduler", "score", "1", "TaintToleration", "3", "built-in", "-"] in found


def test_order_weight_and_origin_follow_the_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(["--config", str(CONFIGS / "own_list_of_scores.yaml"), "--plugin", LIGHTS], capsys)
    assert [row[2:] for row in found if row[1] == "score"] == [
        ["1", "NodeResourcesFit", "2", "built-in", "-"],
        ["2", "TaintToleration", "1", "built-in", "-"],
    ]
    # The configuration switches all other scores off, so the loaded plugin serves nowhere.
    assert ["default-scheduler", "-", "-", "BlinkingLights", "-", LIGHTS, DIGEST[:12]] in found


def test_a_loaded_plugin_is_the_last_of_its_point(capsys: pytest.CaptureFixture[str]) -> None:
    scores = [row for row in rows(["--plugin", LIGHTS], capsys) if row[1] == "score"]
    assert scores[-1][3:] == ["BlinkingLights", "1", LIGHTS, DIGEST[:12]]


def test_what_is_loaded_is_logged_with_its_origin_and_hash(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        SchedulerFlags(plugins=(Path(LIGHTS),)).options()
    assert f"plugin loaded: plugin=BlinkingLights origin={LIGHTS} sha256={DIGEST}" in caplog.messages


def test_the_list_can_be_had_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["plugin", "list", "-o", "json", "--config", str(CONFIGS / "two_profiles.yaml")]) == ExitCode.OK
    found = msgspec.json.decode(capsys.readouterr().out)
    assert {row["profile"] for row in found} == {"default-scheduler", "no-scoring-scheduler"}
    assert not [row for row in found if row["profile"] == "no-scoring-scheduler" and row["point"] == "score"]
    assert set(found[0]) == {"profile", "point", "order", "plugin", "weight", "origin", "sha256"}


def test_a_gated_plugin_is_not_listed_when_its_gate_is_off(capsys: pytest.CaptureFixture[str]) -> None:
    plain = {(row[1], row[3]) for row in rows([], capsys)}
    gated = {(row[1], row[3]) for row in rows(["--feature-gates", "NodeDeclaredFeatures=false"], capsys)}
    assert {name for _, name in plain ^ gated} == {"NodeDeclaredFeatures"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--config", "none.yaml"], "error: none.yaml: cannot be read"),
        (["--plugin", "none.py"], "error: none.py: there is no such file; pilotage plugin new"),
        (["--plugin", LIGHTS, "--plugin", str(CONFIGS / ".." / "configs" / "blinking_lights.py")], ""),
        (["--feature-gates", "X=true"], "error: feature gates: unrecognized feature gate: X"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same file twice, by two names, is no problem: it is loaded once."""
    assert call(["plugin", "list", *arguments]) == (ExitCode.BAD_INPUT if problem else ExitCode.OK)
    assert capsys.readouterr().err.startswith(problem)


def test_a_new_plugin_works_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(["plugin", "new", "SunnyGPUNodes"]) == ExitCode.OK
    assert capsys.readouterr().out == "wrote sunny_gpu_nodes.py and test_sunny_gpu_nodes.py\n"
    assert call(["plugin", "check", "sunny_gpu_nodes.py"]) == ExitCode.OK
    assert capsys.readouterr().out == "sunny_gpu_nodes.py: SunnyGPUNodes is all right: it serves filter, score\n"
    assert call(["plugin", "list", "--plugin", "sunny_gpu_nodes.py"]) == ExitCode.OK


def test_the_tests_of_a_new_plugin_pass(tmp_path: Path) -> None:
    assert call(["plugin", "new", "SunnyNodes", "--directory", str(tmp_path)]) == ExitCode.OK
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "test_sunny_nodes.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("sunny-nodes", '"sunny-nodes" cannot be the name of a plugin: write it in CamelCase, such as SunnyNodes'),
        ("9", '"9" cannot be the name of a plugin: write it in CamelCase, such as SunnyNodes'),
        ("NodeName", 'a plugin named "NodeName" already exists (built-in); choose another name'),
    ],
)
def test_a_name_that_cannot_be_is_rejected(
    name: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["plugin", "new", name, "--directory", str(tmp_path)]) == ExitCode.BAD_INPUT
    assert capsys.readouterr().err == f"error: {problem}\n"
    assert not list(tmp_path.iterdir())


def test_an_existing_file_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_sunny.py").write_text("precious")
    assert call(["plugin", "new", "Sunny", "--directory", str(tmp_path)]) == ExitCode.BAD_INPUT
    assert "test_sunny.py already exists" in capsys.readouterr().err
    assert (tmp_path / "test_sunny.py").read_text() == "precious"
    assert not (tmp_path / "sunny.py").exists()


def test_a_directory_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["plugin", "new", "Sunny", "--directory", str(tmp_path / "none")]) == ExitCode.BAD_INPUT
    assert "sunny.py cannot be written: no such file or directory" in capsys.readouterr().err


def test_a_name_that_python_keeps_for_itself_gets_another_file(tmp_path: Path) -> None:
    assert call(["plugin", "new", "Import", "--directory", str(tmp_path)]) == ExitCode.OK
    assert call(["plugin", "check", str(tmp_path / "import_plugin.py")]) == ExitCode.OK


HEAD = "from pilotage.api import Filter, Plugin\n"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (HEAD + "class X(Plugin, Filter):\n    def filter(self, pod): ...\n", ":3: X.filter must take"),
        (HEAD + "class NodeName(Plugin, Filter):\n    def filter(self, s, p, n): ...\n", "already exists (built-in)"),
        (
            HEAD + "class X(Plugin, Filter):\n    def __init__(self): 1 / 0\n    def filter(self, s, p, n): ...\n",
            'plugin "X" cannot be made: ZeroDivisionError: division by zero',
        ),
    ],
)
def test_a_file_with_problems_is_rejected(
    source: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.py"
    file.write_text(source)
    assert call(["plugin", "check", str(file)]) == ExitCode.BAD_INPUT
    captured = capsys.readouterr()
    assert captured.err.startswith(f"error: {file}")
    assert problem in captured.err
    assert captured.out == ""


def test_arguments_of_the_configuration_are_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "c.yaml"
    config.write_text('{"pluginConfig": [{"name": "BlinkingLights", "args": {"lable": "x"}}]}')
    assert call(["plugin", "check", LIGHTS, "--config", str(config)]) == ExitCode.BAD_INPUT
    assert 'pluginConfig[0].args.lable: unknown field (did you mean "label"?)' in capsys.readouterr().err


def test_a_plugin_that_does_not_meet_requirements_is_rejected_with_the_evidence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """This one believes that every label is a number from 0 to 100."""
    assert call(["plugin", "check", LIGHTS]) == ExitCode.BAD_INPUT
    err = capsys.readouterr().err
    assert f"error: {LIGHTS}: BlinkingLights does not meet requirements: exceptions" in err
    assert "ValueError: invalid literal for int()" in err and "return int(node.labels.get(self.label, 0))" in err


def test_a_plugin_is_only_loaded_if_no_clusters_are_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["plugin", "check", LIGHTS, "--worlds", "0"]) == ExitCode.OK
    assert capsys.readouterr().out == f"{LIGHTS}: BlinkingLights is all right: it serves score\n"


def test_what_a_plugin_costs_is_measured_in_turns(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--nodes", "3", "--init-pods", "0", "--pods", "20", "--turns", "2"]
    assert call(["plugin", "bench", LIGHTS, *sizes, "-o", "json"]) == ExitCode.OK
    facts = msgspec.json.decode(capsys.readouterr().out)
    assert facts["turns"] == 2 and facts["podsPerTurn"] == 5
    assert facts["cpuMicros"]["with"] > 0 < facts["podsPerSecond"]["ratio"]
    assert call(["plugin", "bench", LIGHTS, *sizes]) == ExitCode.OK
    assert "with BlinkingLights" in capsys.readouterr().out


def test_a_plugin_that_runs_nowhere_has_no_cost_to_measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- plugins: {multiPoint: {disabled: [{name: BlinkingLights}]}}\n"
    )
    assert call(["plugin", "bench", LIGHTS, "--config", str(config)]) == ExitCode.BAD_INPUT
    assert "enable BlinkingLights" in capsys.readouterr().err
