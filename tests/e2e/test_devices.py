"""Devices as a user meets them: the installed command, a real kubectl, and a driver that starts late."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.processes import SandboxProcess, eventually, pilotage

pytestmark = pytest.mark.e2e

_API = "resource.k8s.io/v1"
_REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _pod(name: str, claim: dict[str, str]) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    spec = {"containers": [container], "resourceClaims": [{"name": "gpu", **claim}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxProcess]:
    running = SandboxProcess(tmp_path / "kubeconfig", "--nodes", "2")
    yield running
    running.end()


def _apply(sandbox: SandboxProcess, *objects: dict[str, Any]) -> None:
    done = sandbox.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    assert done.returncode == 0, done.stderr


def _generated(sandbox: SandboxProcess) -> str:
    claims = sandbox.get("resourceclaims")
    return str(claims[0]["metadata"]["name"]) if claims else ""


def test_pods_that_share_a_generated_claim_start_when_the_driver_publishes_its_slices(sandbox: SandboxProcess) -> None:
    """KEP-6132: the index by spec wakes all of them, not only the owner of the claim."""
    _apply(
        sandbox,
        _object("DeviceClass", "gpu", {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]}),
        _object("ResourceClaimTemplate", "one", {"spec": {"devices": {"requests": [_REQUEST]}}}),
        _pod("owner", {"resourceClaimTemplateName": "one"}),
    )
    eventually("the claim is made", lambda: bool(_generated(sandbox)))
    claim = _generated(sandbox)
    _apply(sandbox, *(_pod(f"guest-{number}", {"resourceClaimName": claim}) for number in range(3)))
    eventually("the pods were tried", lambda: all("conditions" in pod["status"] for pod in sandbox.get("pods")))
    why = pilotage("explain", "guest-0", "--kubeconfig", sandbox.kubeconfig)
    assert why.returncode == 1
    assert "no driver publishes devices for this node" in why.stdout
    pool = {"name": "node-00001", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": "gpu-0", "attributes": {"model": {"string": "a100"}}}]
    published = {"driver": "gpu.example.com", "nodeName": "node-00001", "pool": pool, "devices": devices}
    _apply(sandbox, _object("ResourceSlice", "node-00001-gpu", published))
    eventually("all pods run", lambda: sandbox.pods_are("Running", 4))
    assert {pod["spec"]["nodeName"] for pod in sandbox.get("pods")} == {"node-00001"}
    (shared,) = sandbox.get("resourceclaims")
    users = [user["name"] for user in shared["status"]["reservedFor"]]
    assert sorted(users) == ["guest-0", "guest-1", "guest-2", "owner"]
