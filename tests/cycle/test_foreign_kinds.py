"""Kinds that plugins watch, at a whole scheduler: objects, events, and a kind that comes and goes."""

from __future__ import annotations

import logging
import random

import pytest

from pilotage.api import CycleState, Filter, Handle, Kind, NodeView, Plugin, Rejection
from pilotage.assembly import SchedulerOptions, options_from_configuration, watched_kinds
from pilotage.config.load import default_configuration
from pilotage.framework.errors import ProfileError
from pilotage.model import Pod
from tests.cycle.foreign_kinds_world import (
    CRDS,
    TICKET,
    TICKETS,
    PlainTickets,
    Tickets,
    definition,
    ticket,
    world,
)


async def test_an_object_of_a_custom_kind_wakes_the_pod_that_waits_for_it() -> None:
    async with world(Tickets) as here:
        here.pod("a")
        here.pod("b")
        await here.after(5)
        assert (here.node_of("a"), here.node_of("b")) == ("", "")
        here.api.create(TICKETS, "default", ticket("a"))
        await here.after(15)
        assert here.node_of("a") and not here.node_of("b")
        # The narrowing names one pod, so the hint is asked about that one only.
        assert here.plugin("Tickets").asked == ["a"]


async def test_an_update_and_a_closed_ticket() -> None:
    async with world(Tickets) as here:
        here.api.create(TICKETS, "default", ticket("a", is_open=False))
        here.pod("a")
        await here.after(5)
        assert not here.node_of("a")
        here.put(ticket("a"))
        await here.after(15)
        assert here.node_of("a")


async def test_objects_as_plain_dicts() -> None:
    async with world(PlainTickets) as here:
        here.pod("a")
        await here.after(5)
        here.api.create(TICKETS, "default", ticket("a"))
        await here.after(15)
        assert here.node_of("a")


async def test_two_plugins_see_one_kind_each_in_its_own_type() -> None:
    async with world(Tickets, PlainTickets) as here:
        here.pod("a")
        await here.after(5)
        here.api.create(TICKETS, "default", ticket("a"))
        await here.after(15)
        assert here.node_of("a")
        assert len(here.scheduler.cluster.kinds.foreign) == 2


async def test_a_kind_that_is_installed_later_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async with world(Tickets, installed=False) as here:
        here.pod("a")
        await here.after(60)
        assert here.process.has_synced and dict(here.plugin("Tickets").tickets) == {}
        warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
        assert [text for text in warnings if TICKETS.partition(".")[0] in text] == [
            "tickets.v1.example.com: the API server does not have this kind: there is no API group example.com; "
            "it is watched as soon as it is installed"
        ]
        here.api.create(CRDS, "", definition())
        here.api.create(TICKETS, "default", ticket("a"))
        await here.after(60)
        assert here.node_of("a")


async def test_a_kind_that_disappears_and_comes_back() -> None:
    async with world(Tickets) as here:
        here.api.create(TICKETS, "default", ticket("a"))
        await here.after(1)
        assert list(here.plugin("Tickets").tickets) == ["default/a"]
        here.api.delete(CRDS, "", TICKETS)
        await here.after(300)
        assert dict(here.plugin("Tickets").tickets) == {} and here.plugin("Tickets").open.names == set()
        here.pod("a")
        await here.after(5)
        assert not here.node_of("a")
        here.api.create(CRDS, "", definition())
        here.api.create(TICKETS, "default", ticket("a"))
        await here.after(60)
        assert here.node_of("a")


