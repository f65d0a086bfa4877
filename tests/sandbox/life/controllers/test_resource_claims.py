"""Claims from templates live as long as their pod needs them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.living_cluster import LivingCluster, pod, pod_group

Object = dict[str, Any]
CLAIMS = "resourceclaims.resource.k8s.io"
REQUESTS = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
ALLOCATION = {
    "devices": {"results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "p", "device": "d"}]},
}


def claim_template(name: str = "gpu") -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"metadata": {"labels": {"team": "a"}}, "spec": REQUESTS},
    }


def claim(name: str) -> Object:
    metadata = {"name": name}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": REQUESTS}


def user(name: str, *, template: str | None = None, claim: str | None = None, **spec: Any) -> Object:
    source = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
    spec.setdefault("restartPolicy", "Never")
    return pod(name, resourceClaims=[{"name": "accelerator", **source}], **spec)


def claim_of(cluster: LivingCluster, name: str) -> str:
    (entry,) = cluster.status("Pod", name)["resourceClaimStatuses"]
    assert entry["name"] == "accelerator"
    found: str = entry["resourceClaimName"]
    return found


def allocate(cluster: LivingCluster, name: str, *pods: str) -> None:
    """What a scheduler does: protect, allocate, reserve."""
    found = cluster.get("ResourceClaim", name)
    found["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    found = cluster.api.update(CLAIMS, "default", name, found)
    uids = {pod_name: cluster.get("Pod", pod_name)["metadata"]["uid"] for pod_name in pods}
    reserved = [{"resource": "pods", "name": pod_name, "uid": uid} for pod_name, uid in uids.items()]
    found["status"] = {"allocation": ALLOCATION, "reservedFor": reserved}
    cluster.api.update(CLAIMS, "default", name, found, "status")


async def test_claim_is_made_from_the_template_and_reported_in_the_status() -> None:
    cluster = LivingCluster(binds=False)
    cluster.create(claim_template())
    cluster.create(user("a", template="gpu"))
    await cluster.settle()
    made = cluster.get("ResourceClaim", claim_of(cluster, "a"))
    assert made["metadata"]["name"].startswith("a-accelerator-")
    assert made["metadata"]["labels"] == {"team": "a"}
    assert made["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"] == "accelerator"
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Pod", "a", True)
    assert made["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu.example.com"


async def test_pod_waits_for_its_template() -> None:
    cluster = LivingCluster(binds=False)
    cluster.create(user("a", template="gpu"))
    await cluster.settle()
    assert "resourceClaimStatuses" not in cluster.status("Pod", "a")
    cluster.create(claim_template())
    await cluster.settle()
    assert cluster.names("ResourceClaim") == [claim_of(cluster, "a")]


async def test_claim_that_was_made_but_not_told_is_found_again() -> None:
    first = LivingCluster(binds=False)
    first.create(claim_template())
    first.create(user("a", template="gpu"))
    await first.settle()
    forgetful = first.get("Pod", "a")
    del forgetful["status"]["resourceClaimStatuses"]
    first.life.stop()
    first.api.update("pods", "default", "a", forgetful, "status")
    second = LivingCluster(nodes=0, binds=False, store=first.store)
    await second.settle()
    assert second.names("ResourceClaim") == [claim_of(second, "a")]


async def test_claim_deleted_under_its_pod_is_made_anew() -> None:
    cluster = LivingCluster(binds=False)
    cluster.create(claim_template())
    cluster.create(user("a", template="gpu"))
    await cluster.settle()
    lost = claim_of(cluster, "a")
    cluster.delete("ResourceClaim", lost)
    await cluster.settle()
    assert cluster.names("ResourceClaim") == [claim_of(cluster, "a")] != [lost]


async def test_claim_of_a_finished_pod_is_deallocated_and_deleted() -> None:
    cluster = LivingCluster()
    cluster.create(claim_template())
    cluster.create(user("a", template="gpu", annotations={"run-for": "10s"}))
    await cluster.run(5)
    name = claim_of(cluster, "a")
    allocate(cluster, name, "a")
    await cluster.run(1)
    assert cluster.status("ResourceClaim", name)["allocation"]
    await cluster.settle()
    assert cluster.status("Pod", "a")["phase"] == "Succeeded"
    assert cluster.names("ResourceClaim") == []


async def test_claim_of_a_deleted_pod_goes_with_it() -> None:
    cluster = LivingCluster()
    cluster.create(claim_template())
    cluster.create(user("a", template="gpu"))
    await cluster.run(5)
    allocate(cluster, claim_of(cluster, "a"), "a")
    cluster.delete("Pod", "a")
    await cluster.settle()
    assert cluster.names("ResourceClaim") == []


async def test_shared_claim_is_deallocated_when_the_last_pod_has_ended_and_stays() -> None:
    cluster = LivingCluster()
    cluster.create(claim("shared"))
    cluster.create(user("a", claim="shared", annotations={"run-for": "10s"}))
    cluster.create(user("b", claim="shared", annotations={"run-for": "1h"}))
    await cluster.run(5)
    allocate(cluster, "shared", "a", "b")
    await cluster.run(10)
    status = cluster.status("ResourceClaim", "shared")
    assert [consumer["name"] for consumer in status["reservedFor"]] == ["b"] and status["allocation"]
    cluster.delete("Pod", "b")
    await cluster.settle()
    found = cluster.get("ResourceClaim", "shared")
    assert "allocation" not in found["status"] and "reservedFor" not in found["status"]
    assert "finalizers" not in found["metadata"]


async def test_reservation_of_a_namesake_does_not_count() -> None:
    cluster = LivingCluster()
    cluster.create(claim("shared"))
    cluster.create(user("a", claim="shared"))
    await cluster.run(5)
    allocate(cluster, "shared", "a")
    cluster.delete("Pod", "a", gracePeriodSeconds=0)
    cluster.create(user("a", claim="shared"))
    await cluster.settle()
    assert "allocation" not in cluster.status("ResourceClaim", "shared")


async def test_claim_that_no_one_uses_can_be_deleted_though_allocated() -> None:
    cluster = LivingCluster()
    cluster.create(claim("idle"))
    allocate(cluster, "idle")
    cluster.delete("ResourceClaim", "idle")
    await cluster.settle()
    assert cluster.find("ResourceClaim", "idle") is None


async def test_protection_stays_while_a_scheduler_is_between_its_two_writes() -> None:
    """It protects a claim first and allocates it next; taking the protection off in between would go on for ever."""
    cluster = LivingCluster(binds=False)
    cluster.create(claim("shared"))
    await cluster.settle()
    found = cluster.get("ResourceClaim", "shared")
    found["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    protected = cluster.api.update(CLAIMS, "default", "shared", found)
    await cluster.settle()
    assert cluster.get("ResourceClaim", "shared") == protected
    cluster.api.delete(CLAIMS, "default", "shared")
    await cluster.settle()
    assert cluster.api.find(CLAIMS, "default", "shared") is None


SHARED = {"name": "accelerator", "resourceClaimTemplateName": "gpu"}


def group_with_claim(name: str = "g", entry: Object = SHARED) -> Object:
    return pod_group(name, 2, resourceClaims=[entry])


def reserve_for_group(cluster: LivingCluster, name: str, group: str) -> None:
    """What a scheduler does for the first member."""
    allocate(cluster, name)
    found = cluster.get("ResourceClaim", name)
    uid = cluster.get("PodGroup", group)["metadata"]["uid"]
    found["status"]["reservedFor"] = [
        {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": group, "uid": uid}
    ]
    cluster.api.update(CLAIMS, "default", name, found, "status")


@pytest.mark.parametrize("is_first", ["group", "template", "pods"])
async def test_members_share_the_claim_of_their_group(is_first: str) -> None:
    cluster = LivingCluster(binds=False)
    made = {
        "template": [claim_template()],
        "group": [group_with_claim()],
        "pods": [user(name, template="gpu", schedulingGroup={"podGroupName": "g"}) for name in "ab"],
    }
    for step in (is_first, *(one for one in made if one != is_first)):
        for obj in made[step]:
            cluster.create(obj)
        await cluster.settle()
    (shared,) = cluster.all("ResourceClaim")
    (owner,) = shared["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("PodGroup", "g", True)
    assert shared["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"] == "accelerator"
    name = shared["metadata"]["name"]
    assert name.startswith("g-accelerator-")
    entry = {"name": "accelerator", "resourceClaimName": name}
    assert cluster.status("PodGroup", "g")["resourceClaimStatuses"] == [entry]
    assert [claim_of(cluster, pod_name) for pod_name in "ab"] == [name, name]


async def test_an_entry_that_the_group_has_not_is_the_pods_own() -> None:
    cluster = LivingCluster(binds=False)
    cluster.create(claim_template())
    cluster.create(claim_template("other"))
    cluster.create(group_with_claim(entry={"name": "accelerator", "resourceClaimTemplateName": "other"}))
    cluster.create(user("a", template="gpu", schedulingGroup={"podGroupName": "g"}))
    await cluster.settle()
    assert claim_of(cluster, "a").startswith("a-accelerator-") and len(cluster.all("ResourceClaim")) == 2


async def test_the_reservation_of_a_group_outlives_its_pods_and_ends_with_it() -> None:
    cluster = LivingCluster(binds=False)
    cluster.create(claim_template())
    cluster.create(group_with_claim())
    cluster.create(claim("mine"))
    cluster.create(user("a", template="gpu", schedulingGroup={"podGroupName": "g"}))
    await cluster.settle()
    shared = claim_of(cluster, "a")
    for name in (shared, "mine"):
        reserve_for_group(cluster, name, "g")
    cluster.delete("Pod", "a")
    await cluster.settle()
    assert cluster.status("ResourceClaim", shared)["allocation"] == ALLOCATION
    cluster.delete("PodGroup", "g")
    await cluster.settle()
    assert cluster.find("PodGroup", "g") is None and cluster.names("ResourceClaim") == ["mine"]
    assert cluster.status("ResourceClaim", "mine") == {}


async def test_the_reservation_of_a_namesake_does_not_count() -> None:
    cluster = LivingCluster(binds=False)
    cluster.create(pod_group("g"))
    cluster.create(claim("mine"))
    reserve_for_group(cluster, "mine", "g")
    cluster.life.stop()
    cluster.api.patch(
        "podgroups.scheduling.k8s.io",
        "default",
        "g",
        b'{"metadata": {"finalizers": null}}',
        "application/merge-patch+json",
    )
    cluster.delete("PodGroup", "g")
    cluster.create(pod_group("g"))
    again = LivingCluster(nodes=0, store=cluster.store, binds=False)
    await again.settle()
    assert again.status("ResourceClaim", "mine") == {}


async def test_the_claim_of_a_group_is_made_anew() -> None:
    cluster = LivingCluster(binds=False)
    cluster.create(claim_template())
    cluster.create(group_with_claim())
    cluster.create(user("a", template="gpu", schedulingGroup={"podGroupName": "g"}))
    await cluster.settle()
    lost = claim_of(cluster, "a")
    cluster.delete("ResourceClaim", lost)
    await cluster.settle()
    (found,) = cluster.names("ResourceClaim")
    assert found != lost and claim_of(cluster, "a") == found
