"""ReplicaSets keep their number of living pods and count them."""

from __future__ import annotations

from pilotage.sandbox.life.controllers.controller import controller_reference
from pilotage.sandbox.life.controllers.replicaset import least_missed
from pilotage.sandbox.life.facts import PodFacts
from pilotage.sandbox.storage.store import Key
from tests.sandbox.living_cluster import LivingCluster, condition, pod, replica_set


async def test_set_creates_its_pods_and_counts_them() -> None:
    cluster = LivingCluster()
    cluster.create(replica_set("web", 3))
    await cluster.settle()
    owners = [found["metadata"]["ownerReferences"][0] for found in cluster.pods(phase="Running")]
    assert [(o["kind"], o["name"], o["controller"]) for o in owners] == [("ReplicaSet", "web", True)] * 3
    status = cluster.status("ReplicaSet", "web")
    counts = ("replicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas", "observedGeneration")
    assert [status[name] for name in counts] == [3, 3, 3, 3, 1]


async def test_deleted_and_failed_pods_are_replaced() -> None:
    cluster = LivingCluster()
    cluster.create(replica_set("web", 3))
    await cluster.settle()
    victim = cluster.names("Pod")[0]
    cluster.delete("Pod", victim)
    failed = cluster.get("Pod", cluster.names("Pod")[1])
    failed["status"]["phase"] = "Failed"
    cluster.api.update("pods", "default", failed["metadata"]["name"], failed, "status")
    await cluster.settle()
    assert victim not in cluster.names("Pod")
    assert len(cluster.pods(phase="Running")) == 3
    assert len(cluster.pods(phase="Failed")) == 1
    assert cluster.status("ReplicaSet", "web")["replicas"] == 3


async def test_more_pods_than_one_batch_are_created_and_deleted() -> None:
    cluster = LivingCluster(nodes=3)
    cluster.create(replica_set("web", 130))
    await cluster.settle()
    assert len(cluster.pods(phase="Running")) == 130
    cluster.edit("ReplicaSet", "web", replicas=5)
    await cluster.settle()
    assert len(cluster.pods()) == 5
    assert cluster.status("ReplicaSet", "web")["replicas"] == 5


async def test_scaling_down_gives_up_pods_that_are_not_ready_first() -> None:
    cluster = LivingCluster()
    cluster.create(replica_set("web", 2))
    await cluster.settle()
    keepers = cluster.names("Pod")
    cluster.edit("ReplicaSet", "web", replicas=4)
    await cluster.run(0.5)
    assert len(cluster.pods(phase="Pending")) == 2
    cluster.edit("ReplicaSet", "web", replicas=2)
    await cluster.settle()
    assert cluster.names("Pod") == keepers


def test_pods_are_given_up_in_the_order_in_which_they_are_missed_least() -> None:
    def facts(name: str, **more: object) -> PodFacts:
        return PodFacts(Key("pods", "default", name), name, labels={}, **more)  # type: ignore[arg-type]

    early, late = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
    pods = [
        facts("old-ready", node_name="n", phase="Running", is_ready=True, ready_since=early, created=early),
        facts("new-ready", node_name="n", phase="Running", is_ready=True, ready_since=late, created=early),
        facts("unready", node_name="n", phase="Running", created=early),
        facts("starting-old", node_name="n", created=early),
        facts("starting-new", node_name="n", created=late),
        facts("unassigned", created=early),
    ]
    order = [found.key.name for found in least_missed(pods)]
    assert order == ["unassigned", "starting-new", "starting-old", "unready", "new-ready", "old-ready"]


async def test_pod_is_available_only_after_min_ready_seconds() -> None:
    cluster = LivingCluster()
    cluster.create(replica_set("web", 2, minReadySeconds=30))
    await cluster.run(20)
    status = cluster.status("ReplicaSet", "web")
    assert (status["readyReplicas"], status.get("availableReplicas", 0)) == (2, 0)
    await cluster.run(15)
    assert cluster.status("ReplicaSet", "web")["availableReplicas"] == 2


async def test_pods_of_another_owner_do_not_count() -> None:
    cluster = LivingCluster()
    stranger = pod("stranger")
    stranger["metadata"]["labels"] = {"app": "web"}
    owner = cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}})
    stranger["metadata"]["ownerReferences"] = [controller_reference(owner)]
    cluster.create(stranger)
    cluster.create(replica_set("web", 2))
    await cluster.settle()
    assert len(cluster.pods(app="web")) == 3


async def test_rejected_creation_is_reported_and_tried_again() -> None:
    cluster = LivingCluster()
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "priorityClassName": "missing"},
    }
    cluster.create(replica_set("web", 2, template=template))
    await cluster.run(5)
    failure = condition(cluster.get("ReplicaSet", "web"), "ReplicaFailure")
    assert failure["reason"] == "FailedCreate" and "no PriorityClass with name missing" in failure["message"]
    cluster.api.create(
        "priorityclasses.scheduling.k8s.io",
        "",
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "missing"},
            "value": 7,
        },
    )
    await cluster.settle()
    assert len(cluster.pods(phase="Running")) == 2
    assert condition(cluster.get("ReplicaSet", "web"), "ReplicaFailure") == {}
