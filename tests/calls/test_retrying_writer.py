"""Calls that are tried again, and answers that are final."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilotage.calls.retrying_writer import RetryingWriter
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.transport import TransportError
from pilotage.model import KINDS
from pilotage.testing import VirtualClock


class Moody:
    """Fails as told, then works."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.calls: list[str] = []

    async def bind(self, namespace: str, pod: str, uid: str, node: str) -> None:
        self._do("bind")

    async def patch(self, *arguments: Any, **options: Any) -> bytes:
        self._do("patch")
        return b"{}"

    async def create(self, *arguments: Any, **options: Any) -> bytes:
        self._do("create")
        return b"{}"

    async def update(self, *arguments: Any, **options: Any) -> bytes:
        self._do("update")
        return b"{}"

    async def delete(self, *arguments: Any, **options: Any) -> bytes:
        self._do("delete")
        return b"{}"

    def _do(self, call: str) -> None:
        self.calls.append(call)
        if self.failures:
            raise self.failures.pop(0)


def answer(code: int) -> ApiStatusError:
    return ApiStatusError(code, "", "no")


UNSENT = TransportError("refused", sent=False)


async def bind(writer: Moody) -> float:
    """Bind a pod; returns the seconds that it took."""
    clock = VirtualClock()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(RetryingWriter(writer, clock).bind("default", "p", "uid", "n"))
        await clock.run_until_idle()
    return clock.monotonic()


async def test_passing_trouble_is_waited_out() -> None:
    writer = Moody(answer(500), answer(503), UNSENT)
    assert await bind(writer) == pytest.approx(0.31)
    assert writer.calls == ["bind"] * 4


async def test_what_does_not_pass_is_told_after_the_fourth_time() -> None:
    writer = Moody(*(answer(500) for _ in range(5)))
    with pytest.raises(ExceptionGroup) as raised:
        await bind(writer)
    assert raised.group_contains(ApiStatusError) and writer.calls == ["bind"] * 4


@pytest.mark.parametrize("final", [answer(409), answer(404), answer(429), TransportError("cut", sent=True)])
async def test_an_answer_is_final(final: Exception) -> None:
    writer = Moody(final)
    with pytest.raises(type(final)):
        await RetryingWriter(writer, VirtualClock()).bind("default", "p", "uid", "n")
    assert writer.calls == ["bind"]


async def test_patches_are_tried_again_and_what_may_be_done_twice_is_not() -> None:
    kind, clock = KINDS["pods"], VirtualClock()
    writer = Moody(answer(500))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(RetryingWriter(writer, clock).patch(kind, "default", "p", b"{}"))
        await clock.run_until_idle()
    assert writer.calls == ["patch", "patch"]
    for call in ("create", "update", "delete"):
        writer = Moody(answer(500))
        arguments = (kind, "default", b"{}") if call == "create" else (kind, "default", "p", b"{}")
        with pytest.raises(ApiStatusError):
            await getattr(RetryingWriter(writer, clock), call)(*arguments)
        assert writer.calls == [call]
