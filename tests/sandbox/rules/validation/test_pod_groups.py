"""PodGroups and Workloads: what is refused, what may change, what is dropped with a warning.

`tests/real_cluster/test_pod_group_kinds.py` holds the words against those of a real API server.
"""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.http.exchange import ServerResponse
from tests.sandbox.api_world import MERGE, STRATEGIC, World, pod

Json = dict[str, Any]
VERSIONS = ("v1beta1", "v1alpha3")
GANG: Json = {"schedulingPolicy": {"gang": {"minCount": 2}}}
BASIC: Json = {"schedulingPolicy": {"basic": {}}}
MUST_BE_ONE = 'Invalid value: "": must specify one of: '


def path(plural: str, name: str = "", version: str = "v1beta1") -> str:
    collection = f"/apis/scheduling.k8s.io/{version}/namespaces/default/{plural}"
    return f"{collection}/{name}" if name else collection


def named(kind: str, spec: Json, name: str = "g", version: str = "v1beta1") -> Json:
    api_version = f"scheduling.k8s.io/{version}"
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def causes(status: Json) -> list[str]:
    return [f"{cause['field']}: {cause['message']}" for cause in status["details"]["causes"]]


def warnings(answer: ServerResponse) -> list[str]:
    return [value for name, value in answer.headers if name == "warning"]


