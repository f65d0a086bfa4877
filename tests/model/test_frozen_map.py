"""Shared labels behave like a dict that can not be written."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import msgspec
import pytest

from pilotage.model.frozen_map import FrozenMap


def test_frozen_map_is_a_key_equal_by_content() -> None:
    one, other = FrozenMap({"a": "1", "b": "2"}), FrozenMap({"b": "2", "a": "1"})
    assert {one: "found"}[other] == "found"
    assert one == {"a": "1", "b": "2"}
    assert hash(one) != hash(FrozenMap({"a": "1"}))


@pytest.mark.parametrize(
    "change",
    [
        lambda labels: labels.update(a="2"),
        lambda labels: labels.pop("a"),
        lambda labels: labels.popitem(),
        lambda labels: labels.clear(),
        lambda labels: labels.setdefault("b", "1"),
        lambda labels: labels.__setitem__("a", "2"),
        lambda labels: labels.__delitem__("a"),
        lambda labels: labels.__ior__({"b": "1"}),
    ],
)
def test_frozen_map_rejects_every_change(change: Callable[[FrozenMap], object]) -> None:
    labels = FrozenMap({"a": "1"})
    with pytest.raises(TypeError):
        change(labels)
    assert labels == {"a": "1"}


def test_frozen_map_copies_and_encodes() -> None:
    labels = FrozenMap({"a": "1"})
    assert copy.deepcopy(labels) is labels
    assert pickle.loads(pickle.dumps(labels)) == labels
    assert msgspec.json.encode(labels) == b'{"a":"1"}'
    assert dict(labels) | {"b": "2"} == {"a": "1", "b": "2"}
