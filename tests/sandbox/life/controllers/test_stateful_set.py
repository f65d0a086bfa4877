"""StatefulSets: stable names, order, claims, revisions."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.life.controllers.stateful_set_steps import Replicas, next_steps
from pilotage.sandbox.life.facts import PodFacts
from pilotage.sandbox.storage.store import Key
from tests.sandbox.living_cluster import LivingCluster, stateful_set, template

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def replicas(*ready: bool | None, wanted: int, outdated: tuple[int, ...] = (), **more: Any) -> Replicas:
    """Pods by ordinal; None: there is none."""
    pods = {
        i: PodFacts(Key("pods", "default", f"web-{i}"), f"u{i}", phase="Running", is_ready=is_ready)
        for i, is_ready in enumerate(ready)
        if is_ready is not None
    }
    available = {i for i, is_ready in enumerate(ready) if is_ready}
    return Replicas(
        pods, available, outdated, **{"wanted": range(wanted), "is_ordered": True, "update_from": 0, **more}
    )


@pytest.mark.parametrize(
    ("state", "created", "deleted"),
    [
        (replicas(wanted=3), [0], []),
        (replicas(False, wanted=3), [], []),
        (replicas(True, wanted=3), [1], []),
        (replicas(True, None, True, wanted=3), [1], []),
        (replicas(True, True, True, wanted=1), [], ["web-2"]),
        (replicas(True, True, False, wanted=1), [], ["web-2"]),
        (replicas(True, False, False, wanted=1), [], []),
        (replicas(wanted=3, is_ordered=False), [0, 1, 2], []),
        (replicas(True, False, True, wanted=1, is_ordered=False), [], ["web-2", "web-1"]),
        (replicas(True, True, True, wanted=3, outdated=(0, 1, 2)), [], ["web-2"]),
        (replicas(True, True, True, wanted=3, outdated=(0, 1)), [], ["web-1"]),
        (replicas(True, True, False, wanted=3, outdated=(0, 1), is_ordered=False), [], []),
        (replicas(True, True, True, wanted=3, outdated=(0, 1, 2), update_from=3), [], []),
        (replicas(True, True, True, wanted=3, outdated=(0, 1, 2), update_from=None), [], []),
        (replicas(True, True, True, wanted=3, outdated=(0, 1, 2), max_unavailable=2), [], ["web-2", "web-1"]),
    ],
)
def test_next_steps(state: Replicas, created: list[int], deleted: list[str]) -> None:
    steps = next_steps(state)
    assert (list(steps.create), [pod.key.name for pod in steps.delete]) == (created, deleted)


async def test_two_billion_pods_are_thought_of_in_batches() -> None:
    cluster = LivingCluster(most_pods=70, binds=False)
    cluster.create(stateful_set("web", 2_000_000_000, podManagementPolicy="Parallel"))
    await cluster.run(3)
    assert len(cluster.pods()) == 70


async def test_pods_come_in_order_each_when_the_one_before_is_ready() -> None:
    cluster = LivingCluster()
    cluster.create(stateful_set("web", 3))
    seen = []
    for _ in range(8):
        await cluster.run(0.5)
        seen.append(cluster.names("Pod"))
    steps = [names for i, names in enumerate(seen) if names != (seen[i - 1] if i else [])]
    assert steps == [["web-0"], ["web-0", "web-1"], ["web-0", "web-1", "web-2"]]
    await cluster.settle()
    first = cluster.get("Pod", "web-0")
    assert (first["spec"]["hostname"], first["spec"]["subdomain"]) == ("web-0", "web")
    assert first["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "0"
    status = cluster.status("StatefulSet", "web")
    assert (
        status["replicas"] == status["readyReplicas"] == status["availableReplicas"] == status["updatedReplicas"] == 3
    )


async def test_deleted_pod_comes_back_under_its_name_and_with_its_claim() -> None:
    cluster = LivingCluster()
    cluster.create(stateful_set("web", 2, volumeClaimTemplates=[CLAIM]))
    await cluster.settle()
    assert cluster.names("PersistentVolumeClaim") == ["data-web-0", "data-web-1"]
    before = {p["metadata"]["name"]: p["metadata"]["uid"] for p in cluster.pods()}
    claims = {c["metadata"]["uid"] for c in cluster.all("PersistentVolumeClaim")}
    cluster.delete("Pod", "web-0")
    await cluster.settle()
    after = {p["metadata"]["name"]: p["metadata"]["uid"] for p in cluster.pods(phase="Running")}
    assert after.keys() == before.keys() and after["web-0"] != before["web-0"]
    assert {c["metadata"]["uid"] for c in cluster.all("PersistentVolumeClaim")} == claims
    (volume,) = cluster.get("Pod", "web-0")["spec"]["volumes"]
    assert volume == {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}


async def test_claims_go_with_a_set_that_asks_for_it() -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    cluster = LivingCluster()
    cluster.create(stateful_set("web", 3, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy))
    await cluster.settle()
    cluster.edit("StatefulSet", "web", replicas=2)
    await cluster.settle()
    assert cluster.names("PersistentVolumeClaim") == ["data-web-0", "data-web-1"]
    cluster.delete("StatefulSet", "web")
    await cluster.settle()
    assert cluster.names("PersistentVolumeClaim") == []


async def test_rolling_update_stops_at_the_partition_and_goes_on_below() -> None:
    cluster = LivingCluster()
    cluster.create(stateful_set("web", 3))
    await cluster.settle()
    cluster.edit(
        "StatefulSet",
        "web",
        template=template("web", image="new"),
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
    )
    await cluster.settle()
    assert [p["spec"]["containers"][0]["image"] for p in cluster.pods()] == ["i", "i", "new"]
    status = cluster.status("StatefulSet", "web")
    assert status["currentRevision"] != status["updateRevision"] and status["updatedReplicas"] == 1
    cluster.delete("Pod", "web-0")
    await cluster.settle()
    assert cluster.get("Pod", "web-0")["spec"]["containers"][0]["image"] == "i", "below the partition"
    cluster.edit("StatefulSet", "web", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    await cluster.settle()
    assert [p["spec"]["containers"][0]["image"] for p in cluster.pods()] == ["new"] * 3
    status = cluster.status("StatefulSet", "web")
    assert status["currentRevision"] == status["updateRevision"]


async def test_going_back_reuses_the_revision_and_old_ones_are_forgotten() -> None:
    cluster = LivingCluster()
    cluster.create(stateful_set("web", 1, revisionHistoryLimit=1))
    await cluster.settle()
    original = cluster.status("StatefulSet", "web")["updateRevision"]
    for image in ("a", "i", "b", "c"):
        cluster.edit("StatefulSet", "web", template=template("web", image=image))
        await cluster.settle()
        if image == "i":
            assert cluster.status("StatefulSet", "web")["updateRevision"] == original
    revisions = cluster.all("ControllerRevision")
    assert len(revisions) == 2 and max(one["revision"] for one in revisions) == 5
