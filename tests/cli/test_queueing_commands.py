"""`pilotage queues`, `jobs` and `explain workload/...` over manifests: what is shown, and what wrong names get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.cli.main import call
from tests.jobs.live.world import KUEUE, cluster_queue, flavor, local_queue, node
from tests.lab.starts.queue_world import START, manifests, runs

NOW = "2026-01-01T00:00:00Z"


def workload(name: str, cpu: int, *, queue: str = "lq", admitted: bool = False, **more: object) -> dict[str, Any]:
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
    assert [row["position"] for row in rows.values()] == [None, 1, 2, None]
    assert rows["default/waiting"]["job"] == "waiting-job" and rows["default/waiting"]["priority"] == 5
    assert rows["default/lost"]["reason"] == "Misconfigured"
    assert call(["jobs", "-f", file, "--state", "admitted"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert len(table) == 2 and table[1].split()[:3] == ["default", "running-job", "lq"]


@pytest.mark.parametrize("name", ["waiting", "waiting-job"])
def test_explain_says_who_holds_what_is_missing(file: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["explain", f"workload/{name}", "-f", file]) == 1
    text = capsys.readouterr().out
    assert text.splitlines()[0] == "workload default/waiting waits, position 1 of cq: WaitingForQuota"
    assert "std: pod set main needs 2 cpu, 1 free" in text
    assert "default/running: 3 cpu of std" in text
    assert "untolerated taint spot" in text
    assert "when: quota released in the cohort tree" in text


def test_explain_says_what_can_never_fit_and_what_is_wrong(file: str, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert text.splitlines()[0] == "workload default/wide waits, position 1 of cq: Misconfigured"
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


def test_a_typo_in_the_configuration_is_reported_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kueue.yaml"
    path.write_text("apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nwaitForPodReady: {}\n")
    assert call(["sandbox", "--queueing-config", str(path)]) == 2
    assert 'waitForPodReady: unknown field (did you mean "waitForPodsReady"?)' in capsys.readouterr().err
    assert call(["sandbox", "--no-workload-queueing", "--queueing-config", str(path)]) == 2
    assert "needs --workload-queueing" in capsys.readouterr().err


@pytest.fixture
def busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A queue with a past of an hour or two."""
    all_runs = runs(1, 90)
    now = all_runs[75].created
    monkeypatch.setattr("pilotage.clock.SystemClock.time", lambda self: START + now)
    path = tmp_path / "busy.yaml"
    path.write_text(yaml.safe_dump_all(manifests(all_runs, now)))
    return str(path)


def test_jobs_say_when_they_start_and_how_good_that_is(busy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["jobs", "-f", busy, "--state", "pending"]) == 0
    table, _, trust = capsys.readouterr().out.partition("\n\n")
    at = table.splitlines()[0].index("STARTS IN")
    cells = [line[at : at + 20] for line in table.splitlines()[1:]]
    assert cells and all(" to " in cell or "s " in cell for cell in cells)
    assert "not guarantees: 80% are to lie within their range. Of " in trust


