"""JSON patch: every operation, and a clear rejection for what does not fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.rules.patch import JSON_PATCH, apply_patch


def patched(current: dict[str, Any], *operations: Any) -> Any:
    return apply_patch(JSON_PATCH, "ConfigMap", current, json.dumps(operations).encode())


def op(name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **more}


@pytest.mark.parametrize(
    ("current", "operation", "expected"),
    [
        ({}, op("add", "/a", value=1), {"a": 1}),
        ({"a": 1}, op("add", "/a", value=2), {"a": 2}),
        ({"a": [1, 3]}, op("add", "/a/1", value=2), {"a": [1, 2, 3]}),
        ({"a": [1]}, op("add", "/a/-", value=2), {"a": [1, 2]}),
        ({"a": [1]}, op("add", "/a/1", value=2), {"a": [1, 2]}),
        ({"a": 1}, op("add", "", value={"b": 1}), {"b": 1}),
        ({"a": 1, "b": 2}, op("remove", "/a"), {"b": 2}),
        ({"a": [1, 2]}, op("remove", "/a/0"), {"a": [2]}),
        ({"a": 1}, op("replace", "/a", value=None), {"a": None}),
        ({"a": [1, 2]}, op("replace", "/a/1", value=3), {"a": [1, 3]}),
        ({"a": {"b": 1}, "c": {}}, op("move", "/c/b", **{"from": "/a/b"}), {"a": {}, "c": {"b": 1}}),
        ({"a": [1, 2, 3]}, op("move", "/a/0", **{"from": "/a/2"}), {"a": [3, 1, 2]}),
        ({"a": {"b": [1]}}, op("copy", "/c", **{"from": "/a"}), {"a": {"b": [1]}, "c": {"b": [1]}}),
        ({"a/b": 1, "m~n": 2, "~1": 3}, op("remove", "/a~1b"), {"m~n": 2, "~1": 3}),
        ({"a/b": 1, "m~n": 2, "~1": 3}, op("remove", "/m~0n"), {"a/b": 1, "~1": 3}),
        ({"a/b": 1, "m~n": 2, "~1": 3}, op("remove", "/~01"), {"a/b": 1, "m~n": 2}),
        ({"": 1}, op("replace", "/", value=2), {"": 2}),
        ({"a": {"x": 1, "y": [1]}}, op("test", "/a", value={"y": [1.0], "x": 1}), {"a": {"x": 1, "y": [1]}}),
    ],
)
def test_operation(current: dict[str, Any], operation: Any, expected: dict[str, Any]) -> None:
    assert patched(current, operation) == expected


def test_copy_is_independent_of_its_source() -> None:
    result = patched({"a": {}}, op("copy", "/b", **{"from": "/a"}), op("add", "/b/x", value=1))
    assert result == {"a": {}, "b": {"x": 1}}


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        (op("test", "/a", value=2), "testing value /a failed"),
        (op("test", "/flag", value=1), "testing value /flag failed"),
        (op("test", "/zz", value=None), "missing key 'zz'"),
        (op("remove", "/zz"), "missing key 'zz'"),
        (op("replace", "/zz", value=1), "missing key 'zz'"),
        (op("add", "/zz/b", value=1), "missing key 'zz'"),
        (op("add", "/list/3", value=1), "index 3 is out of range"),
        (op("replace", "/list/-", value=1), "'-' is not a list index"),
        (op("remove", "/list/-1"), "'-1' is not a list index"),
        (op("remove", "/list/01"), "'01' is not a list index"),
        (op("remove", "/list/" + "9" * 5000), "is out of range"),
        (op("add", "/a/b", value=1), "neither object nor list"),
        (op("add", "a", value=1), "does not start with a slash"),
        (op("move", "/list/0/x", **{"from": "/list"}), "into its own child"),
        (op("remove", ""), "cannot be removed"),
    ],
)
def test_operation_that_does_not_fit_is_unprocessable(operation: Any, told: str) -> None:
    with pytest.raises(ApiError) as caught:
        patched({"a": 1, "flag": True, "list": [1, 2]}, operation)
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert told in caught.value.message


@pytest.mark.parametrize(
    "operation",
    [
        7,
        {},
        {"op": "zap", "path": "/a"},
        {"op": ["add"], "path": "/a"},
        {"op": "add", "value": 1},
        op("add", "/a"),
        op("move", "/a"),
        {"op": "remove", "path": 3},
    ],
)
def test_malformed_operation_is_a_bad_request(operation: Any) -> None:
    with pytest.raises(ApiError) as caught:
        patched({"a": 1}, operation)
    assert caught.value.code == 400


def test_patch_that_is_no_list_is_a_bad_request() -> None:
    with pytest.raises(ApiError) as caught:
        apply_patch(JSON_PATCH, "ConfigMap", {}, b"{}")
    assert caught.value.code == 400


def test_failed_operation_leaves_the_original_alone() -> None:
    current = {"a": 1}
    with pytest.raises(ApiError):
        patched(current, op("add", "/a", value=2), op("test", "/a", value=3))
    assert current == {"a": 1}


def test_copies_that_double_each_time_are_cut_off() -> None:
    doubling = [op("copy", f"/a/{n}", **{"from": "/a"}) for n in range(60)]
    with pytest.raises(ApiError) as caught:
        patched({"a": {"text": "x" * 100}}, *doubling)
    assert (caught.value.code, caught.value.reason) == (413, "RequestEntityTooLarge")


def test_too_many_operations_are_rejected() -> None:
    with pytest.raises(ApiError) as caught:
        patched({"a": 1}, *[op("test", "/a", value=1)] * 10_001)
    assert caught.value.code == 413
