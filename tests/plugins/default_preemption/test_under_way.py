"""Evictions one after the other: the last victim is kept for the end, and the preemptor is held back until then."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from pilotage.api import Candidate, Evicted, Eviction, PreemptionsUnderWay
from pilotage.api.preemption import OnEvicted
from pilotage.model import Pod
from pilotage.testing import PodBuilder, VirtualClock, pod

PREEMPTOR = pod("preemptor").priority(10).build()
FAILED = Evicted(error=RuntimeError("rejected"))


class Handle:
    """Writes down what is to be done, and lets the test say how it ended."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.on_node: list[Pod] = []
        self.evictions: dict[str, OnEvicted] = {}
        self.completing: list[str] = []
        self.nominated: list[Pod] = []
        self.withdrawn: list[str] = []
        self.activated: list[str] = []
        self.rechecked: list[str] = []
        self.backed_off: list[str] = []
        self.clock = VirtualClock()
        self.ended: list[str] = []

    def count(self, name: str, result: str) -> None:
        assert name == "scheduler_preemption_goroutines_execution_total"
        self.ended.append(result)

    def observe(self, name: str, seconds: float, *labels: str) -> None:
        measured = {"goroutines": 1, "execution": 2}
        assert len(labels) == measured[name.split("_")[2]] and labels[-1] in ("success", "error") and seconds >= 0

    def objects(self, kind: str) -> dict[str, Pod]:
        assert kind == "Pod"
        return self.pods

    def node(self, name: str) -> SimpleNamespace:
        assert name == "n"
        return SimpleNamespace(pods=self.on_node)

    def evict(self, eviction: Eviction, on_evicted: OnEvicted) -> None:
        assert (eviction.preemptor, eviction.node_name, eviction.plugin) == (PREEMPTOR, "n", "Mine")
        assert eviction.victim.name not in self.evictions
        self.evictions[eviction.victim.name] = on_evicted
        if eviction.completes:
            self.completing.append(eviction.victim.name)

    def nominated_pods(self, node_name: str) -> list[Pod]:
        assert node_name == "n"
        return self.nominated

    def withdraw_nominations(self, pods: Iterable[Pod]) -> None:
        self.withdrawn += [p.name for p in pods]

    def activate(self, pods: Iterable[Pod]) -> None:
        self.activated += [p.name for p in pods]

    def back_off(self, pods: Iterable[Pod]) -> None:
        self.backed_off += [p.name for p in pods]

    def recheck_gates(self, pods: Iterable[Pod]) -> None:
        self.rechecked += [p.name for p in pods]


class World:
    def __init__(self, *victims: PodBuilder, nominated: Iterable[PodBuilder] = ()) -> None:
        self.handle = Handle()
        self.handle.nominated = [builder.build() for builder in nominated]
        built = tuple(builder.build() for builder in victims)
        self.handle.pods = {victim.key: victim for victim in built}
        self.handle.on_node = list(built)
        handle: Any = self.handle
        self.under_way = PreemptionsUnderWay(handle, "Mine")
        self.under_way.start(PREEMPTOR, Candidate("n", built, 0, ()))

    def ended(self, victim: str, how: Evicted = Evicted()) -> None:  # noqa: B008 - a frozen value
        self.handle.evictions[victim](how)

    def give_up_place(self, victim: str) -> None:
        """The pod was only being bound, and is pending again."""
        self.handle.on_node = [one for one in self.handle.on_node if one.name != victim]

    @property
    def begun(self) -> list[str]:
        return list(self.handle.evictions)

    def is_held_back(self) -> bool:
        return self.under_way.holds_back(PREEMPTOR)


A, B, C = pod("a"), pod("b"), pod("c")


def test_all_but_the_last_go_side_by_side_and_the_last_follows() -> None:
    world = World(A, B, C)
    assert world.begun == ["a", "b"]
    world.ended("a")
    assert world.begun == ["a", "b"] and world.is_held_back()
    world.ended("b")
    assert world.begun == ["a", "b", "c"] and world.is_held_back()
    world.ended("c")
    assert not world.is_held_back()
    assert (world.handle.activated, world.handle.rechecked) == ([], ["preemptor"])


