"""Admission that knows the nodes, and the commands that change jobs and queues: as a user drives them with kubectl."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .processes import SandboxProcess, eventually, pilotage
from .test_queueing_mistakes import apply, cluster_queue, job, local_queue, obj, runs

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    running = SandboxProcess(tmp_path_factory.mktemp("nodes") / "kubeconfig", "--nodes", "2")
    apply(running, obj("ResourceFlavor", "std"), cluster_queue("research", "std", cpu=10_000))
    apply(running, local_queue("research"), {**local_queue("research"), "metadata": {"name": "other"}})
    yield running
    running.end()


def row(sandbox: SandboxProcess, name: str) -> dict[str, Any]:
    found = json.loads(pilotage("jobs", "-o", "json", "--kubeconfig", sandbox.kubeconfig).stdout)
    return next((one for one in found if one["job"] == name), {})


def do(sandbox: SandboxProcess, *words: str) -> str:
    done = pilotage(*words, "--kubeconfig", sandbox.kubeconfig)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_job_that_fits_on_no_node_waits_for_one_and_says_so(sandbox: SandboxProcess) -> None:
    apply(sandbox, job("huge", "research", cpu=1000))
    eventually("it waits for nodes", lambda: row(sandbox, "huge").get("reason") == "WaitingForNodes")
    told = pilotage("explain", "workload/huge", "--kubeconfig", sandbox.kubeconfig)
    assert told.returncode == 1 and "0/2 nodes are available: 2 Insufficient cpu" in told.stdout, told.stderr
    assert "looked at again" not in told.stdout
    assert sandbox.kubectl("get", "pods", "-l", "job-name=huge", "-o", "name").stdout == ""


def test_jobs_are_stopped_resumed_moved_and_stopped_with_their_queue(sandbox: SandboxProcess) -> None:
    apply(sandbox, job("small", "research", cpu=1))
    eventually("it runs", lambda: runs(sandbox, "small"))
    assert "stopped" in do(sandbox, "jobs", "stop", "small")
    eventually("it has stopped", lambda: row(sandbox, "small").get("state") == "inactive")
    assert "to other" in do(sandbox, "jobs", "move", "small", "other")
    do(sandbox, "jobs", "resume", "small")
    eventually("it runs again", lambda: runs(sandbox, "small") and row(sandbox, "small")["local_queue"] == "other")
    do(sandbox, "queues", "drain", "other")
    eventually("it is evicted", lambda: row(sandbox, "small").get("reason") == "Suspended")
    do(sandbox, "queues", "resume", "other")
    eventually("it runs once more", lambda: runs(sandbox, "small"))


def test_a_job_that_has_finished_cannot_be_changed(sandbox: SandboxProcess) -> None:
    quick = job("quick", "research", cpu=1)
    quick["spec"]["template"].setdefault("metadata", {})["annotations"] = {"sandbox.pilotage.dev/run-for": "0s"}
    apply(sandbox, quick)
    finished = ("jobs", "--state", "finished", "-o", "json", "--kubeconfig", sandbox.kubeconfig)
    eventually("it has finished", lambda: "quick" in pilotage(*finished).stdout)
    for change in (("stop", "quick"), ("resume", "quick"), ("move", "quick", "other")):
        done = pilotage("jobs", *change, "--kubeconfig", sandbox.kubeconfig)
        assert done.returncode == 2 and "has finished" in done.stderr, done.stdout


def test_what_cannot_be_changed_is_said(sandbox: SandboxProcess) -> None:
    done = pilotage("jobs", "stop", "smal", "--kubeconfig", sandbox.kubeconfig)
    assert done.returncode == 2 and 'no workload "smal" in namespace default' in done.stderr
    done = pilotage("jobs", "move", "small", "research", "--kubeconfig", sandbox.kubeconfig)
    assert done.returncode == 2 and "pilotage jobs stop small, then move it" in done.stderr
    done = pilotage("jobs", "priority", "small", "high", "--kubeconfig", sandbox.kubeconfig)
    assert done.returncode == 2 and 'no WorkloadPriorityClass "high"' in done.stderr
    done = pilotage("queues", "stop", "nope", "--kubeconfig", sandbox.kubeconfig)
    assert done.returncode == 2 and 'no local queue "nope"' in done.stderr
