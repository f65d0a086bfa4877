"""Objects that expressions build become maps before they are compiled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.cel.structs import structs_as_maps

ROOTS = {"JSONPatch", "Object"}


@pytest.mark.parametrize(
    ("written", "compiled"),
    [
        ("Object{spec: Object.spec{replicas: 3}}", '{"spec": {"replicas": 3}}'),
        ("Object{}", "{}"),
        ('JSONPatch{op: "add", path: "/a", value: {"x": 1}}', '{"op": "add", "path": "/a", "value": {"x": 1}}'),
        ("Object{a: f(b, c), d: [e, g]}", '{"a": f(b, c), "d": [e, g]}'),
        ("Object{a: {b: c, d: e}, f: g}", '{"a": {b: c, d: e}, "f": g}'),
        ("Object{?a: b[?c]}", '{?"a": b[?c]}'),
        ("Object{`a-b`: x ? y : z}", '{"a-b": x ? y : z}'),
        ("Object . spec {a: 1}", ' {"a": 1}'),
        ("list.map(i, Object.list{name: i})", 'list.map(i, {"name": i})'),
    ],
)
def test_a_struct_is_a_map_with_its_fields_as_keys(written: str, compiled: str) -> None:
    assert structs_as_maps(written, ROOTS) == compiled


@pytest.mark.parametrize(
    "written",
    [
        '"Object{a: 1}"',
        "r'Object{a: 1}'",
        '"""Object{a: "b"}"""',
        "// Object{a: 1}\n2",
        "Objects{a: 1}",
        "{Object: 1}",
        "object.spec",
        "{a: b}",
    ],
)
def test_everything_else_stays_as_it_is(written: str) -> None:
    assert structs_as_maps(written, ROOTS) == written


@given(st.text(alphabet="Object{}[]().,:?\"'`\\/ \nab", max_size=60))
def test_any_text_is_rewritten_without_failing(written: str) -> None:
    assert len(structs_as_maps(written, ROOTS)) <= 3 * len(written)
