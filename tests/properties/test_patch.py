"""Patches on random JSON: they never change their input, never crash, and obey the laws of their formats."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.rules.patch import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, apply_patch

KEYS = st.sampled_from(
    [
        "metadata",
        "spec",
        "status",
        "containers",
        "finalizers",
        "conditions",
        "name",
        "type",
        "env",
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/finalizers",
        "a",
        "b/c",
        "d~e",
        "",
    ]
)
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "b", "delete", "replace", "merge"])
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=25
)
OBJECTS = st.dictionaries(KEYS, JSON_VALUES, max_size=5)
NAMED = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abcde")}, optional={"image": st.sampled_from("xy")}),
    max_size=5,
    unique_by=lambda item: item["name"],
)


def attempt(content_type: str, current: dict[str, Any], patch: Any) -> dict[str, Any] | None:
    try:
        return apply_patch(content_type, "Pod", current, json.dumps(patch).encode())
    except ApiError as error:
        assert 400 <= error.code < 500
        return None


@given(st.sampled_from([STRATEGIC_MERGE_PATCH, MERGE_PATCH, JSON_PATCH]), OBJECTS, JSON_VALUES)
def test_any_patch_of_any_object_is_applied_or_rejected_and_leaves_its_input(
    content_type: str, current: dict[str, Any], patch: Any
) -> None:
    before = copy.deepcopy(current)
    attempt(content_type, current, patch)
    assert current == before


@given(OBJECTS, OBJECTS)
def test_merge_patch_is_idempotent(current: dict[str, Any], patch: dict[str, Any]) -> None:
    once = apply_patch(MERGE_PATCH, "Pod", current, json.dumps(patch).encode())
    assert apply_patch(MERGE_PATCH, "Pod", once, json.dumps(patch).encode()) == once


def paths(value: Any, prefix: str = "") -> list[str]:
    found = [prefix]
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        found += paths(child, f"{prefix}/{str(key).replace('~', '~0').replace('/', '~1')}")
    return found


@given(OBJECTS, st.data())
def test_json_patch_test_copy_and_remove_agree_about_a_path(current: dict[str, Any], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(paths(current)))
    copied = attempt(JSON_PATCH, current, [{"op": "copy", "from": path, "path": "/new"}])
    assert copied is not None
    steps = [{"op": "test", "path": path, "value": copied["new"]}]
    if path:
        steps.append({"op": "remove", "path": path})
        steps.append({"op": "add", "path": path, "value": copied["new"]})
    assert attempt(JSON_PATCH, current, steps) == current


@given(NAMED, NAMED)
def test_keyed_list_ends_with_every_patched_element_and_every_other_untouched(
    stored: list[dict[str, Any]], patch: list[dict[str, Any]]
) -> None:
    patched = attempt(STRATEGIC_MERGE_PATCH, {"spec": {"containers": stored}}, {"spec": {"containers": patch}})
    assert patched is not None
    expected = {item["name"]: item for item in stored}
    for item in patch:
        expected[item["name"]] = expected.get(item["name"], {}) | item
    containers = patched["spec"]["containers"]
    assert {item["name"]: item for item in containers} == expected and len(containers) == len(expected)
    # Those of the patch come in its order, the others in theirs.
    mentioned = list(dict.fromkeys(item["name"] for item in patch))
    names = [item["name"] for item in containers]
    assert [name for name in names if name in mentioned] == mentioned
    others = [item["name"] for item in stored if item["name"] not in mentioned]
    assert [name for name in names if name not in mentioned] == others


@given(NAMED, st.permutations("abcde"))
def test_element_order_is_followed_and_nothing_gets_lost(stored: list[dict[str, Any]], order: list[str]) -> None:
    patch = {"spec": {"$setElementOrder/containers": [{"name": name} for name in order]}}
    patched = attempt(STRATEGIC_MERGE_PATCH, {"spec": {"containers": stored}}, patch)
    assert patched is not None
    names = {item["name"] for item in stored}
    assert [item["name"] for item in patched["spec"]["containers"]] == [name for name in order if name in names]
