"""The API of a queueing scenario, played by a server in another process: real or the sandbox.

Scenarios run in virtual time, so the engine is in this process; but every object and every status is written to the
server as the controller writes it, and what the engine is told is what the server stored. Two things are the scenario's
own: the UID of an object is its name, and it was created at the scenario's time.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pilotage.jobs.controller.status_bodies import workload_status
from pilotage.model import kind_of
from pilotage.model.kueue import Workload, WorkloadStatus
from pilotage.simulate.queueing_api import QueueingApi
from pilotage.simulate.queueing_objects import NAMESPACE

from .client import MERGE, Client, Json
from .queueing_kinds import GROUP

QUEUED = "kueue.x-k8s.io/queue-name"
PLURALS = ("workloads", "localqueues", "clusterqueues", "cohorts", "resourceflavors", "admissionchecks")
CLASSES = "workloadpriorityclasses"


class ServedQueueing(QueueingApi):
    def __init__(self, client: Client) -> None:
        self._client = client
        self._made: dict[tuple[str, str, str], Json] = {}
        """By kind, namespace and name: what the scenario wrote into its metadata."""

    def create(self, obj: Json) -> Json:
        status, written = obj.get("status"), _accepted(obj)
        metadata = obj["metadata"]
        self._made[obj["kind"], metadata.get("namespace", ""), metadata["name"]] = metadata
        path = _collection(obj["kind"], metadata.get("namespace", ""))
        stored = self._client.request("POST", path, written)
        if obj["kind"] == "Job" and QUEUED in metadata["labels"]:
            assert stored["spec"]["suspend"] is True, "admission has let a Job with a queue run"
        if status:
            stored = self._client.request("PATCH", f"{path}/{metadata['name']}/status", {"status": status}, MERGE)
        return self._seen(stored)

    def update(self, obj: Json) -> Json:
        written, path = _accepted(obj), _path(obj)
        written["metadata"]["resourceVersion"] = self._client.request("GET", path)["metadata"]["resourceVersion"]
        return self._seen(self._client.request("PUT", path, written))

    def patch(self, stored: Json, patch: Json, subresource: str = "") -> Json:
        meant = {key: value for key, value in patch.get("metadata", {}).items() if key != "uid"}
        path = _path(stored) + (f"/{subresource}" if subresource else "")
        return self._seen(self._client.request("PATCH", path, {**patch, "metadata": meant}, MERGE))

    def write_status(self, workload: Workload, status: WorkloadStatus) -> Workload:
        body = {"metadata": {"resourceVersion": workload.resource_version}, "status": workload_status(status)}
        return self._written(workload, body, "/status")

    def deactivate(self, workload: Workload) -> Workload:
        return self._written(workload, {"spec": {"active": False}}, "")

    def _written(self, workload: Workload, body: Json, subresource: str) -> Workload:
        path = f"{_collection('Workload', workload.namespace)}/{workload.name}{subresource}"
        return msgspec.convert(self._seen(self._client.request("PATCH", path, body, MERGE)), Workload)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        self._client.request("DELETE", f"{_collection(kind, namespace)}/{name}", {"propagationPolicy": "Background"})

    def _seen(self, stored: Json) -> Json:
        metadata = stored["metadata"]
        own = self._made[stored["kind"], metadata.get("namespace", ""), metadata["name"]]
        kept = {key: own[key] for key in ("uid", "creationTimestamp") if key in own}
        return {**stored, "metadata": {**metadata, **kept}}

    def clear(self) -> None:
        """Leave an empty server to the next scenario."""
        namespaces = {namespace for _, namespace, _ in self._made if namespace}
        for plural in (*PLURALS, CLASSES):
            if plural in ("workloads", "localqueues"):
                for namespace in namespaces:
                    self._client.request("DELETE", f"{GROUP}/namespaces/{namespace}/{plural}", {})
            else:
                self._client.request("DELETE", f"{GROUP}/{plural}", {})
        self._client.request("DELETE", _collection("Job", NAMESPACE), {"propagationPolicy": "Background"})


def _collection(kind: str, namespace: str) -> str:
    found = kind_of(kind)
    assert found is not None, kind
    return found.path(namespace)


def _path(obj: Json) -> str:
    return f"{_collection(obj['kind'], obj['metadata'].get('namespace', ''))}/{obj['metadata']['name']}"


def _accepted(obj: Json) -> Json:
    """With what every user writes and no scenario does, and without what only the server may say."""
    written = _without_nothing({key: value for key, value in obj.items() if key != "status"})
    for key in ("uid", "creationTimestamp"):
        written["metadata"].pop(key, None)
    for spec in _pod_specs(written):
        spec["restartPolicy"] = "Never"
        for container in spec["containers"]:
            container["image"] = "work"
    return written


def _pod_specs(obj: Json) -> list[Json]:
    if obj["kind"] == "Job":
        return [obj["spec"]["template"]["spec"]]
    return [one["template"]["spec"] for one in obj["spec"]["podSets"]] if obj["kind"] == "Workload" else []


def _without_nothing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nothing(one) for key, one in value.items() if one is not None and one != ""}
    return [_without_nothing(one) for one in value] if isinstance(value, list) else value
