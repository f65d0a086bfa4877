"""`pilotage queues`, `jobs` and `explain workload/...` over manifests: what is shown, and what wrong names get."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from pilotage.cli.main import call
from tests.jobs.live.world import KUEUE, cluster_queue, flavor, local_queue

NOW = "2026-01-01T00:00:00Z"


def workload(name: str, cpu: int, *, queue: str = "lq", admitted: bool = False, **more: object) -> dict[str, object]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    status: dict[str, object] = {}
    if admitted:
        assignment = {"name": "main", "flavors": {"cpu": "std"}, "resourceUsage": {"cpu": str(cpu)}, "count": 1}
        status = {
            "conditions": [
                {"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": NOW}
                for type_ in ("QuotaReserved", "Admitted")
            ],
            "admission": {"clusterQueue": "cq", "podSetAssignments": [assignment]},
        }
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"{name}-job", "uid": f"{name}-uid", "controller": True}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": name, "uid": name, "creationTimestamp": NOW, "ownerReferences": [owner]},
        "spec": {
            "queueName": queue,
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}],
            **more,
        },
        "status": status,
    }


@pytest.fixture
def file(tmp_path: Path) -> str:
    objects = [
        flavor("std"),
        flavor("spot") | {"spec": {"nodeTaints": [{"key": "spot", "effect": "NoSchedule"}]}},
        cluster_queue(flavors={"std": 4, "spot": 100}),
        local_queue(),
        local_queue("nowhere", "missing"),
        workload("running", 3, admitted=True),
        workload("waiting", 2, priority=5),
        workload("huge", 200),
        workload("lost", 1, queue="typo"),
    ]
    path = tmp_path / "queues.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


def test_queues_show_quota_and_who_uses_it(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["queues", "-f", file]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["cq", "-", "BestEffortFIFO", "2", "1", "1", "active"] in lines
    assert ["cq", "std", "cpu", "4", "3", "0", "1", "-"] in lines
    assert ["default", "lq", "cq", "2", "1", "1", "std", "3", "cpu", "active"] in lines
    assert any("ClusterQueueDoesNotExist" in line for line in lines)


def test_queues_as_json(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["queues", "cq", "-f", file, "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    [queue] = told["clusterQueues"]
    assert queue["pending"] == 2 and queue["quotas"][0]["used"] == 3000
    assert [one["name"] for one in told["localQueues"]] == ["lq"]


def test_jobs_show_the_order(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["jobs", "-f", file, "-o", "json"]) == 0
    rows = {row["key"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == ["default/running", "default/waiting", "default/huge", "default/lost"]
    assert [row["position"] for row in rows.values()] == [None, 0, 1, None]
    assert rows["default/waiting"]["job"] == "waiting-job" and rows["default/waiting"]["priority"] == 5
    assert rows["default/lost"]["reason"] == "Misconfigured"
    assert call(["jobs", "-f", file, "--state", "admitted"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert len(table) == 2 and table[1].split()[:3] == ["default", "running-job", "lq"]


@pytest.mark.parametrize("name", ["waiting", "waiting-job"])
def test_explain_says_who_holds_what_is_missing(file: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["explain", f"workload/{name}", "-f", file]) == 1
    text = capsys.readouterr().out
    assert text.splitlines()[0] == "workload default/waiting waits, position 0 of cq: WaitingForQuota"
    assert "std: pod set main needs 2 cpu, 1 free" in text
    assert "default/running: 3 cpu of std" in text
    assert "untolerated taint spot" in text
    assert "when: quota released in the cohort tree" in text


def test_explain_tells_what_can_never_fit_and_what_is_wrong(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["explain", "workload/huge", "-f", file]) == 1
    assert "it could never have more than 4" in capsys.readouterr().out
    assert call(["explain", "workload/lost", "-f", file]) == 1
    assert "LocalQueue typo doesn't exist" in capsys.readouterr().out
    assert call(["explain", "workload/running", "-f", file]) == 0
    assert capsys.readouterr().out.startswith("workload default/running is admitted in cq")


def test_explain_names_the_head_of_a_strict_queue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strict = cluster_queue(queueingStrategy="StrictFIFO")
    objects = [flavor("std"), strict, local_queue(), workload("running", 3, admitted=True)]
    objects += [workload("large", 2, priority=1), workload("small", 1)]
    path = tmp_path / "queues.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    assert call(["explain", "workload/small", "-f", str(path)]) == 1
    text = capsys.readouterr().out
    assert "behind default/large: in a StrictFIFO queue nobody passes the first" in text
    assert "when: default/large is admitted, or leaves the queue" in text


def test_explain_names_the_bound_of_the_limit_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limits = {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}
    bounds = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "bounds"}, "spec": limits}
    file = tmp_path / "queues.yaml"
    objects = [flavor("std"), cluster_queue(), local_queue(), bounds, workload("wide", 3), workload("fine", 2)]
    file.write_text(yaml.safe_dump_all(objects))
    assert call(["explain", "workload/wide", "-f", str(file)]) == 1
    text = capsys.readouterr().out
    assert text.splitlines()[0] == "workload default/wide waits, position 0 of cq: Misconfigured"
    refused = text.partition("The API server would reject its pods:")[2]
    assert "pod set main: container c requests 3 cpu, more than its limit of 2 (the default of LimitRange" in refused
    assert "pod set main: maximum cpu usage per Container is 2, but request is 3 (container c, LimitRange" in refused
    assert "Flavors:" not in text and text.count("maximum cpu usage") == 1
    assert "when: a LimitRange of its namespace or its RuntimeClass changes" in text
    assert call(["explain", "workload/wide", "-f", str(file), "-o", "json"]) == 1
    told = json.loads(capsys.readouterr().out)["shortages"][1]
    assert (told["code"], told["resource"], told["need"], told["most"]) == ("Misconfigured", "cpu", 3000, 2000)
    assert call(["explain", "workload/fine", "-f", str(file)]) == 1
    assert "would be admitted" in capsys.readouterr().out


def test_explain_as_json(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["explain", "wl/waiting", "-f", file, "-o", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["shortages"][0]["holders"] == [["default/running", 3000]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "workload/wating"], 'no workload "wating" in namespace default (did you mean "waiting"?)'),
        (["queues", "cp"], 'there is no cluster queue "cp"'),
    ],
)
def test_wrong_names(arguments: list[str], message: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call([*arguments, "-f", file]) == 2
    assert message in capsys.readouterr().err


def test_a_typo_in_the_configuration_is_told_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kueue.yaml"
    path.write_text("apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nwaitForPodReady: {}\n")
    assert call(["sandbox", "--queueing-config", str(path)]) == 2
    assert 'waitForPodReady: unknown field (did you mean "waitForPodsReady"?)' in capsys.readouterr().err
    assert call(["sandbox", "--no-workload-queueing", "--queueing-config", str(path)]) == 2
    assert "needs --workload-queueing" in capsys.readouterr().err