@pytest.mark.parametrize(
    ("installed", "sentence"),
    [
        (definition("ticketts"), 'example.com/v1 has no tickets (did you mean "ticketts"?)'),
        (definition(version="v2"), "example.com has no version v1, but v2"),
        (definition(group="exampel.com"), 'there is no API group example.com (did you mean "exampel.com"?)'),
    ],
    ids=["plural", "version", "group"],
)
async def test_a_misspelt_kind_is_reported_with_what_there_is(
    installed: dict[str, object], sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with world(Tickets, installed=False) as here:
        here.api.create(CRDS, "", installed)
        await here.after(90)
        assert any(sentence in record.message for record in caplog.records if record.levelno == logging.WARNING)


async def test_an_object_that_does_not_decode_is_skipped_told_once_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with world(Tickets) as here:
        here.api.create(TICKETS, "default", ticket("odd", is_open="perhaps"))
        here.api.create(TICKETS, "default", ticket("a"))
        here.pod("a")
        await here.after(15)
        assert here.node_of("a")
        here.put(ticket("odd", is_open="maybe"))
        await here.after(5)
        logged = [record.message for record in caplog.records if "default/odd" in record.message]
        assert len(logged) == 1 and "spec.isOpen: expected boolean, got string" in logged[0]
        skipped = here.scheduler.metrics.skipped
        assert [(one.kind, one.key, one.stage) for one in skipped] == [(TICKET.name, "default/odd", "decode")]
        assert skipped.concerning("default")
        here.put(ticket("odd"))
        await here.after(5)
        assert list(skipped) == [] and "default/odd" in here.plugin("Tickets").tickets


async def test_nothing_is_watched_for_a_plugin_that_no_profile_enables() -> None:
    async with world(Tickets, disabled="Tickets") as here:
        assert here.scheduler.cluster.kinds.foreign == {}
        assert all(reflector.kind.plural != "tickets" for reflector in here.process.reflectors)


def test_without_such_plugins_nothing_is_added() -> None:
    assert watched_kinds(SchedulerOptions()).foreign == {}


class AsksForMore(Plugin, Filter):
    watches = (TICKET,)

    def __init__(self, handle: Handle) -> None:
        handle.objects(Kind("stamps.example.com", "v1"))

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return None


async def test_a_plugin_that_asks_for_a_kind_that_it_does_not_watch_cannot_be_made() -> None:
    options = options_from_configuration(default_configuration(), [AsksForMore])
    assert list(watched_kinds(options).foreign) == [TICKET.name]
    with pytest.raises(ProfileError, match=r"stamps.v1.example.com is watched by no enabled plugin"):
        async with world(AsksForMore):
            pass


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_happens_to_the_kind_the_plugin_sees_what_there_is(seed: int) -> None:
    """Tickets come, change and go, some unreadable; the kind itself is removed and installed; pods wait for them."""
    rng = random.Random(seed)
    async with world(Tickets, PlainTickets, installed=rng.random() < 0.5) as here:
        names = [f"t{number}" for number in range(6)]
        for name in names:
            here.pod(name)
        for _ in range(40):
            is_installed = here.api.find(CRDS, "", TICKETS) is not None
            name = rng.choice(names)
            known = is_installed and here.api.find(TICKETS, "default", name) is not None
            match rng.choice(["put", "put", "put", "delete", "kind", "wait"]):
                case "put" if is_installed:
                    made = ticket(name, is_open=rng.choice([False, False, False, True, "perhaps"]))
                    if known:
                        here.put(made)
                    else:
                        here.api.create(TICKETS, "default", made)
                case "delete" if known:
                    here.api.delete(TICKETS, "default", name)
                case "kind" if not is_installed:
                    here.api.create(CRDS, "", definition())
                case "kind" if rng.random() < 0.3:
                    here.api.delete(CRDS, "", TICKETS)
                case "wait":
                    await here.after(rng.choice([0.01, 1, 40]))
        # Longer than a watch of the sandbox lasts.
        await here.after(290)
        found = [] if here.api.find(CRDS, "", TICKETS) is None else here.api.list(TICKETS)
        readable = {f"default/{one['metadata']['name']}" for one in found if one["spec"]["isOpen"] != "perhaps"}
        assert here.plugin("Tickets").tickets.keys() == readable
        is_open = {one["metadata"]["name"] for one in found if one["spec"]["isOpen"] is True}
        assert here.plugin("Tickets").open.names == {f"default/{name}" for name in is_open}
        assert all(here.node_of(name) for name in is_open)
