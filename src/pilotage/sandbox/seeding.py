"""Objects that a sandbox starts with: nodes and manifests, created or left as they are, all of them or none.

What is already there (after a restart with a data directory) is not touched, whatever the file says: who changed it
meant to. Namespaces, definitions and classes go first, so that the order of files does not matter. Before a data
directory sees any object, all of them are created in a copy of the store: it gets all, or none if one is rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from pilotage.clock import Clock
from pilotage.rng import seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.http.bodies import MOST_BYTES
from pilotage.sandbox.kinds.resources import ResourceRegistry, ResourceType
from pilotage.sandbox.kinds.strict_fields import unknown_fields
from pilotage.sandbox.manifests import Manifest, ManifestError
from pilotage.sandbox.storage.records import Change, Key, Record
from pilotage.sandbox.storage.store import Store

_FIRST: Final = ("Namespace", "CustomResourceDefinition", "PriorityClass", "StorageClass", "RuntimeClass")
_MOST_PROBLEMS: Final = 20
_RANGES: Final = "servicecidrs.networking.k8s.io"
_RANGE: Final = "10.96.0.0/12"
_RANGE_IS_READY: Final = b"""{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "", "message":
    "Kubernetes default Service CIDR is ready", "lastTransitionTime": "1970-01-01T00:00:00Z"}]}}"""
_API_SERVICE: Final = "kubernetes"
_API_NAMESPACE: Final = "default"
_API_ADDRESS: Final = "10.96.0.1"
_SLICES: Final = "endpointslices.discovery.k8s.io"

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Seeded:
    """How many objects were created, and how many had been there."""

    created: int = 0
    kept: int = 0


def seed(api: Api, manifests: Iterable[Manifest]) -> Seeded:
    """Create what is missing; ManifestError with every problem if one was rejected (the others are there then)."""
    created = kept = 0
    problems: list[str] = []
    places: dict[Key, str] = {}
    for manifest in sorted(manifests, key=_rank):
        try:
            key, resource_type = _identity(api.registry, manifest)
            _reject_twice(places, key, manifest)
            if api.store.get(key) is not None:
                kept += 1
                continue
            _create(api, key, resource_type, manifest)
            created += 1
        except _Rejected as rejected:
            problems.append(str(rejected))
    if problems:
        raise ManifestError(_shortened(problems))
    return Seeded(created, kept)


def dry_run(api: Api, manifests: Sequence[Manifest], clock: Clock) -> None:
    """Seed a copy of the store that is thrown away; ManifestError if that is rejected."""
    scratch = Store(history=1, journal=_Copy(api.store))
    copies = [Manifest(manifest.where, msgspec.json.decode(_encode(manifest.obj))) for manifest in manifests]
    seed(Api(scratch, clock=clock, rng=seeded(0)), copies)


def publish_api_server(api: Api, url: str | None) -> None:
    """Make the Service `kubernetes` and the range of Services' addresses; if a socket is served, say where it is."""
    port = urlsplit(url).port if url is not None else None
    if api.find("services", _API_NAMESPACE, _API_SERVICE) is None:
        api.create("services", _API_NAMESPACE, _api_service(port or 443))
    if api.find(_RANGES, "", _API_SERVICE) is None:
        api.create(_RANGES, "", {"metadata": {"name": _API_SERVICE}, "spec": {"cidrs": [_RANGE]}})
        api.patch(_RANGES, "", _API_SERVICE, _RANGE_IS_READY, "application/merge-patch+json", "status")
    if url is None or port is None:
        return
    address = urlsplit(url).hostname or "127.0.0.1"
    skipped = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    subsets = [{"addresses": [{"ip": address}], "ports": ports}]
    _publish(api, "endpoints", {"metadata": {"name": _API_SERVICE, "labels": skipped}, "subsets": subsets})
    labels = {"kubernetes.io/service-name": _API_SERVICE}
    endpoints = [{"addresses": [address], "conditions": {"ready": True}}]
    found = {"addressType": "IPv4", "ports": ports, "endpoints": endpoints}
    _publish(api, _SLICES, {"metadata": {"name": _API_SERVICE, "labels": labels}, **found})


