"""A scheduler with the rights that `deploy/` gives it, and no others, at the real API server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.bench.control_plane import ControlPlane, free_port

from .objects import node, pod, priority_class
from .servers import REPOSITORY, RealServer, eventually
from .world import World

OVERLAY = REPOSITORY / "deploy" / "overlays" / "second-scheduler"
KUBECTL = str(Path(sys.executable).parent / "kubectl")
RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
ACCOUNTS = "/api/v1/namespaces/kube-system/serviceaccounts"


@pytest.fixture
def plane(world: World) -> ControlPlane:
    if not isinstance(world.server, RealServer):
        pytest.skip("the sandbox lets everybody do everything")
    return world.server.plane


def shipped_account(world: World, plane: ControlPlane) -> Path:
    """The kubeconfig of the account that the overlay makes."""
    rendered = subprocess.run([KUBECTL, "kustomize", OVERLAY], capture_output=True, text=True, check=True, timeout=60)
    objects = [obj for obj in yaml.safe_load_all(rendered.stdout) if obj["kind"] in RIGHTS]
    command = [KUBECTL, "--kubeconfig", world.server.admin, "apply", "-f", "-"]
    subprocess.run(command, input=yaml.safe_dump_all(objects), text=True, check=True, timeout=60, capture_output=True)
    wanted: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    made: dict[str, Any] = world.api.request("POST", f"{ACCOUNTS}/pilotage/token", wanted)
    return plane.kubeconfig("shipped", {"token": made["status"]["token"]})


def of_pilotage(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "spec": {**obj["spec"], "schedulerName": "pilotage"}}


def test_the_shipped_role_is_enough_to_bind_to_refuse_and_to_preempt(world: World, plane: ControlPlane) -> None:
    kubeconfig = shipped_account(world, plane)
    world.create(node("n", cpu="2"), priority_class("urgent", 1000))
    world.create(of_pilotage(pod("low", cpu="2")), pod("of-somebody-else"))
    port = free_port()
    scheduler = world.start_scheduler(
        f"--config={OVERLAY / 'scheduler.yaml'}", f"--secure-port={port}", kubeconfig=kubeconfig
    )
    world.wait_bound("low")
    world.create(of_pilotage(pod("too-big", cpu="9")))
    world.wait_refused("too-big")
    world.wait_event("too-big", "FailedScheduling")
    high = pod("high", cpu="2")
    high["spec"]["priorityClassName"] = "urgent"
    world.create(of_pilotage(high))
    eventually(
        "room is made",
        lambda: (world.api.get("pods", "low") or {}).get("metadata", {}).get("deletionTimestamp", "gone"),
    )
    world.wait_event("low", "Preempted")
    lease = world.api.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/pilotage")
    assert lease["spec"]["holderIdentity"]
    assert world.node_of("of-somebody-else") == ""
    assert scheduler.end() == 0
    said = scheduler.said()
    assert "forbidden" not in said and "may not" not in said and "cannot be read" not in said, said


def test_pages_are_guarded_by_the_api_server(world: World, plane: ControlPlane) -> None:
    """TokenReview and SubjectAccessReview of the real one: an administrator may, a stranger may not."""
    kubeconfig = shipped_account(world, plane)
    port = free_port()
    world.start_scheduler(f"--config={OVERLAY / 'scheduler.yaml'}", f"--secure-port={port}", kubeconfig=kubeconfig)

    def status(path: str, *options: str) -> str:
        command = ["curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", *options, f"https://127.0.0.1:{port}{path}"]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30).stdout

    eventually("it is ready", lambda: status("/readyz") == "200")
    token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    bearer = ("-H", f"Authorization: Bearer {token}")
    assert status("/metrics") == "403"
    assert status("/metrics", *bearer) == "403", "the scheduler's own account may not read its metrics"
    assert status("/metrics", "-H", "Authorization: Bearer nonsense") == "401"
    reader: dict[str, Any] = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "test:metrics"},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "test:metrics"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "test:metrics"},
        "subjects": [{"kind": "ServiceAccount", "name": "pilotage", "namespace": "kube-system"}],
    }
    world.api.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", reader)
    world.api.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    eventually("the new right counts", lambda: status("/metrics", *bearer) == "200")
    assert status("/debug/queue", *bearer) == "403"
