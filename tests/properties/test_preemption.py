"""Preemption on random clusters.

Never a victim of equal or higher priority, never one too many; what columns and memory say is what a look at each node
says; and what is remembered of nodes with nominated pods is what a fresh look says, whatever happened in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.api import CycleState
from pilotage.api.preemption import Candidate
from pilotage.framework.diagnosis import Rejected
from pilotage.framework.nominated_pods_filter import NominatedPodsFilter
from pilotage.framework.preemption import search
from pilotage.model import Pod
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.framework.preemption.preemption_world import PreemptionWorld, budget

_PRIORITIES = st.sampled_from([0, 5, 10, 20])
_NODES = 6
_SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
_APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
        ]
    }
}


@pytest.fixture(scope="module", params=[1, 8], autouse=True)
def columns_from(request: pytest.FixtureRequest) -> Iterator[None]:
    """From how many unknown nodes on columns are asked: always, and as usual."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_WORTH_COLUMNS", request.param)
        yield


@st.composite
def nodes(draw: st.DrawFn, number: int) -> NodeBuilder:
    builder = node(f"n{number}").cpu(draw(st.integers(1, 4))).pods(draw(st.integers(2, 6)))
    builder = builder.label("zone", draw(st.sampled_from("ab")))
    if draw(st.integers(0, 5)) == 0:
        builder = builder.taint("closed", "NoSchedule")
    return builder


@st.composite
def pods(draw: st.DrawFn, name: str) -> PodBuilder:
    builder = pod(name).requests(cpu=draw(st.integers(0, 3))).priority(draw(_PRIORITIES))
    app = draw(st.sampled_from(["web", "db", ""]))
    builder = builder.label("app", app) if app else builder
    extra = draw(st.sampled_from(["", "", "", "port", "spread", "apart"]))
    if extra == "port":
        builder = builder.spec(
            containers=[{"name": "main", "resources": {}, "ports": [{"hostPort": 80, "containerPort": 80}]}]
        )
    elif extra == "spread":
        builder = builder.spec(topologySpreadConstraints=[_SPREAD])
    elif extra == "apart":
        builder = builder.spec(affinity=_APART)
    return builder


@st.composite
def running(draw: st.DrawFn, number: int) -> PodBuilder:
    builder = draw(pods(f"r{number}")).node(f"n{draw(st.integers(0, _NODES - 1))}")
    if draw(st.booleans()):
        builder = builder.status(startTime=f"2026-01-01T00:{draw(st.integers(0, 3)):02}:00Z")
    return builder


@st.composite
def nominated(draw: st.DrawFn, number: int) -> PodBuilder:
    return draw(pods(f"q{number}")).nominated(f"n{draw(st.integers(0, _NODES - 1))}")


@st.composite
def worlds(draw: st.DrawFn) -> PreemptionWorld:
    world = PreemptionWorld(*(draw(nodes(number)) for number in range(_NODES)))
    world.put(*(draw(running(number)) for number in range(draw(st.integers(4, 16)))))
    world.put(*(draw(nominated(number)) for number in range(draw(st.integers(0, 2)))))
    if draw(st.booleans()):
        world.put(budget("b", draw(st.integers(0, 2)), app="web"))
    return world


@st.composite
def changes(draw: st.DrawFn, number: int) -> Any:
    """Something that happens to a cluster: a function of the world."""
    what = draw(st.sampled_from(["come", "go", "nominate", "withdraw", "node", "lose node", "budget", "start"]))
    new = draw(running(100 + number))
    old = f"uid-default-r{draw(st.integers(0, 15))}"
    claim = draw(nominated(draw(st.integers(0, 3))))
    fresh_node = draw(nodes(draw(st.integers(0, _NODES))))
    allowed = draw(st.integers(0, 2))

    def apply(world: PreemptionWorld) -> None:
        cluster = world.cluster
        if what == "come":
            world.put(new)
        elif what == "go":
            cluster.remove_pod(old)
        elif what == "nominate":
            world.put(claim)
        elif what == "withdraw":
            cluster.nominations.remove(claim.build().uid)
        elif what == "node":
            world.put(fresh_node)
        elif what == "lose node" and len(cluster.nodes) > 2:
            cluster.remove_node(fresh_node.build().name)
        elif what == "budget":
            world.put(budget("b", allowed, app="web"))
        elif what == "start":
            world.put(new.status(startTime="2026-01-01T00:09:00Z"))

    return apply


# --- victims ----------------------------------------------------------------------------------------------------------


