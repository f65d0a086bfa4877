"""A gang that small pods keep out has room kept for it, for a time, and then starts."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pilotage.config.load import parse_configuration
from pilotage.config.problems import ConfigError
from pilotage.cycle.group_reservation import ReservationSettings
from pilotage.simulate.shorthands import full_object
from tests.cycle.group_world import GroupWorld, group, members, node, pod, world

SOON = ReservationSettings(after_seconds=60, lasts_seconds=180)
LIMIT = 60 + 28 + 16 * 10 + 28
"""It waits, up to its next turn; whatever runs ends, one pod every ten seconds; its next turn."""
OFF = ReservationSettings(after_seconds=0)


async def full_cluster(w: GroupWorld) -> None:
    await w.apply(*(node(f"n{number}", cpu=4) for number in range(4)))
    await w.apply(*(pod(f"first-{number}") for number in range(16)))
    await w.apply(group("g", min=8), *members("g", 8))


async def stream(w: GroupWorld) -> AsyncIterator[float]:
    """Every ten seconds a small pod ends, and two that wait already would like to have its room; tells the time."""
    running = [f"first-{number}" for number in range(16)]
    for turn in range(60):
        await w.apply(pod(f"small-{turn}-a"), pod(f"small-{turn}-b"))
        await w.remove(running.pop(0))
        await w.after(10)
        running += sorted(name for name in w.bound() if name.startswith("small-") and name not in running)
        yield w.stage.clock.monotonic()


async def test_a_large_gang_starts_within_a_bound_among_small_pods_that_come_without_end() -> None:
    async with world(reservation=SOON) as w:
        await full_cluster(w)
        async for now in stream(w):
            if w.node_of("g-0"):
                break
            assert now <= LIMIT, now
        assert {f"g-{number}" for number in range(8)} <= w.bound()


async def test_without_it_the_gang_waits_for_ever() -> None:
    async with world(reservation=OFF) as w:
        await full_cluster(w)
        async for _ in stream(w):
            assert not w.node_of("g-0")


async def test_more_important_pods_and_other_nodes_are_left_alone() -> None:
    async with world(reservation=SOON) as w:
        await w.apply(node("a", cpu=4), node("b", cpu=4), pod("old-a", cpu=2, node="a"), pod("old-b", cpu=3, node="b"))
        await w.apply(group("g", min=2), *members("g", 2, cpu=2))
        await w.after(90)
        assert "room on 1 node is kept for it" in w.group_message("g")
        kept = {one.name for one in w.cluster.nominations.on("a")}
        assert kept == {"g-0", "g-1"}, "on the node where the fewest have to end"
        await w.apply(pod("small"), pod("urgent", priority=10))
        assert w.node_of("small") == "b", "elsewhere nothing is kept"
        assert w.node_of("urgent") == "a"
        await w.remove("urgent", "old-a")
        await w.after(60)
        assert w.node_of("g-0") == w.node_of("g-1") == "a"


async def test_it_ends_and_others_have_their_turn() -> None:
    async with world(reservation=SOON) as w:
        await w.apply(node("a", cpu=4), pod("for-ever", cpu=2, node="a"))
        await w.apply(group("g", min=4), *members("g", 4))
        await w.after(90)
        await w.apply(pod("small"))
        assert not w.node_of("small")
        await w.after(260)
        assert w.node_of("small") == "a", "a reservation that comes to nothing does not keep the node for ever"
        assert not list(w.cluster.nominations.nodes())


async def test_one_group_at_a_time_and_none_for_what_never_fits() -> None:
    async with world(reservation=SOON) as w:
        await w.apply(node("a", cpu=4), node("b", cpu=4), pod("x", cpu=4, node="a"), pod("y", cpu=4, node="b"))
        for name, size in (("g", 4), ("h", 4), ("too-large", 9)):
            await w.apply(group(name, min=size), *members(name, size))
        await w.after(100)
        owners = {one.name[0] for n in w.cluster.nominations.nodes() for one in w.cluster.nominations.on(n)}
        assert len(owners) == 1 and owners <= {"g", "h"}
        await w.remove("x", "y")
        await w.after(120)
        assert {f"{name}-{number}" for name in "gh" for number in range(4)} <= w.bound()


async def test_pods_of_daemon_sets_are_not_expected_to_end() -> None:
    async with world(reservation=SOON) as w:
        await w.apply(node("a", cpu=4), node("b", cpu=4))
        daemon = full_object(pod("daemon", cpu=2, node="a"))
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
        w.stage.api.add({**daemon, "metadata": {**daemon["metadata"], "ownerReferences": [owner]}})
        await w.apply(pod("x", cpu=4, node="b"), group("g", min=3), *members("g", 3))
        await w.after(90)
        assert set(w.cluster.nominations.nodes()) == {"b"}


async def test_a_node_that_goes_is_replaced() -> None:
    async with world(reservation=SOON) as w:
        await w.apply(node("a", cpu=4), node("b", cpu=4), pod("x", cpu=2, node="a"), pod("y", cpu=4, node="b"))
        await w.apply(group("g", min=3), *members("g", 3))
        await w.after(90)
        assert set(w.cluster.nominations.nodes()) == {"a"}
        w.stage.api.remove(("Node", "", "a"))
        await w.after(60)
        assert set(w.cluster.nominations.nodes()) == {"b"}


def test_settings_are_checked() -> None:
    text = "apiVersion: config.pilotage.dev/v1alpha1\nkind: PilotageConfiguration\n"
    additions = parse_configuration(f"{text}gangReservationAfter: 0s\ngangReservationLasts: 1m\n").additions
    assert (additions.gang_reservation_after, additions.gang_reservation_lasts) == (0, 60)
    with pytest.raises(ConfigError, match="gangReservationLasts"):
        parse_configuration(f"{text}gangReservationLasts: 0s\n")
