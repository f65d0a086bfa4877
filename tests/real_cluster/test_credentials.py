"""Every way to be somebody, proven against the real API server (the sandbox knows one token only)."""

from __future__ import annotations

import base64
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from pilotage.bench.control_plane import SCHEDULER_TOKEN, SCHEDULER_USER, ControlPlane, client_certificate_user

from .objects import node, pod
from .servers import RealServer, eventually
from .world import World

pytestmark = pytest.mark.real_server

EXEC_PLUGIN = """
import json, os, sys
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert asked["kind"] == "ExecCredential" and asked["apiVersion"] == {version!r}, asked
with open({calls!r}, "a") as calls:
    calls.write("called\\n")
answer = {{"apiVersion": {version!r}, "kind": "ExecCredential", "status": {{"token": {token!r}}}}}
json.dump(answer, sys.stdout)
"""


@pytest.fixture
def plane(world: World) -> ControlPlane:
    assert isinstance(world.server, RealServer)
    return world.server.plane


def assert_schedules(world: World, kubeconfig: Path) -> None:
    world.create(node("n"), pod("p"))
    world.start_scheduler(kubeconfig=kubeconfig)
    assert world.wait_bound("p") == ["n"]


def test_a_client_certificate(world: World, plane: ControlPlane) -> None:
    pair = plane.client_certificate(SCHEDULER_USER, "schedulers")
    assert_schedules(world, plane.kubeconfig("by-certificate", client_certificate_user(pair)))


def test_a_token_file_that_is_replaced_while_it_is_in_use(world: World, plane: ControlPlane, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(service_account_token(world, seconds=3600))
    assert_schedules(world, plane.kubeconfig("by-token-file", {"tokenFile": str(token)}))
    token.write_text(SCHEDULER_TOKEN)
    world.create(pod("later"))
    world.wait_bound("later")


def grant(role: str) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"test:{role}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "scheduler", "namespace": "kube-system"}],
    }


def service_account_token(world: World, seconds: int) -> str:
    """A token as a pod gets it, of a service account with a scheduler's role."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "scheduler"}}
    accounts = "/api/v1/namespaces/kube-system/serviceaccounts"
    world.api.request("POST", accounts, account)
    for role in ("system:kube-scheduler", "system:volume-scheduler"):
        world.api.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", grant(role))
    wanted = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds, "audiences": []},
    }
    made: dict[str, Any] = world.api.request("POST", f"{accounts}/scheduler/token", wanted)
    return str(made["status"]["token"])


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_an_exec_plugin(world: World, plane: ControlPlane, tmp_path: Path, version: str) -> None:
    api_version, calls = f"client.authentication.k8s.io/{version}", tmp_path / "calls"
    plugin = tmp_path / "plugin.py"
    plugin.write_text(EXEC_PLUGIN.format(version=api_version, calls=str(calls), token=SCHEDULER_TOKEN))
    wanted = {
        "apiVersion": api_version,
        "command": sys.executable,
        "args": [str(plugin)],
        "interactiveMode": "Never",
    }
    assert_schedules(world, plane.kubeconfig(f"by-exec-{version}", {"exec": wanted}))
    assert calls.read_text().count("called") == 1


def test_a_token_that_no_one_knows_is_reported_at_the_start(world: World, plane: ControlPlane) -> None:
    scheduler = world.start_scheduler(kubeconfig=plane.kubeconfig("stranger", {"token": "wrong"}))
    assert scheduler.wait() == 3
    assert "Unauthorized" in scheduler.said()


def test_a_missing_permission_is_named_with_the_rule_that_would_grant_it(world: World, plane: ControlPlane) -> None:
    pair = plane.client_certificate("somebody", "nobodies")
    scheduler = world.start_scheduler(kubeconfig=plane.kubeconfig("somebody", client_certificate_user(pair)))
    assert scheduler.wait() == 3
    assert 'apiGroups: [""], resources: ["nodes"], verbs: ["list", "watch"]' in scheduler.said()


def test_an_authority_that_did_not_sign_the_servers_certificate_is_reported(
    world: World, plane: ControlPlane, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    stranger = ControlPlane(plane.assets, other)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(plane.scheduler.read_text().replace(str(plane.authority_file), str(stranger.authority_file)))
    scheduler = world.start_scheduler(kubeconfig=kubeconfig)
    eventually("it says so", lambda: "its certificate is not trusted" in scheduler.said())
    assert "check certificate-authority" in scheduler.said()


@pytest.mark.parametrize(
    ("user", "told"),
    [
        pytest.param({}, "takes us for system:anonymous", id="nobody"),
        pytest.param({"token": "expired"}, "is the token or certificate expired?", id="expired"),
    ],
)
def test_credentials_that_do_not_help_are_reported_in_one_line(
    world: World, plane: ControlPlane, user: dict[str, str], told: str
) -> None:
    if user:
        user = {"token": expired_token(plane)}
    scheduler = world.start_scheduler(kubeconfig=plane.kubeconfig("wrong", user))
    assert scheduler.wait() == 3
    (line,) = scheduler.said().splitlines()
    assert told in line and "context 'wrong'" in line


def expired_token(plane: ControlPlane) -> str:
    """What the API server itself would have issued two hours ago, for one hour."""
    now = int(time.time())
    claims = {"iss": plane.url, "aud": [plane.url], "iat": now - 7200, "nbf": now - 7200, "exp": now - 3600}
    account = {"namespace": "default", "serviceaccount": {"name": "default", "uid": "1"}}
    body = {**claims, "sub": "system:serviceaccount:default:default", "kubernetes.io": account}
    signed = b".".join(_base64(json.dumps(part).encode()) for part in ({"alg": "ES256"}, body))
    key = load_pem_private_key((plane.folder / "server.key").read_bytes(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    r, s = decode_dss_signature(key.sign(signed, ECDSA(SHA256())))
    return (signed + b"." + _base64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))).decode()


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