@given(worlds(), pods("preemptor"))
@settings(max_examples=100, deadline=None)
def test_victims_are_less_important_and_none_of_them_could_stay(world: PreemptionWorld, builder: PodBuilder) -> None:
    preemptor = builder.priority(15).build()
    for candidate in world.search(preemptor).candidates:
        victims = list(candidate.victims)
        assert victims and all(victim.priority < preemptor.priority for victim in victims)
        assert all(victim.node_name == candidate.node_name for victim in victims)
        assert world.fits(preemptor, candidate.node_name, victims)
        for spared in victims:
            assert not world.fits(preemptor, candidate.node_name, [v for v in victims if v is not spared])


@given(worlds(), pods("preemptor"))
@settings(max_examples=100, deadline=None)
def test_a_search_finds_what_a_look_at_each_node_finds(world: PreemptionWorld, builder: PodBuilder) -> None:
    assert_found_as_one_by_one(world, builder.build())


def assert_found_as_one_by_one(world: PreemptionWorld, preemptor: Pod) -> None:
    found, expected = world.search(preemptor), world.one_by_one(preemptor)
    wanted = {name: outcome for name, outcome in expected.items() if isinstance(outcome, Candidate)}
    assert {c.node_name: _facts(c) for c in found.candidates} == {name: _facts(c) for name, c in wanted.items()}
    rejected = {n: (o.plugin, set(o.rejection.reasons)) for n, o in expected.items() if isinstance(o, Rejected)}
    assert {n: (plugin, set(rejection.reasons)) for n, (plugin, rejection) in found.rejections().items()} == rejected
    assert len(found.errors) == sum(outcome is None for outcome in expected.values())
    costs = [c.cost for c in wanted.values()]
    assert (found.best.cost if found.best else None) == (min(costs) if costs else None)


def _facts(candidate: Candidate) -> tuple[Any, ...]:
    return [victim.uid for victim in candidate.victims], candidate.violations, candidate.cost


# --- memory -----------------------------------------------------------------------------------------------------------


@given(worlds(), pods("preemptor"), st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_remembered_stays_true_whatever_happens(
    world: PreemptionWorld, builder: PodBuilder, data: st.DataObject
) -> None:
    preemptor = builder.priority(15).build()
    for number in range(8):
        data.draw(changes(number), label="change")(world)
        assert_found_as_one_by_one(world, preemptor)
        world.cluster.check()


@given(worlds(), pods("preemptor"), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_a_walk_that_ends_early_is_the_beginning_of_a_whole_one(
    world: PreemptionWorld, builder: PodBuilder, wanted: int
) -> None:
    preemptor = builder.priority(15).build()
    whole = [_facts(c) for c in world.search(preemptor, fresh=True).candidates]
    for fresh in (True, False, False):
        part = [_facts(c) for c in world.search(preemptor, wanted, fresh=fresh).candidates]
        assert part == whole[: len(part)]
        has_harmless = any(not violations for _, violations, _ in part)
        assert len(part) == len(whole) or (len(part) >= wanted and has_harmless)
        if len(part) > wanted:
            assert not any(not violations for _, violations, _ in part[:-1]), "it could have ended before"


@given(worlds(), pods("pending"), st.data())
@settings(max_examples=60, deadline=None)
def test_nominated_nodes_are_judged_as_if_for_the_first_time(
    world: PreemptionWorld, builder: PodBuilder, data: st.DataObject
) -> None:
    pending = builder.build()
    evaluator, cluster = world.engine.evaluator, world.cluster
    remembering = NominatedPodsFilter(world.profile, evaluator.dry_run, cluster.nodes, cluster.nominations)
    for number in range(8):
        data.draw(changes(number), label="change")(world)
        fresh = NominatedPodsFilter(world.profile, evaluator.dry_run, cluster.nodes, cluster.nominations)
        assert _verdicts(remembering, world, pending) == _verdicts(fresh, world, pending)


def _verdicts(contested: NominatedPodsFilter, world: PreemptionWorld, pending: Pod) -> dict[int, Rejected]:
    state = CycleState()
    world.engine.runner.pre_filter(state, pending)
    everywhere = np.ones(len(world.cluster.nodes), dtype=np.bool_)
    verdicts = contested.verdicts(state, pending, everywhere)
    if verdicts is None:
        return {}
    found = {int(row): rejected for rejected, mask in verdicts.groups(everywhere) for row in np.flatnonzero(mask)}
    assert sorted(found) == verdicts.rejected(everywhere).tolist()
    return found
