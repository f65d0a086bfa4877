"""The visibility API behind the aggregation layer of a real API server, installed as shipped: who asks comes with the
request headers of the API server's own client certificate, and a SubjectAccessReview says whether they may."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from pilotage.bench.control_plane import HOST, ControlPlane, KeyPair, client_certificate_user, free_port

from .client import Client
from .queueing_kinds import queueing_kinds
from .servers import RealServer, eventually
from .test_workload_queueing import JOBS, create_queue, is_suspended, job
from .world import World

pytestmark = pytest.mark.real_server

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBECTL = Path(sys.executable).parent / "kubectl"
SERVICE = "pilotage-visibility.kube-system.svc"
VISIBILITY = "/apis/visibility.kueue.x-k8s.io"
OF_CQ = f"{VISIBILITY}/v1beta2/clusterqueues/cq/pendingworkloads"
OF_LQ = f"{VISIBILITY}/v1beta2/namespaces/default/localqueues/lq/pendingworkloads"

_DELETED = {"$patch": "delete", "apiVersion": "v1", "kind": "Any", "metadata": {"name": "any"}}


@dataclass(frozen=True, slots=True)
class Installed:
    """Pilotage behind the API server."""

    world: World
    plane: ControlPlane
    port: int

    def kubectl(self, *arguments: str, user: str = "admin") -> subprocess.CompletedProcess[str]:
        command = [str(KUBECTL), "--kubeconfig", str(self._kubeconfig(user)), *arguments]
        home = {"HOME": str(self.plane.folder)}
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=home)

    def _kubeconfig(self, user: str) -> Path:
        if user == "admin":
            return self.plane.admin
        return self.plane.kubeconfig(user, client_certificate_user(self.plane.client_certificate(user, "people")))

    def said(self, *arguments: str, user: str = "admin") -> str:
        done = self.kubectl(*arguments, user=user)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def raw(self, path: str, user: str = "admin") -> Any:
        return json.loads(self.said("get", "--raw", path, user=user))

    def is_available(self, service: str = "v1beta2.visibility.kueue.x-k8s.io") -> bool:
        conditions = json.loads(self.said("get", "apiservice", service, "-o", "json")).get("status", {})
        found = {one["type"]: one["status"] for one in conditions.get("conditions", [])}
        return found.get("Available") == "True"


@contextmanager
def installed(world: World, folder: Path, *flags: str, trusts: bytes = b"") -> Iterator[Installed]:
    """`kubectl apply -k` of what is shipped; only the Service leads to a process on loopback instead of to pods."""
    assert isinstance(world.server, RealServer)
    plane, port = world.server.plane, free_port()
    place = Installed(world, plane, port)
    (folder / "deploy").symlink_to(DEPLOY)
    overlay = folder / "overlay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(_overlay(port, trusts)))
    place.said("apply", "-k", str(overlay))
    try:
        token = place.said("create", "token", "pilotage", "-n", "kube-system").strip()
        shipped = plane.kubeconfig("shipped", {"token": token})
        arguments = ["--workload-queueing", f"--secure-port={port}", f"--bind-address={HOST}", *flags]
        world.start_instance(*arguments, kubeconfig=shipped)
        eventually("the API is available", place.is_available)
        yield place
    finally:
        world.end_schedulers()
        place.kubectl("delete", "-k", str(overlay), "--wait=false")


def _overlay(port: int, trusts: bytes) -> dict[str, Any]:
    away = [
        {"op": "remove", "path": "/spec/selector"},
        {"op": "add", "path": "/spec/type", "value": "ExternalName"},
        {"op": "add", "path": "/spec/externalName", "value": "localhost"},
    ]
    leads_here = [{"op": "add", "path": "/spec/service/port", "value": port}]
    if trusts:
        leads_here += [
            {"op": "remove", "path": "/spec/insecureSkipTLSVerify"},
            {"op": "add", "path": "/spec/caBundle", "value": b64encode(trusts).decode()},
        ]
    return {
        "resources": ["../deploy/overlays/second-scheduler"],
        "components": ["../deploy/workload-queueing"],
        "patches": [
            {"target": {"kind": "Service", "name": "pilotage-visibility"}, "patch": yaml.safe_dump(away)},
            {"target": {"kind": "APIService"}, "patch": yaml.safe_dump(leads_here)},
            # The rules for Kueue's kinds come and go with the kinds.
            {"target": {"group": "admissionregistration.k8s.io"}, "patch": yaml.safe_dump(_DELETED)},
        ],
    }


@pytest.fixture
def api(world: World) -> Iterator[Client]:
    with queueing_kinds(world.server) as client:
        create_queue(client)
        yield client
        world.end_schedulers()
        for one in client.request("GET", JOBS)["items"]:
            client.request("DELETE", f"{JOBS}/{one['metadata']['name']}", {"propagationPolicy": "Background"})


def submit(api: Client, place: Installed) -> None:
    """One job that runs, two that wait."""
    api.request("POST", JOBS, job("holder", suspend=True))
    eventually("the first runs", lambda: not is_suspended(api, "holder"))
    for name in ("one", "two"):
        api.request("POST", JOBS, job(name, suspend=True))
    eventually("two wait", lambda: [one["reason"] for one in place.raw(OF_CQ)["items"]] == ["WaitingForQuota"] * 2)


def test_kubectl_gets_pending_workloads_through_the_api_server(world: World, api: Client, tmp_path: Path) -> None:
    with installed(world, tmp_path, "--leader-elect=false") as place:
        submit(api, place)
        document = place.raw(OF_CQ)
        assert (document["kind"], len(document["items"])) == ("PendingWorkloadsSummary", 2)
        assert [one["positionInClusterQueue"] for one in document["items"]] == [0, 1]
        (need,) = document["items"][0]["waitsFor"]
        assert need["heldBy"][0]["name"].startswith("job-holder-")
        assert place.raw(f"{OF_CQ}?limit=1&offset=1")["items"] == document["items"][1:]
        assert place.raw(OF_LQ)["items"] == document["items"]
        assert place.raw(OF_CQ.replace("v1beta2", "v1beta1"))["items"] == document["items"]
        unknown = place.kubectl("get", "--raw", OF_CQ.replace("/cq/", "/nope/"))
        told = 'Error from server (NotFound): clusterqueue.visibility.kueue.x-k8s.io "nope" not found\n'
        assert unknown.stderr == told
        check_discovery(place)


def check_discovery(place: Installed) -> None:
    """Nothing is in the way of the stored kinds."""
    listed = place.kubectl("api-resources", "-o", "name")
    assert listed.returncode == 0 and listed.stderr == "", listed.stderr
    assert [name for name in listed.stdout.split() if "visibility" in name] == []
    assert place.said("get", "clusterqueues", "-o", "name") == "clusterqueue.kueue.x-k8s.io/cq\n"
    names = [one["name"] for one in place.raw(f"{VISIBILITY}/v1beta2")["resources"]]
    assert "clusterqueues/pendingworkloads" in names
    assert "visibility.kueue.x-k8s.io/v1beta2" in place.said("api-versions").split()


def test_people_see_what_their_roles_say(world: World, api: Client, tmp_path: Path) -> None:
    with installed(world, tmp_path, "--leader-elect=false") as place:
        submit(api, place)
        refused = place.kubectl("get", "--raw", OF_CQ, user="alice")
        assert refused.returncode == 1
        assert "Error from server (Forbidden): " in refused.stderr and 'User "alice" cannot get' in refused.stderr
        place.said("create", "clusterrolebinding", "sees", "--clusterrole=pilotage-cluster-queue-visibility",
                   "--user=alice")  # fmt: skip
        place.said("create", "rolebinding", "views", "-n", "default", "--clusterrole=pilotage-local-queue-visibility",
                   "--user=bob")  # fmt: skip
        try:
            eventually("alice may", lambda: place.kubectl("get", "--raw", OF_CQ, user="alice").returncode == 0)
            eventually("bob may", lambda: place.kubectl("get", "--raw", OF_LQ, user="bob").returncode == 0)
            assert len(place.raw(OF_LQ, user="bob")["items"]) == 2
            for path in (OF_CQ, OF_LQ.replace("/default/", "/kube-system/")):
                done = place.kubectl("get", "--raw", path, user="bob")
                assert done.returncode == 1 and "(Forbidden)" in done.stderr, done
            assert place.kubectl("get", "--raw", OF_LQ, user="alice").returncode == 1
        finally:
            place.kubectl("delete", "clusterrolebinding", "sees")
            place.kubectl("delete", "rolebinding", "views", "-n", "default")


def test_the_api_server_verifies_a_certificate_of_ones_own(world: World, api: Client, tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert(SERVICE)
    issued.cert_chain_pems[0].write_to_path(tmp_path / "server.crt")
    issued.private_key_pem.write_to_path(tmp_path / "server.key")
    pair = (f"--tls-cert-file={tmp_path / 'server.crt'}", f"--tls-private-key-file={tmp_path / 'server.key'}")
    with installed(world, tmp_path, "--leader-elect=false", *pair, trusts=authority.cert_pem.bytes()) as place:
        assert place.raw(OF_CQ)["items"] == []


def test_a_standby_answers_too(world: World, api: Client, tmp_path: Path) -> None:
    """The Service leads to the second replica, which holds no lease."""
    assert isinstance(world.server, RealServer)
    flags = ("--leader-elect=true", "--leader-elect-resource-name=pilotage")
    leader = world.start_instance("--workload-queueing", "--secure-port=0", *flags, kubeconfig=world.server.admin)
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/pilotage"
    eventually("somebody leads", lambda: world.api.get("leases", "pilotage", "kube-system"))
    holder = world.api.request("GET", lease)["spec"]["holderIdentity"]
    with installed(world, tmp_path, *flags) as place:
        submit(api, place)
        assert world.api.request("GET", lease)["spec"]["holderIdentity"] == holder and leader.is_running
        (need,) = place.raw(OF_CQ)["items"][0]["waitsFor"]
        assert need["heldBy"][0]["name"].startswith("job-holder-")


def test_headers_count_only_from_the_api_server(world: World, api: Client, tmp_path: Path) -> None:
    """Straight to the port: an ordinary client certificate does not speak for others, nor does the proxy for itself."""
    with installed(world, tmp_path, "--leader-elect=false") as place:
        user = place.plane.client_certificate("mallory", "people")
        proxy = place.plane.front_proxy
        as_admin = (("X-Remote-User", "admin"), ("X-Remote-Group", "system:masters"))
        assert straight(place.port, proxy, *as_admin) == (200, "PendingWorkloadsSummary")
        assert straight(place.port, user, *as_admin) == (403, "Status")
        assert straight(place.port, proxy) == (401, "Status")
        # Before the authorities were known, the API server came as nobody from this address, perhaps too often.
        eventually("nobody is refused", lambda: straight(place.port, None, *as_admin) == (403, "Status"))


def straight(port: int, pair: KeyPair | None, *headers: tuple[str, str]) -> tuple[int, str]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    connection = http.client.HTTPSConnection(HOST, port, context=context, timeout=30)
    connection.request("GET", OF_CQ, headers=dict(headers))
    answer = connection.getresponse()
    kind = json.loads(answer.read())["kind"]
    connection.close()
    return answer.status, kind
