"""Kueue's kinds and their rules at either server: by what deploy/ has at the real one, built in at the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from .client import Client, Json, Refused
from .servers import Server, eventually

CRDS = Path(__file__).parents[2] / "deploy" / "crds"
POLICIES = CRDS.parent / "workload-queueing" / "admission-policy.yaml"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "/apis/kueue.x-k8s.io/v1beta2"
QUEUE_ADMISSION = POLICIES.parent / "queue-admission.yaml"
_JOBS = "/apis/batch/v1/namespaces/default/jobs?dryRun=All"
BARE_JOB: Json = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "probe", "labels": {"kueue.x-k8s.io/queue-name": "lq"}},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
}

BAD_QUEUE: Json = {
    # Only a policy can say what is wrong with it: it lends more than it has.
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "metadata": {"name": "probe"},
    "spec": {
        "cohortName": "c",
        "resourceGroups": [
            {
                "coveredResources": ["cpu"],
                "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 1, "lendingLimit": 2}]}],
            }
        ],
    },
}


@contextmanager
def queueing_kinds(server: Server) -> Iterator[Client]:
    """The kinds are served inside of the block; with the definitions their objects go."""
    client = Client(server.admin)
    definitions = [yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))]
    policies = list(yaml.safe_load_all(POLICIES.read_text()))
    if server.name == "sandbox":
        definitions, policies = [], []
    for definition in definitions:
        client.request("POST", DEFINITIONS, definition)
    for policy in policies:
        client.request("POST", _collection(policy), policy)
    plurals = [path.stem for path in CRDS.glob("*.yaml")]
    try:
        eventually("all kinds are served", lambda: all(_is_served(client, plural) for plural in plurals))
        eventually("the policies are in force", lambda: _is_refused(client, BAD_QUEUE))
        yield client
    finally:
        for plural in plurals:
            _release(client, plural)
        for policy in policies:
            client.request("DELETE", f"{_collection(policy)}/{policy['metadata']['name']}", {})
        for definition in definitions:
            client.request("DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}", {})
        eventually("the kinds are gone", lambda: not definitions or not any(_is_served(client, one) for one in plurals))


@contextmanager
def queue_admission(client: Client) -> Iterator[None]:
    """What names a queue is held back inside of the block, by the policies that are shipped: at both servers."""
    policies = list(yaml.safe_load_all(QUEUE_ADMISSION.read_text()))
    for policy in policies:
        client.request("POST", _collection(policy), policy)
    try:
        eventually("the policies are in force", lambda: client.request("POST", _JOBS, BARE_JOB)["spec"]["suspend"])
        yield
    finally:
        for policy in policies:
            client.request("DELETE", f"{_collection(policy)}/{policy['metadata']['name']}", {})


def _collection(policy: Json) -> str:
    return f"{ADMISSION}/{policy['kind'].lower().removesuffix('y')}{'ies' if policy['kind'].endswith('y') else 's'}"


def _is_refused(client: Client, queue: Json) -> bool:
    try:
        client.request("POST", f"{GROUP}/clusterqueues?dryRun=All", queue)
    except Refused:
        return True
    return False


def _is_served(client: Client, plural: str) -> bool:
    try:
        client.request("GET", f"{GROUP}/{plural}")
    except Refused:
        return False
    return True


def _release(client: Client, plural: str) -> None:
    """Delete all objects, also those that somebody holds by a finalizer."""
    for obj in client.request("GET", f"{GROUP}/{plural}")["items"]:
        metadata = obj["metadata"]
        scope = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
        path = f"{GROUP}{scope}/{plural}/{metadata['name']}"
        if metadata.get("finalizers"):
            client.request("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
        client.request("DELETE", path, {})
