"""Cases: one decision, kept and played again."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.assembly import SchedulerOptions
from pilotage.explain.engine import cluster_of_manifests
from pilotage.explain.subject import find_subject
from pilotage.lab.case import Case, CaseError, CaseFiles, Decision, capture, opened, replay_case
from pilotage.testing import node, pod

START = "2026-11-16T00:00:00Z"
NODES = [node("small").cpu("1").json(), node("large").cpu("8").json()]


def _captured(
    tmp_path: Path, *objects: dict[str, Any], name: str = "p", config: Path | None = None
) -> tuple[Case, Path]:
    cluster = cluster_of_manifests(objects)
    output = tmp_path / "case.tar.gz"
    files = CaseFiles(config=config, plugin_files=(), feature_gates="", start=START)
    return capture(cluster, find_subject(cluster, name, "default"), SchedulerOptions(), files, output), output


def test_it_plays_again_to_the_same_decision(tmp_path: Path) -> None:
    case, path = _captured(tmp_path, *NODES, pod("p").requests(cpu="2").json())
    assert case.decision == replay_case(path) == Decision(node="large")


def test_a_pod_that_fits_nowhere(tmp_path: Path) -> None:
    case, path = _captured(tmp_path, *NODES, pod("p").requests(cpu="9").json())
    assert case.decision.node is None and "2 Insufficient cpu" in (case.decision.reason or "")
    assert replay_case(path) == case.decision


def test_a_pod_that_runs_is_decided_anew_and_what_is_beside_it_counts(tmp_path: Path) -> None:
    other = pod("other").requests(cpu="8").node("large").json()
    case, path = _captured(tmp_path, *NODES, other, pod("p").requests(cpu="1").node("large").json())
    assert case.was_on == "large" and replay_case(path) == Decision(node="small")


def test_what_may_be_a_secret_is_not_in_it_and_others_that_wait_are_not_either(tmp_path: Path) -> None:
    subject = pod("p").annotation("token", "SECRET").json()
    subject["spec"]["containers"][0] |= {"env": [{"name": "A", "value": "SECRET"}], "args": ["SECRET"]}
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "s"}, "provisioner": "x"}
    objects = [*NODES, subject, pod("waits").json(), storage | {"parameters": {"password": "SECRET"}}]
    case, path = _captured(tmp_path, *objects)
    with opened(path) as one:
        text = one.trace.read_text()
    assert "SECRET" not in text and '"waits"' not in text and "StorageClass" in text
    assert case.left_out == ("other pods that wait (1)",)


def test_a_configuration_goes_along_without_what_would_run_code(tmp_path: Path) -> None:
    args = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 100}]}}
    profile = {"schedulerName": "mine", "pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}
    kube = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    own = {"apiVersion": "config.pilotage.dev/v1alpha1", "kind": "PilotageConfiguration", "pluginFiles": ["gone.py"]}
    config = tmp_path / "c.yaml"
    config.write_text(yaml.safe_dump_all([kube, own]))
    case, path = _captured(tmp_path, *NODES, pod("p").scheduler("mine").requests(cpu="1").json(), config=config)
    assert case.left_out == ("pluginFiles of the configuration",)
    assert replay_case(path) == case.decision == Decision(node="small")


def test_nothing_is_decided_about_a_pod_of_somebody_else(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="no profile has its schedulerName"):
        _captured(tmp_path, *NODES, pod("p").scheduler("other").json())


def _archive(path: Path, **members: bytes) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name.replace("__", "/").replace("_", "."))
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_files_that_are_no_cases(tmp_path: Path) -> None:
    path = tmp_path / "c.tar.gz"
    path.write_bytes(b"nothing")
    with pytest.raises(CaseError, match="is no case"):
        replay_case(path)
    with pytest.raises(CaseError, match="/etc/passwd"):
        replay_case(_archive(path, __etc__passwd=b"x"))
    with pytest.raises(CaseError, match="is no case"):
        replay_case(_archive(path, case_json=b"{}"))
    with pytest.raises(CaseError, match="of version 7"):
        replay_case(_archive(path, case_json=b'{"pilotageCase": 7, "pod": "a/b"}'))
    with pytest.raises(CaseError, match="names pluginFiles, which no case does"):
        replay_case(
            _archive(path, case_json=b'{"pilotageCase": 1, "pod": "a/b"}', scheduler_yaml=b"pluginFiles: [/tmp/x.py]")
        )
    with pytest.raises(CaseError, match="Mine took part in the decision"):
        replay_case(_archive(path, case_json=b'{"pilotageCase": 1, "pod": "a/b", "plugins": {"Mine": "00"}}'))


def test_the_same_cluster_makes_the_same_bytes(tmp_path: Path) -> None:
    objects = [*NODES, pod("p").requests(cpu="2").json()]
    first = _captured(tmp_path, *objects)[1].read_bytes()
    with tarfile.open(fileobj=io.BytesIO(first)) as one, tarfile.open(_captured(tmp_path, *objects)[1]) as two:
        for a, b in zip(one, two, strict=True):
            left, right = one.extractfile(a), two.extractfile(b)
            assert left is not None and right is not None
            assert (a.name, a.mtime, left.read()) == (b.name, 0, right.read())
