"""MutatingAdmissionPolicies: what they change, in which order, and what becomes of a write when they fail."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.api_world import MERGE, PODS, World, pod

ROOT = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{ROOT}/mutatingadmissionpolicies", f"{ROOT}/mutatingadmissionpolicybindings"
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
Json = dict[str, Any]


def rules(group: str, resource: str) -> list[Json]:
    return [{"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resource]}]


def apply(expression: str) -> Json:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def json_patch(expression: str) -> Json:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def policy(*mutations: Json, name: str = "p", resource: str = "configmaps", group: str = "", **spec: Any) -> Json:
    match = {"resourceRules": rules(group, resource)}
    body = {"matchConstraints": match, "mutations": list(mutations), "reinvocationPolicy": "Never", **spec}
    return {"metadata": {"name": name}, "spec": body}


def bind(world: World, made: Json, **spec: Any) -> None:
    name = made["metadata"]["name"]
    world.ok("POST", POLICIES, made)
    world.ok("POST", BINDINGS, {"metadata": {"name": name}, "spec": {"policyName": name, **spec}})


def config(**data: str) -> Json:
    return {"metadata": {"name": "c"}, "data": data}


@pytest.fixture
def world() -> World:
    return World()


def test_a_part_of_an_object_is_merged_into_what_is_written(world: World) -> None:
    bind(world, policy(apply('Object{metadata: Object.metadata{labels: {"team": object.data.team}}}')))
    assert world.ok("POST", MAPS, config(team="a"))["metadata"]["labels"] == {"team": "a"}
    assert world.ok("GET", f"{MAPS}/c")["metadata"]["labels"] == {"team": "a"}


def test_lists_are_merged_by_the_keys_of_the_kind(world: World) -> None:
    sidecar = 'Object{spec: Object.spec{containers: [Object.spec.containers{name: "s", image: "sidecar"}]}}'
    bind(world, policy(apply(sidecar), resource="pods"))
    made = world.ok("POST", PODS, pod("p"))
    assert {one["name"] for one in made["spec"]["containers"]} == {
        "s",
        *(c["name"] for c in pod("p")["spec"]["containers"]),
    }
    assert all(one["terminationMessagePath"] for one in made["spec"]["containers"]), "defaults come after it"


def test_operations_of_a_json_patch_are_carried_out(world: World) -> None:
    label = 'JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("a/b"), value: "c"}'
    empty = 'JSONPatch{op: "add", path: "/metadata/labels", value: {}}'
    bind(world, policy(json_patch(f"has(object.metadata.labels) ? [{label}] : [{empty}, {label}]")))
    assert world.ok("POST", MAPS, config())["metadata"]["labels"] == {"a/b": "c"}


def test_an_update_is_mutated_too_also_one_of_metadata_alone(world: World) -> None:
    deployment = {
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }
    world.ok("POST", DEPLOYMENTS, deployment)
    bind(world, policy(apply("Object{spec: Object.spec{replicas: 3}}"), resource="deployments", group="apps"))
    patched = world.ok("PATCH", f"{DEPLOYMENTS}/d", {"metadata": {"labels": {"x": "y"}}}, content_type=MERGE)
    assert patched["spec"]["replicas"] == 3 and patched["metadata"]["labels"] == {"x": "y"}


def test_each_mutation_sees_what_those_before_it_have_made(world: World) -> None:
    first = apply('Object{data: {"n": "1"}}')
    second = apply('Object{data: {"m": object.data.n + "2"}}')
    bind(world, policy(first, second))
    assert world.ok("POST", MAPS, config())["data"] == {"n": "1", "m": "12"}


@pytest.mark.parametrize(("again", "seen"), [("IfNeeded", "yes"), ("Never", "no")])
def test_a_policy_looks_again_at_what_later_ones_have_changed_if_it_wants(world: World, again: str, seen: str) -> None:
    look = apply('Object{data: {"seen": has(object.data.late) ? "yes" : "no"}}')
    bind(world, policy(look, name="a", reinvocationPolicy=again))
    bind(world, policy(apply('Object{data: {"late": "x"}}'), name="b"))
    assert world.ok("POST", MAPS, config(a="b"))["data"]["seen"] == seen


def test_conditions_variables_and_parameters_are_those_of_policies_that_validate(world: World) -> None:
    world.ok("POST", MAPS, {"metadata": {"name": "params"}, "data": {"value": "v"}})
    bind(
        world,
        policy(
            apply('Object{data: {"from": variables.wanted}}'),
            matchConditions=[{"name": "c", "expression": 'object.metadata.name != "params" && !has(object.immutable)'}],
            variables=[{"name": "wanted", "expression": "params.data.value"}],
            paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        ),
        paramRef={"name": "params", "namespace": "default", "parameterNotFoundAction": "Deny"},
    )
    assert world.ok("POST", MAPS, config(a="b"))["data"] == {"a": "b", "from": "v"}
    other = {**config(a="b"), "metadata": {"name": "other"}, "immutable": True}
    assert world.ok("POST", MAPS, other)["data"] == {"a": "b"}


@pytest.mark.parametrize(
    "broken",
    [
        apply("Object{spec: object.nothing}"),
        json_patch('[JSONPatch{op: "remove", path: "/nowhere"}]'),
        json_patch('[JSONPatch{op: "test", path: "/metadata/name", value: "other"}]'),
    ],
)
def test_a_policy_that_fails_rejects_the_write_or_counts_as_nothing(world: World, broken: Json) -> None:
    made = policy(broken)
    bind(world, made)
    rejected = world.refused("POST", MAPS, config())
    assert "MutatingAdmissionPolicy 'p' with binding 'p' denied request: " in rejected["message"]
    world.ok("PATCH", f"{POLICIES}/p", {"spec": {"failurePolicy": "Ignore"}}, content_type=MERGE)
    assert world.ok("POST", MAPS, config(a="b"))["data"] == {"a": "b"}


def test_a_mutation_to_something_invalid_is_rejected_as_if_it_had_been_written_so(world: World) -> None:
    bind(world, policy(apply('Object{metadata: Object.metadata{labels: {"a": "not a label!"}}}')))
    assert world.refused("POST", MAPS, config())["reason"] == "Invalid"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"mutations": []}, "spec.mutations"),
        ({"reinvocationPolicy": None}, "spec.reinvocationPolicy"),
        ({"reinvocationPolicy": "Often"}, "spec.reinvocationPolicy"),
        ({"failurePolicy": "Maybe"}, "spec.failurePolicy"),
        ({"mutations": [{"patchType": "Merge"}]}, "spec.mutations[0].patchType"),
        ({"mutations": [apply("Object{")]}, "spec.mutations[0].applyConfiguration.expression"),
        ({"mutations": [apply("'text'")]}, "spec.mutations[0].applyConfiguration.expression"),
        ({"mutations": [json_patch("Object{}")]}, "spec.mutations[0].jsonPatch.expression"),
        ({"mutations": [{**apply("Object{}"), **json_patch("[]")}]}, "spec.mutations[0].applyConfiguration"),
    ],
)
def test_a_policy_that_cannot_be_used_is_not_stored(world: World, spec: Json, field: str) -> None:
    rejected = world.refused("POST", POLICIES, policy(apply("Object{}"), **spec))
    assert field in [cause["field"] for cause in rejected["details"]["causes"]]


def test_policies_do_not_concern_policies(world: World) -> None:
    change = apply('Object{metadata: Object.metadata{labels: {"a": "b"}}}')
    bind(world, policy(change, group="*", resource="*"))
    made = world.ok("POST", POLICIES, policy(change, name="q"))
    assert "labels" not in made["metadata"]
