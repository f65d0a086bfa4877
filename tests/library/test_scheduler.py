"""A scheduler in somebody's own program, in front of an embedded cluster."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pilotage.api import CycleState, NodeView, Plugin, Score
from pilotage.clock import SystemClock
from pilotage.kube.errors import KubeconfigError
from pilotage.library import EndpointOptions, Framework, Scheduler
from pilotage.model import Pod
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.testing import VirtualClock, pod


class Last(Plugin, Score):
    """Prefers the node whose name ends in 3, and prefers it more than anything else."""

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 100 if node.name.endswith("3") else 0


async def test_a_scheduler_runs_with_the_plugins_that_it_is_given(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {multiPoint: {enabled: [{name: Last, weight: 100}]}}}]\n"
    )
    clock, rng = VirtualClock(), seeded(1)
    async with EmbeddedCluster.running(EmbeddedOptions(nodes=3, port=None), clock, rng) as cluster:
        pages = EndpointOptions(secure_port=0)
        scheduler = Scheduler(
            plugins=[Last], config=config, transport=cluster.transport(), clock=clock, rng=rng, pages=pages
        )
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(scheduler.serve())
            cluster.api.create("pods", "default", pod("p").json())
            await clock.advance(1)
            assert cluster.api.get("pods", "default", "p")["spec"]["nodeName"].endswith("3")
            serving.cancel()


class Closing(Plugin, Score):
    """Says when the scheduler ends."""

    closed: ClassVar[list[str]] = []

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 0

    async def close(self) -> None:
        self.closed.append("closed")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


async def fetched(port: int, path: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    return answer


async def test_it_holds_the_lease_serves_pages_and_ends_in_order() -> None:
    """As `pilotage run` does; in real time, because there are sockets."""
    Closing.closed.clear()
    port = free_port()
    clock, rng = SystemClock(), seeded(1)
    async with EmbeddedCluster.running(EmbeddedOptions(nodes=1, port=None), clock, rng) as cluster:
        pages = EndpointOptions(secure_port=0, insecure_port=port)
        first = Scheduler(plugins=[Closing], transport=cluster.transport(), pages=pages, rng=seeded(2))
        second = Scheduler(transport=cluster.transport(), pages=EndpointOptions(secure_port=0), rng=seeded(3))

        def lease() -> Any:
            return cluster.api.get("leases.coordination.k8s.io", "kube-system", "kube-scheduler")["spec"]

        async with asyncio.TaskGroup() as tasks:
            leading = tasks.create_task(first.serve())
            cluster.api.create("pods", "default", pod("p").json())
            while "nodeName" not in cluster.api.get("pods", "default", "p")["spec"]:
                await clock.sleep(0.01)
            holder = lease()["holderIdentity"]
            assert holder
            waiting = tasks.create_task(second.serve())
            assert "ok" in await fetched(port, "/readyz")
            metrics = await fetched(port, "/metrics")
            assert 'leader_election_master_status{name="kube-scheduler"} 1.0' in metrics
            assert 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0' in metrics
            first.stop()
            await leading
            assert Closing.closed == ["closed"]
            while lease()["holderIdentity"] in ("", holder):
                await clock.sleep(0.01)
            second.stop()
            await waiting
            assert lease()["holderIdentity"] == "", "given back"


PLUGIN_FILE = """
from pilotage.api import CycleState, Filter, NodeView, Plugin, Pod, Reason, Reject

class Nowhere(Plugin, Filter):
    raw_kinds = frozenset(["Pod"])

    def __init__(self, handle):
        self._handle = handle

    def filter(self, state: CycleState, pod: Pod, node: NodeView):
        return Reject(Reason("Nowhere", "nowhere for " + self._handle.raw(pod)["spec"]["hostname"]))
"""


def configuration_with_plugin_file(folder: Path) -> Path:
    (folder / "nowhere.py").write_text(PLUGIN_FILE)
    config = folder / "scheduler.yaml"
    config.write_text(
        "apiVersion: config.pilotage.dev/v1alpha1\nkind: PilotageConfiguration\npluginFiles: [nowhere.py]\n"
    )
    return config


async def test_both_classes_load_the_plugin_files_of_the_configuration(tmp_path: Path) -> None:
    config = configuration_with_plugin_file(tmp_path)
    document = pod("p").spec(hostname="mars").json()
    node = {"kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "1", "pods": "10"}}}
    answer = Framework(node, config=config).fits({**document, "kind": "Pod"})
    assert answer.reasons == {"a": ["nowhere for mars"]}
    clock, rng = VirtualClock(), seeded(1)
    async with EmbeddedCluster.running(EmbeddedOptions(nodes=1, port=None), clock, rng) as cluster:
        pages = EndpointOptions(secure_port=0)
        scheduler = Scheduler(config=config, transport=cluster.transport(), clock=clock, rng=rng, pages=pages)
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(scheduler.serve())
            cluster.api.create("pods", "default", document)
            await clock.advance(2)
            [condition] = cluster.api.get("pods", "default", "p")["status"]["conditions"]
            assert "nowhere for mars" in condition["message"]
            serving.cancel()


def test_a_cluster_that_cannot_be_found_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError):
        Scheduler(kubeconfig=str(tmp_path / "none"))