class _Copy:
    """Looks like a journal that holds what a store holds; records are immutable and can be shared."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def load(self) -> tuple[int, list[Record]]:
        return self._store.revision, [record for name in self._store.resources() for record in self._store.list(name)]

    def append(self, change: Change) -> None:
        pass

    async def durable(self, revision: int) -> None:
        pass

    @property
    def is_writable(self) -> bool:
        return True

    @property
    def lost(self) -> Sequence[Change]:
        return ()

    def go_on(self, revision: int) -> None:
        pass


class _Rejected(Exception):
    def __init__(self, manifest: Manifest, problem: str) -> None:
        super().__init__(f"{manifest.where}: {problem}")


def _rank(manifest: Manifest) -> int:
    return _FIRST.index(manifest.kind) if manifest.kind in _FIRST else len(_FIRST)


def _identity(registry: ResourceRegistry, manifest: Manifest) -> tuple[Key, ResourceType]:
    resource_type = registry.for_kind(manifest.api_version, manifest.kind)
    if resource_type is None or "create" not in resource_type.verbs:
        raise _Rejected(manifest, _unknown_kind(registry, manifest))
    namespace = str(manifest.obj["metadata"].get("namespace") or "default") if resource_type.namespaced else ""
    return Key(resource_type.storage, namespace, manifest.name), resource_type


def _unknown_kind(registry: ResourceRegistry, manifest: Manifest) -> str:
    problem = f'{manifest.kind} {manifest.name}: kind: no kind "{manifest.kind}" in version "{manifest.api_version}"'
    elsewhere = sorted({t.api_version for t in registry if t.kind == manifest.kind and "create" in t.verbs})
    if elsewhere:
        return f"{problem}; write apiVersion: {' or '.join(elsewhere)}"
    close = get_close_matches(manifest.kind, sorted({t.kind for t in registry}), 1)
    return f'{problem}; did you mean "{close[0]}"?' if close else f"{problem}; define it by a CustomResourceDefinition"


def _reject_twice(places: dict[Key, str], key: Key, manifest: Manifest) -> None:
    if key in places:
        raise _Rejected(manifest, f"{_name(manifest, key)}: is defined in {places[key]} already")
    places[key] = manifest.where


def _create(api: Api, key: Key, resource_type: ResourceType, manifest: Manifest) -> None:
    size = len(_encode(manifest.obj))
    if size > MOST_BYTES:
        raise _Rejected(manifest, f"{_name(manifest, key)}: has {size} bytes; at most {MOST_BYTES} can be stored")
    unknown = unknown_fields(resource_type, manifest.obj)
    if unknown:
        fields = f"{unknown[0]}: unknown field" if len(unknown) == 1 else f"unknown fields {', '.join(unknown)}"
        raise _Rejected(manifest, f"{_name(manifest, key)}: {fields}")
    # A list of another server's objects brings what only a server may say.
    manifest.obj["metadata"].pop("resourceVersion", None)
    try:
        api.verbs.create(resource_type, key.namespace, manifest.obj)
    except ApiError as error:
        raise _Rejected(manifest, f"{_name(manifest, key)}: {_reason(error)}") from error


def _name(manifest: Manifest, key: Key) -> str:
    return f"{manifest.kind} {key.namespace}/{key.name}" if key.namespace else f"{manifest.kind} {key.name}"


def _reason(error: ApiError) -> str:
    """The fields and what is wrong with them; the object has been named before."""
    causes = (error.details or {}).get("causes") or ()
    fields = [f"{cause['field']}: {cause['message']}" for cause in causes if cause.get("field")]
    if fields:
        return "; ".join(fields)
    _, separator, detail = error.message.partition(" cannot be handled as a ")
    return detail.partition(": ")[2] if separator else error.message


def _shortened(problems: Sequence[str]) -> list[str]:
    if len(problems) <= _MOST_PROBLEMS:
        return list(problems)
    return [*problems[:_MOST_PROBLEMS], f"and {len(problems) - _MOST_PROBLEMS} more"]


def _publish(api: Api, resource: str, obj: dict[str, Any]) -> None:
    known = api.find(resource, _API_NAMESPACE, _API_SERVICE)
    if known is None:
        api.create(resource, _API_NAMESPACE, obj)
    else:
        api.update(resource, _API_NAMESPACE, _API_SERVICE, {**known, **obj, "metadata": known["metadata"]})


def _api_service(port: int) -> dict[str, Any]:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]
    spec = {"clusterIP": _API_ADDRESS, "type": "ClusterIP", "ports": ports}
    return {"metadata": {"name": _API_SERVICE, "labels": labels}, "spec": spec}
