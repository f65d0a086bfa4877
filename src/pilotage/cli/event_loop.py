"""Commands that run for a while: one event loop, and an orderly end when the user or the system asks for it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from pilotage.cli.errors import bad_input
from pilotage.kube.errors import KubeconfigError
from pilotage.tasks import sole_error

_Result = TypeVar("_Result")


def run(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run to the end; an error comes out as it is, except that certificates that cannot be used are wrong input."""
    try:
        with sole_error(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(work)
    except KubeconfigError as error:
        raise bad_input(str(error)) from error


async def until_interrupted(work: Coroutine[Any, Any, None]) -> bool:
    """Run `work` until it ends (True), or cancel it at the first SIGINT or SIGTERM (False); a second one kills."""
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        interrupted.set()
        _forget_signals(loop)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    try:
        async with asyncio.TaskGroup() as tasks:
            working = tasks.create_task(work, name="command")
            waiting = tasks.create_task(interrupted.wait(), name="signals")
            await asyncio.wait([working, waiting], return_when=asyncio.FIRST_COMPLETED)
            working.cancel()
            waiting.cancel()
        return not interrupted.is_set()
    finally:
        _forget_signals(loop)


async def until_stopped(work: Coroutine[Any, Any, _Result], stop: Callable[[], None]) -> _Result:
    """The outcome of `work`; the first SIGINT or SIGTERM calls `stop`, which lets it end. A second one kills."""
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        _forget_signals(loop)
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    try:
        return await work
    finally:
        _forget_signals(loop)


def _forget_signals(loop: asyncio.AbstractEventLoop) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(number)
