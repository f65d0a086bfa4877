"""Events that wait go out in one piece; what goes wrong with one of them is no one else's business."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from pilotage.api.calls import Lane
from pilotage.calls.dispatcher import DispatcherSettings
from pilotage.calls.retry import DEFAULT_POLICIES, LanePolicy
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.transport import TransportError
from pilotage.model.kinds import KindInfo
from tests.calls.sample_calls import Binding, Creating, Event, SampleCall, SlowServer
from tests.calls.test_dispatcher import Office, opened

FOUR = {**DEFAULT_POLICIES, Lane.EVENT: LanePolicy(1, tries=4, longest_pause=1.0, queue_seconds=60.0, together=4)}


class BundlingServer(SlowServer):
    """Begins what comes in one piece as one."""

    creates_together = True

    def __init__(self) -> None:
        super().__init__()
        self.errors: dict[str, Exception] = {}

    async def create_all(self, objects: Sequence[tuple[KindInfo, str, bytes]]) -> Sequence[Exception | None]:
        texts = [body.decode() for _, _, body in objects]
        await self.send(SampleCall("", " & ".join(texts)))
        return [self.errors.get(text) for text in texts]


def bundling(office: Office) -> BundlingServer:
    office.server = office.dispatcher.writer = server = BundlingServer()  # type: ignore[assignment]
    return server


async def test_those_that_wait_for_a_worker_go_in_one_piece() -> None:
    async with opened(DispatcherSettings(FOUR)) as office:
        server = bundling(office)
        await office.submit(*map(Creating, "abcdef"))
        assert server.begun == ["creating a & creating b & creating c & creating d"]
        assert office.dispatcher.report(10).lanes["event"].in_flight == 4
        await office.finish(server.begun[0])
        assert server.begun[1:] == ["creating e & creating f"]
        await office.finish(server.begun[1])
        assert office.told == [(f"creating {key}", "done") for key in "abcdef"]
        assert office.dispatcher.is_idle and [kind for kind, _, _ in office.executed] == ["creating"] * 6


async def test_one_alone_and_what_does_more_than_create_are_performed() -> None:
    async with opened(DispatcherSettings(FOUR)) as office:
        server = bundling(office)
        await office.submit(Creating("a"))
        await office.submit(Creating("b"), Event("c"), Creating("d"), Creating("e"))
        for text in ("creating a", "creating b", "event c", "creating d & creating e"):
            assert server.begun[-1] == text
            await office.finish(text)
        assert office.dispatcher.is_idle and len(office.told) == 5


async def test_each_has_its_own_outcome_and_is_tried_again_by_itself() -> None:
    async with opened(DispatcherSettings(FOUR)) as office:
        server = bundling(office)
        server.errors = {
            "creating b": ApiStatusError(403, "Forbidden", "not b"),
            "creating c": TransportError("cut off", sent=True),
        }
        await office.submit(*map(Creating, "abc"))
        await office.finish("creating a & creating b & creating c")
        assert [told[0] for told in office.told] == ["creating a", "creating b"]
        assert office.told[0][1] == "done" and "not b" in office.told[1][1]
        await office.clock.advance(1.0)
        assert server.begun[-1] == "creating c", "it may have happened: alone it can find out"
        await office.finish("creating c")
        assert office.told[-1] == ("creating c", "done") and office.dispatcher.is_idle


async def test_no_answer_for_too_long_gives_all_of_them_up() -> None:
    impatient = {**FOUR, Lane.EVENT: replace(FOUR[Lane.EVENT], try_seconds=10.0)}
    async with opened(DispatcherSettings(impatient)) as office:
        server = bundling(office)
        await office.submit(*map(Creating, "ab"))
        await office.clock.advance(20.0)
        assert server.begun[1:] == ["creating a"], "one after the other, each by itself"
        await office.finish("creating a")
        await office.finish("creating b")
        assert sorted(office.told) == [("creating a", "done"), ("creating b", "done")]
        assert office.dispatcher.is_idle


@pytest.mark.parametrize("waits", [Binding, Event])
async def test_the_first_waits_a_moment_for_others(waits: type[SampleCall]) -> None:
    async with opened(DispatcherSettings(FOUR, gather_seconds=0.05)) as office:
        server = bundling(office)
        await office.submit(Creating("a"))
        await office.submit(Creating("b"))
        assert not server.begun
        await office.clock.advance(0.05)
        assert server.begun == ["creating a & creating b"]
        await office.submit(waits("c"), *map(Creating, "defg"))
        assert server.begun[1:] == (["binding c"] if waits is Binding else []), "other lanes wait for nobody"
        await office.finish(server.begun[0])
        await asyncio.sleep(0)
        for _ in range(3):
            await office.clock.advance(0.05)
            for text in [text for text in server.begun if text not in server.ended]:
                await office.finish(text)
        assert office.dispatcher.is_idle and len(office.told) == 7
