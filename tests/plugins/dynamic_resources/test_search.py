"""The allocator: which devices claims get on a node, and when they get none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pilotage.model.resource import DeviceClass, ResourceClaim
from pilotage.plugins.dynamic_resources.claim_book import ClaimBook
from pilotage.plugins.dynamic_resources.requests import AllocationError, ClaimRequestsCache, NodeAllocationError
from pilotage.plugins.dynamic_resources.search import Search
from pilotage.plugins.dynamic_resources.slices import SliceIndex, pools_for
from pilotage.testing import node
from tests.plugins.dynamic_resources.objects import (
    allocated,
    claim,
    device,
    device_class,
    device_slice,
    everything,
    exactly,
    first_of,
    taint_rule,
)

SHARED = {"allowMultipleAllocations": True}


def given(
    claims: Sequence[ResourceClaim],
    *published: Any,
    taken: Sequence[ResourceClaim] = (),
    classes: Sequence[DeviceClass] = (device_class(),),
    on: Any = None,
) -> list[list[str]] | None:
    """For each claim the devices that it gets on node n; None if there is no solution."""
    slices, book = SliceIndex(), ClaimBook()
    for obj in published:
        slices.object_put(type(obj).__name__, None, obj)
    for known in taken:
        book.object_put("ResourceClaim", None, known)
    by_name = {cls.name: cls for cls in classes}
    prepared = [ClaimRequestsCache().prepare(wanted, by_name.get) for wanted in claims]
    target = (on or node("n")).build()
    picks = Search(target, pools_for(slices, target), book.ledger, prepared).run()
    return None if picks is None else [[pick.device.id.device for pick in of_claim] for of_claim in picks]


def plain(*names: str, **fields: Any) -> Any:
    return device_slice("n", *(device(name, **fields) for name in names))


# --- counting ---------------------------------------------------------------------------------------------------------


def test_the_first_free_devices_are_taken_in_their_order() -> None:
    assert given([claim("c", exactly(count=2))], plain("b", "a", "c"), taken=[allocated("x", "b")]) == [["a", "c"]]


def test_no_device_goes_to_two_claims_or_requests() -> None:
    assert given([claim("c", exactly(), exactly("r1")), claim("d", exactly())], plain("a", "b", "c")) == [
        ["a", "b"],
        ["c"],
    ]
    assert given([claim("c", exactly(), exactly("r1")), claim("d", exactly())], plain("a", "b")) is None


def test_the_search_goes_back_when_a_later_request_needs_the_device() -> None:
    small, large = device("small", attributes={"gb": 1}), device("large", attributes={"gb": 9})
    needs_large = exactly("r1", 'device.attributes["gpu.example.com"].gb > 5')
    assert given([claim("c", exactly(), needs_large)], device_slice("n", large, small)) == [["small", "large"]]


def test_all_devices_means_every_one_and_at_least_one() -> None:
    assert given([claim("c", everything())], plain("a", "b")) == [["a", "b"]]
    assert given([claim("c", everything())], plain("a", "b"), taken=[allocated("x", "b")]) is None
    assert given([claim("c", everything())]) is None


def test_admin_access_ignores_who_has_the_device_and_takes_nothing_away() -> None:
    admin = claim("c", exactly(adminAccess=True))
    assert given([admin], plain("a"), taken=[allocated("x", "a")]) == [["a"]]
    assert given([claim("c", exactly())], plain("a"), taken=[allocated("x", "a", adminAccess=True)]) == [["a"]]


def test_more_devices_than_a_claim_may_have_are_rejected_at_once() -> None:
    names = [f"d{number}" for number in range(40)]
    with pytest.raises(AllocationError, match="number of requested devices 33 exceeds the claim limit of 32"):
        given([claim("c", exactly(count=33))], plain(*names))
    assert given([claim("c", exactly(count=32))], plain(*names)) == [names[:32]]


def test_the_first_alternative_that_can_be_served_is_taken() -> None:
    wanted = claim("c", first_of("r", exactly("big", 'device.driver == "other"'), exactly("small")))
    assert given([wanted], plain("a")) == [["a"]]


def test_an_alternative_that_blocks_a_later_request_is_given_up() -> None:
    wanted = claim("c", first_of("r", exactly("two", count=2), exactly("one")), exactly("r1"))
    assert given([wanted], plain("a", "b")) == [["a", "b"]]
    assert given([wanted], plain("a", "b", "c")) == [["a", "b", "c"]]


# --- rules for a device -----------------------------------------------------------------------------------------------


def test_devices_that_must_agree_are_of_one_kind() -> None:
    published = device_slice(
        "n",
        device("a", attributes={"numa": 0}),
        device("none"),
        device("b", attributes={"numa": 1}),
        device("c", attributes={"numa": 1}),
    )
    match = [{"matchAttribute": "gpu.example.com/numa"}]
    assert given([claim("c", exactly(count=2), constraints=match)], published) == [["b", "c"]]
    assert given([claim("c", exactly(count=3), constraints=match)], published) is None


def test_devices_that_must_differ_do() -> None:
    published = device_slice(
        "n", *(device(f"{value}{n}", attributes={"numa": value}) for value in (0, 1) for n in "xy")
    )
    distinct = [{"distinctAttribute": "gpu.example.com/numa"}]
    assert given([claim("c", exactly(count=2), constraints=distinct)], published) == [["0x", "1x"]]
    assert given([claim("c", exactly(count=3), constraints=distinct)], published) is None


def test_a_constraint_concerns_only_the_requests_that_it_names() -> None:
    published = device_slice("n", device("a", attributes={"numa": 0}), device("b", attributes={"numa": 1}))
    match = [{"matchAttribute": "gpu.example.com/numa", "requests": ["r0"]}]
    assert given([claim("c", exactly(), exactly("r1"), constraints=match)], published) == [["a", "b"]]


def test_all_devices_that_break_a_constraint_are_an_error() -> None:
    published = device_slice("n", device("a", attributes={"numa": 0}), device("b", attributes={"numa": 1}))
    match = [{"matchAttribute": "gpu.example.com/numa"}]
    with pytest.raises(AllocationError, match=r"cannot add device gpu.example.com/n/b because a claim constraint"):
        given([claim("c", everything(), constraints=match)], published)


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], [["b"]]),
        ([{"operator": "Exists"}], [["a"]]),
        ([{"key": "k", "operator": "Equal", "value": "v"}], [["a"]]),
        ([{"key": "k", "operator": "Equal", "value": "other"}], [["b"]]),
        ([{"key": "k", "operator": "Exists", "effect": "NoExecute"}], [["b"]]),
    ],
)
def test_a_taint_keeps_requests_away_that_do_not_tolerate_it(tolerations: Any, expected: Any) -> None:
    taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    published = device_slice("n", device("a", taints=taints), device("b"))
    assert given([claim("c", exactly(tolerations=tolerations))], published) == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (taint_rule("all"), None),
        (taint_rule("one", device="a"), [["b"]]),
        (taint_rule("pool", pool="other"), [["a"]]),
        (taint_rule("info", effect="None"), [["a"]]),
    ],
)
def test_a_taint_rule_taints_the_devices_that_it_selects(rule: Any, expected: Any) -> None:
    assert given([claim("c", exactly())], plain("a", "b"), rule) == expected
    assert given([claim("c", exactly())], rule, plain("a", "b")) == expected, "in whatever order they come"


# --- partitions -------------------------------------------------------------------------------------------------------


def partitioned(*parts: tuple[str, str]) -> list[Any]:
    counters = [{"name": "card", "counters": {"gb": {"value": "80"}}}]
    two = {"resourceSliceCount": 2}
    devices = [
        device(name, consumesCounters=[{"counterSet": "card", "counters": {"gb": {"value": gb}}}]) for name, gb in parts
    ]
    return [
        device_slice("n", name="counters", sharedCounters=counters, pool=two),
        device_slice("n", *devices, name="devices", pool=two),
    ]


def test_partitions_together_never_exceed_the_card() -> None:
    card = partitioned(("full", "80"), ("half", "40"), ("third", "30"), ("other-half", "40"))
    assert given([claim("c", exactly(count=2))], *card) == [["half", "third"]]
    assert given([claim("c", exactly(count=2))], *card, taken=[allocated("x", "half")]) is None
    assert given([claim("c", exactly())], *card, taken=[allocated("x", "half")]) == [["third"]]
    assert given([claim("c", exactly())], *card, taken=[allocated("x", "full")]) is None


def test_a_counter_that_nobody_declared_makes_the_pool_invalid() -> None:
    published = device_slice("n", device("a", consumesCounters=[{"counterSet": "no", "counters": {}}]))
    with pytest.raises(NodeAllocationError, match="invalid resource pools were encountered"):
        given([claim("c", exactly())], published)
    with pytest.raises(
        AllocationError, match=r"asks for all devices, but resource pool gpu.example.com/n is currently"
    ):
        given([claim("c", everything())], published)


def test_what_an_incomplete_pool_lacks_does_not_make_it_invalid() -> None:
    _, devices = partitioned(("half", "40"))
    assert given([claim("c", exactly())], devices) is None
    with pytest.raises(AllocationError, match=r"gpu.example.com/n is currently being updated"):
        given([claim("c", everything())], devices)


def test_counters_of_any_node_stop_who_wants_all_until_their_pool_is_complete() -> None:
    """The API server cannot tell for whom counters are: every node sees them."""
    counters, devices = partitioned(("half", "40"))
    wanted, elsewhere = [claim("c", everything())], node("m")
    here = device_slice("m", device("own"), name="own")
    with pytest.raises(AllocationError, match=r"gpu.example.com/n is currently being updated"):
        given(wanted, counters, here, on=elsewhere)
    assert given([claim("c", exactly())], counters, here, on=elsewhere) == [["own"]]
    assert given(wanted, counters, devices, here, on=elsewhere) == [["own"]]
    assert given(wanted, devices, here, on=elsewhere) == [["own"]], "without counters nobody else sees the pool"


def test_devices_elsewhere_that_consume_what_nobody_declared_make_the_pool_invalid() -> None:
    counters, _ = partitioned()
    wrong = device("wrong", consumesCounters=[{"counterSet": "no", "counters": {}}])
    two = {"resourceSliceCount": 2}
    with pytest.raises(NodeAllocationError, match="invalid resource pools were encountered"):
        given([claim("c", exactly())], counters, device_slice("n", wrong, name="devices", pool=two), on=node("m"))


# --- capacity ---------------------------------------------------------------------------------------------------------


def test_a_device_that_is_shared_no_longer_is_not_given_away_while_somebody_has_a_share() -> None:
    share = allocated("x", "a", shareID="s", consumedCapacity={})
    assert given([claim("c", exactly())], plain("a", "b", **SHARED), taken=[share]) == [["a"]]
    assert given([claim("c", exactly())], plain("a", "b"), taken=[share]) == [["b"]]


def test_shares_of_a_device_fit_together() -> None:
    published = device_slice("n", device("a", capacity={"gb": "10"}, **SHARED))
    four = exactly(capacity={"requests": {"gb": "4"}})
    assert given([claim("c", four), claim("d", four)], published) == [["a"], ["a"]]
    assert given([claim("c", four), claim("d", four), claim("e", four)], published) is None
    taken = allocated("x", "a", shareID="s", consumedCapacity={"gb": "7"})
    assert given([claim("c", four)], published, taken=[taken]) is None
    assert given([claim("c", exactly(capacity={"requests": {"gb": "3"}}))], published, taken=[taken]) == [["a"]]


def test_a_device_that_is_not_shared_must_be_large_enough() -> None:
    published = device_slice("n", device("small", capacity={"gb": "3"}), device("large", capacity={"gb": "5"}))
    assert given([claim("c", exactly(capacity={"requests": {"gb": "4"}}))], published) == [["large"]]
    assert given([claim("c", exactly(capacity={"requests": {"tb": "1"}}))], published) is None


# --- pools ------------------------------------------------------------------------------------------------------------


def test_an_incomplete_pool_gives_nothing_and_stops_who_wants_all() -> None:
    half = device_slice("n", device("a"), pool={"resourceSliceCount": 2})
    assert given([claim("c", exactly())], half) is None
    with pytest.raises(AllocationError, match=r"gpu.example.com/n is currently being updated"):
        given([claim("c", everything())], half)


def test_only_the_newest_generation_counts() -> None:
    old = device_slice("n", device("old"), name="s1")
    new = device_slice("n", device("new"), name="s2", pool={"generation": 2})
    assert given([claim("c", exactly())], old, new) == [["new"]]


def test_devices_for_other_nodes_are_not_had() -> None:
    zone = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]}]}
    everywhere = device_slice("fabric", device("far"), allNodes=True)
    zonal = device_slice("zonal", device("near"), nodeSelector=zone)
    wanted = [claim("c", exactly(count=2))]
    assert given(wanted, everywhere, zonal, on=node("n").label("zone", "x")) == [["far", "near"]]
    assert given(wanted, everywhere, zonal, on=node("n").label("zone", "y")) is None
    assert given([claim("c", exactly())], device_slice("other", device("a"))) is None


# --- selectors --------------------------------------------------------------------------------------------------------


def test_a_selector_that_fails_on_a_device_ends_the_attempt_and_says_where() -> None:
    broken = 'device.attributes["gpu.example.com"].missing == 1'
    with pytest.raises(
        AllocationError, match=r"claim default/c: selector #0 on device gpu.example.com/n/a: CEL runtime"
    ):
        given([claim("c", exactly("r0", broken))], plain("a"))
    with pytest.raises(AllocationError, match=r"class gpu: selector #0: CEL compile error"):
        given([claim("c", exactly())], plain("a"), classes=[device_class("gpu", "device.")])


def test_a_device_in_use_is_not_asked() -> None:
    broken = 'device.attributes["gpu.example.com"].missing == 1'
    assert given([claim("c", exactly("r0", broken))], plain("a"), taken=[allocated("x", "a")]) is None
