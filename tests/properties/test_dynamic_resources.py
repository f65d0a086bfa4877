"""DynamicResources on random clusters: no device for two claims, no counter below zero, everything is given back."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.api import CycleState, Reject, Skip
from pilotage.assembly import FrameworkHandle
from pilotage.clock import SystemClock
from pilotage.cluster.node_view import RowView
from pilotage.cluster.state import Cluster
from pilotage.model.quantity import parse_quantity
from pilotage.plugins import DynamicResources
from pilotage.plugins.dynamic_resources.allocation import POD_CLAIMS
from pilotage.plugins.dynamic_resources.capacity import counters_left
from pilotage.plugins.dynamic_resources.claim_book import ClaimBook
from pilotage.plugins.dynamic_resources.objections import objection
from pilotage.plugins.dynamic_resources.requests import AllocationError, ClaimRequestsCache
from pilotage.plugins.dynamic_resources.search import Search
from pilotage.plugins.dynamic_resources.slices import SliceIndex, pools_for
from pilotage.rng import seeded
from pilotage.testing import node, pod
from tests.default_plugins import default
from tests.plugins.dynamic_resources.objects import (
    claim,
    device,
    device_class,
    device_slice,
    everything,
    exactly,
    first_of,
)

NODES = ("n0", "n1", "n2")
CARD = [{"name": "card", "counters": {"gb": {"value": "8"}}}]


@st.composite
def devices(draw: st.DrawFn, count: int, prefix: str) -> list[Any]:
    found = []
    for number in range(count):
        fields: dict[str, Any] = {"attributes": {"numa": draw(st.integers(0, 1))}, "capacity": {"gb": "4"}}
        if draw(st.booleans()):
            consumed = str(draw(st.sampled_from((2, 4, 8))))
            fields["consumesCounters"] = [{"counterSet": "card", "counters": {"gb": {"value": consumed}}}]
        if draw(st.integers(0, 3)) == 0:
            fields["allowMultipleAllocations"] = True
        if draw(st.integers(0, 4)) == 0:
            fields["taints"] = [{"key": "k", "effect": "NoSchedule"}]
        found.append(device(f"{prefix}{number}", **fields))
    return found


@st.composite
def slices(draw: st.DrawFn) -> list[Any]:
    two = {"resourceSliceCount": 2}
    found = []
    for name in NODES:
        found.append(device_slice(name, name=f"{name}-counters", sharedCounters=CARD, pool=two))
        parts = draw(devices(draw(st.integers(0, 4)), "d"))
        found.append(device_slice(name, *parts, name=f"{name}-devices", pool=two))
    shared = draw(st.integers(0, 2))
    if shared:
        found.append(device_slice("fabric", *(device(f"f{n}") for n in range(shared)), allNodes=True))
    return found


NUMA_0 = 'device.attributes["gpu.example.com"].?numa.orValue(0) == 0'
PLAIN = st.one_of(
    st.builds(lambda count: exactly("a", count=count), st.integers(1, 3)),
    st.just(exactly("a", NUMA_0)),
    st.just(exactly("a", capacity={"requests": {"gb": "3"}})),
    st.just(exactly("a", tolerations=[{"operator": "Exists"}])),
    st.just(everything("a", NUMA_0)),
)


@st.composite
def claims(draw: st.DrawFn) -> list[Any]:
    found = []
    for number in range(draw(st.integers(1, 6))):
        requests = [{**draw(PLAIN), "name": "r0"}]
        if draw(st.booleans()):
            requests.append(first_of("r1", {**draw(PLAIN), "name": "x"}, {**draw(PLAIN), "name": "y"}))
        kind = draw(st.sampled_from((None, "matchAttribute", "distinctAttribute")))
        constraints = [] if kind is None else [{kind: "gpu.example.com/numa", "requests": ["r1"]}]
        found.append(claim(f"c{number}", *requests, constraints=constraints))
    return found


class World:
    """A cluster with devices; pods with one claim each are placed on the first node that will do."""

    def __init__(self, published: list[Any], wanted: list[Any]) -> None:
        self.cluster = Cluster()
        for name in NODES:
            self.cluster.put_node(node(name).build())
        for obj in published:
            self.cluster.put_object("ResourceSlice", obj)
        self.cluster.put_object("DeviceClass", device_class())
        for obj in wanted:
            self.cluster.put_object("ResourceClaim", obj)
        handle = FrameworkHandle(self.cluster, SystemClock(), seeded(1))
        self.plugin = default(DynamicResources, handle)
        self.book = handle.index(ClaimBook)
        self.slices = handle.index(SliceIndex)

    def pod_with(self, name: str) -> Any:
        return pod(f"p-{name}").spec(resourceClaims=[{"name": "d", "resourceClaimName": name}]).build()

    def place(self, name: str) -> tuple[CycleState, Any, str] | None:
        """Reserve the claim for a pod on the first node; None if none will do. Both forms of the filter must agree."""
        state, waiting = CycleState(), self.pod_with(name)
        answer = self.plugin.pre_filter(state, waiting, self.cluster.nodes)
        if isinstance(answer, Reject | Skip):
            return None
        nodes = self.cluster.nodes
        by_column = {row: set() for row in range(len(nodes))}  # type: dict[int, set[str]]
        try:
            for mask, reason in self.plugin.filter_all(state, waiting, nodes):
                for row in mask.nonzero()[0].tolist():
                    by_column[row].add(reason.message)
        except Exception:
            return None
        for row in by_column:
            rejection = self.plugin.filter(state, waiting, RowView(nodes, row))
            assert by_column[row] == (set() if rejection is None else {rejection.reasons[0].message})
        free = [row for row, reasons in by_column.items() if not reasons]
        if not free:
            return None
        node_name = nodes.names[free[0]]
        assert self.plugin.reserve(state, waiting, node_name) is None
        return state, waiting, node_name

    def check(self) -> None:
        self.book.check()
        takers: Counter[Any] = Counter()
        consumed: Counter[Any] = Counter()
        for result in self.given():
            if result.share_id is None:
                takers[result.pool, result.device] += 1
            else:
                consumed[result.pool, result.device] += Fraction(parse_quantity(result.consumed_capacity["gb"]))
        assert all(count == 1 for count in takers.values()), "a device goes to one claim"
        assert not takers.keys() & consumed.keys(), "a device is shared or not"
        assert all(amount <= 4 for amount in consumed.values()), "shares fit into the device"
        for name in NODES:
            for pool in pools_for(self.slices, self.cluster.node(name)).pools:  # type: ignore[arg-type]
                left = counters_left(pool, self.book.ledger)
                assert all(amount >= 0 for counters in left.values() for amount in counters.values())

    def given(self) -> list[Any]:
        return [result for entry in self.book._pending.values() for result in entry.allocation.devices.results]

    def taken(self) -> tuple[Any, ...]:
        ledger = self.book.ledger
        return sorted(ledger.devices()), {d: dict(ledger.consumed(d)) for d in ledger.devices()}


@settings(max_examples=60, deadline=None)
@given(slices(), claims(), st.randoms(use_true_random=False))
def test_devices_are_given_once_and_come_back(published: list[Any], wanted: list[Any], rng: Any) -> None:
    world = World(published, wanted)
    placed: list[tuple[CycleState, Any, str]] = []
    for obj in wanted:
        before = world.taken()
        outcome = world.place(obj.name)
        world.check()
        if outcome is None:
            assert world.taken() == before
            continue
        placed.append(outcome)
        results = outcome[0][POD_CLAIMS].reserved[0].allocation.devices.results
        assert results, "a claim that was placed has devices"
        if rng.random() < 0.3:
            state, waiting, node_name = placed.pop(rng.randrange(len(placed)))
            world.plugin.unreserve(state, waiting, node_name)
            world.plugin.unreserve(state, waiting, node_name)
            world.check()
    rng.shuffle(placed)
    for state, waiting, node_name in placed:
        world.plugin.unreserve(state, waiting, node_name)
        world.check()
    assert world.taken() == ([], {})


@settings(max_examples=40, deadline=None)
@given(slices(), claims())
def test_what_explain_holds_against_a_device_is_what_the_search_holds_against_it(
    published: list[Any], wanted: list[Any]
) -> None:
    """A device to which there is no objection can be taken by itself, and no other."""
    world = World(published, wanted)
    for obj in wanted[:-1]:
        world.place(obj.name)
    asked = [ClaimRequestsCache().prepare(wanted[-1], {"gpu": device_class()}.get)]
    for name in NODES:
        target = world.cluster.node(name)
        assert target is not None
        pools = pools_for(world.slices, target)
        for one in (one for alternatives in asked[0].requests for one in alternatives):
            for pool, candidate in pools.candidates:
                against = objection(Search(target, pools, world.book.ledger, asked), 0, one, pool, candidate, str)
                try:
                    search = Search(target, pools, world.book.ledger, asked)
                    is_selectable = search._is_selectable(asked[0], one, candidate)
                    could = is_selectable and search._take(0, one, pool, candidate)
                except AllocationError:
                    could = False
                assert (against is None) == could, (against, candidate.id)
