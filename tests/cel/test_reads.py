"""What an expression reads: with nothing else it has the same result, and what it does not read makes no difference."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.cel import CelError, CelType, Environment

ENVIRONMENT = Environment({"self": CelType.ANY, "old": CelType.ANY})
VALUE: dict[str, Any] = {
    "name": "a",
    "size": 3,
    "tags": ["x", "y"],
    "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443, "more": {"a": 1}}],
    "labels": {"app": "web", "tier": "front"},
}
NAMED = [{"name": "http"}, {"name": "https"}]


def cut(expression: str, value: Any = VALUE) -> Any:
    return ENVIRONMENT.compile(expression).reads.cut({"self": value, "old": VALUE}).get("self")


@pytest.mark.parametrize(
    ("expression", "left"),
    [
        ("self.name == 'a'", {"name": "a"}),
        ("self['name'] == 'a'", {"name": "a"}),
        ("has(self.ports) && self.size > 1", {"ports": VALUE["ports"], "size": 3}),
        ("has(self.labels)", {"labels": {}}),
        ("has(self.missing) || self.missing.deeper == 1", {}),
        ("self.ports.all(p, p.port > 0)", {"ports": [{"port": 80}, {"port": 443}]}),
        ("self.ports.exists(p, has(p.more))", {"ports": [{}, {"more": {}}]}),
        ("size(self.ports) == 2", {"ports": [{}, {}]}),
        ("self.labels.size() == 2", {"labels": VALUE["labels"]}),
        ("self.labels.all(key, key != 'x')", {"labels": VALUE["labels"]}),
        ("self.ports.map(p, p.name) == self.tags", {"ports": NAMED, "tags": ["x", "y"]}),
        ("self.ports.filter(p, p.port > 1).size() == 2", {"ports": VALUE["ports"]}),
        ("self.ports[0].name == 'http'", {"ports": VALUE["ports"]}),
        ("cel.bind(l, self.labels, l.app == 'web')", {"labels": {"app": "web"}}),
        ("self.ports.all(p, self.tags.exists(t, t == p.name))", {"ports": NAMED, "tags": ["x", "y"]}),
        ("self == old", VALUE),
        ("old.name == 'a'", None),
        ("self.?labels.?app.orValue('') == 'web'", VALUE),
    ],
)
def test_only_what_is_read_is_left(expression: str, left: Any) -> None:
    assert cut(expression) == left


def test_a_value_of_another_form_is_left_as_it_is() -> None:
    assert cut("self.ports.all(p, p.port > 0)", {"ports": 5, "name": "a"}) == {"ports": 5, "name": "a"}
    assert cut("self.name.first == 1", {"name": 3, "size": 1}) == {"name": 3, "size": 1}


def test_values_of_which_the_same_is_read_have_the_same_digest() -> None:
    reads = ENVIRONMENT.compile("self.ports.exists(p, p.port == 80) && self.size > 1").reads
    changed = {**VALUE, "name": "b", "ports": [{"port": 80}, {"name": "renamed", "port": 443}]}
    assert reads.digest({"self": changed}) == reads.digest({"self": VALUE})
    assert reads.digest({"self": {**VALUE, "size": 4}}) != reads.digest({"self": VALUE})
    assert reads.digest({"self": {**VALUE, "size": True}}) != reads.digest({"self": {**VALUE, "size": 1}})


def test_of_parts_that_are_only_compared_a_digest_has_no_more_than_that_they_are_the_same() -> None:
    reads = ENVIRONMENT.compile("self.ports == old.ports || self.size == 1").reads
    moved = {**VALUE, "ports": [{"port": 1}]}
    assert reads.digest({"self": VALUE, "old": VALUE}) == reads.digest({"self": moved, "old": moved})
    assert reads.digest({"self": VALUE, "old": moved}) != reads.digest({"self": moved, "old": moved})
    assert reads.digest({"self": VALUE, "old": moved}) != reads.digest({"self": moved, "old": VALUE})
    without = {"name": "a", "size": 3}
    assert reads.digest({"self": without, "old": without}) != reads.digest({"self": VALUE, "old": VALUE})
    true, one = {"ports": True, "size": 3}, {"ports": 1, "size": 3}
    assert reads.digest({"self": true, "old": one}) != reads.digest({"self": one, "old": one})
    read_too = ENVIRONMENT.compile("self.ports == old.ports && self.ports.all(p, p.port > 1)").reads
    assert read_too.digest({"self": VALUE, "old": VALUE}) != read_too.digest({"self": moved, "old": moved})


SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "", "http"]) | st.floats(0, 1)
NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=12
)
EXPRESSIONS = [
    "has(self.a) && self.a.b == 1",
    "self.a.all(x, has(x.b) ? x.b > 0 : x.c == 'a')",
    "self.a.exists(x, x.b == self.b.a) || has(self.c)",
    "size(self.a) == 2 && self.a.exists_one(x, x.a == 1)",
    "self.a['b'] == old.a && self.a.b.c == 1",
    "cel.bind(x, self.a, x.b == 1 || size(x) == 0)",
    "self.a.map(x, x.b.c) == [1] || self.a.filter(x, has(x.c)) == []",
    "self.a.all(x, x.all(y, y.b != self.b))",
    "type(self.a) == map ? self.a.b == 'a' : self.a == 1",
    "self.?a.b.orValue(1) == 1 && self.b.c in self.c",
    "self.a > self.b.a && self.a.c == 0.5",
    "self.a == old.a && self.b != old.b",
    "self == old || self.a == self.b && has(self.c)",
]


@settings(max_examples=300, deadline=None)
@given(VALUES, VALUES, st.sampled_from(EXPRESSIONS))
def test_with_what_is_read_alone_the_result_is_the_same(value: Any, old: Any, expression: str) -> None:
    program = ENVIRONMENT.compile(expression)

    def outcome(variables: dict[str, Any]) -> Any:
        try:
            return program.evaluate(ENVIRONMENT.bind(variables))
        except CelError as error:
            return str(error)

    variables = {"self": value, "old": old}
    assert outcome(program.reads.cut(variables)) == outcome(variables)


@settings(max_examples=300, deadline=None)
@given(st.lists(VALUES, min_size=2, max_size=3), st.sampled_from(EXPRESSIONS))
def test_values_with_the_same_digest_have_the_same_result(values: list[Any], expression: str) -> None:
    program = ENVIRONMENT.compile(expression)
    results: dict[bytes, Any] = {}
    for value, old in product(values, repeat=2):
        variables = {"self": value, "old": old}
        try:
            result = program.evaluate(ENVIRONMENT.bind(variables))
        except CelError as error:
            result = str(error)
        assert results.setdefault(program.reads.digest(variables), result) == result
