"""`pilotage scenario`: what it prints and which code it exits with."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.cli.errors import ExitCode
from pilotage.cli.main import call

REQUEUE = Path(__file__).parents[1] / "data" / "requeue" / "scenarios.yaml"
WRONG = """\
version: 1
kind: scheduling
scenarios:
- id: right
  tier: common
  steps:
  - apply: [{node: {name: n}}, {pod: {name: p}}]
  - expect: {pods: {p: {node: n}}}
- id: wrong
  title: The pod is said to be elsewhere
  tier: common
  steps:
  - apply: [{node: {name: n}}, {pod: {name: p}}]
  - expect: {pods: {p: {node: elsewhere}}}
"""


def test_scenarios_that_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["scenario", str(REQUEUE), "-k", "uncordon", "-k", "backoff-doubles"]) == ExitCode.OK
    assert capsys.readouterr().out == "pass  uncordon\npass  backoff-doubles\n2 of 2 passed (essential 2/2)\n"


def test_a_scenario_that_fails_is_shown_with_its_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(WRONG)
    with pytest.raises(SystemExit) as ended:
        call(["scenario", str(path)])
    assert ended.value.code == ExitCode.FAILED
    assert capsys.readouterr().out == (
        "pass  right\n"
        "FAIL  wrong\n"
        "      The pod is said to be elsewhere\n"
        "      step 2 (at 0 s): pod p: node: expected elsewhere, is n\n"
        "1 of 2 passed (common 1/2)\n"
    )


def test_a_file_that_does_not_parse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("version: [")
    assert call(["scenario", str(REQUEUE), str(path)]) == ExitCode.BAD_INPUT
    output = capsys.readouterr()
    assert output.out == "" and output.err.startswith(f"error: {path}: is not YAML: ")


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["scenario", "nowhere.yaml"]) == ExitCode.BAD_INPUT
    assert capsys.readouterr().err == "error: nowhere.yaml: cannot be read: No such file or directory\n"


def test_an_id_that_no_scenario_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["scenario", str(REQUEUE), "-k", "unheard-of"]) == ExitCode.BAD_INPUT
    assert capsys.readouterr().err == "error: none of 98 scenarios has unheard-of in its id\n"


QUEUEING = """\
version: 1
scenarios:
- id: small
  title: Two do not fit
  tier: common
  steps:
  - apply:
    - flavor: {name: std}
    - clusterQueue: {name: q, groups: [{resources: [cpu], flavors: [{name: std, quotas: {cpu: 1}}]}]}
    - localQueue: {name: lq, clusterQueue: q}
    - workload: {name: a, queue: lq, requests: {cpu: 1}}
    - workload: {name: b, queue: lq, requests: {cpu: 1}}
  - expect: {holding: [a, b]}
"""


def test_queueing_scenarios_are_played_by_the_same_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(QUEUEING)
    with pytest.raises(SystemExit) as ended:
        call(["scenario", str(path), str(REQUEUE), "-k", "small", "-k", "uncordon"])
    assert ended.value.code == ExitCode.FAILED
    difference = "step 2 (at 0 s): holding: expected ['a', 'b'], is ['a']"
    assert capsys.readouterr().out.startswith(f"FAIL  small\n      Two do not fit\n      {difference}\n")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("holding", "held", "small: unknown expectation: held"),
        ("flavor: {name: std}", "flavour: {name: std}", 'small: unknown object "flavour"'),
        ("{name: a, queue: lq", "{name: a, que: lq", "small: workload: unknown field que"),
        ("version: 1", "version: 1\nkind: cooking", 'is of an unknown kind "cooking"'),
        ("  - apply:", "  - aply:", 'small: step 1: unknown step "aply"'),
        ("title: Two", "config: {waitForPodsReady: {timeout: -1s}}\n  title: Two", "waitForPodsReady.timeout"),
    ],
)
def test_a_queueing_file_that_makes_no_sense_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, problem: str
) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(QUEUEING.replace(old, new))
    assert call(["scenario", str(path)]) == ExitCode.BAD_INPUT
    assert problem in capsys.readouterr().err


SUNNY = """\
from pilotage.api import CycleState, Filter, Handle, NodeView, Plugin, Pod, Reason, Reject


class Sunny(Plugin, Filter):
    raw_kinds = frozenset(["Pod"])

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._sun = False
        handle.run_in_background(self._rise)

    async def _rise(self) -> None:
        await self._handle.clock.sleep(30)
        self._sun = True

    def filter(self, state: CycleState, pod: Pod, node: NodeView):
        assert self._handle.raw(pod)["metadata"]["name"] == pod.name
        return None if self._sun else Reject(Reason("Night", "it is night"))
"""
NIGHT = """\
version: 1
kind: scheduling
scenarios:
- id: night
  steps:
  - apply: [{node: {name: n}}, {pod: {name: p}}]
  - expect: {pods: {p: {queue: unschedulable, rejectedBy: [Sunny]}}}
  - advance: 31
  - update: [{node: n, set: {labels: {a: b}}}]
  - advance: 1
  - expect: {pods: {p: {node: n}}}
"""


@pytest.mark.parametrize("by_flag", [True, False])
def test_plugins_of_files_play_along(tmp_path: Path, by_flag: bool, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sunny.py").write_text(SUNNY)
    path = tmp_path / "night.yaml"
    path.write_text(NIGHT if by_flag else NIGHT.replace("- id: night\n", "- id: night\n  pluginFiles: [sunny.py]\n"))
    flags = ["--plugin", str(tmp_path / "sunny.py")] if by_flag else []
    assert call(["scenario", str(path), *flags]) == ExitCode.OK, capsys.readouterr().out
    assert call(["scenario", str(path), "--plugin", str(tmp_path / "sunny.py")]) == ExitCode.OK, (
        "named twice, loaded once"
    )


def test_a_plugin_file_that_cannot_be_used_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "night.yaml"
    path.write_text(NIGHT)
    assert call(["scenario", str(path), "--plugin", str(tmp_path / "none.py")]) == ExitCode.BAD_INPUT
    assert "none.py: there is no such file" in capsys.readouterr().err
    path.write_text(NIGHT.replace("- id: night\n", "- id: night\n  pluginFiles: [none.py]\n"))
    assert call(["scenario", str(path)]) == ExitCode.BAD_INPUT
    assert "night: " in capsys.readouterr().err
