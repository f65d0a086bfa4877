"""The index of slices: what a change of a slice or of a taint rule concerns, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.plugins.dynamic_resources import slices as slices_module
from pilotage.plugins.dynamic_resources.devices import PoolID
from pilotage.plugins.dynamic_resources.slices import SliceIndex
from tests.plugins.dynamic_resources.objects import DRIVER, device, device_slice, taint_rule


def index_of(*published: Any) -> SliceIndex:
    index = SliceIndex()
    for obj in published:
        index.object_put("ResourceSlice", None, obj)
    return index


def taints(index: SliceIndex, pool: str) -> list[int]:
    """How many taints the devices of a pool have."""
    slices = index.of_pool(PoolID(DRIVER, pool)).values()
    return [len(found.taints) for published in slices for found in published.devices]


def test_a_taint_rule_is_put_on_the_devices_that_it_selects_and_taken_away_again() -> None:
    index = index_of(device_slice("n", device("a"), device("b")), device_slice("m", device("a")))
    rule = taint_rule("r", pool="n", device="a")
    index.object_put("DeviceTaintRule", None, rule)
    assert (taints(index, "n"), taints(index, "m")) == ([1, 0], [0])
    moved = taint_rule("r", pool="m")
    index.object_put("DeviceTaintRule", rule, moved)
    assert (taints(index, "n"), taints(index, "m")) == ([0, 0], [1])
    index.object_removed("DeviceTaintRule", moved)
    assert (taints(index, "n"), taints(index, "m")) == ([0, 0], [0])


def test_a_taint_rule_leaves_the_slices_of_other_pools_and_drivers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    index = index_of(*(device_slice(f"n{number}", device("a")) for number in range(200)))
    prepared: list[str] = []
    original = slices_module.PublishedSlice
    monkeypatch.setattr(
        slices_module, "PublishedSlice", lambda obj, rules: (prepared.append(obj.name), original(obj, rules))[1]
    )
    index.object_put("DeviceTaintRule", None, taint_rule("one", pool="n7"))
    index.object_put("DeviceTaintRule", None, taint_rule("none", driver="other.example.com"))
    assert prepared == ["n7-slice"]
    assert taints(index, "n7") == [1]


def test_a_pool_of_many_slices_does_not_say_of_each_node_by_name_that_it_changed() -> None:
    def changes(count: int) -> int:
        index = index_of(
            *(
                device_slice(f"n{number}", device(f"d{number}"), pool={"name": "p", "resourceSliceCount": count})
                for number in range(count)
            )
        )
        return index.log.mark

    assert changes(400) < 6 * changes(100)


def test_a_change_of_a_pool_concerns_each_of_its_nodes_once() -> None:
    two = {"name": "p", "resourceSliceCount": 2}
    index = index_of(device_slice("n", device("a"), pool=two), device_slice("m", device("b"), pool=two))
    before, versions = index.log.mark, (index.version("n"), index.version("m"))
    index.object_put("ResourceSlice", None, device_slice("m", device("c"), pool=two))
    assert set(index.log.changed_since(before) or ()) == {"n", "m"}
    assert index.version("n") != versions[0]
    assert index.version("m") != versions[1]
