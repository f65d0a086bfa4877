"""`pilotage plan` as its user calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pilotage.cli.main import call
from pilotage.testing import node, pod
from tests.lab.plan.test_workloads import workload


def _written(path: Path, *objects: object) -> str:
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    owned = pod("p").requests(cpu="1").owner("ReplicaSet", "r").node("a")
    nodes = [node(name).cpu("4").json() for name in ("a", "b")]
    return _written(tmp_path / "cluster.yaml", *nodes, owned.json(), pod("bare").node("b").json())


def test_what_fits(cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _written(tmp_path / "w.yaml", workload("Deployment", "w"))
    assert call(["plan", "fit", "-f", cluster, file]) == 0
    shown = capsys.readouterr().out
    assert "default/w: 3 more fit" in shown and "the next one does not: 0/2 nodes are available" in shown
    assert "would fit if" in shown
    assert call(["plan", "fit", "-f", cluster, file, "-o", "json", "--most", "2"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["copies"], found["stoppedBy"]) == (2, "")


def test_which_nodes_can_go(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["plan", "drain", "-f", cluster]) == 0
    shown = capsys.readouterr().out
    assert "default/bare has no controller" in shown and shown.endswith("at the same time: a\n")
    assert call(["plan", "drain", "-f", cluster, "b", "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["together"] == []


def test_how_many_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = _written(tmp_path / "w.yaml", workload("Deployment", "w", replicas=5))
    small, large = (
        _written(tmp_path / f"{n}.yaml", node(n).cpu(c).json()) for n, c in (("small", "2"), ("large", "8"))
    )
    (tmp_path / "prices.yaml").write_text("small: 1\nlarge: 3.5\n")
    shapes = ["--shape", small, "--shape", large, "--prices", str(tmp_path / "prices.yaml")]
    assert call(["plan", "nodes", "-f", work, *shapes, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mixes"][0]["nodes"] == {"small": 1, "large": 1} and found["mixes"][0]["cost"] == 4.5
    assert call(["plan", "nodes", "-f", work, "--shape", small, "--most-nodes", "4"]) == 1
    assert "nothing up to 4 nodes" in capsys.readouterr().out


@pytest.mark.e2e
def test_standard_input(tmp_path: Path) -> None:
    shape = _written(tmp_path / "s.yaml", node("s").cpu("4").json())
    command = [sys.executable, "-m", "pilotage", "plan", "nodes", "-f", "-", "--shape", shape, "-o", "json"]
    text = yaml.safe_dump_all([workload("Deployment", "w", replicas=3), workload("DaemonSet", "agent")])
    done = subprocess.run(command, check=False, input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["mixes"][0]["nodes"] == {"s": 3}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["drain", "-f", "CLUSTER", "c"], 'there is no node "c"'),
        (["drain", "-f", "WORK"], "there is no node in this cluster"),
        (["fit", "-f", "CLUSTER", "SHAPE"], "there is no pod in these files"),
        (["nodes", "--shape", "SHAPE"], "give a TRACE, or manifests"),
        (["nodes", "-f", "WORK", "--shape", "WORK"], "a shape is the manifest of a Node"),
        (["nodes", "-f", "SHAPE", "--shape", "SHAPE"], "there is no pod in these files"),
        (["nodes", "-f", "WORK", "--shape", "SHAPE", "--prices", "WORK"], "prices are a number per shape"),
        (["nodes", "missing.gz", "--shape", "SHAPE"], "missing.gz: cannot be read"),
    ],
)
def test_wrong_input(
    arguments: list[str], text: str, cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "CLUSTER": cluster,
        "WORK": _written(tmp_path / "w.yaml", workload("Deployment", "w")),
        "SHAPE": _written(tmp_path / "s.yaml", node("s").cpu("4").json()),
    }
    assert call(["plan", *(files.get(one, one) for one in arguments)]) == 2
    assert text in capsys.readouterr().err