def test_the_last_of_several_victims_goes_before_those_of_other_preemptors() -> None:
    world = World(A, B, C)
    assert world.handle.completing == []
    world.ended("a")
    world.ended("b")
    assert world.handle.completing == ["c"]


def test_a_single_victim_is_the_last_one_and_waits_its_turn() -> None:
    world = World(A)
    assert world.begun == ["a"] and world.handle.completing == []


def test_the_preemptor_may_come_in_as_soon_as_the_last_victim_is_leaving() -> None:
    world = World(A, B)
    world.handle.pods["default/b"] = B.terminating().build()
    assert world.is_held_back(), "it is not its turn yet"
    world.ended("a")
    assert not world.is_held_back()


@pytest.mark.parametrize("now", [None, pod("b").build(), pod("b").uid("another").build()])
def test_a_victim_that_has_no_place_any_more_has_left(now: Pod | None) -> None:
    """It was deleted, is pending because its binding failed, or was recreated."""
    world = World(A, B)
    world.ended("a")
    assert world.is_held_back()
    world.handle.pods |= {"default/b": now} if now is not None else {}
    world.give_up_place("b")
    assert not world.is_held_back()


def test_a_last_victim_that_left_while_the_others_were_evicted_is_spared() -> None:
    """What its leaving would have let in was held back then, and nothing else is to come."""
    world = World(A, B)
    world.give_up_place("b")
    assert world.is_held_back(), "the other one is still there"
    world.ended("a")
    assert world.begun == ["a"] and world.handle.activated == ["preemptor"] and not world.is_held_back()


def test_only_the_last_victim_wakes_its_preemptor() -> None:
    world = World(A, B)
    assert world.under_way.waking(B.build()) == []
    world.ended("a")
    assert world.under_way.waking(A.build()) == []
    assert world.under_way.waking(B.build()) == ["default/preemptor"]
    world.ended("b")
    assert world.under_way.waking(B.build()) == []


def test_after_a_failure_the_last_victim_is_spared_and_the_preemptor_backs_off() -> None:
    world = World(A, B, C)
    world.ended("a", FAILED)
    assert world.is_held_back(), "the others are still on their way"
    world.ended("b")
    assert world.begun == ["a", "b"]
    assert not world.is_held_back()
    assert (world.handle.backed_off, world.handle.activated) == (["preemptor"], [])


def test_a_preemptor_whose_last_victim_could_not_be_evicted_backs_off() -> None:
    world = World(A)
    world.ended("a", FAILED)
    assert (world.handle.backed_off, world.handle.activated, world.handle.ended) == (["preemptor"], [], ["error"])


@pytest.mark.parametrize("how", [Evicted(is_in_memory=True), Evicted(was_gone=True)])
def test_if_no_event_would_wake_the_preemptor_it_is_tried_at_once(how: Evicted) -> None:
    world = World(A)
    world.ended("a", how)
    assert not world.is_held_back() and world.handle.activated == ["preemptor"]


def test_victims_that_are_leaving_already_are_left_alone() -> None:
    world = World(A.terminating(), B, C.terminating())
    assert world.begun == ["b"]


def test_if_all_are_leaving_already_nothing_is_started() -> None:
    world = World(A.terminating(), nominated=[pod("lesser").priority(5)])
    assert (world.begun, world.handle.withdrawn, world.is_held_back()) == ([], [], False)


def test_nominations_to_less_important_pods_are_withdrawn() -> None:
    nominated = [pod("lesser").priority(5), pod("equal").priority(10), pod("greater").priority(20)]
    assert World(A, nominated=nominated).handle.withdrawn == ["lesser"]


def test_other_pods_are_not_held_back() -> None:
    assert not World(A).under_way.holds_back(pod("other").build())
