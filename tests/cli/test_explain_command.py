"""`pilotage explain` of pod groups from manifests: answers, formats and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.cli.errors import ExitCode
from pilotage.cli.main import call
from pilotage.simulate.shorthands import full_object
from tests.cycle.group_stage import members
from tests.explain.test_inquiry import of_job

KUEUE = "kueue.x-k8s.io/v1beta2"
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "learn", "uid": "uid-learn", "controller": True}


def written(tmp_path: Path, *objects: dict[str, Any]) -> str:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([full_object(one) for one in objects]))
    return str(file)


def cluster(tmp_path: Path, minimum: int, *more: dict[str, Any]) -> str:
    group = {"podGroup": {"name": "train", "min": minimum}}
    return written(tmp_path, {"node": {"name": "n1", "cpu": "2"}}, group, *members("train", 3), *more)


@pytest.mark.parametrize(
    ("subject", "minimum", "code"),
    [
        ("podgroup/train", 2, ExitCode.OK),
        ("podgroup/train", 3, ExitCode.FAILED),
        ("podgroup/train", 4, ExitCode.FAILED),
        ("train-0", 2, ExitCode.OK),
        ("train-0", 3, ExitCode.FAILED),
        ("podgroup/tarin", 2, ExitCode.BAD_INPUT),
    ],
)
def test_the_exit_code_says_whether_the_group_fits(
    tmp_path: Path, subject: str, minimum: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["explain", subject, "-f", cluster(tmp_path, minimum)]) == code
    told = capsys.readouterr()
    if code == ExitCode.BAD_INPUT:
        assert '(did you mean "train"?)' in told.err


def test_every_format_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = cluster(tmp_path, 3)
    told = {}
    for output in ("text", "wide", "json", "yaml"):
        assert call(["explain", "podgroup/train", "-f", file, "-o", output]) == ExitCode.FAILED
        told[output] = capsys.readouterr().out
    data = json.loads(told["json"])
    assert data == yaml.safe_load(told["yaml"])
    assert (data["state"], data["fitNow"], data["minCount"]) == ("Unschedulable", 2, 3)
    assert told["text"].startswith(data["answer"]) and told["wide"].startswith(data["answer"])


def test_a_job_is_told_of_its_quota_first_and_then_of_its_gang(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    quota = {"name": "cpu", "nominalQuota": "1"}
    flavors = [{"name": "std", "resources": [quota]}]
    queue = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}]}
    metadata = {"name": "job-learn", "namespace": "default", "ownerReferences": [OWNER]}
    pod_sets = [{"name": "main", "count": 3, "template": {"spec": request}}]
    workload = {"queueName": "main", "podSets": pod_sets}
    file = written(
        tmp_path,
        {"node": {"name": "n1", "cpu": "2"}},
        {"podGroup": {"name": "train", "min": 3}},
        *of_job(members("train", 3), "learn"),
        {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "std"}},
        {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "team"}, "spec": queue},
        {
            "apiVersion": KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": "main", "namespace": "default"},
            "spec": {"clusterQueue": "team"},
        },
        {
            "apiVersion": KUEUE,
            "kind": "Workload",
            "metadata": metadata,
            "spec": workload,
        },
    )
    assert call(["explain", "job/learn", "-f", file, "-o", "json"]) == ExitCode.FAILED
    data = json.loads(capsys.readouterr().out)
    assert data["quota"]["workload"] == "default/job-learn" and data["quota"]["state"] == "pending"
    assert "quota for cpu" in data["quota"]["message"]
    assert data["answer"].index("quota for cpu") < data["answer"].index("pod group default/train does not fit")
    assert data["podGroup"]["fitNow"] == 2
