"""Groups of any size in the queue: what they cost is counted in lines of the queue's code, so that no clock decides."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from pilotage.model.meta import ObjectMeta
from pilotage.model.pod_group import GangPolicy, PodGroup, PodGroupSpec, SchedulingPolicy
from pilotage.queue.pod_groups import GroupResult, GroupTicket
from pilotage.testing import PodBuilder, pod
from tests.queue.waiting_room import NODE_ADDED, WaitingRoom, judge

SMALL, LARGE = 200, 800


def work_of(deed: Callable[[], Any]) -> int:
    """How many lines of the package `queue` are run."""
    lines = 0

    def local(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return local

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        return local if "/pilotage/queue/" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        deed()
    finally:
        sys.settrace(before)
    return lines


def group(name: str = "g", least: int = 2) -> PodGroup:
    policy = SchedulingPolicy(gang=GangPolicy(least))
    return PodGroup(ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"), PodGroupSpec(policy))


def member(number: int, of: str = "g") -> PodBuilder:
    return pod(f"{of}-{number:05}").spec(schedulingGroup={"podGroupName": of})


def add_members(room: WaitingRoom, count: int, of: str = "g") -> None:
    for number in range(count):
        room.queue.add(member(number, of).build())


def costs(made: Callable[[int], tuple[WaitingRoom, Callable[[], Any]]]) -> float:
    """How much more the large one costs than the small one, for each of its pods."""
    small, large = (work_of(made(count)[1]) for count in (SMALL, LARGE))
    return (large / LARGE) / (small / SMALL)


def test_members_that_come_cost_the_same_however_many_there_are() -> None:
    def made(count: int) -> tuple[WaitingRoom, Callable[[], Any]]:
        room = WaitingRoom()
        room.queue.put_group(group())
        return room, lambda: add_members(room, count)

    assert costs(made) < 1.5


def test_members_that_come_while_too_few_are_known_cost_the_same_however_many_there_are() -> None:
    def made(count: int) -> tuple[WaitingRoom, Callable[[], Any]]:
        room = WaitingRoom()
        room.gates = {f"g-{number:05}": "Gang" for number in range(count)}
        room.queue.put_group(group())
        return room, lambda: add_members(room, count)

    assert costs(made) < 1.5


def test_members_that_go_cost_the_same_however_many_there_are() -> None:
    def made(count: int) -> tuple[WaitingRoom, Callable[[], Any]]:
        room = WaitingRoom()
        room.queue.put_group(group())
        add_members(room, count)
        return room, lambda: [room.queue.delete(member(number).build().uid) for number in range(count)]

    assert costs(made) < 1.5


def test_pods_of_a_group_that_does_not_exist_cost_the_others_nothing() -> None:
    def made(count: int) -> tuple[WaitingRoom, Callable[[], Any]]:
        room = WaitingRoom(judge("Fit"))
        room.add_rejected(pod("other"), "Fit")
        add_members(room, count)

        def deed() -> None:
            room.queue.on_event(NODE_ADDED, None, None)
            ticket = room.queue.pop()
            assert ticket is not None and ticket.pod.name == "other"

        return room, deed

    small, large = (work_of(made(count)[1]) for count in (SMALL, LARGE))
    assert large == small


def test_a_group_that_waits_costs_nothing_for_events() -> None:
    def made(count: int) -> tuple[WaitingRoom, Callable[[], Any]]:
        room = WaitingRoom(judge("Fit"))
        room.queue.put_group(group())
        add_members(room, count)
        ticket = room.queue.pop()
        assert isinstance(ticket, GroupTicket)
        for one in ticket.members:
            room.queue.give_back(one, one.pod, frozenset({"Fit"}), frozenset())
        room.queue.return_group(ticket, GroupResult.REJECTED, is_whole=False)
        return room, lambda: room.queue.on_event(NODE_ADDED, None, None)

    small, large = (work_of(made(count)[1]) for count in (SMALL, LARGE))
    assert large == small
