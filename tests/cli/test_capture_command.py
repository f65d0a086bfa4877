"""`pilotage capture` as its user calls it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pilotage.cli.main import call
from pilotage.testing import node, pod

PLUGIN = """
from pilotage.api import CycleState, Filter, NodeView, Plugin, Pod, Reason, Reject

class OnlyB(Plugin, Filter):
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Reject | None:
        return None if node.name == "b" else Reject(Reason("Other", "not that one"))
"""


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "cluster.yaml"
    objects = [node("a").cpu("8").json(), node("b").cpu("4").json(), pod("p").requests(cpu="1").json()]
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


def test_a_case_that_simulate_plays(cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = str(tmp_path / "case.tar.gz")
    assert call(["capture", "pod/p", "-f", cluster, "-o", case]) == 0
    assert "default/p: goes to a" in capsys.readouterr().out
    assert call(["simulate", case]) == 0
    assert "default/p: goes to a, as when the case was made" in capsys.readouterr().out
    assert (tmp_path / "case.result" / "decisions.jsonl").exists()


@pytest.mark.e2e
def test_the_test_that_it_writes_passes_and_can_fail(cluster: str, tmp_path: Path) -> None:
    plugin, case, test = tmp_path / "only_b.py", tmp_path / "c" / "case.tar.gz", tmp_path / "t" / "test_p.py"
    plugin.write_text(PLUGIN)
    case.parent.mkdir()
    test.parent.mkdir()
    arguments = ["capture", "p", "-f", cluster, "-o", str(case), "--plugin", str(plugin), "--pytest", str(test)]
    assert call(arguments) == 0
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    passed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert passed.returncode == 0 and "1 passed" in passed.stdout, passed.stdout
    plugin.write_text(PLUGIN.replace('"b"', '"a"'))
    failed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert failed.returncode == 1 and "Decision(node='a'" in failed.stdout, failed.stdout


def test_plugins_are_asked_for_and_not_carried(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin, case = tmp_path / "only_b.py", str(tmp_path / "case.tar.gz")
    plugin.write_text(PLUGIN)
    assert call(["capture", "p", "-f", cluster, "-o", case, "--plugin", str(plugin)]) == 0
    assert "goes to b" in capsys.readouterr().out
    assert call(["simulate", case]) == 2
    assert "OnlyB took part in the decision" in capsys.readouterr().err
    plugin.write_text(PLUGIN.replace('"b"', '"a"'))
    assert call(["simulate", case, "--plugin", str(plugin)]) == 0
    shown = capsys.readouterr()
    assert "OnlyB is not the code" in shown.err and "goes to a; when the case was made: goes to b" in shown.out


WATCHES = """
from typing import Any
from pilotage.api import ApiObject, CycleState, Filter, Handle, Kind, NodeView, Plugin, Pod, Reason, Reject, Shape

class PolicySpec(Shape, frozen=True):
    node: str = ""

class NodePolicyObject(ApiObject, frozen=True):
    spec: PolicySpec = PolicySpec()

POLICIES = Kind("policies.example.com", "v1", {struct})

class Policed(Plugin, Filter):
    watches = (POLICIES,)

    def __init__(self, args: None, handle: Handle) -> None:
        self._policies = handle.objects(POLICIES)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Reject | None:
        policy: Any = self._policies[pod.key]
        allowed = policy["spec"]["node"] if isinstance(policy, dict) else policy.spec.node
        return None if node.name == allowed else Reject(Reason("Policy", "not that one"))
"""


@pytest.mark.parametrize("struct", ["NodePolicyObject", "None"])
def test_objects_that_a_plugin_reads(
    struct: str, cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin, case, policy = tmp_path / "p.py", str(tmp_path / "case.tar.gz"), tmp_path / "policy.yaml"
    plugin.write_text(WATCHES.format(struct=struct))
    metadata = {"name": "p", "namespace": "default"}
    one = {"apiVersion": "example.com/v1", "kind": "Policy", "metadata": metadata, "spec": {"node": "b"}}
    policy.write_text(yaml.safe_dump(one))
    given = ["-f", cluster, "-f", str(policy), "--plugin", str(plugin)]
    assert call(["capture", "p", *given, "-o", case]) == 0, capsys.readouterr().err
    assert "goes to b" in capsys.readouterr().out
    assert call(["simulate", case, "--plugin", str(plugin)]) == 0
    assert "goes to b, as when the case was made" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["p", "-o", "case.zip"], "it ends in .tar.gz"),
        (["q", "-o", "case.tar.gz"], 'pod "q" not found'),
        (["p", "-o", "missing/case.tar.gz"], "cannot be written"),
    ],
)
def test_wrong_input(
    arguments: list[str],
    text: str,
    cluster: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(["capture", "-f", cluster, *arguments]) == 2
    assert text in capsys.readouterr().err
