"""Choice of the patch type, JSON merge patch, and independence of the result."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.rules.patch import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, apply_patch, merge_patch

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a": "1"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


# The examples of RFC 7386, appendix A.
@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_follows_the_rfc(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


def test_merge_patch_works_on_custom_resources_and_with_parameters_in_the_content_type() -> None:
    current = {"apiVersion": "example.com/v1", "kind": "Thing", "spec": {"list": [1, 2]}}
    patched = apply_patch("application/merge-patch+json; charset=utf-8", "Thing", current, b'{"spec":{"list":[3]}}')
    assert patched["spec"] == {"list": [3]}


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        (
            STRATEGIC_MERGE_PATCH,
            {"metadata": {"labels": {"b": "2"}}, "spec": {"containers": [{"name": "c", "tty": True}]}},
        ),
        (MERGE_PATCH, {"metadata": {"labels": {"b": "2"}}}),
        (JSON_PATCH, [{"op": "add", "path": "/metadata/labels/b", "value": "2"}]),
    ],
)
def test_result_shares_nothing_with_the_original(content_type: str, patch: Any) -> None:
    before = copy.deepcopy(POD)
    patched = apply_patch(content_type, "Pod", POD, json.dumps(patch).encode())
    assert patched["metadata"]["labels"] == {"a": "1", "b": "2"}
    patched["spec"]["containers"][0]["image"] = "changed"
    patched["metadata"]["labels"].clear()
    assert before == POD


@pytest.mark.parametrize("content_type", [STRATEGIC_MERGE_PATCH, MERGE_PATCH, JSON_PATCH])
@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000])
def test_unreadable_body_is_a_bad_request(content_type: str, body: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        apply_patch(content_type, "Pod", POD, body)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")


@pytest.mark.parametrize("body", [b"null", b"[]", b'"x"', b"1"])
def test_merge_patch_that_leaves_no_object_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        apply_patch(MERGE_PATCH, "Pod", POD, body)
    assert caught.value.code == 400


def test_unknown_content_type_names_the_accepted_ones() -> None:
    with pytest.raises(ApiError) as caught:
        apply_patch("application/apply-patch+yaml", "Pod", POD, b"{}")
    assert caught.value.code == 415
    assert STRATEGIC_MERGE_PATCH in caught.value.message