REFUSED: dict[str, tuple[Json, list[str]]] = {
    "no policy": ({}, [f"spec.schedulingPolicy: {MUST_BE_ONE}`basic`, `gang`"]),
    "two policies": (
        {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}},
        ['spec.schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of: `basic`, `gang`'],
    ),
    "zero": ({"schedulingPolicy": {"gang": {"minCount": 0}}}, ["spec.schedulingPolicy.gang.minCount: Required value"]),
    "negative": (
        {"schedulingPolicy": {"gang": {"minCount": -1}}},
        ["spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1"],
    ),
    "two constraints": (
        {**BASIC, "schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
        ["spec.schedulingConstraints.topology: Too many: 2: must have at most 1 item"],
    ),
    "five claims": (
        {**BASIC, "resourceClaims": [{"name": f"c{at}", "resourceClaimName": "c"} for at in range(5)]},
        ["spec.resourceClaims: Too many: 5: must have at most 4 items"],
    ),
    "claims of one name": (
        {**BASIC, "resourceClaims": [{"name": "c", "resourceClaimName": at} for at in "ab"]},
        ['spec.resourceClaims[1]: Duplicate value: {"name":"c","resourceClaimName":"b"}'],
    ),
    "no mode": ({**BASIC, "disruptionMode": {}}, [f"spec.disruptionMode: {MUST_BE_ONE}`single`, `all`"]),
    "half a reference": (
        {**BASIC, "workloadRef": {"workloadName": "w"}},
        ["spec.workloadRef.templateName: Required value"],
    ),
    "a reference with dots": (
        {**BASIC, "workloadRef": {"workloadName": "w.x", "templateName": "t.x"}},
        ['spec.workloadRef.templateName: Invalid value: "t.x": must not contain dots'],
    ),
    "a system class": (
        {**BASIC, "priorityClassName": "system-node-critical"},
        ["spec.priority: Invalid value: 2000001000: must be less than or equal to 1000000000"],
    ),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", REFUSED)
def test_bad_groups_are_refused(name: str, version: str) -> None:
    spec, problems = REFUSED[name]
    refused = World().refused("POST", path("podgroups", version=version), named("PodGroup", spec, version=version))
    assert (refused["code"], causes(refused)) == (422, problems)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_stored_is_complete_and_served_in_both_versions(version: str) -> None:
    world = World()
    sent = {**named("PodGroup", GANG, version=version), "status": {"conditions": [{"type": "X"}]}}
    world.ok("POST", path("podgroups", version=version), sent)
    for served in VERSIONS:
        found = world.ok("GET", path("podgroups", "g", served))
        assert found["apiVersion"] == f"scheduling.k8s.io/{served}"
        assert found["spec"] == {
            **GANG,
            "disruptionMode": {"single": {}},
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
        }
        assert found["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
        assert (found["metadata"]["generation"], found["status"]) == (1, {})


CHANGES: dict[str, tuple[Json, list[str]]] = {
    "minCount": ({"schedulingPolicy": {"gang": {"minCount": 5}}}, []),
    "policy": (
        {"schedulingPolicy": {"gang": None, "basic": {}}},
        [
            "spec.schedulingPolicy.basic: Invalid value: null: field is immutable",
            "spec.schedulingPolicy.gang: Invalid value: null: field cannot be cleared once set",
        ],
    ),
    **{
        field: ({field: value}, [f"spec.{field}: Invalid value: null: field is immutable"])
        for field, value in {
            "workloadRef": {"workloadName": "w", "templateName": "t"},
            "schedulingConstraints": {"topology": [{"key": "zone"}]},
            "resourceClaims": [{"name": "c", "resourceClaimName": "c"}],
            "disruptionMode": {"single": None, "all": {}},
            "priorityClassName": "other",
            "priority": 5,
            "preemptionPolicy": "Never",
        }.items()
    },
}


@pytest.mark.parametrize("name", CHANGES)
def test_only_the_count_may_change(name: str) -> None:
    world = World()
    world.ok("POST", path("podgroups"), named("PodGroup", GANG))
    change, problems = CHANGES[name]
    answer = world.send("PATCH", path("podgroups", "g"), {"spec": change}, content_type=MERGE)
    found = world.ok("GET", path("podgroups", "g"))
    if problems:
        refused = world.refused("PATCH", path("podgroups", "g"), {"spec": change}, content_type=MERGE)
        assert causes(refused) == problems and found["metadata"]["generation"] == 1
    else:
        assert answer.status == 200 and found["metadata"]["generation"] == 2
        assert found["spec"]["schedulingPolicy"] == {"gang": {"minCount": 5}}


CONDITION = {
    "type": "PodGroupInitiallyScheduled",
    "status": "True",
    "reason": "Scheduled",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def test_conditions_merge_by_type_and_leave_the_spec_alone() -> None:
    world = World()
    world.ok("POST", path("podgroups"), named("PodGroup", GANG))
    status = f"{path('podgroups', 'g')}/status"
    world.ok("PATCH", status, {"status": {"conditions": [CONDITION]}}, content_type=STRATEGIC)
    other = {**CONDITION, "type": "Other"}
    patch = {"spec": {"priority": 3}, "status": {"conditions": [other]}}
    found = world.ok("PATCH", status, patch, content_type=STRATEGIC)
    assert {one["type"] for one in found["status"]["conditions"]} == {CONDITION["type"], "Other"}
    assert (found["spec"]["priority"], found["metadata"]["generation"]) == (0, 1)


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({"conditions": [{**CONDITION, "status": "Maybe"}]}, "conditions[0].status: Unsupported value"),
        ({"conditions": [{**CONDITION, "status": ""}]}, "conditions[0].status: Required value"),
        ({"conditions": [{**CONDITION, "type": ""}]}, "conditions[0].type: Required value: is required"),
        ({"conditions": [{**CONDITION, "reason": ""}]}, "conditions[0].reason: Required value"),
        ({"conditions": [{**CONDITION, "reason": "a b"}]}, "conditions[0].reason: Invalid value"),
        ({"conditions": [{**CONDITION, "message": "x" * 40_000}]}, "conditions[0].message: Too long"),
        ({"conditions": [CONDITION, CONDITION]}, "conditions[1]: Duplicate value"),
        (
            {"conditions": [{**CONDITION, "lastTransitionTime": None}]},
            "conditions[0].lastTransitionTime: Required value",
        ),
        ({"resourceClaimStatuses": [{"name": "c"}]}, "resourceClaimStatuses[0].name: Invalid value"),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_bad_statuses_are_refused(version: str, status: Json, problem: str) -> None:
    world = World()
    world.ok("POST", path("podgroups"), named("PodGroup", GANG))
    where = f"{path('podgroups', 'g', version)}/status"
    refused = world.refused("PATCH", where, {"status": status}, content_type=MERGE)
    assert causes(refused)[0].startswith(f"status.{problem}")


def templates(*entries: Json, **spec: Any) -> Json:
    return {"podGroupTemplates": list(entries), **spec}


A: Json = {"name": "a", **BASIC}
B: Json = {"name": "b", **GANG}
REFUSED_WORKLOADS: dict[str, tuple[Json, list[str]]] = {
    "nothing": ({}, [f"spec: {MUST_BE_ONE}`podGroupTemplates`, `compositePodGroupTemplates`"]),
    "nine": (
        templates(*({**A, "name": f"a{at}"} for at in range(9))),
        ["spec.podGroupTemplates: Too many: 9: must have at most 8 items"],
    ),
    "two of one name": (
        templates(A, A),
        [
            'spec.podGroupTemplates[1]: Duplicate value: {"schedulingPolicy":{"basic":{}},"disruptionMode":'
            '{"single":{}},"name":"a"}'
        ],
    ),
    "unnamed": (templates({**A, "name": ""}), ["spec.podGroupTemplates[0].name: Required value"]),
    "priorities": (
        templates(A, {**B, "priority": 1}),
        ["spec: Invalid value: null: detected multiple priority configurations"],
    ),
    "classes": (
        templates(A, {**B, "priorityClassName": "x"}),
        ["spec: Invalid value: null: detected multiple priority configurations"],
    ),
    "no policy": (
        templates({"name": "a", "schedulingPolicy": {}}),
        [f"spec.podGroupTemplates[0].schedulingPolicy: {MUST_BE_ONE}`basic`, `gang`"],
    ),
    "controller": (
        templates(A, controllerRef={"apiGroup": "b_", "kind": "a/b", "name": ".."}),
        [
            "spec.controllerRef.kind: Invalid value: \"a/b\": may not contain '/'",
            "spec.controllerRef.name: Invalid value: \"..\": may not be '..'",
        ],
    ),
}


@pytest.mark.parametrize("name", REFUSED_WORKLOADS)
def test_bad_workloads_are_refused(name: str) -> None:
    spec, problems = REFUSED_WORKLOADS[name]
    found = causes(World().refused("POST", path("workloads"), named("Workload", spec)))
    assert [cause for cause in found if "apiGroup" not in cause] == problems


@pytest.mark.parametrize(
    ("changed", "problems"),
    [
        (templates(A, {**B, "schedulingPolicy": {"gang": {"minCount": 7}}}), []),
        (templates({**B, "schedulingPolicy": {"gang": {"minCount": 7}}}, A), []),
        (templates(A), ["spec.podGroupTemplates: Forbidden: item may not be removed"]),
        (templates(A, B, {**A, "name": "c"}), ["spec.podGroupTemplates[2]: Forbidden: item may not be added"]),
        (
            templates({**A, "disruptionMode": {"all": {}}}, B),
            ["spec.podGroupTemplates[0].disruptionMode: Invalid value: null: field is immutable"],
        ),
        (
            templates(A, B, controllerRef={"kind": "Job", "name": "x"}),
            ["spec.controllerRef: Invalid value: null: field is immutable"],
        ),
    ],
)
def test_of_a_workload_only_counts_may_change(changed: Json, problems: list[str]) -> None:
    world = World()
    world.ok("POST", path("workloads"), named("Workload", templates(A, B)))
    if problems:
        assert causes(world.refused("PUT", path("workloads", "g"), named("Workload", changed))) == problems
    else:
        assert world.ok("PUT", path("workloads", "g"), named("Workload", changed))["metadata"]["generation"] == 2


def test_groups_of_groups_are_dropped_with_a_warning() -> None:
    world = World()
    group = named("PodGroup", {**BASIC, "parentCompositePodGroupName": "p"})
    answer = world.send("POST", path("podgroups"), group)
    assert answer.status == 201 and "spec.parentCompositePodGroupName: ignored" in warnings(answer)[0]
    assert "parentCompositePodGroupName" not in world.ok("GET", path("podgroups", "g"))["spec"]
    both = named("Workload", templates(A, compositePodGroupTemplates=[{"name": "x", "podGroupTemplates": [A]}]))
    answer = world.send("POST", path("workloads"), both)
    assert answer.status == 201 and "spec.compositePodGroupTemplates: ignored" in warnings(answer)[0]
    assert world.refused("GET", path("compositepodgroups", version="v1alpha3"))["code"] == 404


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"schedulingGroup": {}}, "spec.schedulingGroup.podGroupName: Invalid value: null: must specify one of:"),
        (
            {"schedulingGroup": {"podGroupName": "A_"}},
            'spec.schedulingGroup.podGroupName: Invalid value: "A_": a lowerc',
        ),
        (
            {
                "schedulingGroup": {"podGroupName": "g"},
                "evictionResponders": [{"name": "example.com/r", "priority": 1}],
            },
            "spec.schedulingGroup: Forbidden: may not be set when evictionResponders is set",
        ),
    ],
)
def test_bad_members_are_refused_also_in_templates(spec: Json, problem: str) -> None:
    world = World()
    pods = "/api/v1/namespaces/default/pods"
    assert causes(world.refused("POST", pods, pod(**spec)))[0].startswith(problem)
    labels = {"app": "x"}
    deployment = {
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod(**spec)["spec"]},
        },
    }
    refused = world.refused("POST", "/apis/apps/v1/namespaces/default/deployments", deployment)
    assert causes(refused)[0].startswith(f"spec.template.{problem}")


