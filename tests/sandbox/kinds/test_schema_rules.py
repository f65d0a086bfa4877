"""Rules in definitions: what they refuse in which words, and which rules a definition may not have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.sandbox.kinds.schema_rules import RULES, SchemaRules, rule_problems
from pilotage.sandbox.kinds.structural_schema import ObjectRules
from tests.sandbox.api_world import MERGE, World, definition

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
Json = dict[str, Any]


def rule(text: str, message: str = "", **more: Any) -> Json:
    return {"rule": text, **({"message": message} if message else {}), **more}


def node(kind: str = "object", *rules: Json | str, **more: Any) -> Json:
    texts = [{"rule": one} if isinstance(one, str) else one for one in rules]
    return {"type": kind, **({"x-kubernetes-validations": texts} if texts else {}), **more}


def spec(*rules: Json | str, **properties: Json) -> Json:
    """The schema of an object with such a spec."""
    return node(properties={"spec": node("object", *rules, properties=properties)})


def messages(schema: Json, new: Any, old: Any = None) -> list[str]:
    """What is wrong with an object of this spec."""
    before = None if old is None else {"metadata": {"name": "w"}, "spec": old}
    return [str(error) for error in SchemaRules(schema).errors({"metadata": {"name": "w"}, "spec": new}, before)]


INT, TEXT = node("integer"), node("string")
PORTS = node("array", items=node(properties={"name": TEXT, "port": INT}))


@pytest.mark.parametrize(
    ("schema", "new", "expected"),
    [
        (spec(rule("self.a <= self.b", "a too large"), a=INT, b=INT), {"a": 1, "b": 2}, []),
        (
            spec(rule("self.a <= self.b", "a too large"), a=INT, b=INT),
            {"a": 3, "b": 2},
            ["spec: Invalid value: a too large"],
        ),
        (spec(a=node("integer", "self > 0")), {"a": 0}, ["spec.a: Invalid value: 0: failed rule: self > 0"]),
        (spec(a=node("integer", "self > 0")), {}, []),
        (
            spec(a=node("string", rule("self.startsWith('x')", " x \n"))),
            {"a": "y"},
            ['spec.a: Invalid value: "y": x'],
        ),
        (
            spec(ports=node("array", items=node("object", "self.port > 0", properties={"port": INT}))),
            {"ports": [{"port": 1}, {"port": 0}]},
            ["spec.ports[1]: Invalid value: failed rule: self.port > 0"],
        ),
        (
            spec(labels=node(additionalProperties=node("string", "self != ''"))),
            {"labels": {"a": "", "b": "x"}},
            ["spec.labels[a]: Invalid value: \"\": failed rule: self != ''"],
        ),
        (
            node(
                "object", "self.metadata.name == self.spec.name", properties={"spec": node(properties={"name": TEXT})}
            ),
            {"name": "other"},
            ["<nil>: Invalid value: failed rule: self.metadata.name == self.spec.name"],
        ),
        (
            spec(rule("self.a > 5", messageExpression="'a is ' + string(self.a)"), a=INT),
            {"a": 3},
            ["spec: Invalid value: a is 3"],
        ),
        (
            spec(rule("self.a > 5", "too small", messageExpression="self.b"), a=INT, b=TEXT),
            {"a": 3},
            ["spec: Invalid value: too small"],
        ),
        (
            spec(rule("has(self.b)", "b!", reason="FieldValueRequired", fieldPath=".b"), b=INT),
            {},
            ["spec.b: Required value: b!"],
        ),
        (spec(rule("has(self.b)", "no", reason="FieldValueForbidden"), b=INT), {}, ["spec: Forbidden: no"]),
        (spec(rule("has(self.b)", "no", reason="FieldValueDuplicate"), b=INT), {}, ["spec: Duplicate value"]),
        (
            spec("self.__namespace__ == self.foo__dash__bar", namespace=TEXT, **{"foo-bar": TEXT}),
            {"namespace": "a", "foo-bar": "a"},
            [],
        ),
        (spec("self.i == 5 || self.i == '50%'", i={"x-kubernetes-int-or-string": True}), {"i": "50%"}, []),
        (
            spec("self.i > 5", i={"x-kubernetes-int-or-string": True}),
            {"i": "x"},
            [
                "spec: Invalid value: \"object\": 'no such overload': call arguments did not match"
                " a supported operator, function or macro signature for rule: self.i > 5"
            ],
        ),
        (spec("self.n / 2.0 > 1.0", n=node("number")), {"n": 3}, []),
        (
            spec("self.a == 1", a=INT),
            {},
            ['spec: Invalid value: "object": no such key: a evaluating rule: self.a == 1'],
        ),
        (
            spec("self.a == self.b", a=node(**{"x-kubernetes-preserve-unknown-fields": True}), b=node()),
            {"a": {"x": 1}, "b": {"x": 1}},
            [],
        ),
        (
            spec(t=node("string", "self > timestamp('2020-01-01T00:00:00Z')", format="date-time")),
            {"t": "2026-01-01T00:00:00Z"},
            [],
        ),
        (spec(d=node("string", "self > duration('1m')", format="duration")), {"d": "90s"}, []),
        (
            spec(d=node("string", "self > duration('1m')", format="duration")),
            {"d": "30s"},
            ["spec.d: Invalid value: \"30s\": failed rule: self > duration('1m')"],
        ),
        (
            spec(
                pod=node(
                    "object",
                    "self.kind == 'Pod' && self.metadata.name != ''",
                    **{"x-kubernetes-embedded-resource": True},
                )
            ),
            {"pod": {"kind": "Pod", "metadata": {"name": "p", "labels": {}}}},
            [],
        ),
        (
            spec("self.ports.all(p, self.ports.exists_one(q, q.name == p.name))", ports=PORTS),
            {"ports": [{"name": "a"}, {"name": "b"}]},
            [],
        ),
        (spec("self.n == null || self.n > 0", n=node("integer", nullable=True)), {"n": None}, []),
    ],
)
def test_a_rule_holds_or_is_broken_in_the_words_of_the_api_server(schema: Json, new: Json, expected: list[str]) -> None:
    assert messages(schema, new) == expected


LIST_OF_MAPS = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
FIXED = rule("self == oldSelf", "fixed")


@pytest.mark.parametrize(
    ("schema", "old", "new", "expected"),
    [
        (spec(a=node("integer", FIXED)), None, {"a": 1}, []),
        (spec(a=node("integer", FIXED)), {"a": 1}, {"a": 1}, []),
        (spec(a=node("integer", FIXED)), {"a": 1}, {"a": 2}, ["spec.a: Invalid value: 2: fixed"]),
        (spec(a=node("integer", FIXED)), {}, {"a": 2}, []),
        (spec(a=node("integer", FIXED)), {"a": 2}, {}, []),
        (
            spec(
                a=node(
                    "array",
                    items=node(
                        "object", rule("self.port >= oldSelf.port", "shrank"), properties={"name": TEXT, "port": INT}
                    ),
                    **LIST_OF_MAPS,
                )
            ),
            {"a": [{"name": "x", "port": 5}, {"name": "y", "port": 7}]},
            {"a": [{"name": "z", "port": 1}, {"name": "y", "port": 6}, {"name": "x", "port": 5}]},
            ["spec.a[1]: Invalid value: shrank"],
        ),
        (
            spec(m=node(additionalProperties=node("integer", FIXED))),
            {"m": {"a": 1, "b": 1}},
            {"m": {"a": 1, "b": 2, "c": 3}},
            ["spec.m[b]: Invalid value: 2: fixed"],
        ),
        # What was stored before there was a rule stays acceptable while it stays as it is.
        (spec(a=node("integer", "self > 5"), b=INT), {"a": 1, "b": 1}, {"a": 1, "b": 2}, []),
        (
            spec("self.a > 5", a=INT, b=INT),
            {"a": 1, "b": 1},
            {"a": 1, "b": 2},
            ["spec: Invalid value: failed rule: self.a > 5"],
        ),
        (
            spec(a=node("integer", rule("oldSelf.hasValue() || self == 0", "starts at 0", optionalOldSelf=True))),
            None,
            {"a": 1},
            ["spec.a: Invalid value: 1: starts at 0"],
        ),
        (
            spec(a=node("integer", rule("oldSelf.orValue(0) <= self", "shrank", optionalOldSelf=True))),
            {"a": 3},
            {"a": 2},
            ["spec.a: Invalid value: 2: shrank"],
        ),
        (
            spec(t=node("string", rule("self >= oldSelf", "earlier"), format="date-time")),
            {"t": "2026-01-01T00:00:00+01:00"},
            {"t": "2025-12-31T22:59:59Z"},
            ['spec.t: Invalid value: "2025-12-31T22:59:59Z": earlier'],
        ),
    ],
)
def test_a_rule_about_the_old_value_compares_what_belongs_together(
    schema: Json, old: Json | None, new: Json, expected: list[str]
) -> None:
    assert messages(schema, new, old) == expected


def test_rules_are_not_asked_about_an_object_that_has_not_the_types_of_its_schema() -> None:
    schema = spec("self.a > 5", a=INT)
    told = [str(error) for error in ObjectRules(schema).errors({"spec": {"a": "x"}})]
    assert told[0].startswith("spec.a: Invalid value")
    assert told[1:] == [
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct"
        " the existing errors to complete validation"
    ]


def test_a_rule_that_would_cost_too_much_ends_the_judgement() -> None:
    schema = spec("self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))", "false", l=node("array", items=INT))
    assert messages(schema, {"l": [1] * 5}) == ["spec: Invalid value: failed rule: false"]
    (told,) = messages(schema, {"l": [1] * 500})
    assert "'operation cancelled: actual cost limit exceeded': no further validation rules will be run" in told


SPEC = "spec.validation.openAPIV3Schema.properties[spec]"


@pytest.mark.parametrize(
    ("schema", "path", "problem"),
    [
        (spec("self.b > 1", a=INT), "[0].rule", "compilation failed: undefined field 'b'"),
        (spec("self.a.b > 1", a=INT), "[0].rule", "does not support field selection"),
        (spec("self.l.exists(x, x.nam == '')", l=PORTS), "[0].rule", "undefined field 'nam'"),
        (spec("cel.bind(p, self.l, p[0].nam == '')", l=PORTS), "[0].rule", "undefined field 'nam'"),
        (spec("self.?b.hasValue()", a=INT), "[0].rule", "undefined field 'b'"),
        (spec("self.namespace == 'a'", namespace=TEXT), "[0].rule", "undefined field"),
        (spec("self.a == 'x'", a=INT), "[0].rule", "overload for '_==_' applied to '(int, string)'"),
        (spec("self.a", a=INT), "[0].rule", "must evaluate to a bool"),
        (spec(a=node("integer", "self + 1")), ".properties[a][0].rule", "must evaluate to a bool"),
        (spec(a=node("integer", "self ==")), ".properties[a][0].rule", "ERROR: <input>:1:8: Syntax error"),
        (spec(a=node("string", "true", "self > 1")), ".properties[a][1].rule", "found no matching overload"),
        (spec("authorizer.path('/').check('get').allowed()"), "[0].rule", "undeclared reference"),
        (spec("self.l.sortBy(p, p.port) == []", l=PORTS), "[0].rule", "the macro sortBy() is not"),
        (spec(""), "[0].rule", "rule is not specified"),
        (spec(rule("true", "a\nb")), "[0].message", "must not contain line breaks"),
        (spec(rule("true", reason="No")), "[0].reason", "Unsupported value"),
        (spec(rule("true", fieldPath=".b")), "[0].fieldPath", "must be a valid path"),
        (spec(rule("true", messageExpression="1 + 1")), "[0].messageExpression", "must evaluate to a string"),
        (spec(rule("true", optionalOldSelf=True)), "[0].optionalOldSelf", "oldSelf is not used"),
        (
            spec(l=node("array", items=node("integer", FIXED))),
            ".properties[l].items[0].rule",
            "oldSelf cannot be used on the uncorrelatable portion of the schema",
        ),
    ],
)
def test_a_definition_with_a_rule_that_is_none_is_rejected(schema: Json, path: str, problem: str) -> None:
    world = World()
    told = world.refused("POST", CRDS, definition(schema={"openAPIV3Schema": schema}))
    assert told["code"] == 422
    place, bracket, field = path.rpartition("[")
    assert told["details"]["causes"][0]["field"] == f"{SPEC}{place}.x-kubernetes-validations{bracket}{field}"
    assert problem in told["message"]


def test_rules_are_judged_on_every_write_and_follow_their_definition() -> None:
    world = World()
    sized = spec(rule("self.size <= 3", "too large"), rule("self.size >= oldSelf.size", "may not shrink"), size=INT)
    world.ok("POST", CRDS, definition(schema={"openAPIV3Schema": sized}))
    told = world.refused("POST", WIDGETS, {"metadata": {"name": "w"}, "spec": {"size": 4}})
    assert told["message"] == 'Widget.example.com "w" is invalid: spec: Invalid value: too large'
    world.ok("POST", WIDGETS, {"metadata": {"name": "w"}, "spec": {"size": 2}})
    told = world.refused("PATCH", f"{WIDGETS}/w", {"spec": {"size": 1}}, content_type=MERGE)
    assert "may not shrink" in told["message"] and told["code"] == 422
    crd = world.ok("GET", f"{CRDS}/widgets.example.com")
    crd["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": spec(size=INT)}
    world.ok("PUT", f"{CRDS}/widgets.example.com", crd)
    world.ok("PATCH", f"{WIDGETS}/w", {"spec": {"size": 9}}, content_type=MERGE)


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abl"), inner, max_size=3),
    max_leaves=10,
)
EXPRESSIONS = [
    "self.a == oldSelf.a",
    "self.l.all(x, x.name != '')",
    "self == oldSelf",
    "has(self.a) && self.a > 1",
    "self.?l[?0].?name.orValue('') == ''",
    "size(self) > 1",
    "self",
    "]",
    "self.l.map(x, x.port).sum() > 1",
]


@settings(deadline=None)
@given(st.sampled_from(EXPRESSIONS) | st.text(max_size=20), json, json)
def test_no_rule_and_no_object_can_break_the_server(expression: str, new: Any, old: Any) -> None:
    schema = spec(expression, a=INT, l=PORTS)
    if rule_problems(schema, "") == []:
        messages(schema, new, old)


def test_a_message_may_speak_of_the_old_value_although_the_rule_does_not() -> None:
    rule = {"rule": "self.size < 3", "messageExpression": "'was ' + string(oldSelf.size)"}
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}, RULES: [rule]}
    (error,) = SchemaRules(schema).errors({"size": 9}, {"size": 2})
    assert "was 2" in str(error)


def test_what_was_accepted_is_remembered_by_what_the_rule_reads() -> None:
    """A rule that is asked again gives the same answer as one that is asked for the first time."""
    schema = spec(
        rule("self.ports.all(p, p.port <= self.most)", "port too large"),
        rule("self.ports == oldSelf.ports || self.most >= oldSelf.most", "most may not shrink"),
        ports=PORTS,
        most=INT,
    )
    ports = [{"name": "a", "port": 80}]
    objects: list[Json] = [
        {"ports": ports, "most": 90},
        {"ports": [{"name": "b", "port": 80}], "most": 90},
        {"ports": ports, "most": 79},
        {"ports": [{"name": "a", "port": 443}], "most": 90},
        {"ports": [{"name": "a", "port": True}], "most": 90},
        {"ports": [], "most": 5},
    ]
    rules = SchemaRules(schema)
    pairs = [(new, old) for new in objects for old in [None, *objects]] * 2
    for new, old in pairs:
        before = None if old is None else {"metadata": {"name": "w"}, "spec": old}
        told = [str(error) for error in rules.errors({"metadata": {"name": "w"}, "spec": new}, before)]
        assert told == messages(schema, new, old)


def test_what_remembered_answers_cost_counts_as_before() -> None:
    """Many cheap answers are still too much for one object."""
    loop = "self.all(a, self.all(b, a + b > 0))"
    schema = spec(**{f"f{at}": node("array", loop, items=INT) for at in range(40)})
    new = {f"f{at}": list(range(1, 240)) for at in range(40)}
    rules = SchemaRules(schema)
    obj = {"metadata": {"name": "w"}, "spec": new}
    first, again = ([str(error) for error in rules.errors(obj)] for _ in range(2))
    assert len(first) == 1
    assert "actual cost limit exceeded" in first[0]
    assert again == first
