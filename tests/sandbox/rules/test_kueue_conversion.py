"""Kueue's older version: written in v1beta1, stored in v1beta2, read in either."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.api_world import MERGE, World

Json = dict[str, Any]
GROUP = "/apis/kueue.x-k8s.io"

QUOTA = [{"coveredResources": ["cpu"], "flavors": [{"name": "std", "resources": [{"name": "cpu", "nominalQuota": 1}]}]}]
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
OWN_CLASS = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}
POD_CLASS = {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high"}


def workload(**spec: Any) -> Json:
    return {"podSets": [{"name": "main", "count": 1, "template": TEMPLATE}], "active": True, **spec}


PAIRS = {
    # plural: the same spec in v1beta1 and in v1beta2
    "clusterqueues": (
        {"cohort": "ring", "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}},
        {
            "cohortName": "ring",
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"},
        },
    ),
    "cohorts": ({"parent": "root", "resourceGroups": QUOTA}, {"parentName": "root", "resourceGroups": QUOTA}),
    "workloads": (
        workload(priorityClassName="high", priorityClassSource="kueue.x-k8s.io/workloadpriorityclass", priority=1),
        workload(priorityClassRef=OWN_CLASS, priority=1),
    ),
}


def path(plural: str, version: str, name: str = "") -> str:
    scope = "/namespaces/default" if plural == "workloads" else ""
    return f"{GROUP}/{version}{scope}/{plural}" + (f"/{name}" if name else "")


@pytest.mark.parametrize("plural", PAIRS)
@pytest.mark.parametrize("written", ["v1beta1", "v1beta2"])
def test_an_object_is_the_same_in_both_versions(plural: str, written: str) -> None:
    world = World()
    older, newer = PAIRS[plural]
    world.ok(
        "POST", path(plural, written), {"metadata": {"name": "x"}, "spec": older if written == "v1beta1" else newer}
    )
    for version, expected in (("v1beta1", older), ("v1beta2", newer)):
        read = world.ok("GET", path(plural, version, "x"))
        assert read["apiVersion"] == f"kueue.x-k8s.io/{version}"
        assert expected.items() <= read["spec"].items()
        [listed] = world.ok("GET", path(plural, version))["items"]
        assert listed["spec"] == read["spec"]
        assert (
            not (older.keys() - newer.keys() if version == "v1beta2" else newer.keys() - older.keys())
            & read["spec"].keys()
        )


def test_a_priority_class_of_pods_is_distinguished() -> None:
    world = World()
    spec = workload(priorityClassName="high", priorityClassSource="scheduling.k8s.io/priorityclass", priority=1)
    world.ok("POST", path("workloads", "v1beta1"), {"metadata": {"name": "x"}, "spec": spec})
    assert world.ok("GET", path("workloads", "v1beta2", "x"))["spec"]["priorityClassRef"] == POD_CLASS


def test_a_patch_in_the_older_version_speaks_its_language() -> None:
    world = World()
    world.ok("POST", path("clusterqueues", "v1beta2"), {"metadata": {"name": "q"}, "spec": {}})
    change = {"spec": {"cohort": "ring", "admissionChecks": ["budget"]}}
    world.ok("PATCH", path("clusterqueues", "v1beta1", "q"), change, content_type=MERGE)
    stored = world.ok("GET", path("clusterqueues", "v1beta2", "q"))["spec"]
    assert stored["cohortName"] == "ring" and "cohort" not in stored
    assert stored["admissionChecksStrategy"] == {"admissionChecks": [{"name": "budget"}]}
    world.ok("PATCH", path("clusterqueues", "v1beta1", "q"), {"spec": {"cohort": None}}, content_type=MERGE)
    assert "cohortName" not in world.ok("GET", path("clusterqueues", "v1beta2", "q"))["spec"]


def test_a_limit_in_the_older_version_needs_its_cohort() -> None:
    world = World()
    quota = {"name": "cpu", "nominalQuota": 1, "borrowingLimit": 1}
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "std", "resources": [quota]}]}]
    body = {"metadata": {"name": "q"}, "spec": {"resourceGroups": groups}}
    assert world.refused("POST", path("clusterqueues", "v1beta1"), body)["code"] == 422
    body["spec"] = {"resourceGroups": groups, "cohort": "ring"}
    world.ok("POST", path("clusterqueues", "v1beta1"), body)
