"""Whatever stands in the objects that scheduling reads: nothing ends, and a pod beside them is bound."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.kube.client import KubeClient
from pilotage.model import KINDS
from pilotage.observe.exposition import render
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.sandbox.storage.store import Key
from pilotage.testing import VirtualClock
from tests.properties.hostile_values import HostileValues

Json = dict[str, Any]
HEAD = ("apiVersion", "kind")
BEYOND_64_BITS = ("4300 digits", "serialize ints", "too large to convert")
"""The only faults that are known: whoever asks for more than there can be of anything is skipped."""


def obj(version: str, kind: str, name: str, **fields: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": {"app": name}}, **fields}


def pod(name: str, **spec: Any) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m"}}}
    spec = {"schedulerName": "default-scheduler", "containers": [container], **spec}
    return obj("v1", "Pod", name, spec=spec, status={"phase": "Pending"})


def node(name: str) -> Json:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return obj("v1", "Node", name, spec={}, status={"capacity": amounts, "allocatable": amounts})


def valid_objects(number: int) -> dict[str, Json]:
    """By type of the schema: one of each kind, which refer to each other."""
    name = f"h-{number}"
    device = {"name": "d0", "attributes": {"model": {"string": "a"}}, "capacity": {"mem": {"value": "1Gi"}}}
    slice_ = {"driver": "x.io", "nodeName": name, "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}}
    request = {"name": "r", "exactly": {"deviceClassName": name, "count": 1, "allocationMode": "ExactCount"}}
    storage = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": name}
    claims = {
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}],
        "resourceClaims": [{"name": "c", "resourceClaimName": name}],
    }
    return {
        "v1.Node": node(name),
        "v1.StorageClass": obj("storage.k8s.io/v1", "StorageClass", name, provisioner="x.io"),
        "v1.PersistentVolume": obj("v1", "PersistentVolume", name, spec={**storage, "csi": {"driver": "x.io"}}),
        "v1.PersistentVolumeClaim": obj(
            "v1",
            "PersistentVolumeClaim",
            name,
            spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        ),
        "v1.CSINode": obj("storage.k8s.io/v1", "CSINode", name, spec={"drivers": [{"name": "x.io", "nodeID": name}]}),
        "v1.CSIDriver": obj("storage.k8s.io/v1", "CSIDriver", name, spec={}),
        "v1.CSIStorageCapacity": obj("storage.k8s.io/v1", "CSIStorageCapacity", name, storageClassName=name),
        "v1.VolumeAttachment": obj(
            "storage.k8s.io/v1",
            "VolumeAttachment",
            name,
            spec={"attacher": "x.io", "nodeName": name, "source": {"persistentVolumeName": name}},
        ),
        "v1.PodDisruptionBudget": obj(
            "policy/v1", "PodDisruptionBudget", name, spec={"selector": {"matchLabels": {"app": "h-0-p"}}}
        ),
        "resource.v1.ResourceClaim": obj(
            "resource.k8s.io/v1", "ResourceClaim", name, spec={"devices": {"requests": [request]}}
        ),
        "v1.ResourceSlice": obj("resource.k8s.io/v1", "ResourceSlice", name, spec={**slice_, "devices": [device]}),
        "v1.DeviceClass": obj("resource.k8s.io/v1", "DeviceClass", name, spec={}),
        "v1.Service": obj("v1", "Service", name, spec={"selector": {"app": "h-0-p"}}),
        "v1.ReplicaSet": obj("apps/v1", "ReplicaSet", name, spec={"selector": {"matchLabels": {"app": "h-0-p"}}}),
        "v1.Namespace": obj("v1", "Namespace", name),
        "v1.Pod": pod(f"{name}-p", **claims),
    }


def store(cluster: EmbeddedCluster, found: Json, uid: str) -> None:
    """Past validation: as another API server, or an older one, may hold it."""
    info = next(one for one in KINDS.values() if one.kind == found["kind"])
    namespace = "default" if info.namespaced else ""
    metadata = {**found["metadata"], "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}
    if namespace:
        metadata["namespace"] = namespace
    key = Key(f"{info.plural}.{info.group}" if info.group else info.plural, namespace, metadata["name"])
    known = cluster.api.store.get(key)
    if known is None:
        cluster.api.store.create(key, {**found, "metadata": metadata})
    else:
        cluster.api.store.update(key, {**found, "metadata": {**metadata, "uid": known.uid}})


def hostile(values: HostileValues, number: int) -> Iterator[tuple[Json, str]]:
    for type_, valid in valid_objects(number).items():
        found = values.overlay(valid, type_)
        kept = {name: valid["metadata"][name] for name in ("name", "labels")}
        yield {**found, **{name: valid[name] for name in HEAD}, "metadata": kept}, f"{valid['kind']}-{number}"
    # One that was put on its node by somebody else: indexes look at it whatever it says.
    running = pod(f"{kept['name']}-running", nodeName=f"h-{number}")
    found = values.overlay(running, "v1.Pod")
    spec = {**(found.get("spec") or {}), "nodeName": f"h-{number}"}
    yield {**running, "spec": spec, "status": found.get("status") or {}}, f"running-{number}"


@asynccontextmanager
async def scheduling() -> AsyncIterator[tuple[EmbeddedCluster, SchedulerProcess, VirtualClock]]:
    clock = VirtualClock()
    options = EmbeddedOptions(nodes=0, port=None, is_alive=False)
    async with EmbeddedCluster.running(options, clock, seeded(1)) as cluster:
        process = SchedulerProcess(KubeClient(cluster.transport()), clock, seeded(2), SchedulerOptions())
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(process.run())
            await clock.advance(1)
            yield cluster, process, clock
            assert not running.done(), "nothing ends by itself"
            running.cancel()


async def one_round(seed: int) -> None:
    values = HostileValues(seeded(seed))
    async with scheduling() as (cluster, process, clock):
        for _ in range(2):  # the second time everything changes
            for number in range(2):
                for found, uid in hostile(values, number):
                    store(cluster, found, uid)
            await clock.advance(5)
        safe = node("safe")
        safe["metadata"]["labels"] = {"safe": "yes"}
        cluster.api.create("nodes", "", safe)
        canary = pod("canary", nodeSelector={"safe": "yes"})
        cluster.api.create("pods", "default", canary)
        await clock.advance(60)
        assert cluster.api.get("pods", "default", "canary")["spec"].get("nodeName") == "safe"
        metrics = process.scheduler.metrics
        assert b"scheduler_pending_pods" in render("", metrics)[0]
        assert not metrics.task_errors_total.values()
        faults = [one.sentence for one in metrics.skipped if one.stage != "decode"]
        assert not [one for one in faults if not any(word in one for word in BEYOND_64_BITS)], faults


@given(seed=st.integers(0, 2**32))
@settings(max_examples=12, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
async def test_nothing_in_the_objects_of_scheduling_stops_it(seed: int) -> None:
    await one_round(seed)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("pilotage")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)
