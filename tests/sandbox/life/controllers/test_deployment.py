"""Deployments roll from one template to the next and tell how far they are."""

from __future__ import annotations

from typing import Any

from tests.sandbox.living_cluster import LivingCluster, condition, deployment, replica_set, template


def sizes(cluster: LivingCluster) -> list[int]:
    """The sizes of all ReplicaSets, oldest revision first."""
    sets = cluster.all("ReplicaSet")
    sets.sort(key=lambda found: int(found["metadata"]["annotations"]["deployment.kubernetes.io/revision"]))
    return [found["spec"]["replicas"] for found in sets]


def images(cluster: LivingCluster) -> list[str]:
    return sorted(found["spec"]["containers"][0]["image"] for found in cluster.pods())


async def rolled_out(replicas: int = 4, **spec: Any) -> LivingCluster:
    cluster = LivingCluster(nodes=3)
    cluster.create(deployment("web", replicas, **spec))
    await cluster.settle()
    return cluster


async def test_deployment_makes_a_set_that_carries_the_hash_of_the_template() -> None:
    cluster = await rolled_out(3)
    (found,) = cluster.all("ReplicaSet")
    name_hash = found["metadata"]["labels"]["pod-template-hash"]
    assert found["metadata"]["name"] == f"web-{name_hash}"
    assert found["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": name_hash}
    assert {p["metadata"]["labels"]["pod-template-hash"] for p in cluster.pods(phase="Running")} == {name_hash}
    assert cluster.get("Deployment", "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"


async def test_status_of_a_complete_deployment() -> None:
    cluster = await rolled_out(3)
    found = cluster.get("Deployment", "web")
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "observedGeneration")
    assert [found["status"][name] for name in counts] == [3, 3, 3, 3, found["metadata"]["generation"]]
    assert condition(found, "Available")["status"] == "True"
    assert condition(found, "Progressing")["reason"] == "NewReplicaSetAvailable"


async def test_scaling_uses_the_same_set() -> None:
    cluster = await rolled_out(3)
    cluster.edit("Deployment", "web", replicas=5)
    await cluster.settle()
    assert sizes(cluster) == [5] and len(cluster.pods(phase="Running")) == 5
    cluster.edit("Deployment", "web", replicas=0)
    await cluster.settle()
    assert cluster.pods() == [] and cluster.status("Deployment", "web").get("replicas", 0) == 0


async def test_new_template_replaces_all_pods_without_breaking_the_limits() -> None:
    cluster = await rolled_out(4, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}})
    cluster.edit("Deployment", "web", template=template("web", image="v2"))
    for _ in range(200):
        await cluster.run(0.1)
        living = [p for p in cluster.pods() if "deletionTimestamp" not in p["metadata"]]
        assert len(living) <= 5
        assert sum(condition(p, "Ready").get("status") == "True" for p in living) >= 3
    assert sizes(cluster) == [0, 4] and images(cluster) == ["v2"] * 4
    assert cluster.get("Deployment", "web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"


async def test_rollout_to_pods_that_never_get_ready_stops_and_is_reported() -> None:
    cluster = await rolled_out(4, progressDeadlineSeconds=60)
    cluster.edit("Deployment", "web", template=template("web", {"never-ready": "true"}, image="bad"))
    await cluster.run(30)
    found = cluster.get("Deployment", "web")
    assert condition(found, "Progressing")["reason"] == "ReplicaSetUpdated"
    assert condition(found, "Available")["status"] == "True"
    await cluster.settle()
    found = cluster.get("Deployment", "web")
    assert condition(found, "Progressing")["reason"] == "ProgressDeadlineExceeded"
    assert images(cluster) == ["bad", "bad", "i", "i", "i"]


async def test_going_back_to_an_old_template_uses_its_set_again() -> None:
    cluster = await rolled_out(2)
    first = cluster.names("ReplicaSet")
    for image in ("v2", "i"):
        cluster.edit("Deployment", "web", template=template("web", image=image))
        await cluster.settle()
    assert len(cluster.names("ReplicaSet")) == 2 and images(cluster) == ["i", "i"]
    revived = cluster.get("ReplicaSet", first[0])
    assert revived["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


async def test_recreate_ends_all_old_pods_before_it_starts_new_ones() -> None:
    cluster = await rolled_out(3, strategy={"type": "Recreate"})
    cluster.edit("Deployment", "web", template=template("web", image="v2"))
    for _ in range(100):
        await cluster.run(0.05)
        assert len(set(images(cluster))) <= 1
    assert images(cluster) == ["v2"] * 3


async def test_paused_deployment_scales_but_does_not_roll() -> None:
    cluster = await rolled_out(2)
    cluster.edit("Deployment", "web", paused=True, replicas=3, template=template("web", image="v2"))
    await cluster.settle()
    assert images(cluster) == ["i"] * 3
    cluster.edit("Deployment", "web", paused=False)
    await cluster.settle()
    assert images(cluster) == ["v2"] * 3


async def test_deployment_paused_in_the_middle_of_a_rollout_waits_without_a_deadline() -> None:
    cluster = await rolled_out(4, progressDeadlineSeconds=60)
    cluster.edit("Deployment", "web", template=template("web", image="v2"))
    await cluster.run(0.5)
    cluster.edit("Deployment", "web", paused=True)
    await cluster.settle()
    assert condition(cluster.get("Deployment", "web"), "Progressing")["reason"] == "DeploymentPaused"
    assert set(images(cluster)) == {"i", "v2"}
    cluster.edit("Deployment", "web", paused=False)
    await cluster.settle()
    assert condition(cluster.get("Deployment", "web"), "Progressing")["reason"] == "NewReplicaSetAvailable"
    assert images(cluster) == ["v2"] * 4


async def test_old_sets_beyond_the_history_limit_are_forgotten() -> None:
    cluster = await rolled_out(1, revisionHistoryLimit=1)
    for number in range(4):
        cluster.edit("Deployment", "web", template=template("web", image=f"v{number}"))
        await cluster.settle()
    assert sizes(cluster) == [0, 1] and images(cluster) == ["v3"]


async def test_set_of_someone_else_with_the_same_name_is_left_alone() -> None:
    probe = LivingCluster(nodes=0)
    probe.create(deployment("web", 1))
    await probe.settle()
    (taken,) = probe.names("ReplicaSet")
    cluster = LivingCluster()
    cluster.create({**replica_set("web", 0), "metadata": {"name": taken}})
    cluster.create(deployment("web", 2))
    await cluster.settle()
    assert len(cluster.names("ReplicaSet")) == 2
    assert cluster.get("ReplicaSet", taken)["spec"]["replicas"] == 0
    assert len(cluster.pods(phase="Running")) == 2
    assert cluster.status("Deployment", "web")["collisionCount"] == 1


async def test_deleting_the_deployment_removes_sets_and_pods() -> None:
    cluster = await rolled_out(3)
    cluster.delete("Deployment", "web")
    await cluster.settle()
    assert cluster.names("ReplicaSet") == [] and cluster.pods() == []


async def test_a_deployment_that_is_scaled_while_it_rolls_keeps_the_parts_of_its_sets() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    cluster = await rolled_out(10, strategy=strategy)
    cluster.edit("Deployment", "web", template=template("web", {"never-ready": "true"}, image="bad"))
    await cluster.settle()
    assert sizes(cluster) == [8, 5]
    cluster.edit("Deployment", "web", replicas=30)
    await cluster.settle()
    assert sizes(cluster) == [20, 13]
