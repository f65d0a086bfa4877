"""The scheduler as `kubectl apply -k deploy/...` installs it: its service account with its role and nothing more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .claims import (
    device_claim,
    device_class,
    devices,
    late_binding_class,
    local_volume,
    play_volume_controller,
    pod_with_device,
    pod_with_volume,
    volume_claim,
)
from .client import Client
from .objects import node, pod, priority_class
from .queueing_kinds import GROUP, queueing_kinds
from .servers import RealServer, Server, eventually
from .test_workload_queueing import create_queue, job
from .world import World

ROOT = Path(__file__).parents[2]
KUBECTL = Path(sys.executable).parent / "kubectl"
LEASES = {"second-scheduler": "pilotage", "replacement": "kube-scheduler"}


@pytest.mark.real_server
@pytest.mark.parametrize("overlay", LEASES)
def test_everything_that_a_scheduler_does_is_allowed(world: World, overlay: str) -> None:
    assert isinstance(world.server, RealServer), "the sandbox has no roles"
    server, plane = world.server, world.server.plane
    kubectl(server, "apply", "-k", str(ROOT / "deploy" / "overlays" / overlay))
    try:
        token = kubectl(server, "create", "token", "pilotage", "-n", "kube-system").strip()
        schedule_all_sorts_of_pods(world, plane.kubeconfig("shipped", {"token": token}), LEASES[overlay])
    finally:
        kubectl(server, "delete", "-k", str(ROOT / "deploy" / "overlays" / overlay), "--wait=false")


@pytest.mark.real_server
def test_everything_that_queueing_reads_and_writes_is_allowed(world: World) -> None:
    assert isinstance(world.server, RealServer), "the sandbox has no roles"
    server, plane = world.server, world.server.plane
    overlay = ROOT / "deploy" / "overlays" / "second-scheduler"
    role = ROOT / "deploy" / "workload-queueing" / "rbac.yaml"
    kubectl(server, "apply", "-k", str(overlay))
    kubectl(server, "apply", "-f", str(role))
    try:
        token = kubectl(server, "create", "token", "pilotage", "-n", "kube-system").strip()
        with queueing_kinds(server) as client:
            queue_a_job(world, client, plane.kubeconfig("queueing", {"token": token}))
    finally:
        kubectl(server, "delete", "-f", str(role))
        kubectl(server, "delete", "-k", str(overlay), "--wait=false")


def queue_a_job(world: World, client: Client, kubeconfig: Path) -> None:
    """One that the limits of its namespace stop at first."""
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    limits = [{"type": "Container", "max": {"cpu": "500m"}}]
    head = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "bounds", "namespace": "default"}}
    world.create({**head, "spec": {"limits": limits}})
    create_queue(client)
    scheduler = world.start_scheduler("--workload-queueing", kubeconfig=kubeconfig)
    client.request("POST", jobs, job("train"))
    try:
        eventually("it is stopped", lambda: client.request("GET", f"{jobs}/train")["spec"].get("suspend"))
        eventually("it is told", lambda: "Misconfigured" in str(client.request("GET", f"{GROUP}/workloads")))
        world.api.delete("limitranges", "bounds")
        eventually("it is started", lambda: not client.request("GET", f"{jobs}/train")["spec"].get("suspend"))
    finally:
        world.end_schedulers()
        client.request("DELETE", f"{jobs}/train", {"propagationPolicy": "Background"})
    assert "forbidden" not in scheduler.said()


def test_the_static_pod_would_be_accepted(world: World) -> None:
    manifest = ROOT / "deploy" / "static-pod" / "pilotage.yaml"
    said = kubectl(world.server, "create", "--dry-run=server", "--validate=strict", "-f", str(manifest))
    assert said == "pod/pilotage created (server dry run)\n"


def kubectl(server: Server, *arguments: str) -> str:
    command = [str(KUBECTL), "--kubeconfig", str(server.admin), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def schedule_all_sorts_of_pods(world: World, kubeconfig: Path, lease: str) -> None:
    world.create(priority_class("low", 10), priority_class("high", 1000))
    world.create(node("n", cpu="2"), late_binding_class(), local_volume("disk", "n"), volume_claim("data"))
    world.create(device_class(), devices("n", "gpu-0"), device_claim("mine"))
    scheduler = world.start_instance(
        "--secure-port=0", f"--leader-elect-resource-name={lease}", "-v=2", kubeconfig=kubeconfig
    )
    world.create(pod("victim", cpu="1500m", priority_class="low"))
    world.wait_bound("victim")
    world.create(pod("winner", cpu="1500m", priority_class="high"))
    world.wait_bound("winner")
    world.create(pod_with_volume("keeper", "data"))
    play_volume_controller(world, "data")
    world.create(pod_with_device("computing", "mine"))
    world.wait_bound("keeper", "computing")
    world.create(pod("too-large", cpu="8"))
    world.wait_refused("too-large")
    world.wait_event("victim", "Preempted")
    assert "forbidden" not in scheduler.said()