def test_jobs_as_json_have_the_range_and_those_that_run_have_none(
    busy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["jobs", "-f", busy, "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert all((row["expected_start"] is not None) == (row["state"] == "pending") for row in rows)
    start = next(row["expected_start"] for row in rows if row["position"] == 1)
    assert 0 <= start["soonest"] <= start["latest"] and start["past"]["starts"] > 10
    assert call(["jobs", "-f", busy, "-o", "json", "--no-when"]) == 0
    assert all(row["expected_start"] is None for row in json.loads(capsys.readouterr().out))


def test_queues_and_explain_say_when(busy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["queues", "-f", busy]) == 0
    text = capsys.readouterr().out
    assert "NEXT STARTS IN" in text and "LAST STARTS IN" in text and "not guarantees" in text
    assert call(["jobs", "-f", busy, "-o", "json", "--no-when", "--state", "pending"]) == 0
    first = json.loads(capsys.readouterr().out)[0]["key"].partition("/")[2]
    assert call(["explain", f"workload/{first}", "-f", busy, "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["expected_start"]["fromHistory"] > 0


# --- what would help: tried out --------------------------------------------------------------------------------------


def explained(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, *objects: dict[str, Any]) -> str:
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    call(["explain", f"workload/{name}", "-f", str(path)])
    return capsys.readouterr().out


def test_explain_says_what_would_get_it_admitted(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    call(["explain", "workload/waiting", "-f", file, "--no-when"])
    text = capsys.readouterr().out
    helps = [line.strip() for line in text.partition("Would be admitted if:")[2].splitlines() if line.strip()]
    assert helps == [
        "ClusterQueue cq had 1 cpu more of flavor std",
        "its pods asked for 1 cpu instead of 2 (flavor std)",
        "its pods accepted the nodes of spot (untolerated taint spot=:NoSchedule in flavor spot)",
        "default/running had finished",
    ]


def test_what_does_not_help_is_not_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One core more goes to those who come before it."""
    queues = (flavor("std"), cluster_queue(flavors={"std": 4}), local_queue())
    others = (workload("running", 4, admitted=True), workload("before", 1, priority=5), workload("waiting", 1))
    text = explained(tmp_path, capsys, "waiting", *queues, *others)
    assert "ClusterQueue cq had" not in text and "default/running had finished" in text


def test_explain_judges_by_the_nodes_that_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    queues = (flavor("std"), cluster_queue(flavors={"std": 40}), local_queue(), node("a", cpu=2), node("b", cpu=2))
    wide = workload("wide", 1)
    wide["spec"]["podSets"][0]["count"] = 6
    text = explained(tmp_path, capsys, "wide", *queues, wide)
    assert text.startswith("workload default/wide waits, position 1 of cq: WaitingForNodes")
    assert "no room on the nodes of flavor std: room for 4 of 6 pods, not for more: 0/2 nodes are available" in text
    assert "it had 4 pods instead of 6" in text
    assert "when: a pod leaves its node" in text


def test_explain_says_which_check_is_waited_for_and_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = {
        "apiVersion": KUEUE,
        "kind": "AdmissionCheck",
        "metadata": {"name": "budget"},
        "spec": {"controllerName": "example.com/budget"},
        "status": {
            "conditions": [
                {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": NOW}
            ]
        },
    }
    rules = {"admissionChecks": [{"name": "budget"}]}
    reserved = workload("reserved", 1, admitted=True)
    reserved["status"]["conditions"].pop()
    reserved["status"]["admissionChecks"] = [
        {"name": "budget", "state": "Pending", "message": "the committee meets on Monday", "lastTransitionTime": NOW}
    ]
    queues = (check, flavor("std"), cluster_queue(admissionChecksStrategy=rules), local_queue())
    text = explained(tmp_path, capsys, "reserved", *queues, reserved)
    assert text.splitlines()[0] == "workload default/reserved has quota in cq and waits for admission checks"
    assert "budget (example.com/budget): Pending: the committee meets on Monday" in text
    path = str(tmp_path / "cluster.yaml")
    call(["jobs", "-f", path, "-o", "json"])
    [row] = json.loads(capsys.readouterr().out)
    assert (row["reason"], row["message"]) == (
        "UnsatisfiedAdmissionChecks",
        "Waits for admission checks: budget is Pending",
    )


def test_explain_says_why_a_workload_was_deactivated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = workload("late", 1, active=False)
    late["status"] = {
        "conditions": [
            {
                "type": "Evicted",
                "status": "True",
                "reason": "DeactivatedDueToRequeuingLimitExceeded",
                "message": "Deactivated after 3 requeues: the pods were never ready in time",
                "lastTransitionTime": NOW,
            }
        ]
    }
    text = explained(tmp_path, capsys, "late", flavor("std"), cluster_queue(), local_queue(), late)
    assert text.splitlines()[0] == "workload default/late is inactive: DeactivatedDueToRequeuingLimitExceeded"
    assert "after 3 requeues: the pods were never ready in time" in text


def test_explain_says_what_the_scheduler_says_of_pods_without_a_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = workload("running", 1, admitted=True)
    running["status"]["conditions"].append(
        {
            "type": "PodsReady",
            "status": "False",
            "reason": "WaitForStart",
            "message": "Not all pods are ready; 1 pod has no node: 0/3 nodes are available: 3 Insufficient cpu.",
            "lastTransitionTime": NOW,
        }
    )
    text = explained(tmp_path, capsys, "running", flavor("std"), cluster_queue(), local_queue(), running)
    assert text.splitlines()[0] == "workload default/running is admitted in cq, its pods are not ready"
    assert "1 pod has no node: 0/3 nodes are available: 3 Insufficient cpu." in text
