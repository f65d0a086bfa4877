"""Sets of fields obey the laws of sets, whatever is in them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.sandbox.kinds.builtin_kinds import builtin_registry
from pilotage.sandbox.kinds.merge_types import merge_type
from pilotage.sandbox.rules.managed_fields.comparison import compare
from pilotage.sandbox.rules.managed_fields.field_sets import (
    KeyMissing,
    Path,
    difference,
    fields_of,
    from_fields_v1,
    intersection,
    path_text,
    paths_in,
    to_fields_v1,
    union,
    without,
)
from pilotage.sandbox.rules.managed_fields.merging import merged, removed

STEPS = st.sampled_from(["f:a", "f:b", "f:c", 'k:{"name":"x"}', 'v:"y"'])
PATHS = st.sets(st.lists(STEPS, min_size=1, max_size=3).map(tuple), max_size=6)
NAMES = st.sampled_from("abc")
SCALARS = st.sampled_from(["1", "2"])
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES},
        optional={
            "image": SCALARS,
            "args": st.lists(SCALARS, max_size=2),
            "env": st.lists(
                st.fixed_dictionaries({"name": NAMES, "value": SCALARS}), max_size=2, unique_by=lambda one: one["name"]
            ),
        },
    ),
    max_size=3,
    unique_by=lambda one: one["name"],
)
PODS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries({}, optional={"labels": st.dictionaries(NAMES, SCALARS, max_size=2)}),
        "spec": st.fixed_dictionaries({}, optional={"containers": CONTAINERS, "nodeName": SCALARS}),
    },
)
POD = merge_type(builtin_registry().of("pods"))


def tree(paths: set[Path]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for path in paths:
        node = made
        for step in path:
            node = node.setdefault(step, {})
        node["."] = {}
    return made


def content(fields: dict[str, Any]) -> set[Path]:
    return set(paths_in(fields))


@given(PATHS, PATHS)
def test_they_are_sets(one: set[Path], other: set[Path]) -> None:
    left, right = tree(one), tree(other)
    assert content(union(left, right)) == one | other
    assert content(difference(left, right)) == one - other
    assert content(intersection(left, right)) == one & other
    assert difference(left, left) == {} == intersection(left, {})
    assert from_fields_v1(to_fields_v1(left)) == left


@given(PATHS)
def test_a_path_goes_with_all_below_it(paths: set[Path]) -> None:
    left = content(without(tree(paths), (("f:a", "f:b"),)))
    assert left == {path for path in paths if path[:2] != ("f:a", "f:b")}


@pytest.mark.parametrize("broken", [[], {"x:a": {}}, {"f:a": {"b": {}}}, {"f:a": 1}])
def test_what_is_no_set_is_rejected(broken: Any) -> None:
    with pytest.raises(ValueError):
        from_fields_v1(broken)


def test_paths_are_written_as_in_messages() -> None:
    path = ("f:spec", "f:ports", 'k:{"containerPort":80,"protocol":"TCP"}', "f:name")
    assert path_text(path) == '.spec.ports[containerPort=80,protocol="TCP"].name'
    assert path_text(("f:metadata", "f:finalizers", 'v:"a/b"')) == '.metadata.finalizers[="a/b"]'


@given(PODS, PODS)
def test_what_is_applied_is_there_and_nothing_else_changes(live: dict[str, Any], config: dict[str, Any]) -> None:
    after = merged(POD, live, config)
    assert merged(POD, after, config) == after
    mine = fields_of(POD, config)
    change = compare(POD, live, after)
    assert not content(change.removed) - content(fields_of(POD, live)) and not content(change.modified) - content(mine)
    assert compare(POD, config, after).removed == {} == compare(POD, config, after).modified


@given(PODS, PODS)
def test_a_change_is_told_both_ways(old: dict[str, Any], new: dict[str, Any]) -> None:
    there, back = compare(POD, old, new), compare(POD, new, old)
    assert there.added == back.removed and there.removed == back.added and there.modified == back.modified
    assert (there == ({}, {}, {})) == (compare(POD, new, old) == ({}, {}, {}))


@given(PODS)
def test_what_is_taken_out_is_gone(pod: dict[str, Any]) -> None:
    assert removed(POD, pod, {}) == (pod or None)
    assert removed(POD, pod, {step: {".": {}} for step in ("f:metadata", "f:spec")}) is None


def test_elements_without_their_key_cannot_be_compared() -> None:
    """A name that is left out is empty; the uid of an owner must be there."""
    nameless = {"spec": {"containers": [{"image": "1"}]}}
    assert 'k:{"name":""}' in fields_of(POD, nameless)["f:spec"]["f:containers"]
    with pytest.raises(KeyMissing):
        fields_of(POD, {"spec": {"containers": ["c"]}})