def test_a_member_keeps_its_group() -> None:
    world = World()
    pods = "/api/v1/namespaces/default/pods"
    world.ok("POST", pods, pod(schedulingGroup={"podGroupName": "g"}))
    change = {"spec": {"schedulingGroup": {"podGroupName": "h"}}}
    (cause,) = causes(world.refused("PATCH", f"{pods}/p", change, content_type=MERGE))
    assert cause.startswith("spec: Forbidden: pod updates may not change") and cause.endswith("spec.schedulingGroup")


def test_the_reference_of_1_35_is_ignored_with_a_warning() -> None:
    world = World()
    old = pod(workloadRef={"name": "w", "podGroup": "g"})
    pods = "/api/v1/namespaces/default/pods"
    assert "strict decoding error" in world.refused("POST", pods, old, query={"fieldValidation": "Strict"})["message"]
    answer = world.send("POST", pods, old)
    assert answer.status == 201 and "of Kubernetes 1.35" in warnings(answer)[0]


def test_a_job_whose_pods_have_a_group_of_their_own_is_warned() -> None:
    spec = pod(restartPolicy="Never", schedulingGroup={"podGroupName": "mine"})["spec"]
    job = {"metadata": {"name": "j"}, "spec": {"scheduling": {}, "template": {"spec": spec}}}
    answer = World().send("POST", "/apis/batch/v1/namespaces/default/jobs", job)
    assert answer.status == 201 and "spec.scheduling: ignored" in warnings(answer)[0]


