"""Kueue's kinds: what their definitions and the policies about them refuse, in the words of a real API server.

`tests/real_cluster/test_queueing_rules.py` asks a real API server the same.
"""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.model import KINDS
from pilotage.sandbox.errors import ApiError
from tests.sandbox.api_world import World

Json = dict[str, Any]
PLURALS = {info.kind: plural for plural, info in KINDS.items() if info.group == "kueue.x-k8s.io"}
NAMESPACED = ("LocalQueue", "Workload")
GROUP = "spec.resourceGroups[0]"
POLICY = "ValidatingAdmissionPolicy 'pilotage-queue-quotas' with binding 'pilotage-queue-quotas' denied request: "
NOT_CHECKED = "<nil>: Invalid value: null: some validation rules were not checked"


def queue(quota: Json | None = None, **spec: Any) -> Json:
    resources = [{"name": "cpu", "nominalQuota": 4, **(quota or {})}]
    return {
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "std", "resources": resources}]}],
        **spec,
    }


def workload(*pod_sets: Json, **spec: Any) -> Json:
    return {"podSets": [{"name": "main", "count": 2, "template": {"spec": {}}, **one} for one in pod_sets], **spec}


def create(world: World, kind: str, **fields: Any) -> Json:
    namespace = "default" if kind in NAMESPACED else ""
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "x"}, **fields}
    return world.api.create(f"{PLURALS[kind]}.kueue.x-k8s.io", namespace, body)


def rejection(world: World, kind: str, **fields: Any) -> str:
    with pytest.raises(ApiError) as refused:
        create(world, kind, **fields)
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    return refused.value.message


CLASS_REF = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}
TWO_GROUPS = [*queue()["resourceGroups"], *queue()["resourceGroups"]]


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        (
            "ClusterQueue",
            queue({"borrowingLimit": "2"}),
            "spec: Invalid value: borrowingLimit and lendingLimit need a cohortName",
        ),
        (
            "Cohort",
            queue({"lendingLimit": "2"}),
            "spec: Invalid value: borrowingLimit and lendingLimit need a parentName",
        ),
        (
            "ClusterQueue",
            queue(cohortName="c", quota={"lendingLimit": "4500m"}),
            POLICY + "lendingLimit must be less than or equal to the nominalQuota",
        ),
        (
            "ClusterQueue",
            queue(admissionChecksStrategy={"admissionChecks": [{"name": "budget", "onFlavors": ["std", "spot"]}]}),
            POLICY + "onFlavors has to name flavors of this ClusterQueue",
        ),
        (
            "ClusterQueue",
            queue({"nominalQuota": "-1"}),
            f"{GROUP}.flavors[0].resources[0].nominalQuota: Invalid value: ",
        ),
        (
            "ClusterQueue",
            queue({"name": "memory"}),
            f"{GROUP}: Invalid value: every flavor has to list the resources of coveredResources in the same",
        ),
        (
            "ClusterQueue",
            {"resourceGroups": TWO_GROUPS},
            "spec.resourceGroups: Invalid value: a resource may be in one group only",
        ),
        (
            "ClusterQueue",
            {"queueingStrategy": "LIFO"},
            '[spec.queueingStrategy: Unsupported value: "LIFO": supported values: "StrictFIFO", "BestEffortFIFO"',
        ),
        (
            "ClusterQueue",
            {"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}},
            "spec.preemption: Invalid value: reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never",
        ),
        (
            "ClusterQueue",
            {"fairSharing": {"weight": "1n"}},
            'spec.fairSharing.weight: Invalid value: "1n": weight must be 0 or greater than 1e-9',
        ),
        ("LocalQueue", {}, "[spec.clusterQueue: Required value"),
        ("AdmissionCheck", {}, "[spec.controllerName: Required value"),
        ("ResourceFlavor", {"nodeTaints": [{"key": "a"}]}, "[spec.nodeTaints[0].effect: Required value"),
        (
            "ResourceFlavor",
            {"tolerations": [{"operator": "Exists", "value": "x"}]},
            "spec.tolerations[0]: Invalid value: value must be empty when operator is Exists",
        ),
        ("Workload", workload(), "spec.podSets: Invalid value: 0: spec.podSets in body should have at least 1 items"),
        (
            "Workload",
            workload({"minCount": 3}),
            "spec.podSets[0]: Invalid value: minCount should be positive and less or equal to count",
        ),
        ("Workload", workload({}, {}), 'spec.podSets[1]: Duplicate value: {"name":"main"}'),
        (
            "Workload",
            workload({}, priorityClassRef=CLASS_REF),
            "spec: Invalid value: priority should not be nil when priorityClassRef is set",
        ),
    ],
)
def test_what_is_rejected(kind: str, spec: Json, expected: str) -> None:
    told = rejection(World(), kind, spec=spec)
    subject = (
        f'{PLURALS[kind]}.kueue.x-k8s.io "x" is forbidden: '
        if POLICY in told
        else f'{kind}.kueue.x-k8s.io "x" is invalid: '
    )
    assert told.startswith(subject + expected), told


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("ClusterQueue", {}),
        ("ClusterQueue", queue({"borrowingLimit": 2, "lendingLimit": "4000m"}, cohortName="c")),
        ("Cohort", queue({"lendingLimit": 2}, parentName="root")),
        ("ResourceFlavor", {"nodeLabels": {"a": "b"}}),
        ("Workload", workload({"minCount": 1}, {"name": "others"}, priorityClassRef=CLASS_REF, priority=3)),
    ],
)
def test_what_is_accepted(kind: str, spec: Json) -> None:
    assert create(World(), kind, spec=spec)["metadata"]["name"] == "x"


def wide(groups: int, flavors: int, resources: int) -> list[Json]:
    """Groups with so many flavors and resources each."""
    names = [[f"r{at}-{one}" for one in range(resources)] for at in range(groups)]
    return [
        {
            "coveredResources": covered,
            "flavors": [
                {
                    "name": f"f{at}-{flavor}",
                    "resources": [{"name": name, "nominalQuota": 4, "lendingLimit": "2"} for name in covered],
                }
                for flavor in range(flavors)
            ],
        }
        for at, covered in enumerate(names)
    ]


def test_the_largest_queue_costs_no_more_than_a_rule_may() -> None:
    largest = wide(16, 16, 4)
    create(World(), "ClusterQueue", spec={"cohortName": "c", "resourceGroups": largest})
    largest[7]["flavors"][3]["name"] = "f2-2"
    told = rejection(World(), "ClusterQueue", spec={"cohortName": "c", "resourceGroups": largest})
    assert told.endswith(POLICY + "a flavor may be in one resource group only")


def test_a_priority_class_needs_its_value() -> None:
    assert "value: Required value" in rejection(World(), "WorkloadPriorityClass")


def test_what_is_left_out_gets_the_defaults_of_the_definition() -> None:
    spec = create(World(), "ClusterQueue", spec={})["spec"]
    assert spec == {
        "queueingStrategy": "BestEffortFIFO",
        "stopPolicy": "None",
        "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
        "preemption": {
            "reclaimWithinCohort": "Never",
            "withinClusterQueue": "Never",
            "borrowWithinCohort": {"policy": "Never"},
        },
    }
    template = {"spec": {}, "metadata": {"name": "dropped", "labels": {"a": "b"}}}
    spec = create(World(), "Workload", spec={"podSets": [{"template": template}]})["spec"]
    kept = {"spec": {}, "metadata": {"labels": {"a": "b"}}}
    assert spec == {"active": True, "podSets": [{"name": "main", "count": 1, "template": kept}]}
