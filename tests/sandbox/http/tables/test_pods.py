"""The columns of pods, above all the status that kubectl shows."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.http.tables import render_table

NOW = 1_000_000_000.0  # 2001-09-09T01:46:40Z


def pod(status: dict[str, Any] | None = None, containers: int = 1, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "creationTimestamp": "2001-09-09T01:41:40Z", **metadata},
        "spec": {"containers": [{"name": f"c{n}"} for n in range(containers)]},
        "status": status or {"phase": "Pending"},
    }


def cells(obj: dict[str, Any]) -> dict[str, Any]:
    table = render_table("Pod", [obj], NOW)
    (row,) = table["rows"]
    return dict(zip([column["name"] for column in table["columnDefinitions"]], row["cells"], strict=True))


def container(*, ready: bool = False, restarts: int = 0, name: str = "c0", **state: Any) -> dict[str, Any]:
    return {"name": name, "ready": ready, "restartCount": restarts, "state": state}


def running(**more: Any) -> dict[str, Any]:
    return container(ready=True, running={"startedAt": "x"}, **more)


def waiting(reason: str) -> dict[str, Any]:
    return container(waiting={"reason": reason})


def ended(reason: str = "", code: int = 0, signal: int = 0) -> dict[str, Any]:
    return container(terminated={"reason": reason, "exitCode": code, "signal": signal})


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Pending"}, "Pending"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "SchedulingGated",
        ),
        ({"phase": "Pending", "containerStatuses": [waiting("ContainerCreating")]}, "ContainerCreating"),
        ({"phase": "Running", "containerStatuses": [running()]}, "Running"),
        ({"phase": "Running", "containerStatuses": [waiting("CrashLoopBackOff")]}, "CrashLoopBackOff"),
        ({"phase": "Succeeded", "containerStatuses": [ended("Completed")]}, "Completed"),
        ({"phase": "Failed", "containerStatuses": [ended("Error", 1)]}, "Error"),
        ({"phase": "Failed", "containerStatuses": [ended("OOMKilled", 137)]}, "OOMKilled"),
        ({"phase": "Failed", "containerStatuses": [ended(code=3)]}, "ExitCode:3"),
        ({"phase": "Failed", "containerStatuses": [ended(code=3, signal=9)]}, "Signal:9"),
        ({"phase": "Pending", "initContainerStatuses": [waiting("PodInitializing")]}, "Init:0/0"),
        ({"phase": "Pending", "initContainerStatuses": [waiting("ImagePullBackOff")]}, "Init:ImagePullBackOff"),
        ({"phase": "Pending", "initContainerStatuses": [ended("Error", 1)]}, "Init:Error"),
        ({"phase": "Pending", "initContainerStatuses": [ended(code=2)]}, "Init:ExitCode:2"),
        (
            {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [ended("Completed"), running()],
            },
            "Running",
        ),
        ({"phase": "Running", "containerStatuses": [ended("Completed"), running()]}, "NotReady"),
    ],
)
def test_status(status: dict[str, Any], shown: str) -> None:
    assert cells(pod(status))["Status"] == shown


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Running", "containerStatuses": [running()]}, "Terminating"),
        ({"phase": "Succeeded", "containerStatuses": [ended("Completed")]}, "Completed"),
        ({"phase": "Running", "reason": "NodeLost"}, "Unknown"),
    ],
)
def test_status_during_deletion(status: dict[str, Any], shown: str) -> None:
    assert cells(pod(status, deletionTimestamp="2001-09-09T01:46:40Z"))["Status"] == shown


def test_ready_counts_containers() -> None:
    status = {"phase": "Running", "containerStatuses": [running(), waiting("x")]}
    assert cells(pod(status, containers=2))["Ready"] == "1/2"


def test_sidecars_count_as_containers() -> None:
    obj = pod({"phase": "Running", "containerStatuses": [running(restarts=2)]})
    obj["spec"]["initContainers"] = [{"name": "side", "restartPolicy": "Always"}, {"name": "step"}]
    side = {**running(name="side", restarts=1), "started": True}
    obj["status"]["initContainerStatuses"] = [side, {**ended("Completed"), "name": "step", "restartCount": 4}]
    row = cells(obj)
    assert (row["Ready"], row["Status"], row["Restarts"]) == ("2/2", "Running", "3")


def test_restarts_tell_when_the_last_one_was() -> None:
    status = {
        "phase": "Running",
        "containerStatuses": [
            {**running(restarts=3), "lastState": {"terminated": {"finishedAt": "2001-09-09T01:45:40Z"}}}
        ],
    }
    assert cells(pod(status))["Restarts"] == "3 (60s ago)"


def test_columns_and_wide_cells() -> None:
    obj = pod({"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}], "nominatedNodeName": "m"})
    obj["spec"]["nodeName"] = "n"
    obj["spec"]["readinessGates"] = [{"conditionType": "a"}, {"conditionType": "b"}]
    obj["status"]["conditions"] = [{"type": "a", "status": "True"}]
    assert cells(obj) == {
        "Name": "p",
        "Ready": "0/1",
        "Status": "Running",
        "Restarts": "0",
        "Age": "5m",
        "IP": "10.0.0.1",
        "Node": "n",
        "Nominated Node": "m",
        "Readiness Gates": "1/2",
    }
    wide = {"IP", "Node", "Nominated Node", "Readiness Gates"}
    definitions = render_table("Pod", [], NOW)["columnDefinitions"]
    assert {column["name"] for column in definitions if column["priority"] == 1} == wide


def test_missing_wide_cells_are_none() -> None:
    row = cells(pod())
    assert [row[name] for name in ("IP", "Node", "Nominated Node", "Readiness Gates")] == ["<none>"] * 4


def test_completed_pod_is_marked() -> None:
    (row,) = render_table("Pod", [pod({"phase": "Succeeded"})], NOW)["rows"]
    assert row["conditions"][0]["type"] == "Completed"
    (row,) = render_table("Pod", [pod({"phase": "Running"})], NOW)["rows"]
    assert "conditions" not in row
