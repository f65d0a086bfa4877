"""deploy/workload-queueing/webhook.yaml: a real API server asks `pilotage run` what to do with what names a queue."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator

import pytest
import trustme
import yaml

from pilotage.bench.control_plane import HOST, free_port

from .client import Client, Json, Refused
from .queueing_kinds import queueing_kinds
from .servers import Server, eventually
from .test_queue_admission import POD, TEMPLATE
from .test_shipped_role import ROOT
from .world import World

pytestmark = pytest.mark.real_server

WEBHOOK = ROOT / "deploy" / "workload-queueing" / "webhook.yaml"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
QUEUED = {"kueue.x-k8s.io/queue-name": "lq"}


@pytest.fixture
def admin(real_server: Server, world: World) -> Iterator[Client]:
    authority, port = trustme.CA(), free_port()
    pair = authority.issue_cert(HOST)
    certificate, key = real_server.folder / "webhook.crt", real_server.folder / "webhook.key"
    pair.private_key_pem.write_to_path(key)
    certificate.write_bytes(b"".join(one.bytes() for one in pair.cert_chain_pems))
    with queueing_kinds(real_server) as client:
        world.start_instance(
            "--workload-queueing",
            "--leader-elect=false",
            f"--secure-port={port}",
            f"--bind-address={HOST}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            "--authorization-always-allow-paths=/healthz,/readyz,/livez,/admission/queued",
            kubeconfig=real_server.admin,
        )
        configuration = yaml.safe_load(WEBHOOK.read_text())
        [webhook] = configuration["webhooks"]
        path = webhook["clientConfig"]["service"]["path"]
        webhook["clientConfig"] = {
            "url": f"https://{HOST}:{port}{path}",
            "caBundle": b64encode(authority.cert_pem.bytes()).decode(),
        }
        client.request("POST", WEBHOOKS, configuration)
        try:
            eventually("it answers", lambda: _gates(client))
            yield client
        finally:
            client.request("DELETE", f"{WEBHOOKS}/{configuration['metadata']['name']}")
            world.end_schedulers()


def _tried(client: Client, path: str, api_version: str, kind: str, spec: Json) -> Json:
    metadata = {"name": "probe", "labels": QUEUED}
    obj = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
    return client.request("POST", f"{path}/namespaces/default/{kind.lower()}s?dryRun=All", obj)


def _gates(client: Client) -> list[str]:
    try:
        pod = _tried(client, "/api/v1", "v1", "Pod", POD)
    except Refused:
        return []  # nobody answers yet, and failurePolicy is Fail
    return [one["name"] for one in pod["spec"].get("schedulingGates") or ()]


def test_pods_are_gated_jobs_suspended_and_templates_labelled_however_large(admin: Client) -> None:
    assert _gates(admin) == ["kueue.x-k8s.io/admission"]
    template = {"spec": {**POD, "restartPolicy": "Never"}, "metadata": {"annotations": {"large": "x" * 200_000}}}
    job = _tried(admin, "/apis/batch/v1", "batch/v1", "Job", {"template": template})
    assert job["spec"]["suspend"] is True
    selector = {"matchLabels": {"app": "web"}}
    web = _tried(admin, "/apis/apps/v1", "apps/v1", "Deployment", {"selector": selector, "template": TEMPLATE})
    assert web["spec"]["template"]["metadata"]["labels"] == {"app": "web", **QUEUED}
