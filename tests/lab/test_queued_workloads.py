"""Workloads of a trace wait for quota in a simulation, and their pods come when they are admitted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from pilotage.lab.results import DECISIONS, SERIES, TOTALS, WORKLOADS, Result
from pilotage.lab.trace.format import ObjectName
from tests.jobs.live.world import KUEUE, cluster_queue, flavor, local_queue
from tests.lab.worlds import Change, node, played, pod, put, write


def in_namespace(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "metadata": {"namespace": "default", **obj["metadata"]}}


def queues(cpu: int, **spec: Any) -> list[Change]:
    """Nodes with more room than there is quota."""
    made = cluster_queue(flavors={"std": cpu})
    made["spec"] |= spec
    labelled = flavor("std") | {"spec": {"nodeLabels": {"pool": "std"}}}
    nodes = [put(0, node(name).cpu("8").label("pool", pool)) for name, pool in (("a", "std"), ("b", "other"))]
    return [*nodes, put(0, labelled), put(0, made), put(0, in_namespace(local_queue()))]


def workload(name: str, cpu: int = 1, count: int = 1, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"{name}-job", "uid": f"{name}-uid", "controller": True}
    template = {"spec": {"containers": [container]}}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default", "uid": name, "ownerReferences": [owner]},
        "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": count, "template": template}], **spec},
    }


def stories(result: Result) -> dict[str, Any]:
    return {one.workload.removeprefix("default/"): one for one in result.workloads}


def test_workloads_wait_for_quota_and_their_pods_come_when_they_are_admitted(tmp_path: Path) -> None:
    changes = [put(10 + number, workload(f"w{number}"), 100) for number in range(3)]
    result = played(tmp_path, *queues(cpu=2), *changes)
    found = stories(result)
    assert [(one.admitted, one.ended, one.end) for _, one in sorted(found.items())] == [
        (10, 110, "finished"),
        (11, 111, "finished"),
        (110, 210, "finished"),
    ]
    assert found["w2"].reason is not None and "WaitingForQuota" in found["w2"].reason
    assert (found["w0"].cluster_queue, found["w0"].flavors, found["w0"].owner) == ("cq", ("std",), "Job/w0-job")
    assert sorted(result.pods["pod"].tolist()) == [f"default/w{number}-job-0" for number in range(3)]
    assert set(result.pods["node"].tolist()) == {"a"}, "the flavor leads them there"
    totals = result.totals["workloads"]
    assert (totals["workloads"], totals["admitted"], totals["finished"], totals["waited"]["max"]) == (3, 3, 3, 98)


def test_more_quota_lets_them_start_at_once(tmp_path: Path) -> None:
    result = played(tmp_path, *queues(cpu=3), *(put(10, workload(f"w{number}"), 100) for number in range(3)))
    assert {one.admitted for one in result.workloads} == {10}


def test_pods_that_the_trace_has_of_another_admission_are_left_out(tmp_path: Path) -> None:
    observed = pod("w0-job-x7k2p").owner("Job", "w0-job", "batch/v1").requests(cpu="1")
    alone = pod("alone").requests(cpu="1")
    result = played(tmp_path, *queues(2), put(10, workload("w0"), 50), put(500, observed, 50), put(500, alone, 50))
    assert sorted(result.pods["pod"].tolist()) == ["default/alone", "default/w0-job-0"]
    assert result.totals["podsOfQueuedJobs"] == 1


def test_a_more_important_workload_preempts_and_the_victim_runs_again(tmp_path: Path) -> None:
    preempting = queues(2, preemption={"withinClusterQueue": "LowerPriority"})
    low, high = workload("low", count=2, priority=0), workload("high", count=2, priority=10)
    result = played(tmp_path, *preempting, put(10, low, 100), put(50, high, 100))
    found = stories(result)
    assert (found["high"].admitted, found["high"].ended) == (50, 150)
    assert found["low"].evictions == 1 and found["low"].admitted == 10
    assert found["low"].ended == 250, "what it had done is lost"
    assert result.totals["pods"]["stopped"] == 2


def test_the_template_of_the_job_says_what_its_pods_are_like(tmp_path: Path) -> None:
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}], "nodeName": ""}
    term = {"labelSelector": {"matchLabels": {"app": "w0"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    template = {"metadata": {"labels": {"app": "w0"}}, "spec": {**spec, "affinity": apart}}
    metadata = {"name": "w0-job", "namespace": "default"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    nodes = [put(0, node(name).cpu("8").label("kubernetes.io/hostname", name).label("pool", "std")) for name in "cd"]
    result = played(tmp_path, *queues(4), *nodes, put(5, job), put(10, workload("w0", count=2), 100))
    assert len(set(result.pods["node"].tolist())) == 2


def test_a_workload_that_is_deleted_takes_its_pods_along_and_makes_room(tmp_path: Path) -> None:
    gone = ObjectName(KUEUE, "Workload", "w0", "default")
    result = played(tmp_path, *queues(1), put(10, workload("w0")), put(20, workload("w1"), 50), (60.0, gone, None))
    found = stories(result)
    assert (found["w0"].ended, found["w0"].end) == (60, "deleted")
    assert (found["w1"].admitted, found["w1"].ended) == (60, 110)


def test_who_waits_to_the_last_says_for_what(tmp_path: Path) -> None:
    [found] = played(tmp_path, *queues(1), put(10, workload("huge", cpu=5), 10)).workloads
    assert found.admitted is None and found.end is None and "cpu" in (found.reason or "")


_CHILD = """
import sys
from pathlib import Path
from pilotage.assembly import SchedulerOptions
from pilotage.lab.replay import ReplaySettings
from pilotage.lab.simulation import TraceInput, simulate
simulate(TraceInput(Path(sys.argv[1])), SchedulerOptions(), ReplaySettings(seed=3), Path(sys.argv[2]))
"""


def test_the_same_bytes_come_of_processes_that_hash_differently(tmp_path: Path) -> None:
    preempting = queues(4, preemption={"withinClusterQueue": "LowerPriority"})
    jobs = [put(10 + 7 * n, workload(f"w{n}", count=1 + n % 3, priority=n % 4), 60 + n) for n in range(24)]
    trace = write(tmp_path / "t.jsonl", [*preempting, *jobs])
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(trace), str(tmp_path / seed)],
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    assert [process.wait() for process in running] == [0, 0]
    for name in (DECISIONS, WORKLOADS, SERIES, TOTALS):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name
    assert Result(tmp_path / "1").totals["workloads"]["evictions"], "something happened in it"


def test_without_workloads_nothing_is_said_of_them(tmp_path: Path) -> None:
    result = played(tmp_path, put(0, node("a").cpu("4")), put(1, pod("p"), 10))
    assert "workloads" not in result.totals and list(result.workloads) == []
