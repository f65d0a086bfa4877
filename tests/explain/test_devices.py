"""What `explain` says about pods with claims: which device of the nearest nodes is rejected by which rule."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.assembly import SchedulerOptions
from pilotage.clock import SystemClock
from pilotage.cluster.state import Cluster
from pilotage.explain.engine import put, thinking_engines
from pilotage.explain.explainer import explain
from pilotage.explain.render import render
from pilotage.explain.report import LackDetail, Report
from pilotage.testing import node, pod
from tests.plugins.dynamic_resources.objects import (
    DRIVER,
    allocated,
    claim,
    device,
    device_class,
    device_slice,
    exactly,
    first_of,
    taint_rule,
)

Json = dict[str, Any]
SLOW = {"model": "slow"}


def _report(*objects: Any, node_names: str = "n") -> Report:
    """The report of a pod that uses claim c."""
    cluster = Cluster()
    for name in node_names:
        put(cluster, "Node", node(name).build())
    for obj in objects:
        put(cluster, type(obj).__name__, obj)
    engine = thinking_engines(cluster, SystemClock(), SchedulerOptions())["default-scheduler"]
    return explain(engine, pod("p").spec(resourceClaims=[{"name": "x", "resourceClaimName": "c"}]).build())


def _behind(report: Report) -> list[LackDetail]:
    return [detail for lack in report.nearest[0].lacks for detail in lack.behind]


COUNTERS = [{"name": "chip", "counters": {"parts": {"value": "1"}}}]
PART = [{"counterSet": "chip", "counters": {"parts": {"value": "2"}}}]
ABOUT = "claim default/c, request r0: "
CASES: dict[str, tuple[list[Any], tuple[str, str, tuple[str, ...]]]] = {
    "selector of the class": (
        [device_slice("n", device("a", attributes=SLOW)), device_class("gpu", 'device.driver == "other"')],
        ("SelectorFalse", 'selector #0 of class gpu does not hold: device.driver == "other"', ("a",)),
    ),
    "selector of the request": (
        [
            claim("c", exactly("r0", f'device.attributes["{DRIVER}"].model == "fast"')),
            device_slice("n", device("a", attributes=SLOW)),
        ],
        (
            "SelectorFalse",
            f'selector #0 of the request does not hold: device.attributes["{DRIVER}"].model == "fast"',
            ("a",),
        ),
    ),
    "in use": (
        [device_slice("n", device("a"), device("b")), allocated("other", "a", "b")],
        ("DeviceInUse", "allocated to claim default/other", ("a", "b")),
    ),
    "taint": (
        [device_slice("n", device("a")), taint_rule("r", driver=DRIVER)],
        ("TaintNotTolerated", "taint broken:NoSchedule not tolerated", ("a",)),
    ),
    "capacity": (
        [
            claim("c", exactly("r0", capacity={"requests": {"memory": "2Gi"}})),
            device_slice("n", device("a", capacity={"memory": "1Gi"})),
        ],
        ("NotEnoughCapacity", "not enough capacity left, or not in such amounts", ("a",)),
    ),
    "counters": (
        [
            device_slice("n", name="counters", pool={"resourceSliceCount": 2}, sharedCounters=COUNTERS),
            device_slice("n", device("a", consumesCounters=PART), pool={"resourceSliceCount": 2}),
        ],
        ("CountersExhausted", "more of the shared counters needed than is left", ("a",)),
    ),
    "attribute of a constraint": (
        [
            claim("c", exactly(), constraints=[{"matchAttribute": f"{DRIVER}/numa"}]),
            device_slice("n", device("a")),
        ],
        ("AttributeMissing", f"no attribute {DRIVER}/numa, which constraint #0 is about", ("a",)),
    ),
}


@pytest.mark.parametrize(("objects", "expected"), CASES.values(), ids=CASES.keys())
def test_the_rule_that_rejects_a_device_is_named(
    objects: list[Any], expected: tuple[str, str, tuple[str, ...]]
) -> None:
    code, message, devices = expected
    first = _behind(_report(device_class("gpu"), claim("c", exactly()), *objects))[0]
    assert (first.code, first.message, first.objects) == (code, ABOUT + message, devices)
    assert first.count == len(devices)


def test_too_few_devices_are_counted_and_only_a_few_are_named() -> None:
    names = [f"d{number}" for number in range(9)]
    objects = [
        device_slice("n", *(device(name) for name in names), device("free")),
        allocated("other", *names),
        claim("c", exactly(count=2)),
    ]
    report = _report(device_class("gpu"), *objects)
    in_use, too_few = _behind(report)
    assert (in_use.objects, in_use.count) == (("d0", "d1", "d2"), 9)
    assert (too_few.code, too_few.message) == ("TooFewDevices", ABOUT + "2 devices are asked for, 1 would do")
    text = render(report)
    assert "n: cannot allocate all claims" in text
    assert "  - claim default/c, request r0: allocated to claim default/other  [d0, d1, d2, ... 9 in all]" in text


def test_devices_that_do_not_go_together_are_reported_with_the_constraint() -> None:
    devices = [device(str(number), attributes={"numa": number}) for number in range(2)]
    wanted = claim("c", exactly(count=2), constraints=[{"matchAttribute": f"{DRIVER}/numa"}])
    (detail,) = _behind(_report(device_class("gpu"), wanted, device_slice("n", *devices)))
    assert detail.code == "NoCombination"
    assert f"matchAttribute {DRIVER}/numa" in detail.message


def test_every_alternative_is_reported() -> None:
    wanted = claim("c", first_of("r0", exactly("big", "false"), exactly("small", count=3)))
    details = _behind(_report(device_class("gpu"), wanted, device_slice("n", device("a"))))
    assert [detail.message.partition(": ")[0] for detail in details] == [
        "claim default/c, request r0/big",
        "claim default/c, request r0/big",
        "claim default/c, request r0/small",
    ]


def test_a_node_without_devices_and_an_unfinished_pool_are_reported() -> None:
    (nothing, *_) = _behind(_report(device_class("gpu"), claim("c", exactly())))
    assert nothing.code == "NoPools"
    unfinished = device_slice("n", device("a"), pool={"resourceSliceCount": 2})
    (pool, *_) = _behind(_report(device_class("gpu"), claim("c", exactly()), unfinished))
    assert (pool.code, pool.objects) == ("PoolIncomplete", (f"{DRIVER}/n",))


def test_a_claim_that_is_allocated_elsewhere_is_named() -> None:
    there = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["m"]}]}]}
    result = {"request": "r0", "driver": DRIVER, "pool": "m", "device": "a"}
    used = claim("c", exactly(), status={"allocation": {"devices": {"results": [result]}, "nodeSelector": there}})
    (detail,) = _behind(_report(device_class("gpu"), used))
    assert detail.message == "claim default/c has its devices already on node m, reserved for 0 pods"


def test_the_amount_of_text_is_bounded() -> None:
    requests = [exactly(f"r{number}", f'device.driver == "{number}"') for number in range(30)]
    report = _report(device_class("gpu"), claim("c", *requests), device_slice("n", device("a")))
    details = _behind(report)
    assert len(details) == 13
    assert details[-1].message == "and 48 more such reasons"
