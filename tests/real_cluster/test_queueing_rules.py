"""What may not be written to Kueue's kinds: refused by deploy/ at a real API server, built in at the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .client import MERGE, Client, Json, Refused
from .queueing_kinds import queueing_kinds
from .servers import Server
from .test_queueing_kinds import create, path, workload

NOW = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module", params=["sandbox", "real"])
def api(request: pytest.FixtureRequest) -> Iterator[Client]:
    server: Server = request.getfixturevalue(f"{request.param}_server")
    with queueing_kinds(server) as client:
        yield client


def groups(quota: Json | None = None, *, flavor: str = "std", resource: str = "cpu") -> list[Json]:
    resources = [{"name": resource, "nominalQuota": 4, **(quota or {})}]
    return [{"coveredResources": [resource], "flavors": [{"name": flavor, "resources": resources}]}]


def wide(groups: int, flavors: int, resources: int) -> list[Json]:
    """Groups with so many flavors and resources each."""
    return [
        {
            "coveredResources": [f"r{at}-{one}" for one in range(resources)],
            "flavors": [
                {
                    "name": f"f{at}-{flavor}",
                    "resources": [{"name": f"r{at}-{one}", "nominalQuota": 1} for one in range(resources)],
                }
                for flavor in range(flavors)
            ],
        }
        for at in range(groups)
    ]


def checks(*flavors: str) -> Json:
    return {"admissionChecks": [{"name": "budget", "onFlavors": list(flavors)}]}


COHORT = {"cohortName": "ring"}
TRY_ALL = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}

QUEUES: dict[str, tuple[Json, bool]] = {
    # name: (spec, whether it is good)
    "all-defaults": ({}, True),
    "limits-with-a-cohort": ({"resourceGroups": groups({"borrowingLimit": 1, "lendingLimit": "2"}), **COHORT}, True),
    "borrowing-limit-alone": ({"resourceGroups": groups({"borrowingLimit": 1})}, False),
    "lending-limit-alone": ({"resourceGroups": groups({"lendingLimit": 1})}, False),
    "lends-more-than-it-has": ({"resourceGroups": groups({"lendingLimit": "4500m"}), **COHORT}, False),
    "lends-all-in-other-words": ({"resourceGroups": groups({"lendingLimit": "4000m"}), **COHORT}, True),
    "negative-quota": ({"resourceGroups": groups({"nominalQuota": -1})}, False),
    "negative-quota-as-text": ({"resourceGroups": groups({"nominalQuota": "-1"})}, False),
    "negative-limit": ({"resourceGroups": groups({"borrowingLimit": "-1"}), **COHORT}, False),
    "quota-that-is-no-quantity": ({"resourceGroups": groups({"nominalQuota": "many"})}, False),
    "resources-in-another-order": (
        {
            "resourceGroups": [
                {
                    "coveredResources": ["cpu", "memory"],
                    "flavors": [
                        {
                            "name": "std",
                            "resources": [
                                {"name": "memory", "nominalQuota": 1},
                                {"name": "cpu", "nominalQuota": 1},
                            ],
                        }
                    ],
                }
            ]
        },
        False,
    ),
    "resource-that-is-not-covered": (
        {"resourceGroups": [{**groups()[0], "coveredResources": ["memory"]}]},
        False,
    ),
    "resource-in-two-groups": ({"resourceGroups": [*groups(), *groups(flavor="other")]}, False),
    "flavor-in-two-groups": ({"resourceGroups": [*groups(), *groups(resource="memory")]}, False),
    "flavor-twice": ({"resourceGroups": [{**groups()[0], "flavors": 2 * groups()[0]["flavors"]}]}, False),
    "flavor-with-a-strange-name": ({"resourceGroups": groups(flavor="No Name")}, False),
    "sixteen-groups": ({"resourceGroups": wide(16, 1, 1)}, True),
    "seventeen-groups": ({"resourceGroups": wide(17, 1, 1)}, False),
    "too-many-flavors-in-all": ({"resourceGroups": wide(5, 60, 1)}, False),
    "too-many-resources-in-all": ({"resourceGroups": wide(5, 1, 60)}, False),
    "512-pairs": ({"resourceGroups": wide(1, 16, 32)}, True),
    "too-many-pairs": ({"resourceGroups": wide(1, 16, 33)}, False),
    "group-without-flavors": ({"resourceGroups": [{"coveredResources": ["cpu"], "flavors": []}]}, False),
    "borrows-but-never-reclaims": ({"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}}, False),
    "borrows-and-reclaims": (
        {"preemption": {"reclaimWithinCohort": "Any", "borrowWithinCohort": {"policy": "LowerPriority"}}},
        True,
    ),
    "preemption-policy-that-is-none": ({"preemption": {"withinClusterQueue": "Always"}}, False),
    "check-on-its-flavor": ({"resourceGroups": groups(), "admissionChecksStrategy": checks("std")}, True),
    "check-on-another-flavor": ({"resourceGroups": groups(), "admissionChecksStrategy": checks("spot")}, False),
    "stop-policy-that-is-none": ({"stopPolicy": "Sometimes"}, False),
    "strategy-that-is-none": ({"queueingStrategy": "LIFO"}, False),
    "older-word-for-a-choice": ({"flavorFungibility": {"whenCanBorrow": "Borrow"}}, False),
    "preference-with-a-choice": ({"flavorFungibility": {**TRY_ALL, "preference": "PreemptionOverBorrowing"}}, True),
    "preference-without-a-choice": ({"flavorFungibility": {"preference": "PreemptionOverBorrowing"}}, False),
    "no-weight": ({"fairSharing": {"weight": 0}}, True),
    "weight-like-nothing": ({"fairSharing": {"weight": "1n"}}, False),
    "negative-weight": ({"fairSharing": {"weight": "-1"}}, False),
    "cohort-with-a-strange-name": ({"cohortName": "The Ring"}, False),
    "admission-mode-that-is-none": ({"admissionScope": {"admissionMode": "Fair"}}, False),
}


@pytest.mark.parametrize("name", QUEUES)
def test_cluster_queue(api: Client, name: str) -> None:
    spec, is_good = QUEUES[name]
    _judge(api, "clusterqueues", "ClusterQueue", name, is_good, spec={"namespaceSelector": {}, **spec})


COHORTS: dict[str, tuple[Json, bool]] = {
    "no-limits": ({"resourceGroups": groups()}, True),
    "limits-without-a-parent": ({"resourceGroups": groups({"borrowingLimit": 1})}, False),
    "limits-with-a-parent": ({"parentName": "root", "resourceGroups": groups({"lendingLimit": 1})}, True),
    "lends-more-than-it-has": ({"parentName": "root", "resourceGroups": groups({"lendingLimit": 5})}, False),
    "negative-weight": ({"fairSharing": {"weight": -1}}, False),
    "parent-with-a-strange-name": ({"parentName": "A B"}, False),
}


@pytest.mark.parametrize("name", COHORTS)
def test_cohort(api: Client, name: str) -> None:
    spec, is_good = COHORTS[name]
    _judge(api, "cohorts", "Cohort", name, is_good, spec=spec)


def taint(**fields: str) -> Json:
    return {"nodeTaints": [{"key": "spot", "effect": "NoSchedule", **fields}]}


FLAVORS: dict[str, tuple[Json, bool]] = {
    "eight-labels": ({"nodeLabels": {f"l{n}": "v" for n in range(8)}}, True),
    "nine-labels": ({"nodeLabels": {f"l{n}": "v" for n in range(9)}}, False),
    "nine-taints": ({"nodeTaints": [{"key": f"t{n}", "effect": "NoSchedule"} for n in range(9)]}, False),
    "nine-tolerations": ({"tolerations": [{"key": f"t{n}", "operator": "Exists"} for n in range(9)]}, False),
    "taint-without-an-effect": ({"nodeTaints": [{"key": "a"}]}, False),
    "taint-with-another-effect": (taint(effect="Never"), False),
    "taint-with-an-effect": (taint(), True),
    "toleration-with-another-operator": ({"tolerations": [{"key": "a", "operator": "Is"}]}, False),
    "toleration-of-everything": ({"tolerations": [{"operator": "Exists"}]}, True),
    "toleration-without-a-key": ({"tolerations": [{"operator": "Equal", "value": "v"}]}, False),
    "toleration-with-a-value-too-many": ({"tolerations": [{"key": "a", "operator": "Exists", "value": "v"}]}, False),
}


@pytest.mark.parametrize("name", FLAVORS)
def test_flavor(api: Client, name: str) -> None:
    spec, is_good = FLAVORS[name]
    _judge(api, "resourceflavors", "ResourceFlavor", name, is_good, spec=spec)


CLASS_REF = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}


def pod_sets(number: int, **fields: Any) -> list[Json]:
    return [{"name": f"s{at}", "count": 2, "template": TEMPLATE, **fields} for at in range(number)]


WORKLOADS: dict[str, tuple[Json, bool]] = {
    "class-with-a-priority": ({"priorityClassRef": CLASS_REF, "priority": 7}, True),
    "class-without-a-priority": ({"priorityClassRef": CLASS_REF}, False),
    "class-of-another-kind": ({"priorityClassRef": {**CLASS_REF, "kind": "X"}, "priority": 7}, False),
    "class-of-another-group": ({"priorityClassRef": {**CLASS_REF, "group": "x.io"}, "priority": 7}, False),
    "class-of-the-wrong-group": ({"priorityClassRef": {**CLASS_REF, "kind": "PriorityClass"}, "priority": 7}, False),
    "no-pod-sets": ({"podSets": []}, False),
    "eighteen-pod-sets": ({"podSets": pod_sets(18)}, True),
    "nineteen-pod-sets": ({"podSets": pod_sets(19)}, False),
    "pod-set-twice": ({"podSets": 2 * pod_sets(1)}, False),
    "negative-count": ({"podSets": pod_sets(1, count=-1)}, False),
    "no-pods": ({"podSets": pod_sets(1, count=0)}, True),
    "least-count-too-high": ({"podSets": pod_sets(1, minCount=3)}, False),
    "least-count-zero": ({"podSets": pod_sets(1, minCount=0)}, False),
    "two-that-shrink": ({"podSets": pod_sets(2, minCount=1)}, False),
    "no-time-to-run": ({"maximumExecutionTimeSeconds": 0}, False),
    "queue-with-a-strange-name": ({"queueName": "My Queue"}, False),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_workload(api: Client, name: str) -> None:
    spec, is_good = WORKLOADS[name]
    if is_good:
        workload(api, name, **spec)
    else:
        with pytest.raises(Refused) as refused:
            workload(api, name, **spec)
        assert refused.value.code == 422


def _judge(api: Client, plural: str, kind: str, name: str, is_good: bool, **fields: object) -> None:
    if is_good:
        create(api, plural, kind, name, **fields)
        return
    with pytest.raises(Refused) as refused:
        create(api, plural, kind, name, **fields)
    assert refused.value.code == 422


# --- changes ----------------------------------------------------------------------------------------------------------


def condition(kind: str, status: str = "True") -> Json:
    return {"type": kind, "status": status, "reason": "r", "message": "m", "lastTransitionTime": NOW}


def admission(flavor: str = "std", name: str = "main") -> Json:
    assignment = {"name": name, "flavors": {"cpu": flavor}, "resourceUsage": {"cpu": "2"}, "count": 2}
    return {"clusterQueue": "cq", "podSetAssignments": [assignment]}


class Written:
    """A workload of two pods, and how others write to it."""

    def __init__(self, api: Client, name: str) -> None:
        self._api = api
        self._name = name
        workload(api, name, queueName="lq", maximumExecutionTimeSeconds=60)

    def spec(self, **fields: object) -> None:
        self._api.request("PATCH", path("workloads", self._name), {"spec": fields}, MERGE)

    def status(self, **fields: object) -> None:
        self._api.request("PATCH", f"{path('workloads', self._name)}/status", {"status": fields}, MERGE)

    def refuses_status(self, **fields: object) -> None:
        with pytest.raises(Refused) as refused:
            self.status(**fields)
        assert refused.value.code == 422, fields

    def refuses_spec(self, **fields: object) -> None:
        with pytest.raises(Refused) as refused:
            self.spec(**fields)
        assert refused.value.code == 422, fields


def test_an_admission_is_only_ever_taken_back(api: Client) -> None:
    one = Written(api, "admission")
    one.status(conditions=[condition("QuotaReserved")], admission=admission())
    one.status(admission=admission())
    one.refuses_status(admission=admission("other"))
    one.refuses_status(admission={**admission(), "clusterQueue": "elsewhere"})
    one.status(conditions=[condition("QuotaReserved", "False")], admission=None)
    one.status(conditions=[condition("QuotaReserved")], admission=admission("other"))


def test_an_admission_is_for_the_pod_sets_of_the_workload(api: Client) -> None:
    one = Written(api, "assignments")
    reserved = [condition("QuotaReserved")]
    one.refuses_status(conditions=reserved, admission={"clusterQueue": "cq", "podSetAssignments": []})
    one.refuses_status(conditions=reserved, admission=admission(name="workers"))
    one.refuses_status(conditions=reserved, admission={**admission(), "clusterQueue": "No Queue"})


def test_what_quota_was_reserved_for_stays_as_it_is(api: Client) -> None:
    one = Written(api, "reserved")
    sets = pod_sets(1, name="main")
    one.spec(queueName="other", podSets=sets)
    one.status(conditions=[condition("QuotaReserved")], admission=admission())
    one.refuses_spec(queueName="lq")
    one.refuses_spec(podSets=pod_sets(1, name="main", count=3))
    other = {"spec": {**TEMPLATE["spec"], "nodeSelector": {"pool": "other"}}}
    one.refuses_spec(podSets=pod_sets(1, name="main", template=other))
    one.spec(priority=5, active=False)
    one.spec(maximumExecutionTimeSeconds=90)
    one.status(conditions=[condition("QuotaReserved"), condition("Admitted")])
    one.refuses_spec(maximumExecutionTimeSeconds=30)
    one.status(conditions=[condition("QuotaReserved", "False")], admission=None)
    one.spec(queueName="lq", podSets=pod_sets(1, name="main", count=3))


def test_pods_are_given_back_once_and_not_more_than_there_are(api: Client) -> None:
    one = Written(api, "reclaimable")
    one.status(conditions=[condition("QuotaReserved"), condition("Admitted")], admission=admission())
    one.refuses_status(reclaimablePods=[{"name": "main", "count": 3}])
    one.refuses_status(reclaimablePods=[{"name": "main", "count": -1}])
    one.refuses_status(reclaimablePods=[{"name": "workers", "count": 1}])
    one.status(reclaimablePods=[{"name": "main", "count": 1}])
    one.status(reclaimablePods=[{"name": "main", "count": 2}])
    one.refuses_status(reclaimablePods=[{"name": "main", "count": 1}])
    one.refuses_status(reclaimablePods=None)
    one.status(conditions=[condition("QuotaReserved", "False"), condition("Admitted", "False")], admission=None)
    one.status(reclaimablePods=None)


def test_a_status_has_to_make_sense(api: Client) -> None:
    one = Written(api, "status")
    state = {"name": "budget", "state": "Ready", "message": "", "lastTransitionTime": NOW}
    one.status(admissionChecks=[state], requeueState={"count": 0})
    one.refuses_status(admissionChecks=[{**state, "state": "Perhaps"}])
    one.refuses_status(admissionChecks=[{**state, "name": f"c{n}"} for n in range(9)])
    one.refuses_status(requeueState={"count": -1})
    one.refuses_status(conditions=[condition("Admitted", "Maybe")])
    one.refuses_status(conditions=[condition("A"), condition("A")])
    one.refuses_status(conditions=[condition(f"C{n}") for n in range(17)])
    one.refuses_status(conditions=[{"type": "Admitted", "status": "True"}])


def test_what_objects_are_known_by_is_fixed(api: Client) -> None:
    create(api, "localqueues", "LocalQueue", "fixed", spec={"clusterQueue": "cq"})
    create(api, "admissionchecks", "AdmissionCheck", "fixed", spec={"controllerName": "example.com/c"})
    for plural, spec in {"localqueues": {"clusterQueue": "x"}, "admissionchecks": {"controllerName": "x"}}.items():
        with pytest.raises(Refused) as refused:
            api.request("PATCH", path(plural, "fixed"), {"spec": spec}, MERGE)
        assert refused.value.code == 422
    api.request("PATCH", path("localqueues", "fixed"), {"spec": {"stopPolicy": "Hold"}}, MERGE)


def test_the_value_of_a_priority_class_is_needed_and_its_description_is_short(api: Client) -> None:
    for name, fields in {"no-value": {}, "wordy": {"value": 1, "description": 2049 * "x"}}.items():
        with pytest.raises(Refused) as refused:
            create(api, "workloadpriorityclasses", "WorkloadPriorityClass", name, **fields)
        assert refused.value.code == 422


def test_of_a_template_only_labels_and_annotations_are_kept(api: Client) -> None:
    template = {**TEMPLATE, "metadata": {"labels": {"a": "b"}, "name": "x", "generateName": "y"}}
    made = workload(api, "template", podSets=[{"name": "main", "count": 1, "template": template}])
    assert made["spec"]["podSets"][0]["template"]["metadata"] == {"labels": {"a": "b"}}
