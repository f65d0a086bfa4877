"""ValidatingAdmissionPolicies: which writes they concern, what they say, and in which words they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sandbox.api_world import MERGE, PODS, World, pod

ROOT = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{ROOT}/validatingadmissionpolicies", f"{ROOT}/validatingadmissionpolicybindings"
MAPS = "/api/v1/namespaces/default/configmaps"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
SHIPPED = Path(__file__).parents[3] / "deploy" / "workload-queueing"
Json = dict[str, Any]


def rules(*resources: str, operations: tuple[str, ...] = ("CREATE", "UPDATE"), group: str = "") -> list[Json]:
    return [{"apiGroups": [group], "apiVersions": ["v1"], "operations": list(operations), "resources": list(resources)}]


def policy(*validations: Json | str, resources: list[Json] | None = None, **spec: Any) -> Json:
    checks = [{"expression": one} if isinstance(one, str) else one for one in validations]
    match = {"resourceRules": resources or rules("configmaps"), **spec.pop("match", {})}
    return {"metadata": {"name": "p"}, "spec": {"matchConstraints": match, "validations": checks, **spec}}


def bind(world: World, made: Json, *actions: str, **spec: Any) -> None:
    world.ok("POST", POLICIES, made)
    body = {"policyName": made["metadata"]["name"], "validationActions": list(actions or ("Deny",)), **spec}
    world.ok("POST", BINDINGS, {"metadata": {"name": "b"}, "spec": body})


def config(**data: str) -> Json:
    return {"metadata": {"name": "c", "labels": {"team": "a"}}, "data": data}


@pytest.fixture
def world() -> World:
    return World()


def test_a_rejection_has_the_words_of_the_api_server(world: World) -> None:
    check = {"expression": "object.data.size == 'small'", "message": "only small ones"}
    bind(world, policy(check))
    told = world.refused("POST", MAPS, config(size="large"))
    message = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: only small ones"
    assert told["message"] == f'configmaps "c" is forbidden: {message}'
    assert (told["code"], told["reason"]) == (422, "Invalid")
    assert told["details"] == {"name": "c", "kind": "configmaps", "causes": [{"message": message}]}
    world.ok("POST", MAPS, config(size="small"))
    told = world.refused("PATCH", f"{MAPS}/c", {"data": {"size": "large"}}, content_type=MERGE)
    assert message in told["message"]


def test_a_policy_without_a_binding_is_not_in_force_and_one_that_is_gone_neither(world: World) -> None:
    world.ok("POST", POLICIES, policy("false"))
    world.ok("POST", MAPS, config())
    world.ok("DELETE", f"{MAPS}/c")
    world.ok("POST", BINDINGS, {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}})
    world.refused("POST", MAPS, config())
    world.ok("DELETE", f"{POLICIES}/p")
    world.ok("POST", MAPS, config())


@pytest.mark.parametrize(
    ("validation", "data", "expected"),
    [
        ("object.data.a == 'x'", {"a": "x"}, ""),
        ("object.data.a == 'x'", {"a": "y"}, "failed expression: object.data.a == 'x'"),
        ("object.data.b == 'x'", {"a": "y"}, "expression 'object.data.b == 'x'' resulted in error: no such key: b"),
        ({"expression": "false", "messageExpression": "'a is ' + object.data.a"}, {"a": "y"}, "a is y"),
        ({"expression": "false", "message": "plain", "messageExpression": "object.data.b"}, {"a": "y"}, "plain"),
        ("request.operation == 'CREATE' && oldObject == null && request.namespace == 'default'", {}, ""),
        ("request.resource.resource == 'configmaps' && request.kind.kind == 'ConfigMap' && !request.dryRun", {}, ""),
        ("request.userInfo.username == 'sandbox-admin'", {}, ""),
        ("namespaceObject.metadata.name == 'default' && params == null", {}, ""),
        ("authorizer.group('').resource('pods').namespace('x').check('delete').allowed()", {}, ""),
        ("authorizer.requestResource.check('create').allowed()", {}, ""),
        ("object.metadata.labels.all(k, k.startsWith('team'))", {}, ""),
    ],
)
def test_what_expressions_see_and_how_they_fail(world: World, validation: Any, data: Json, expected: str) -> None:
    bind(world, policy(validation))
    if not expected:
        world.ok("POST", MAPS, config(**data))
    else:
        assert world.refused("POST", MAPS, config(**data))["message"].endswith(f"denied request: {expected}")


@pytest.mark.parametrize(
    ("reason", "code"), [("Forbidden", 403), ("Unauthorized", 401), ("RequestEntityTooLarge", 413), ("Invalid", 422)]
)
def test_the_reason_of_a_validation_is_that_of_the_rejection(world: World, reason: str, code: int) -> None:
    bind(world, policy({"expression": "false", "reason": reason}))
    told = world.refused("POST", MAPS, config())
    assert (told["reason"], told["code"]) == (reason, code)


@pytest.mark.parametrize(
    ("match", "is_concerned"),
    [
        ({}, True),
        ({"resourceRules": rules("secrets")}, False),
        ({"resourceRules": rules("*")}, True),
        ({"resourceRules": rules("*/*")}, True),
        ({"resourceRules": rules("configmaps/status")}, False),
        ({"resourceRules": rules("configmaps", operations=("*",))}, True),
        ({"resourceRules": rules("configmaps", operations=("DELETE",))}, False),
        ({"resourceRules": [{**rules("configmaps")[0], "apiGroups": ["*"], "apiVersions": ["*"]}]}, True),
        ({"resourceRules": [{**rules("configmaps")[0], "apiGroups": ["apps"]}]}, False),
        ({"resourceRules": [{**rules("configmaps")[0], "resourceNames": ["c"]}]}, True),
        ({"resourceRules": [{**rules("configmaps")[0], "resourceNames": ["d"]}]}, False),
        ({"resourceRules": [{**rules("configmaps")[0], "scope": "Cluster"}]}, False),
        ({"excludeResourceRules": rules("configmaps")}, False),
        ({"objectSelector": {"matchLabels": {"team": "a"}}}, True),
        ({"objectSelector": {"matchLabels": {"team": "b"}}}, False),
        ({"namespaceSelector": {"matchExpressions": [{"key": "strict", "operator": "Exists"}]}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
    ],
)
@pytest.mark.parametrize("whose", ["policy", "binding"])
def test_which_writes_are_concerned(world: World, match: Json, is_concerned: bool, whose: str) -> None:
    if whose == "policy":
        bind(world, policy("false", match=match))
    else:
        bind(world, policy("false"), matchResources=match)
    assert (world.send("POST", MAPS, config()).status == 422) is is_concerned


def test_conditions_of_a_policy_must_all_hold(world: World) -> None:
    conditions = [
        {"name": "has-data", "expression": "has(object.data)"},
        {"name": "is-large", "expression": "object.data.size == 'large'"},
    ]
    bind(world, policy("false", matchConditions=conditions))
    world.refused("POST", MAPS, config(size="large"))
    world.ok("POST", MAPS, config(size="small"))
    told = world.refused("POST", MAPS, {"metadata": {"name": "d"}, "data": {"x": "y"}})
    assert "expression 'object.data.size == 'large'' resulted in error: no such key: size" in told["message"]
    # One that does not hold outweighs one that fails.
    world.ok("POST", MAPS, {"metadata": {"name": "d"}})


def test_what_fails_is_let_pass_by_a_policy_that_ignores_failures(world: World) -> None:
    bind(world, policy("object.data.missing == 'x'", "object.data.a != 'z'", failurePolicy="Ignore"))
    world.ok("POST", MAPS, config(a="b"))
    world.refused("PATCH", f"{MAPS}/c", {"data": {"a": "z"}}, content_type=MERGE)


def test_variables_are_evaluated_when_they_are_needed(world: World) -> None:
    variables = [
        {"name": "size", "expression": "object.data.size"},
        {"name": "is_large", "expression": "variables.size == 'large'"},
    ]
    bind(world, policy("!has(object.data) || !variables.is_large", variables=variables))
    world.ok("POST", MAPS, {"metadata": {"name": "a"}})
    world.refused("POST", MAPS, config(size="large"))
    told = world.refused("POST", MAPS, config(other="x"))
    assert 'composited variable "is_large" fails to evaluate' in told["message"]
    assert 'composited variable "size" fails to evaluate' in told["message"]


def test_a_binding_that_warns_lets_the_write_pass(world: World) -> None:
    bind(world, policy("false"), "Warn", "Audit")
    answer = world.send("POST", MAPS, config())
    expected = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression: false"
    assert answer.status == 201 and expected in dict(answer.headers)["warning"]
    assert world.send("POST", PODS, pod()).headers == ()


def test_deletions_are_judged_by_what_is_there(world: World) -> None:
    check = "object == null && oldObject.data.kept != 'yes'"
    bind(world, policy(check, resources=rules("configmaps", operations=("DELETE",))))
    world.ok("POST", MAPS, config(kept="yes"))
    world.refused("DELETE", f"{MAPS}/c")
    world.ok("PATCH", f"{MAPS}/c", {"data": {"kept": "no"}}, content_type=MERGE)
    world.ok("DELETE", f"{MAPS}/c")


def test_pods_are_judged_even_if_their_spec_was_seen_before_and_by_their_subresources(world: World) -> None:
    world.ok("POST", PODS, pod("first"))
    bind(world, policy("object.spec.containers.all(c, c.image.startsWith('trusted/'))", resources=rules("pods")))
    assert world.refused("POST", PODS, pod("second"))["code"] == 422
    world.ok("PATCH", f"{PODS}/first/status", {"status": {"message": "m"}}, content_type=MERGE)
    assert world.refused("PATCH", f"{PODS}/first", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    world.ok("DELETE", f"{POLICIES}/p")
    status = policy("object.status.message != 'bad' && has(oldObject.spec)", resources=rules("pods/status"))
    world.ok("POST", POLICIES, status)
    assert world.refused("PATCH", f"{PODS}/first/status", {"status": {"message": "bad"}}, content_type=MERGE)
    world.ok("POST", PODS, pod("second"))


@pytest.mark.parametrize("by", [{"name": "limits"}, {"selector": {"matchLabels": {"for": "p"}}}])
def test_parameters_come_from_other_objects(world: World, by: Json) -> None:
    limits = {"metadata": {"name": "limits", "labels": {"for": "p"}}, "data": {"most": "2"}}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    check = "object.spec.completions <= int(params.data.most)"
    reference = {**by, "parameterNotFoundAction": "Deny"}
    bind(world, policy(check, paramKind=kind, resources=rules("jobs", group="batch")), paramRef=reference)
    told = world.refused("POST", JOBS, job("a"))
    assert told["message"].endswith(
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    )
    world.ok("POST", MAPS, limits)
    world.ok("POST", JOBS, job("a", completions=2))
    world.refused("POST", JOBS, job("b", completions=3))


def job(name: str, labels: Json | None = None, **spec: Any) -> Json:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {"template": template, **spec}}


def test_the_shipped_policy_for_suspended_jobs_works(world: World) -> None:
    made, binding = yaml.safe_load_all((SHIPPED / "suspended-jobs.yaml").read_text())
    world.ok("POST", POLICIES, made)
    world.ok("POST", BINDINGS, binding)
    queued = {"kueue.x-k8s.io/queue-name": "lq"}
    for spec in ({}, {"suspend": False}):
        told = world.refused("POST", JOBS, job("a", queued, **spec))
        assert "set spec.suspend to true" in told["message"] and told["reason"] == "Invalid"
    world.ok("POST", JOBS, job("a", queued, suspend=True))
    # In the sandbox everybody may write the status of Workloads, as the scheduler may.
    world.ok("PATCH", f"{JOBS}/a", {"spec": {"suspend": False}}, content_type=MERGE)
    world.ok("POST", JOBS, job("outside"))


# --- what a policy may be ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "field", "problem"),
    [
        (policy("object.x =="), "spec.validations[0].expression", "compilation failed: ERROR: <input>:1:12"),
        (policy("nobody"), "spec.validations[0].expression", "undeclared reference to 'nobody'"),
        (policy("1 + 1"), "spec.validations[0].expression", "must evaluate to bool"),
        (policy(""), "spec.validations[0].expression", "expression is not specified"),
        (policy(), "spec.validations", "must contain at least one item"),
        (policy({"expression": "true", "reason": "No"}), "spec.validations[0].reason", "Unsupported value"),
        (policy({"expression": "true", "messageExpression": "1"}), "spec.validations[0].messageExpression", "string"),
        (policy("true", variables=[{"name": "v", "expression": "["}]), "spec.variables[0].expression", "Syntax error"),
        (
            policy("true", matchConditions=[{"name": "c", "expression": "object.l.sortBy(x, x) == []"}]),
            "spec.matchConditions[0].expression",
            "the macro sortBy() is not supported",
        ),
        (policy("true", failurePolicy="Perhaps"), "spec.failurePolicy", "Unsupported value"),
        (
            {"metadata": {"name": "p"}, "spec": {"validations": [{"expression": "true"}]}},
            "spec.matchConstraints",
            "Req",
        ),
    ],
)
def test_a_policy_that_cannot_be_used_is_rejected(world: World, made: Json, field: str, problem: str) -> None:
    told = world.refused("POST", POLICIES, made)
    assert told["code"] == 422 and told["details"]["causes"][0]["field"] == field
    assert problem in told["message"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"validationActions": ["Deny"]}, "spec.policyName"),
        ({"policyName": "p"}, "spec.validationActions"),
        ({"policyName": "p", "validationActions": ["Deny", "Warn"]}, "spec.validationActions"),
        ({"policyName": "p", "validationActions": ["Shout"]}, "spec.validationActions[0]"),
        ({"policyName": "p", "validationActions": ["Deny"], "paramRef": {"name": "x"}}, "spec.paramRef.parameterNot"),
    ],
)
def test_a_binding_that_cannot_be_used_is_rejected(world: World, spec: Json, field: str) -> None:
    told = world.refused("POST", BINDINGS, {"metadata": {"name": "b"}, "spec": spec})
    assert told["code"] == 422 and told["details"]["causes"][0]["field"].startswith(field)


EXPRESSIONS = [
    "object.a",
    "object.data",
    "variables.v",
    "params.x",
    "object.data.all(k, k != '')",
    "oldObject.x",
    "1 / 0",
]


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(EXPRESSIONS) | st.text(max_size=12), st.dictionaries(st.text(max_size=3), st.text(max_size=3)))
def test_no_expression_can_break_the_server(expression: str, data: Json) -> None:
    world = World()
    made = policy(expression, variables=[{"name": "v", "expression": "variables.v"}])
    if world.send("POST", POLICIES, made).status == 201:
        world.ok(
            "POST", BINDINGS, {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
        )
        assert world.send("POST", MAPS, config(**data)).status in (201, 422)
