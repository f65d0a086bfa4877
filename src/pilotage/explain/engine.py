"""The cluster of a scheduler that only thinks, loaded from manifests or from an API server."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pilotage.api.kinds import WatchedKinds
from pilotage.assembly import thinking_engines as thinking_engines
from pilotage.cluster.state import Cluster
from pilotage.kube.client import KubeClient, ListOptions
from pilotage.kube.discovery import why_not_served
from pilotage.kube.errors import ApiStatusError
from pilotage.model import KINDS, DecodeError, KindInfo

log = logging.getLogger(__name__)

_PAGE = 500
_NOT_FOUND = 404
_WORKLOADS = ("deployments", "jobs")


def cluster_of_manifests(objects: Iterable[dict[str, Any]], kinds: WatchedKinds | None = None) -> Cluster:
    """Objects as they stand in files; kinds that neither scheduling nor its plugins (`kinds`) read are left out."""
    cluster = Cluster(kinds=kinds)
    for raw in objects:
        for kind in cluster.kinds.of_manifest(raw):
            read(cluster, kind, raw)
    return cluster


def read(cluster: Cluster, kind: KindInfo, raw: Mapping[str, Any]) -> None:
    """Put in an object as it stands in a file; DecodeError if it is none, of a plugin's kind it is left out then."""
    try:
        put(cluster, kind.kind, kind.decode(msgspec.json.encode(_namespaced(raw, kind.namespaced))))
    except DecodeError as error:
        if kind.kind not in cluster.kinds.foreign:
            raise
        cluster.skipped.skip(kind.kind, error.key, "decode", error)


def _namespaced(raw: Mapping[str, Any], is_namespaced: bool) -> dict[str, Any]:
    metadata = dict(raw.get("metadata") or {})
    if is_namespaced:
        metadata.setdefault("namespace", "default")
    metadata.setdefault("uid", f"{raw.get('kind')}/{metadata.get('namespace', '')}/{metadata.get('name', '')}")
    return {**raw, "metadata": metadata}


async def cluster_of_server(client: KubeClient, kinds: WatchedKinds | None = None) -> Cluster:
    """Everything that scheduling and its plugins (`kinds`) read, listed once."""
    cluster = Cluster(kinds=kinds)
    for kind in (*cluster.kinds.own.values(), *(KINDS[resource] for resource in _WORKLOADS)):
        await _list(cluster, client, kind)
    for kind in cluster.kinds.foreign.values():
        if not await _list(cluster, client, kind):
            log.warning("%s", await why_not_served(client, kind))
    return cluster


async def _list(cluster: Cluster, client: KubeClient, kind: KindInfo) -> bool:
    """Put in all objects of a kind; False if the server does not have it."""
    token = ""
    while True:
        try:
            page = await client.list_page(kind, ListOptions(limit=_PAGE, continue_token=token))
        except ApiStatusError as error:
            if error.code == _NOT_FOUND:
                return False
            raise
        for unreadable in page.errors:
            cluster.skipped.skip(kind.kind, unreadable.key, "decode", unreadable)
        for obj in page.items:
            put(cluster, kind.kind, obj)
        token = page.continue_token
        if not token:
            return True


def put(cluster: Cluster, kind: str, obj: Any) -> None:
    """An object that cannot be put in is left out, as the scheduler leaves it out."""
    try:
        cluster.put(kind, obj)
    except Exception as error:
        cluster.skipped.skip(kind, obj.key, "intake", error)
        cluster.discard(kind, obj)