def test_a_priority_that_is_not_of_the_class_is_forbidden() -> None:
    world = World()
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    world.ok("POST", classes, {"metadata": {"name": "high"}, "value": 9, "preemptionPolicy": "Never"})
    world.ok("POST", classes, {"metadata": {"name": "usual"}, "value": 3, "globalDefault": True})
    refused = world.refused("POST", path("podgroups"), named("PodGroup", {**BASIC, "priority": 4}))
    wanted = "priority set in the pod group (4) must match the priority computed (3) based on the priority class set in"
    assert refused["code"] == 403 and wanted in refused["message"]
    refused = world.refused("POST", path("podgroups"), named("PodGroup", {**BASIC, "preemptionPolicy": "Never"}))
    wanted = "the string value of PreemptionPolicy (Never) must not be provided in pod group spec"
    assert refused["code"] == 403 and wanted in refused["message"]
    unknown = world.refused("POST", path("podgroups"), named("PodGroup", {**BASIC, "priorityClassName": "x"}))
    assert unknown["message"] == 'podgroups.scheduling.k8s.io "g" is forbidden: no PriorityClass with name x was found'
    world.ok("POST", path("podgroups"), named("PodGroup", {**BASIC, "priorityClassName": "high"}))
    found = world.ok("GET", path("podgroups", "g"))["spec"]
    assert (found["priority"], found["preemptionPolicy"]) == (9, "Never")
    usual = world.ok("POST", path("podgroups"), named("PodGroup", BASIC, "h"))["spec"]
    assert (usual["priority"], usual["priorityClassName"]) == (3, "usual")
