"""The reflector against a server that plays tricks over real sockets: the sink must end up right every time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from pilotage.kube.client import KubeClient
from pilotage.kube.http_transport import HttpSettings, HttpTransport
from pilotage.kube.reflector import WATCH_SECONDS, Reflector, WatchedKind
from pilotage.model.kinds import KINDS
from pilotage.rng import seeded

from .manual_clock import HurriedClock
from .scripted_server import (
    Answer,
    ScriptedServer,
    StateSink,
    added,
    bookmark,
    deleted,
    line,
    modified,
    node,
    page,
    rejection,
    serving,
    status,
    stream,
)


class World:
    def __init__(
        self, server: ScriptedServer, stale_seconds: float = 60.0, on_contact: Callable[[bool], None] | None = None
    ) -> None:
        self.server = server
        self.sink = StateSink()
        self.clock = HurriedClock()
        self.transport = HttpTransport(server.connection(), HttpSettings(stale_seconds=stale_seconds))
        self.reflector = Reflector(
            KubeClient(self.transport),
            WatchedKind(KINDS["nodes"], page_size=2),
            self.sink,
            self.clock,
            seeded(1),
            on_contact=on_contact,
        )


@asynccontextmanager
async def running(
    server: ScriptedServer, *, stale_seconds: float = 60.0, on_contact: Callable[[bool], None] | None = None
) -> AsyncIterator[World]:
    async with serving(server):
        world = World(server, stale_seconds, on_contact)
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(world.reflector.run())
                yield world
                task.cancel()
        finally:
            await world.transport.close()


async def test_pages_become_one_replace_and_the_watch_starts_at_the_first_pages_version() -> None:
    server = ScriptedServer(
        [page(7, node("a", 1), node("b", 2), more="t1"), page(9, node("c", 3), more="t2"), page(9, node("d", 4))]
    )
    async with running(server) as world:
        await server.until_watched(1)
        assert world.sink.state == {"a": 1, "b": 2, "c": 3, "d": 4}
        assert world.sink.replaced == 1
        assert world.reflector.has_synced
        assert server.watched_from == ["7"]
    assert [query.get("continue", "") for query in server.listed] == ["", "t1", "t2"]
    assert {query["limit"] for query in server.listed} == {"2"}


async def test_lines_that_are_cut_anywhere_are_joined_and_whole_chunks_are_delivered_at_once() -> None:
    text = added("a", 11) + modified("a", 12) + added("b", 13) + deleted("a", 14) + added("c", 15)
    pieces = [text[:1], text[1:40], text[40:41], text[41:]]
    server = ScriptedServer([page(10)], [stream(*pieces, ending="silence")])
    async with running(server) as world:
        await world.sink.until(lambda state: "c" in state)
        assert world.sink.state == {"b": 13, "c": 15}
        assert sum(world.sink.batches) == 5
        assert len(world.sink.batches) <= len(pieces)


@pytest.mark.parametrize("ending", ["end", "cut"])
async def test_a_watch_that_ends_goes_on_after_the_last_event_without_a_new_list(ending: str) -> None:
    server = ScriptedServer(
        [page(10, node("a", 3))],
        [
            stream(added("b", 11), added("c", 12), ending=ending),
            stream(deleted("a", 13), ending=ending),
            stream(added("d", 14), ending="silence"),
        ],
    )
    async with running(server) as world:
        await world.sink.until(lambda state: "d" in state)
        assert world.sink.state == {"b": 11, "c": 12, "d": 14}
        assert server.watched_from == ["10", "12", "13"]
        assert len(server.listed) == 1


async def test_a_list_that_is_asked_for_is_made_at_once_and_the_watch_goes_on_from_it() -> None:
    server = ScriptedServer(
        [page(10, node("a", 3)), page(20, node("b", 15), more="t"), page(20, node("c", 16)), page(30, node("d", 25))],
        [stream(added("z", 11), ending="silence"), stream(ending="silence"), stream(ending="silence")],
    )
    async with running(server) as world:
        await world.sink.until(lambda state: "z" in state)
        await world.reflector.relist()
        assert world.sink.state == {"b": 15, "c": 16}
        await server.until_watched(2)
        await world.reflector.relist()
        assert world.sink.state == {"d": 25}
        await server.until_watched(3)
        assert server.watched_from == ["10", "20", "30"]


async def test_of_a_kind_that_is_not_served_there_is_nothing_to_list() -> None:
    server = ScriptedServer([rejection(404, "NotFound")] * 6 + [page(10)] * 9)
    async with running(server) as world:
        await world.reflector.wait_synced()
        await world.reflector.relist()
        assert world.sink.state == {}


async def test_an_unfinished_last_line_is_dropped_and_its_event_asked_for_again() -> None:
    server = ScriptedServer(
        [page(10)], [stream(added("a", 11), added("b", 12)[:20], ending="cut"), stream(added("b", 12))]
    )
    async with running(server) as world:
        await world.sink.until(lambda state: "b" in state)
        assert world.sink.state == {"a": 11, "b": 12}
        assert server.watched_from[:2] == ["10", "11"]


async def test_a_bookmark_moves_the_place_to_resume_from() -> None:
    chunk = added("a", 11) + bookmark(50)
    server = ScriptedServer([page(10)], [stream(chunk, ending="cut"), stream(bookmark(60)), stream(added("b", 61))])
    async with running(server) as world:
        await world.sink.until(lambda state: "b" in state)
        assert server.watched_from[:3] == ["10", "50", "60"]
        assert world.sink.batches == [1, 1]


async def test_a_change_after_a_bookmark_in_one_batch_wins() -> None:
    server = ScriptedServer([page(10)], [stream(bookmark(50) + added("a", 51), ending="cut")])
    async with running(server):
        await server.until_watched(2)
        assert server.watched_from == ["10", "51"]


GONE_AS_EVENT = stream(added("b", 11) + line("ERROR", status(410, "Expired", "too old resource version")))
GONE_AS_STATUS = rejection(410, "Expired")


@pytest.mark.parametrize("gone", [GONE_AS_EVENT, GONE_AS_STATUS], ids=["error-event", "http-status"])
async def test_a_version_that_is_too_old_leads_to_a_new_list_that_also_shows_deletions(gone: Answer) -> None:
    server = ScriptedServer(
        [page(10, node("a", 1), node("x", 2)), page(90, node("b", 80))],
        [gone, stream(added("c", 91), ending="silence")],
    )
    async with running(server) as world:
        await world.sink.until(lambda state: "c" in state)
        assert world.sink.state == {"b": 80, "c": 91}
        assert server.watched_from == ["10", "90"]
        assert world.reflector.lists_completed == 2


async def test_an_expired_continue_token_starts_the_list_again_with_larger_pages() -> None:
    server = ScriptedServer(
        [page(10, node("a", 1), node("b", 2), more="t1"), rejection(410, "Expired"), page(20, node("b", 12))]
    )
    async with running(server) as world:
        await server.until_watched(1)
        assert world.sink.state == {"b": 12}
        assert world.sink.replaced == 1
        assert server.watched_from == ["20"]
    assert [(query["limit"], query.get("continue", "")) for query in server.listed] == [
        ("2", ""),
        ("2", "t1"),
        ("20", ""),
    ]


async def test_a_failed_page_is_asked_for_again_and_not_the_whole_list() -> None:
    server = ScriptedServer(
        [
            page(10, node("a", 1), more="t1"),
            rejection(500, "InternalError"),
            Answer(502, b"<html>bad gateway</html>"),
            Answer(200, b"not json at all"),
            page(10, node("b", 2)),
        ]
    )
    async with running(server) as world:
        await server.until_watched(1)
        assert world.sink.state == {"a": 1, "b": 2}
    assert [query.get("continue", "") for query in server.listed] == ["", "t1", "t1", "t1", "t1"]


async def test_delays_grow_with_failures_up_to_a_limit_and_start_small_again_after_success() -> None:
    server = ScriptedServer(
        [page(10)],
        [rejection(500, "InternalError")] * 2
        + [rejection(429, "TooManyRequests")]
        + [stream(added("a", 11), ending="cut"), rejection(500, "InternalError")],
    )
    async with running(server) as world:
        await server.until_watched(6)
        naps = world.clock.naps
        for step, nap in enumerate(naps[:3]):
            assert 0.05 * 2**step <= nap <= 0.15 * 2**step
        assert naps[3] <= 0.15
        assert naps[4] <= 0.3
        assert world.sink.replaced == 1


async def test_the_server_is_not_asked_before_the_time_it_asked_for() -> None:
    patience = {"Retry-After": "7"}
    server = ScriptedServer(
        [rejection(429, "TooManyRequests", headers=patience), page(10)],
        [rejection(429, "TooManyRequests", headers=patience)] * 20,
    )
    async with running(server) as world:
        await server.until_watched(21)
        assert world.clock.naps[:21] == [nap for nap in world.clock.naps[:21] if nap >= 7]
        assert world.sink.replaced == 1, "a server that is too busy must not be burdened with lists"


@pytest.mark.parametrize(
    "answer",
    [
        rejection(400, "BadRequest", "invalid resource version"),
        rejection(504, "Timeout", "Too large resource version: 10"),
    ],
    ids=["unknown-version", "version-of-the-future"],
)
async def test_a_version_that_the_server_never_had_leads_to_a_new_list(answer: Answer) -> None:
    server = ScriptedServer([page(10, node("a", 5)), page(3, node("a", 2))], [answer])
    async with running(server) as world:
        await server.until_watched(2)
        assert world.sink.state == {"a": 2}
        assert server.watched_from == ["10", "3"]


async def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_tight_loop() -> None:
    server = ScriptedServer([page(10)], [stream()] * 12)
    async with running(server) as world:
        await server.until_watched(13)
        assert len(world.clock.naps) == 12
        assert world.clock.naps[-1] > 10
        assert world.sink.replaced == 1


async def test_lists_in_quick_succession_are_spaced_out() -> None:
    server = ScriptedServer([page(i) for i in range(10, 16)], [rejection(410, "Expired")] * 5)
    async with running(server) as world:
        await server.until_watched(6)
        assert len(world.clock.naps) == 5
        assert world.clock.naps[-1] > 4 * world.clock.naps[0]


async def test_a_server_that_keeps_talking_nonsense_is_asked_for_a_new_list_in_the_end() -> None:
    server = ScriptedServer(
        [page(10), page(20, node("b", 15))],
        [stream(added("a", 11), b"%$&?\n")] + [stream(b'{"type": 5}\n')] * 20,
    )
    async with running(server) as world:
        await world.sink.until(lambda state: "b" in state)
        assert set(server.watched_from[1:3]) == {"11"}, "one bad line is first met with a resume"
        assert len(server.listed) == 2


@pytest.mark.parametrize("code", [500, 503])
async def test_a_server_that_fails_to_watch_three_times_is_asked_for_a_new_list(code: int) -> None:
    """It took eight failures before, which is a quarter of a minute of decisions by what was."""
    server = ScriptedServer([page(10, node("a", 5)), page(20, node("b", 15))], [rejection(code, "InternalError")] * 3)
    async with running(server) as world:
        await world.sink.until(lambda state: "b" in state)
        await server.until_watched(4)
        assert server.watched_from == ["10", "10", "10", "20"]
        assert sum(world.clock.naps) < 1.0


async def test_a_server_that_lists_but_cannot_watch_is_asked_for_lists_ever_more_rarely() -> None:
    rounds = 8
    server = ScriptedServer([page(10 + i) for i in range(rounds)], [rejection(500, "InternalError")] * 3 * (rounds - 1))
    async with running(server) as world:
        await server.until_watched(3 * (rounds - 1) + 1)
        before_lists = world.clock.naps[2::3]
        assert len(server.listed) == rounds and len(before_lists) == rounds - 1
        for step, nap in enumerate(before_lists):
            assert 0.05 * 2**step <= nap <= 0.15 * 2**step, "doubling, and spread by chance"


async def test_interruptions_are_reported_once_and_so_is_their_end() -> None:
    told: list[bool] = []
    server = ScriptedServer(
        [page(10)], [rejection(503, "ServiceUnavailable")] * 2 + [stream(added("a", 11), ending="silence")]
    )
    async with running(server, on_contact=told.append) as world:
        await world.sink.until(lambda state: "a" in state)
        assert told == [False, True]


async def test_a_watch_that_ends_in_time_is_no_interruption() -> None:
    told: list[bool] = []
    server = ScriptedServer([page(10)], [stream(added("a", 11)), stream(added("b", 12), ending="silence")])
    async with running(server, on_contact=told.append) as world:
        await world.sink.until(lambda state: "b" in state)
        assert told == []


async def test_events_before_a_bad_line_of_the_same_chunk_count() -> None:
    server = ScriptedServer(
        [page(10)], [stream(added("a", 11) + b"garbage\n" + added("b", 12)), stream(added("b", 12))]
    )
    async with running(server) as world:
        await world.sink.until(lambda state: "b" in state)
        assert world.sink.state == {"a": 11, "b": 12}
        assert server.watched_from[:2] == ["10", "11"]


async def test_a_server_that_is_not_there_yet_and_goes_away_is_followed_when_it_is_back() -> None:
    server = ScriptedServer(
        [page(10, node("a", 1))], [stream(added("b", 11), ending="silence"), stream(added("c", 12), ending="silence")]
    )
    await server.start()
    await server.stop()
    world = World(server)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(world.reflector.run())
        await world.clock.until_napped(3)
        assert not world.reflector.has_synced
        await server.start()
        await world.sink.until(lambda state: "b" in state)
        await server.stop()
        await server.start()
        await world.sink.until(lambda state: "c" in state)
        assert server.watched_from == ["10", "11"]
        assert len(server.listed) == 1
        task.cancel()
    await world.transport.close()
    await server.stop()


async def test_a_connection_on_which_nothing_arrives_is_given_up() -> None:
    server = ScriptedServer(
        [page(10)], [stream(added("a", 11), ending="silence"), stream(added("b", 12), ending="silence")]
    )
    async with running(server, stale_seconds=0.2) as world:
        await world.sink.until(lambda state: "b" in state)
        assert server.watched_from[:2] == ["10", "11"]


async def test_an_object_that_does_not_decode_is_skipped_counted_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = node("bad", 12, spec={"unschedulable": "yes"})
    server = ScriptedServer(
        [page(10, node("a", 1), node("bad", 2, spec=5))],
        [stream(line("MODIFIED", broken) + added("b", 13), line("MODIFIED", broken), ending="silence")],
    )
    with caplog.at_level(logging.WARNING):
        async with running(server) as world:
            await world.sink.until(lambda state: "b" in state)
            assert world.sink.state == {"a": 1, "b": 13}
            assert len(world.reflector.undecodable) == 1
            assert world.reflector.undecodable.skipped_total >= 2
            assert len(server.listed) == 1
    assert sum("Node bad" in record.getMessage() for record in caplog.records) == 1


async def test_an_object_that_no_longer_decodes_disappears_from_the_sink() -> None:
    broken = node("a", 12, spec={"unschedulable": "yes"})
    server = ScriptedServer(
        [page(10, node("a", 1)), page(12, broken)],
        [stream(line("MODIFIED", broken)), stream(line("MODIFIED", broken) + modified("a", 14), ending="silence")],
    )
    async with running(server) as world:
        await world.sink.until(lambda state: world.sink.replaced == 2)
        assert not world.sink.state
        assert len(world.reflector.undecodable) == 1
        await world.sink.until(lambda state: state == {"a": 14})
        assert len(world.reflector.undecodable) == 0
        assert len(server.listed) == 2


async def test_a_deletion_that_does_not_decode_is_not_lost() -> None:
    broken = node("a", 12, spec={"unschedulable": "yes"})
    server = ScriptedServer(
        [page(10, node("a", 1), node("b", 2)), page(12, node("b", 2))], [stream(line("DELETED", broken))]
    )
    async with running(server) as world:
        await world.sink.until(lambda state: state == {"b": 2})
        assert world.reflector.lists_completed == 2


async def test_a_kind_that_the_server_does_not_know_counts_as_synced_and_is_found_when_installed() -> None:
    missing = rejection(404, "NotFound", "the server could not find the requested resource")
    server = ScriptedServer([missing] * 6 + [page(10, node("a", 1))])
    async with running(server) as world:
        await world.reflector.wait_synced()
        assert not world.reflector.is_served
        await world.sink.until(lambda state: "a" in state)
        assert world.reflector.is_served
        assert world.sink.replaced == 2


async def test_a_kind_that_is_uninstalled_loses_its_objects_only_when_it_stays_away() -> None:
    missing = rejection(404, "NotFound")
    server = ScriptedServer(
        [page(10, node("a", 1)), missing, page(20, node("a", 1)), *[missing] * 3, page(30)], [missing, missing]
    )
    async with running(server) as world:
        await world.sink.until(lambda state: not state and world.sink.replaced == 3)
        await server.until_watched(3)
        assert world.sink.replaced == 4


async def test_a_missing_permission_names_the_rule_that_would_fix_it(caplog: pytest.LogCaptureFixture) -> None:
    denial = rejection(403, "Forbidden", 'nodes is forbidden: User "u" cannot list resource "nodes"')
    server = ScriptedServer([denial, denial, page(10)])
    with caplog.at_level(logging.WARNING):
        async with running(server):
            await server.until_watched(1)
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 1
    assert 'add to the role: - {apiGroups: [""], resources: ["nodes"], verbs: ["list", "watch"]}' in messages[0]


async def test_contact_with_the_server_is_timed() -> None:
    server = ScriptedServer([page(10)], [stream(ending="cut"), stream(added("a", 11), ending="silence")])
    async with running(server) as world:
        before = world.reflector.last_contact
        await world.sink.until(lambda state: "a" in state)
        assert world.reflector.last_contact == world.clock.now > before


async def test_a_cancelled_reflector_closes_its_stream() -> None:
    server = ScriptedServer([page(10)])
    async with serving(server):
        world = World(server)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(world.reflector.run())
            await server.until_watched(1)
            task.cancel()
        async with asyncio.timeout(20):
            await server.stream_was_left.wait()
        await world.transport.close()


async def test_a_kind_that_the_server_does_not_have_is_heard_of_too() -> None:
    server = ScriptedServer([rejection(404, "NotFound")] * 6 + [page(10)])
    async with running(server) as world:
        assert (world.reflector.contact_age or 0.0) == 0.0
        await server.until_watched(1)
        assert (world.reflector.contact_age or 0.0) < 1.0


async def test_the_age_of_the_last_contact_grows_while_nothing_is_heard_and_a_bookmark_ends_that() -> None:
    server = ScriptedServer([page(10)], [stream(bookmark(11), ending="silence")])
    async with serving(server):
        world = World(server)
        assert world.reflector.contact_age is None, "nobody watches yet"
        async with asyncio.TaskGroup() as group:
            task = group.create_task(world.reflector.run())
            await server.until_watched(1)
            while world.reflector._position != "11":  # noqa: ASYNC110 - nobody is told of a bookmark
                await asyncio.sleep(0.01)
            world.clock.now += 50.0
            assert world.reflector.contact_age == 50.0
            task.cancel()
        await world.transport.close()


def test_a_silent_stream_is_given_up_soon_after_the_longest_watch() -> None:
    assert WATCH_SECONDS[1] < HttpSettings().stale_seconds <= WATCH_SECONDS[1] + 60
