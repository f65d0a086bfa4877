"""Rules in CEL, of definitions and of admission policies: both servers refuse in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .client import MERGE, Client, Json, Refused
from .queueing_kinds import ADMISSION, DEFINITIONS
from .servers import Server, eventually

GADGETS = "/apis/rules.example.com/v1/namespaces/default/gadgets"
MAPS = "/api/v1/namespaces/default/configmaps"
POLICIES, BINDINGS = f"{ADMISSION}/validatingadmissionpolicies", f"{ADMISSION}/validatingadmissionpolicybindings"


def rule(text: str, message: str = "", **more: Any) -> Json:
    return {"rule": text, **({"message": message} if message else {}), **more}


def node(kind: str, *rules: Json, **more: Any) -> Json:
    return {"type": kind, **({"x-kubernetes-validations": list(rules)} if rules else {}), **more}


ITEM = node(
    "object",
    rule("self.port > 0", "a port is positive"),
    rule("self.port >= oldSelf.port", "a port may not shrink"),
    properties={"name": node("string"), "port": node("integer")},
    required=["name"],
)
SPEC = node(
    "object",
    rule("!has(self.least) || !has(self.most) || self.least <= self.most", "least is not more than most"),
    rule("self.odd % 2 == 1", "odd it is", fieldPath=".odd", reason="FieldValueForbidden"),
    rule("!has(self.name) || self.name != 'bad'", messageExpression="'the name ' + self.name + ' is bad'"),
    rule("!has(self.kind) || self.kind != 'b'", reason="FieldValueDuplicate"),
    rule("!has(self.either) || self.either > 5", "more than five"),
    properties={
        "least": node("integer", rule("self >= 0")),
        "most": node("integer", maximum=100),
        "odd": node("integer", default=1),
        "name": node("string", maxLength=5),
        "kind": node("string", enum=["a", "b"]),
        "fixed": node("string", rule("self == oldSelf", "fixed")),
        "once": node("string", rule("oldSelf.hasValue() || self == 'first'", "first", optionalOldSelf=True)),
        "either": {"x-kubernetes-int-or-string": True},
        "labels": node("object", additionalProperties=node("string", rule("self != ''", "not empty"))),
        "namespace": node("string"),
        "items": node(
            "array",
            items=ITEM,
            maxItems=3,
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    },
)
ROOT = node("object", rule("self.metadata.name != 'forbidden'", "not this name"), properties={"spec": SPEC})


def definition(schema: Json, plural: str = "gadgets", kind: str = "Gadget") -> Json:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.rules.example.com"},
        "spec": {
            "group": "rules.example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        },
    }


def words(refused: Refused) -> str:
    """What it says, without the code."""
    return str(refused).partition(" ")[2]


def gadget(called: str, **spec: Any) -> Json:
    return {"apiVersion": "rules.example.com/v1", "kind": "Gadget", "metadata": {"name": called}, "spec": spec}


@pytest.fixture(scope="module", params=["sandbox", "real"])
def api(request: pytest.FixtureRequest) -> Iterator[Client]:
    server: Server = request.getfixturevalue(f"{request.param}_server")
    client = Client(server.admin)
    client.request("POST", DEFINITIONS, definition(ROOT))
    try:
        eventually("the kind is served", lambda: _is_served(client))
        yield client
    finally:
        client.request("DELETE", f"{DEFINITIONS}/gadgets.rules.example.com", {})


def _is_served(client: Client) -> bool:
    try:
        client.request("POST", f"{GADGETS}?dryRun=All", gadget("probe"))
    except Refused:
        return False
    return True


REFUSED: dict[str, tuple[Json, str]] = {
    "of-the-spec": ({"least": 3, "most": 2}, "spec: Invalid value: least is not more than most"),
    "of-a-field": ({"least": -1}, "spec.least: Invalid value: -1: failed rule: self >= 0"),
    "with-a-path": ({"odd": 2}, "spec.odd: Forbidden: odd it is"),
    "with-a-message": ({"name": "bad"}, "spec: Invalid value: the name bad is bad"),
    "of-a-map": ({"labels": {"a": ""}}, 'spec.labels[a]: Invalid value: "": not empty'),
    "of-an-item": (
        {"items": [{"name": "a", "port": 1}, {"name": "b", "port": 0}]},
        "spec.items[1]: Invalid value: a port is positive",
    ),
    "that-fails": (
        {"items": [{"name": "a"}]},
        'spec.items[0]: Invalid value: "object": no such key: port evaluating rule: a port is positive',
    ),
    "duplicate": ({"kind": "b"}, "spec: Duplicate value"),
    "of-a-union": (
        {"either": "x"},
        "spec: Invalid value: \"object\": 'no such overload': call arguments did not match a supported operator,"
        " function or macro signature for rule: more than five",
    ),
    "once": ({"once": "second"}, 'spec.once: Invalid value: "second": first'),
    "beside-a-bound": (
        {"most": 101, "least": 102},
        "[spec.most: Invalid value: 101: spec.most in body should be less than or equal to 100, spec: Invalid value:"
        " least is not more than most]",
    ),
    "too-long": (
        {"name": "abcdef"},
        "[spec.name: Too long: may not be more than 5 bytes, <nil>: Invalid value: null: some validation rules were"
        " not checked because the object was invalid; correct the existing errors to complete validation]",
    ),
    "too-many": (
        {"items": [{"name": f"n{at}", "port": 1} for at in range(4)]},
        "[spec.items: Too many: 4: must have at most 3 items, <nil>: Invalid value: null: some validation rules were"
        " not checked because the object was invalid; correct the existing errors to complete validation]",
    ),
    "twice": (
        {"items": [{"name": "a", "port": 1}, {"name": "a", "port": 1}]},
        'spec.items[1]: Duplicate value: {"name":"a"}',
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_object_that_breaks_a_rule(api: Client, name: str) -> None:
    spec, expected = REFUSED[name]
    with pytest.raises(Refused) as refused:
        api.request("POST", GADGETS, gadget(name, **spec))
    assert words(refused.value) == f'Gadget.rules.example.com "{name}" is invalid: {expected}'
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")


def test_rules_see_names_and_old_values(api: Client) -> None:
    with pytest.raises(Refused, match="<nil>: Invalid value: not this name"):
        api.request("POST", GADGETS, gadget("forbidden"))
    items = [{"name": "a", "port": 5}, {"name": "b", "port": 5}]
    api.request("POST", GADGETS, gadget("changing", fixed="x", once="first", items=items))
    for change, expected in (
        ({"fixed": "y"}, 'spec.fixed: Invalid value: "y": fixed'),
        (
            {"items": [items[1], {"name": "a", "port": 4}]},
            "spec.items[1]: Invalid value: a port may not shrink",
        ),
    ):
        with pytest.raises(Refused) as refused:
            api.request("PATCH", f"{GADGETS}/changing", {"spec": change}, MERGE)
        assert words(refused.value) == f'Gadget.rules.example.com "changing" is invalid: {expected}'
    api.request("PATCH", f"{GADGETS}/changing", {"spec": {"once": "second", "items": [items[1]]}}, MERGE)


AT_SPEC = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]"
BAD_RULES: dict[str, tuple[Json, str, str]] = {
    "undefined": (rule("self.b > 1"), f"{AT_SPEC}.rule", "undefined field 'b'"),
    "syntax": (rule("self.a >"), f"{AT_SPEC}.rule", "compilation failed: ERROR: <input>:1:9: Syntax error"),
    "types": (
        rule("self.a == 'x'"),
        f"{AT_SPEC}.rule",
        "found no matching overload for '_==_' applied to '(int, string)'",
    ),
    "no-truth": (rule("self.a + 1"), f"{AT_SPEC}.rule", "must evaluate to a bool"),
    "authorizer": (rule("authorizer.path('/').check('get').allowed()"), f"{AT_SPEC}.rule", "undeclared reference"),
    "empty": (rule(" "), f"{AT_SPEC}.rule", "rule is not specified"),
    "reason": (rule("true", reason="No"), f"{AT_SPEC}.reason", "Unsupported value"),
    "path": (rule("true", fieldPath=".b"), f"{AT_SPEC}.fieldPath", "must be a valid path"),
    "message": (rule("true", messageExpression="self.a"), f"{AT_SPEC}.messageExpression", "must evaluate to a string"),
    "old": (rule("true", optionalOldSelf=True), f"{AT_SPEC}.optionalOldSelf", ""),
}


@pytest.mark.parametrize("name", BAD_RULES)
def test_a_definition_with_a_bad_rule(api: Client, name: str) -> None:
    bad, field, problem = BAD_RULES[name]
    spec = node("object", bad, properties={"a": node("integer")})
    with pytest.raises(Refused) as refused:
        api.request("POST", DEFINITIONS, definition(node("object", properties={"spec": spec}), "bads", "Bad"))
    assert refused.value.code == 422
    assert f"{field}: " in words(refused.value) and problem in words(refused.value)


# --- admission policies -----------------------------------------------------------------------------------------------

VALIDATIONS = [
    {"expression": "object.data.a != 'bad'", "message": "not bad"},
    {"expression": "object.data.b != 'bad'", "messageExpression": "'b is ' + object.data.b"},
    {"expression": "object.data.c != 'bad'", "reason": "Forbidden"},
    {"expression": "variables.d != 'bad'"},
]
DENIED: dict[str, tuple[Json, str, str]] = {
    "message": ({"a": "bad"}, "not bad", "Invalid"),
    "expression": ({"b": "bad"}, "b is bad", "Invalid"),
    "reason": ({"c": "bad"}, "failed expression: object.data.c != 'bad'", "Forbidden"),
    "variable": ({"d": "bad"}, "failed expression: variables.d != 'bad'", "Invalid"),
    "error": ({"a": None}, "expression 'object.data.a != 'bad'' resulted in error: no such key: a", "Invalid"),
}
GOOD = {"a": "1", "b": "1", "c": "1", "d": "1"}


@pytest.fixture(scope="module")
def policy(api: Client) -> Iterator[Client]:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    spec = {
        "matchConstraints": {"resourceRules": rules, "objectSelector": {"matchLabels": {"judged": "yes"}}},
        "matchConditions": [{"name": "default-only", "expression": "request.namespace == 'default'"}],
        "variables": [{"name": "d", "expression": "object.data.d"}],
        "validations": VALIDATIONS,
    }
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "same-words"}}
    api.request("POST", POLICIES, {**head, "kind": "ValidatingAdmissionPolicy", "spec": spec})
    bound = {"policyName": "same-words", "validationActions": ["Deny"]}
    api.request("POST", BINDINGS, {**head, "kind": "ValidatingAdmissionPolicyBinding", "spec": bound})
    try:
        eventually("the policy is in force", lambda: _is_denied(api))
        yield api
    finally:
        api.request("DELETE", f"{BINDINGS}/same-words", {})
        api.request("DELETE", f"{POLICIES}/same-words", {})


def _config(name: str, **data: Any) -> Json:
    kept = {key: value for key, value in {**GOOD, **data}.items() if value is not None}
    metadata = {"name": name, "labels": {"judged": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": kept}


def _is_denied(client: Client) -> bool:
    try:
        client.request("POST", f"{MAPS}?dryRun=All", _config("probe", a="bad"))
    except Refused:
        return True
    return False


@pytest.mark.parametrize("name", DENIED)
def test_a_write_that_a_policy_rejects(policy: Client, name: str) -> None:
    data, expected, reason = DENIED[name]
    with pytest.raises(Refused) as refused:
        policy.request("POST", MAPS, _config(name, **data))
    told = f"ValidatingAdmissionPolicy 'same-words' with binding 'same-words' denied request: {expected}"
    assert words(refused.value) == f'configmaps "{name}" is forbidden: {told}'
    assert (refused.value.reason, refused.value.code) == (reason, 403 if reason == "Forbidden" else 422)
