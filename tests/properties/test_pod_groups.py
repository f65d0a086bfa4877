"""Groups of pods, whatever happens to them.

Random groups, nodes and pods live for a while: members come and go, groups change, plugins and the API server fail,
others preempt and are preempted. Nobody holds a place that enough of the group do not have with him, nobody is driven
out in vain, and when all is quiet nobody waits who fits.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.group_world import CONFIGURATION, EXTENDER, LONGEST_BACKOFF_SECONDS, GroupWorld

Deed = tuple[Any, ...]

RACKS = {"n1": "r1", "n2": "r2", "n3": "r2"}
NODES, GROUPS, PODS = ("n1", "n2", "n3"), ("g", "h"), tuple(f"p{number}" for number in range(9))
priorities = st.sampled_from([0, 10, 20])
nodes = st.tuples(st.just("node"), st.sampled_from(NODES), st.integers(1, 4))
groups = st.tuples(
    st.just("group"),
    st.sampled_from(GROUPS),
    st.sampled_from([1, 2, 3, 3, 4, 5]),
    priorities,
    st.sampled_from(["single", "single", "all"]),
    st.booleans(),
    st.sampled_from([{}, {}, {"topology": "rack"}]),
)
members = st.tuples(
    st.just("members"),
    st.sampled_from(GROUPS),
    st.integers(1, 4),
    st.sampled_from(["", "", "", "", "reserve", "permit", "preBind"]),
)
plain = st.tuples(st.just("plain"), st.integers(1, 2), priorities)
gone = st.tuples(
    st.just("gone"),
    st.sampled_from([("Node", NODES), ("PodGroup", GROUPS), ("Pod", PODS), ("Pod", PODS)]),
    st.integers(0, 8),
)
minimum = st.tuples(st.just("minimum"), st.sampled_from(GROUPS), st.integers(1, 5))
faults = st.tuples(
    st.just("fault"),
    st.sampled_from(["bind", "bind", "patchStatus", "deletePod"]),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.0, 2.0]),
)
wait = st.tuples(st.just("wait"), st.sampled_from([1, 3, 12]))
KEEPS_ALL, BINDS = {"keep": NODES}, {"binds": True}
answers = st.tuples(
    st.just("answer"),
    st.sampled_from(
        [
            KEEPS_ALL,
            {"keep": ["n1"]},
            {"keep": [], "failed": {"n2": "full"}},
            {"keep": ["n1", "n2"], "failed": {"n3": "full"}},
            {"error": "no"},
            {"status": 500},
            {**KEEPS_ALL, "delay": 2},
            {**KEEPS_ALL, "delay": 60},
        ]
    ),
    st.sampled_from([BINDS, BINDS, {"error": "no"}, {"status": 500}, {**BINDS, "delay": 3}]),
)
deeds = st.one_of(nodes, groups, members, members, plain, gone, minimum, faults, wait)
lives = st.builds(
    lambda *parts: [deed for part in parts for deed in part],
    st.lists(nodes, min_size=1, max_size=3),
    st.lists(plain, max_size=3),
    st.lists(groups, max_size=2),
    st.lists(deeds, min_size=3, max_size=14),
)


class _Over(Exception):
    pass


async def _live(history: list[Deed], configuration: str) -> GroupWorld:
    made: list[GroupWorld] = []
    try:
        async with asyncio.TaskGroup() as tasks:
            world = GroupWorld(tasks, configuration)
            world.answer(KEEPS_ALL, BINDS)
            made.append(world)
            await world.stage.clock.settle()
            for deed in history:
                await _do(world, deed)
                await world.stage.clock.settle()
                world.judge_counts()
            world.api.faults.clear()
            world.answer(KEEPS_ALL, BINDS)
            await world.stage.clock.advance(2 * LONGEST_BACKOFF_SECONDS)
            world.judge_counts()
            world.judge_rest()
            raise _Over
    except* _Over:
        pass
    return made[0]


async def _do(world: GroupWorld, deed: Deed) -> None:
    match deed:
        case ("node", name, cpu) if not world.has("Node", name):
            world.put("node", name, cpu=cpu, labels={"rack": RACKS[name]})
        case ("group", name, least, priority, mode, is_basic, place) if not world.has("PodGroup", name):
            policy = {"basic": True} if is_basic and least == 1 else {"min": least}
            world.put("podGroup", name, priority=priority, mode=mode, **policy, **place)
        case ("members", name, count, fails):
            group = world.group(f"default/{name}")
            free = [pod for pod in PODS if not world.has("Pod", pod)][:count]
            for pod in free:
                notes = {"annotations": {"fails": fails}} if fails else {}
                world.put("pod", pod, cpu=1, group=name, priority=group.priority if group else 0, **notes)
        case ("plain", cpu, priority):
            for pod in [pod for pod in PODS if not world.has("Pod", pod)][:1]:
                world.put("pod", pod, cpu=cpu, priority=priority)
        case ("gone", (kind, names), pick):
            there = [name for name in names if world.has(kind, name)]
            if there:
                world.remove(kind, there[pick % len(there)])
        case ("minimum", name, least) if world.has("PodGroup", name):
            group = world.group(f"default/{name}")
            if group is not None and group.is_gang:
                world.change_minimum(name, least)
        case ("fault", request, times, delay):
            world.fail(request, times, delay)
        case ("answer", filtered, bound):
            world.answer(filtered, bound)
        case ("wait", seconds):
            await world.stage.clock.advance(seconds)


def check(history: list[Deed], configuration: str = CONFIGURATION) -> None:
    world = asyncio.run(_live(history, configuration))
    assert not world.found, world.found


ANY_POD = ("Pod", PODS)
FOUND: dict[str, list[Deed]] = {
    "the member in whose name the group preempts goes": [
        ("node", "n1", 1),
        ("plain", 1, 0),
        ("plain", 1, 0),
        ("group", "g", 1, 10, "single", False, {}),
        ("fault", "patchStatus", 1, 0.0),
        ("members", "g", 2, ""),
        ("gone", ANY_POD, 2),
    ],
    "the minimum is raised while victims leave": [
        ("node", "n1", 2),
        ("group", "h", 2, 20, "single", True, {}),
        ("plain", 2, 0),
        ("members", "h", 2, "preBind"),
        ("minimum", "h", 3),
    ],
    "a member goes while victims leave, and too few are left": [
        ("node", "n3", 1),
        ("node", "n1", 2),
        ("group", "h", 3, 20, "single", False, {}),
        ("members", "h", 2, ""),
        ("plain", 1, 0),
        ("members", "h", 4, ""),
        ("plain", 2, 10),
        ("gone", ANY_POD, 1),
    ],
    "the group goes while victims leave": [
        ("node", "n1", 2),
        ("group", "h", 2, 20, "single", False, {}),
        ("plain", 2, 0),
        ("fault", "deletePod", 1, 2.0),
        ("members", "h", 2, ""),
        ("gone", ("PodGroup", GROUPS), 0),
    ],
}


@pytest.mark.parametrize("history", FOUND.values(), ids=FOUND.keys())
def test_histories_that_left_something_behind_once(history: list[Deed]) -> None:
    check(history)


async def test_one_more_member_of_a_gang_that_runs_makes_room_for_nobody() -> None:
    """It would not fit if the only less important pod went, and nothing is said of that pod."""
    with pytest.raises(ExceptionGroup) as over:
        async with asyncio.TaskGroup() as tasks:
            world = GroupWorld(tasks)
            world.put("node", "n1", cpu=2, labels={"pool": "a"})
            world.put("node", "n2", cpu=1, labels={"pool": "b"})
            world.put("pod", "low", cpu=1, node="n2")
            world.put("podGroup", "g", min=2, priority=10)
            for name in PODS[:3]:
                world.put("pod", name, cpu=1, group="g", priority=10, nodeSelector={"pool": "a"})
            await world.stage.clock.advance(LONGEST_BACKOFF_SECONDS)
            assert not world.found, world.found
            assert world.bound("default/g") == ["p0", "p1"]
            raise _Over
    assert over.group_contains(_Over)


@settings(max_examples=100, deadline=None)
@given(lives)
def test_no_group_is_partly_placed_evicts_in_vain_or_is_forgotten(history: list[Deed]) -> None:
    check(history)


@settings(max_examples=40, deadline=None)
@given(st.tuples(lives, st.lists(answers, min_size=1, max_size=4), st.randoms(use_true_random=False)))
def test_nor_does_a_group_of_which_an_extender_is_asked(drawn: tuple[list[Deed], list[Deed], random.Random]) -> None:
    """It is slow, fails, changes its mind, and binds or does not."""
    history, said, rng = drawn
    for answer in said:
        history.insert(rng.randrange(len(history) + 1), answer)
    check(history, CONFIGURATION + EXTENDER)


@settings(max_examples=60, deadline=None)
@given(
    rooms=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    sizes=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    order=st.permutations(range(12)),
    levels=st.tuples(priorities, priorities),
    fails=st.sampled_from(["", "", "reserve", "permit"]),
    mode=st.sampled_from(["single", "all"]),
)
def test_two_gangs_that_compete_for_room_for_one(
    rooms: list[int], sizes: tuple[int, int], order: list[int], levels: tuple[int, int], fails: str, mode: str
) -> None:
    """Whichever of them fits runs as a whole, and the other holds nothing, in whatever order their pods come.

    But `single` says that pods of a group may be evicted one by one: one that was first may lose some to a more
    important one.
    """
    both = sum(sizes)
    total = sum(rooms)
    arrivals = [number for number in order if number < both]

    async def compete() -> dict[str, int]:
        counts: dict[str, int] = {}
        try:
            async with asyncio.TaskGroup() as tasks:
                world = GroupWorld(tasks)
                for at, cpu in enumerate(rooms):
                    world.put("node", f"n{at}", cpu=cpu)
                for name, size, level in zip(GROUPS, sizes, levels, strict=True):
                    world.put("podGroup", name, min=size, priority=level, mode=mode)
                for number in arrivals:
                    side = int(number >= sizes[0])
                    notes = {"annotations": {"fails": fails}} if fails and number % 3 == 0 else {}
                    world.put("pod", f"c{number}", cpu=1, group=GROUPS[side], priority=levels[side], **notes)
                await world.stage.clock.advance(2 * LONGEST_BACKOFF_SECONDS)
                world.judge_counts()
                world.judge_rest()
                assert not world.found, world.found
                counts.update({name: len(world.bound(f"default/{name}")) for name in GROUPS})
                raise _Over
        except* _Over:
            pass
        return counts

    counts = asyncio.run(compete())
    fitting = [name for name, size in zip(GROUPS, sizes, strict=True) if size <= total]
    whole = [name for name, size in zip(GROUPS, sizes, strict=True) if counts[name] == size]
    may_lose_some = GROUPS[int(levels[0] > levels[1])] if mode == "single" and fails and levels[0] != levels[1] else ""
    for name, size in zip(GROUPS, sizes, strict=True):
        assert counts[name] in (0, size) or name == may_lose_some, counts
    assert len(whole) == (2 if both <= total else min(1, len(fitting)))
