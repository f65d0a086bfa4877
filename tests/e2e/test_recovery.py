"""The scheduler as a process while its API server comes, goes and forgets, and while the scheduler itself is killed."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real_cluster.servers import SandboxServer

from .processes import KUBECTL, Background, environment, eventually, free_port, status

pytestmark = pytest.mark.e2e

SHORT_LEASE = (
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=500ms",
)
NODE = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "64", memory: 64Gi, pods: "1000"}, capacity: {cpu: "64", memory: 64Gi, pods: "1000"}}
"""


class Cluster:
    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.server = SandboxServer(folder)
        self.started: list[Background] = []

    def scheduler(self, *arguments: str) -> tuple[Background, int]:
        pages = free_port()
        flags = ("--kubeconfig", self.server.scheduler, "--secure-port=0", f"--insecure-port={pages}", *SHORT_LEASE)
        process = Background("run", *flags, *arguments)
        self.started.append(process)
        return process, pages

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [KUBECTL, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
            env=environment(KUBECONFIG=str(self.server.admin)),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def create_pods(self, *names: str) -> None:
        pods = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            }
            for name in names
        ]
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))

    def pods(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(self.kubectl("get", "pods", "-o", "json"))["items"]
        return items

    def all_bound(self, count: int) -> bool:
        pods = self.pods()
        return len(pods) == count and all(pod["spec"].get("nodeName") for pod in pods)

    def scheduled_events(self) -> list[str]:
        events = json.loads(self.kubectl("get", "events.events.k8s.io", "-o", "json"))["items"]
        return sorted(event["regarding"]["name"] for event in events if event["reason"] == "Scheduled")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path / "server")
    yield made
    for process in made.started:
        process.end(signal.SIGKILL)
    made.server.stop()


def test_scheduling_begins_when_the_server_comes_up(cluster: Cluster) -> None:
    scheduler, pages = cluster.scheduler()
    eventually("it is alive", lambda: status(pages, "/livez") == 200)
    assert status(pages, "/readyz") == 500
    cluster.server.start()
    cluster.kubectl("apply", "-f", "-", stdin=NODE)
    cluster.create_pods("a")
    eventually("the pod is bound", lambda: cluster.all_bound(1))
    # The scheduler reports its health to the supervisor twice a second.
    eventually("it is ready", lambda: status(pages, "/readyz") == 200)
    assert scheduler.end() == 0
    assert "waiting for the API server: cannot reach" in scheduler.stderr


def test_short_absence_of_the_server_is_survived_and_the_lease_kept(cluster: Cluster) -> None:
    """The sandbox has no history after a restart: every watch ends in 410 and is listed anew."""
    cluster.server.start()
    cluster.kubectl("apply", "-f", "-", stdin=NODE)
    scheduler, pages = cluster.scheduler("--leader-elect-lease-duration=40s", "--leader-elect-renew-deadline=30s")
    cluster.create_pods("a")
    eventually("the first is bound", lambda: cluster.all_bound(1))
    cluster.server.kill()
    cluster.server.start()
    cluster.create_pods("b")
    eventually("the second is bound", lambda: cluster.all_bound(2))
    eventually("it is ready", lambda: status(pages, "/readyz") == 200)
    assert scheduler.process.poll() is None
    assert scheduler.end() == 0


def test_long_absence_of_the_server_costs_the_lease_and_the_process_says_so(cluster: Cluster) -> None:
    cluster.server.start()
    cluster.kubectl("apply", "-f", "-", stdin=NODE)
    scheduler, _ = cluster.scheduler()
    cluster.create_pods("a")
    eventually("it leads", lambda: cluster.all_bound(1))
    cluster.server.kill()
    eventually("it has ended", lambda: scheduler.process.poll() is not None)
    assert scheduler.end() == 1
    assert "error: leaderelection lost: the lease kube-system/kube-scheduler could not be renewed" in scheduler.stderr


def test_standby_takes_over_from_a_leader_that_is_killed(cluster: Cluster) -> None:
    cluster.server.start()
    cluster.kubectl("apply", "-f", "-", stdin=NODE)
    first, _ = cluster.scheduler()
    cluster.create_pods(*(f"a{n}" for n in range(5)))
    eventually("the first leads", lambda: cluster.all_bound(5))
    second, pages = cluster.scheduler()
    eventually("the second stands by", lambda: status(pages, "/readyz") == 200)
    first.end(signal.SIGKILL)
    cluster.create_pods(*(f"b{n}" for n in range(5)))
    eventually("the second leads", lambda: cluster.all_bound(10))
    assert cluster.scheduled_events() == sorted([*(f"a{n}" for n in range(5)), *(f"b{n}" for n in range(5))])
    assert second.end() == 0


def test_leader_that_was_frozen_for_longer_than_its_lease_writes_nothing_when_it_wakes(cluster: Cluster) -> None:
    cluster.server.start()
    cluster.kubectl("apply", "-f", "-", stdin=NODE)
    first, first_pages = cluster.scheduler()
    eventually("the first is ready", lambda: status(first_pages, "/readyz") == 200)
    cluster.create_pods("a")
    eventually("the first leads", lambda: cluster.all_bound(1))
    second, pages = cluster.scheduler()
    eventually("the second stands by", lambda: status(pages, "/readyz") == 200)
    first.signal_all(signal.SIGSTOP)
    cluster.create_pods("b")
    eventually("the second leads", lambda: cluster.all_bound(2))
    first.signal_all(signal.SIGCONT)
    eventually("the first has ended", lambda: first.process.poll() is not None)
    assert first.end() == 1 and "leaderelection lost" in first.stderr
    assert cluster.scheduled_events() == ["a", "b"]
    assert second.end() == 0
