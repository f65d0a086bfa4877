"""Claims that make an exhaustive search try for ever: what is rejected early, what is given up, what is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.api import Budget, BudgetExceeded, CycleState
from pilotage.clock import SystemClock
from pilotage.cluster.state import Cluster
from pilotage.cycle.handle import FrameworkHandle
from pilotage.plugins import DynamicResources
from pilotage.plugins.device_supply import DeviceSupply
from pilotage.plugins.dynamic_resources import search as search_module
from pilotage.plugins.dynamic_resources.claim_book import ClaimBook
from pilotage.plugins.dynamic_resources.requests import AllocationError, ClaimRequestsCache
from pilotage.plugins.dynamic_resources.search import Search
from pilotage.plugins.dynamic_resources.slices import SliceIndex, pools_for
from pilotage.rng import seeded
from pilotage.testing import node, pod
from tests.default_plugins import default
from tests.plugins.dynamic_resources.objects import (
    DRIVER,
    allocated,
    claim,
    device,
    device_class,
    device_slice,
    everything,
    exactly,
    first_of,
)

INDEX = f'device.attributes["{DRIVER}"].index'
CARD = [{"name": "card", "counters": {"gb": {"value": "8"}}}]


def numbered(count: int, **fields: Any) -> list[Any]:
    return [device(f"d{i}", attributes={"index": i, "group": i // 3, "parity": i % 2}, **fields) for i in range(count)]


def sliced(*devices: Any) -> list[Any]:
    two = {"resourceSliceCount": 2}
    counters = device_slice("n", name="counters", sharedCounters=CARD, pool=two)
    return [counters, device_slice("n", *devices, pool=two)]


def search(claims: Sequence[Any], published: Sequence[Any], taken: Sequence[Any] = ()) -> Search:
    slices, book = SliceIndex(), ClaimBook()
    for obj in published:
        slices.object_put("ResourceSlice", None, obj)
    for known in taken:
        book.object_put("ResourceClaim", None, known)
    questions, classes = ClaimRequestsCache(), {"gpu": device_class()}
    prepared = [questions.prepare(wanted, classes.get) for wanted in claims]
    target = node("n").build()
    return Search(target, pools_for(slices, target), book.ledger, prepared)


def picked(attempt: Search) -> list[list[str]] | str | None:
    try:
        found = attempt.run()
    except AllocationError as error:
        return str(error)
    return None if found is None else [[pick.device.id.device for pick in of_claim] for of_claim in found]


PAIRS = [
    {"requests": [f"r{i}", f"r{i + 1}"], "matchAttribute": f"{DRIVER}/{name}"}
    for i in range(8)
    for name in ("group", "parity")
]
ALTERNATING = [{"requests": [f"r{i}", f"r{i + 1}"], "distinctAttribute": f"{DRIVER}/parity"} for i in range(11)]
HOPELESS: dict[str, tuple[list[Any], list[Any], int]] = {
    "one request too many": ([exactly(f"r{i}") for i in range(13)], [], 12),
    "twice as many requests": ([exactly(f"r{i}") for i in range(32)], [], 16),
    "requests of two": ([exactly(f"r{i}", count=2) for i in range(16)], [], 31),
    "every request has eight alternatives": (
        [first_of(f"r{i}", *(exactly(f"s{n}", f"{INDEX} >= {n}") for n in range(8))) for i in range(12)],
        [],
        11,
    ),
    "all requests different": ([exactly(f"r{i}", f"{INDEX} != {i}") for i in range(13)], [], 12),
    "the last request is impossible": ([*(exactly(f"r{i}") for i in range(12)), exactly("x", "false")], [], 64),
    "too few of one kind": ([exactly(f"r{i}", f"{INDEX} < 23") for i in range(24)], [], 40),
    "groups are too small": ([exactly(f"r{i}") for i in range(8)], [{"matchAttribute": f"{DRIVER}/group"}], 12),
    "no two are equal": ([exactly(f"r{i}") for i in range(8)], [{"matchAttribute": f"{DRIVER}/index"}], 30),
    "too few groups": ([exactly(f"r{i}") for i in range(8)], [{"distinctAttribute": f"{DRIVER}/group"}], 18),
    "constraints of pairs": ([exactly(f"r{i}") for i in range(9)], PAIRS, 12),
    "alternating constraints": ([exactly(f"r{i}") for i in range(12)], ALTERNATING, 11),
    "all, and one more": ([exactly("r0"), everything("r1")], [], 30),
}


@pytest.mark.parametrize("name", HOPELESS)
def test_claims_that_cannot_be_served_are_rejected_within_few_steps(name: str) -> None:
    requests, constraints, devices = HOPELESS[name]
    attempt = search([claim("c", *requests, constraints=constraints)], [device_slice("n", *numbered(devices))])
    assert picked(attempt) is None
    assert attempt.steps < 2_500


def test_many_claims_of_one_pod_are_rejected_within_few_steps() -> None:
    attempt = search([claim(f"c{i}", exactly()) for i in range(30)], [device_slice("n", *numbered(29))])
    assert picked(attempt) is None
    assert attempt.steps < 1_000


def test_partitions_that_consume_more_than_there_is_are_rejected_within_few_steps() -> None:
    parts = [
        device(f"d{i}", consumesCounters=[{"counterSet": "card", "counters": {"gb": {"value": str(1 + i % 3)}}}])
        for i in range(30)
    ]
    attempt = search([claim("c", *(exactly(f"r{i}") for i in range(9)))], sliced(*parts))
    assert picked(attempt) is None
    assert attempt.steps < 5_000


def test_shares_that_do_not_go_together_are_rejected_within_few_steps() -> None:
    shared = numbered(6, allowMultipleAllocations=True, capacity={"gb": "4"})
    wanted = [exactly(f"r{i}", capacity={"requests": {"gb": "3"}}) for i in range(7)]
    attempt = search([claim("c", *wanted)], [device_slice("n", *shared)])
    assert picked(attempt) is None
    assert attempt.steps < 5_000


def test_a_solution_that_is_hard_to_find_is_found() -> None:
    # Each request but the last could have nearly everything, and the last only the device that all others like first.
    wanted = [*(exactly(f"r{i}") for i in range(20)), exactly("x", f"{INDEX} == 0")]
    attempt = search([claim("c", *wanted)], [device_slice("n", *numbered(21))])
    assert picked(attempt) == [[*(f"d{i}" for i in range(1, 21)), "d0"]]
    assert attempt.steps < 2_000


# --- lessons change no answer -----------------------------------------------------------------------------------------


REQUEST = st.one_of(
    st.builds(lambda count: exactly("a", count=count), st.integers(1, 3)),
    st.builds(lambda limit: exactly("a", f"{INDEX} >= {limit}"), st.integers(0, 4)),
    st.builds(lambda parity: exactly("a", f"{INDEX} % 2 == {parity}", count=2), st.integers(0, 1)),
    st.just(exactly("a", capacity={"requests": {"gb": "3"}})),
    st.just(exactly("a", adminAccess=True)),
    st.just(exactly("a", tolerations=[{"operator": "Exists"}])),
    st.just(exactly("a", f'device.attributes["{DRIVER}"].sometimes == 1')),
    st.just(everything("a", f"{INDEX} < 2")),
)
CONSTRAINT = st.builds(
    lambda kind, name, requests: {kind: f"{DRIVER}/{name}", "requests": requests},
    st.sampled_from(("matchAttribute", "distinctAttribute")),
    st.sampled_from(("group", "parity", "index")),
    st.sampled_from(([], ["r0", "r1"], ["r1", "r2"])),
)


@st.composite
def some_devices(draw: st.DrawFn) -> list[Any]:
    found = []
    for made in numbered(draw(st.integers(1, 7))):
        if draw(st.integers(0, 3)) == 0:
            gb = str(draw(st.sampled_from((2, 4))))
            made["consumesCounters"] = [{"counterSet": "card", "counters": {"gb": {"value": gb}}}]
        if draw(st.integers(0, 3)) == 0:
            made["allowMultipleAllocations"] = True
            made["capacity"] = {"gb": {"value": "8"}}
        if draw(st.integers(0, 5)) == 0:
            made["taints"] = [{"key": "k", "effect": "NoSchedule"}]
        if draw(st.integers(0, 9)) > 0:
            made["attributes"]["sometimes"] = {"int": 1}
        found.append(made)
    return found


@st.composite
def some_claims(draw: st.DrawFn) -> list[Any]:
    found = []
    for number in range(draw(st.integers(1, 3))):
        requests = [{**draw(REQUEST), "name": f"r{i}"} for i in range(draw(st.integers(1, 3)))]
        if draw(st.booleans()):
            requests.append(first_of("r3", {**draw(REQUEST), "name": "x"}, {**draw(REQUEST), "name": "y"}))
        constraints = draw(st.lists(CONSTRAINT, max_size=2))
        found.append(claim(f"c{number}", *requests, constraints=constraints))
    return found


@settings(max_examples=300, deadline=None)
@given(some_devices(), some_claims(), st.sets(st.integers(0, 6), max_size=2))
def test_a_search_that_learns_from_the_first_step_finds_the_same(
    devices: list[Any], claims: list[Any], taken: set[int]
) -> None:
    known = [allocated(f"x{i}", f"d{i}") for i in sorted(taken)]
    answers = []
    for steps in (0, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(search_module, "STEPS_WITHOUT_LESSONS", steps)
            answers.append(picked(search(claims, sliced(*devices), known)))
    assert answers[0] == answers[1]


def test_lessons_do_not_hide_the_error_of_a_request_for_all_devices() -> None:
    """Of two devices that are alike the first leads nowhere, and the second to an error."""
    distinct = [{"distinctAttribute": f"{DRIVER}/group"}]
    requests = [exactly("r0", adminAccess=True), everything("r1", f"{INDEX} < 2")]
    wanted = claim("c", *requests, constraints=distinct)
    answers = []
    for steps in (0, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(search_module, "STEPS_WITHOUT_LESSONS", steps)
            answers.append(picked(search([wanted], [device_slice("n", *numbered(2))])))
    assert answers[0] == answers[1]
    assert isinstance(answers[0], str) and "a claim constraint would not be satisfied" in answers[0]


# --- many nodes -------------------------------------------------------------------------------------------------------


class Seconds:
    """A CPU clock on which each look takes a while."""

    def __init__(self, per_look: float) -> None:
        self._now, self._per_look = 0.0, per_look

    def __call__(self) -> float:
        self._now += self._per_look
        return self._now


class World:
    def __init__(self, nodes: int, devices: Sequence[Any], *claims: Any) -> None:
        self.cluster = Cluster()
        self.cluster.put_object("DeviceClass", device_class())
        for number in range(nodes):
            self.cluster.put_node(node(f"n{number}").build())
            self.cluster.put_object("ResourceSlice", device_slice(f"n{number}", *devices))
        for known in claims:
            self.cluster.put_object("ResourceClaim", known)
        self.handle = FrameworkHandle(self.cluster, SystemClock(), seeded(1))
        self.plugin = default(DynamicResources, self.handle)

    def rejected(self, state: CycleState, *claims: str) -> int:
        """On how many nodes a pod with these claims is rejected."""
        used = [{"name": name, "resourceClaimName": name} for name in claims]
        waiting = pod("p").spec(resourceClaims=used).build()
        assert self.plugin.pre_filter(state, waiting, self.cluster.nodes) is None
        return sum(int(mask.sum()) for mask, _ in self.plugin.filter_all(state, waiting, self.cluster.nodes))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Search]:
    """The searches that are begun from now on."""
    begun: list[Search] = []
    run = Search.run
    monkeypatch.setattr(Search, "run", lambda self: (begun.append(self), run(self))[1])
    return begun


def test_nodes_with_equal_devices_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [exactly(f"r{i}", f"{INDEX} != {i}") for i in range(13)]
    world = World(2_500, numbered(12), claim("c", *requests))
    begun = counted(monkeypatch)
    assert world.rejected(CycleState(), "c") == 2_500
    assert len(begun) == 1
    assert begun[0].steps < 2_500


def test_a_solution_that_took_long_is_carried_over_to_equal_nodes_with_their_own_devices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted = [*(exactly(f"r{i}") for i in range(20)), exactly("x", f"{INDEX} == 0")]
    world = World(50, numbered(21), claim("c", *wanted))
    begun = counted(monkeypatch)
    state = CycleState()
    assert world.rejected(state, "c") == 0
    assert len(begun) == 1
    waiting = pod("p").spec(resourceClaims=[{"name": "c", "resourceClaimName": "c"}]).build()
    world.plugin.reserve(state, waiting, "n7")
    taken = world.plugin._book.ledger.taken
    assert {device.pool for device in taken} == {"n7"}
    assert len(taken) == 21
    world.cluster.put_object("ResourceClaim", claim("c2", *wanted))
    assert world.rejected(CycleState(), "c2") == 1


def test_nodes_whose_devices_differ_in_use_are_not_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [*(exactly(f"r{i}") for i in range(20)), exactly("x", f"{INDEX} == 0")]
    world = World(10, numbered(21), claim("c", *wanted), allocated("other", "d0", pool="n3"))
    assert world.rejected(CycleState(), "c") == 1


def test_a_search_over_all_nodes_ends_with_the_budget_of_the_cycle() -> None:
    world = World(2_500, numbered(12), claim("c", exactly(count=13)))
    budget = Budget(1.0, Seconds(0.3))
    with pytest.raises(BudgetExceeded):
        world.rejected(CycleState(budget), "c")


def test_an_interrupted_search_leaves_nothing_behind_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(300, numbered(12), claim("c", exactly(count=13)))
    begun = counted(monkeypatch)
    attempts = 0
    while attempts < 50:
        attempts += 1
        try:
            assert world.rejected(CycleState(Budget(1.0, Seconds(0.6))), "c") == 300
            break
        except BudgetExceeded:
            continue
    assert 1 < attempts < 20, "each attempt gets further than the one before"
    assert len(begun) < 300 + attempts, "no node is searched again but the one that was interrupted"


def test_each_evaluation_of_an_expression_asks_the_budget() -> None:
    looks = Seconds(0.001)
    expressions = [f"{INDEX} >= 0 && {number} >= 0" for number in range(32)]
    world = World(1, numbered(12), claim("c", *(exactly(f"r{i}", e) for i, e in enumerate(expressions[:12]))))
    assert world.rejected(CycleState(Budget(10.0, looks)), "c") == 0
    assert looks() > 0.001 * 12


def test_more_devices_than_a_search_can_hold_are_an_error_that_says_so() -> None:
    claims = [claim(f"c{i}", *(exactly(f"r{n}", adminAccess=True) for n in range(32))) for i in range(20)]
    world = World(1, numbered(40), *claims)
    with pytest.raises(AllocationError, match="more devices than can be searched for together"):
        world.rejected(CycleState(), *(one.name for one in claims))


def test_counting_devices_for_a_score_ends_with_the_budget_of_the_cycle() -> None:
    world = World(300, numbered(12))
    world.cluster.put_object("DeviceClass", device_class(extendedResourceName="example.com/gpu"))
    nodes, supply = world.cluster.nodes, DeviceSupply(world.handle)
    used = nodes.requested("example.com/gpu")
    capacity, _ = supply.columns(Budget(), nodes, "example.com/gpu", used)
    assert capacity.tolist() == [12] * 300
    with pytest.raises(BudgetExceeded):
        supply.columns(Budget(1.0, Seconds(0.6)), nodes, "example.com/gpu", used)
