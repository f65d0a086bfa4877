"""Whatever stands in the objects of workload queueing: nothing ends, and a workload beside them gets its quota."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotage.model import KINDS
from pilotage.observe.exposition import render
from pilotage.rng import seeded
from pilotage.sandbox.kinds.builtin_groups import KUEUE_GROUP
from pilotage.sandbox.kinds.kueue_schemas import _schemas
from pilotage.sandbox.storage.store import Key
from tests.jobs.live.world import KUEUE, QueueingWorld, cluster_queue, flavor, job, living, local_queue, priority_class
from tests.properties.hostile_values import HostileValues

Json = dict[str, Any]

POD_SETS = [{"name": "main", "count": 1, "template": {"spec": {"containers": [{"name": "c", "resources": {}}]}}}]
FAIR = {"fairSharing": {}, "admissionFairSharing": {"usageHalfLifeTime": "10s", "usageSamplingInterval": "1s"}}


def workload(name: str, queue: str, cpu: str = "1") -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    pod_sets = [{"name": "main", "count": 1, "template": template}]
    spec = {"queueName": queue, "podSets": pod_sets, "active": True}
    return {"apiVersion": KUEUE, "kind": "Workload", "metadata": {"name": name}, "spec": spec}


def valid_objects(number: int) -> list[Json]:
    """One of each kind, which refer to each other."""
    name = f"h-{number}"
    cohort = {"apiVersion": KUEUE, "kind": "Cohort", "metadata": {"name": name}, "spec": {"parentName": "h-0"}}
    check = {"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": {"name": name}, "spec": {"controllerName": "x"}}
    queue = cluster_queue(name, flavors={name: 4}, cohortName=name)
    return [
        flavor(name),
        cohort,
        check,
        priority_class(name, 5),
        queue,
        local_queue(name, name),
        workload(f"{name}-a", name),
        workload(f"{name}-b", name, cpu="100m"),
    ]


def store(cluster: QueueingWorld, obj: Json) -> None:
    """Past validation: as another API server, or an older one, may hold it."""
    info = next(one for one in KINDS.values() if one.kind == obj["kind"])
    metadata = {**obj["metadata"], "uid": f"uid-{obj['kind']}-{obj['metadata']['name']}", "generation": 1}
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
    if info.namespaced:
        metadata["namespace"] = "default"
    plural = f"{info.plural}.{info.group}" if info.group else info.plural
    key = Key(plural, metadata.get("namespace", ""), metadata["name"])
    stored = {**obj, "metadata": metadata}
    known = cluster.cluster.api.store.get(key)
    if known is None:
        cluster.cluster.api.store.create(key, stored)
    else:
        cluster.cluster.api.store.update(key, {**stored, "metadata": {**metadata, "uid": known.uid}})


def hostile(values: HostileValues, obj: Json) -> Json:
    if KUEUE_GROUP in obj["apiVersion"]:
        return dict(values.overlay_schema(obj, _schemas("v1beta2")[obj["kind"]]))
    return {**values.overlay(obj, "v1.Job"), **{name: obj[name] for name in ("apiVersion", "kind", "metadata")}}


def scrape(cluster: QueueingWorld) -> bytes:
    queueing = cluster.process.queueing
    assert queueing is not None
    return render("", cluster.process.scheduler.metrics, queueing.metrics)[0]


@given(seed=st.integers(0, 2**32), is_fair=st.booleans())
@settings(max_examples=12, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
async def test_nothing_in_the_objects_of_queueing_stops_it(seed: int, is_fair: bool) -> None:
    values = HostileValues(seeded(seed))
    async with living(nodes=1, configuration={**(FAIR if is_fair else {}), "waitForPodsReady": {}}) as cluster:
        for number in range(3):
            objects = valid_objects(number)
            for obj in (*objects, job(f"h-{number}", queue=f"h-{number}")):
                store(cluster, hostile(values, obj))
        await cluster.clock.advance(3)
        for number in range(3):
            for obj in valid_objects(number)[2:]:
                store(cluster, hostile(values, obj))
        await cluster.clock.advance(3)
        cluster.create(
            flavor("canary"), cluster_queue("canary", flavors={"canary": 1}), local_queue("canary", "canary")
        )
        cluster.create(workload("canary", "canary"))
        await cluster.clock.advance(90)
        assert cluster.condition("canary", "QuotaReserved") == "True/QuotaReserved"
        assert b"kueue_pending_workloads" in scrape(cluster)
        found = cluster.process.scheduler.metrics
        assert not found.task_errors_total.values()
        faults = {labels for labels in found.skipped_objects_total.values() if labels[1] != "decode"}
        assert not faults, [one.sentence for one in found.skipped]


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    logger = logging.getLogger("pilotage")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)
