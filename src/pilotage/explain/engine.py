"""A scheduler that only thinks: the cluster loaded from manifests or from an API server, and the profiles over it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from pilotage.assembly import WATCHED, SchedulerOptions, build_profiles
from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.no_api import NoApi
from pilotage.clock import Clock
from pilotage.cluster.state import Cluster
from pilotage.cycle.handle import SchedulerHandle
from pilotage.cycle.placement import ProfileEngine
from pilotage.kube.client import KubeClient, ListOptions
from pilotage.kube.errors import ApiStatusError
from pilotage.model import KINDS, Pod, kind_of
from pilotage.rng import seeded

_PAGE = 500
_NOT_FOUND = 404
_WORKLOADS = ("deployments", "jobs")


def cluster_of_manifests(objects: Iterable[dict[str, Any]]) -> Cluster:
    """Objects as they stand in files; kinds that scheduling does not read are left out."""
    cluster = Cluster()
    for raw in objects:
        kind = kind_of(str(raw.get("kind", "")))
        if kind is not None:
            put(cluster, kind.kind, kind.decode(msgspec.json.encode(_namespaced(raw, kind.namespaced))))
    return cluster


def _namespaced(raw: dict[str, Any], is_namespaced: bool) -> dict[str, Any]:
    metadata = dict(raw.get("metadata") or {})
    if is_namespaced:
        metadata.setdefault("namespace", "default")
    metadata.setdefault("uid", f"{raw.get('kind')}/{metadata.get('namespace', '')}/{metadata.get('name', '')}")
    return {**raw, "metadata": metadata}


async def cluster_of_server(client: KubeClient) -> Cluster:
    """Everything that scheduling reads, listed once."""
    cluster = Cluster()
    for resource in (*WATCHED, *_WORKLOADS):
        kind = KINDS[resource]
        token = ""
        while True:
            try:
                page = await client.list_page(kind, ListOptions(limit=_PAGE, continue_token=token))
            except ApiStatusError as error:
                if error.code == _NOT_FOUND:
                    break
                raise
            for obj in page.items:
                put(cluster, kind.kind, obj)
            token = page.continue_token
            if not token:
                break
    return cluster


def put(cluster: Cluster, kind: str, obj: Any) -> None:
    if not isinstance(obj, Pod):
        cluster.put_object(kind, obj)
        if kind == "Node":
            cluster.put_node(obj)
        return
    if obj.is_finished:
        return
    cluster.put_object(kind, obj)
    if obj.node_name:
        cluster.put_pod(obj)
    else:
        cluster.nominations.follow(None, obj)


def thinking_engines(cluster: Cluster, clock: Clock, options: SchedulerOptions) -> dict[str, ProfileEngine]:
    """An engine per scheduler name that decides and never writes."""
    handle = SchedulerHandle(cluster, Dispatcher(NoApi()), clock, seeded(0))
    return {name: ProfileEngine(profile, cluster) for name, profile in build_profiles(options, handle).items()}
