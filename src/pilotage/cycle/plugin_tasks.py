"""What plugins do beside the cycles: background tasks, and what they do when the scheduler ends.

    registered -- the scheduler starts to schedule --> running -- returns --> over
                                                         |  raises: counted, logged once per kind of error
                                                         +--> waits, 1 s at first and a minute at most --> running

Tasks live in the scheduler's own task group. Whatever they raise ends neither it nor the scheduler.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, TypeAlias

from msgspec import Struct

from pilotage.api.budget import BudgetExceeded
from pilotage.api.plugin import Plugin
from pilotage.clock import Clock
from pilotage.observe.plugin_errors import PluginErrors

log = logging.getLogger(__name__)

BackgroundWork: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0
"""A task that ran for so long before it failed begins with the first pause again."""
CLOSE_SECONDS: Final = 5.0
"""What all plugins together may take to end their tasks and to close."""
_POINT: Final = "Background"
_RAISED: Final = (Exception, BudgetExceeded, SystemExit)


class _Background(Struct, frozen=True):
    plugin: str
    name: str
    work: BackgroundWork


class PluginTasks:
    """Of all plugins of all profiles."""

    def __init__(self, clock: Clock, errors: PluginErrors) -> None:
        self._clock = clock
        self._errors = errors
        self._registered: list[_Background] = []
        self._group: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[None]] = set()

    def add(self, plugin: str, work: BackgroundWork, name: str = "") -> None:
        """Run it from the start of scheduling on, or from now on; TypeError if it is no coroutine function."""
        check_background(work)
        background = _Background(plugin, name or getattr(work, "__name__", "task"), work)
        self._registered.append(background)
        if self._group is not None:
            self._start(background)

    def start(self, tasks: asyncio.TaskGroup) -> None:
        self._group = tasks
        for background in self._registered:
            self._start(background)

    def _start(self, background: _Background) -> None:
        assert self._group is not None
        title = f"plugin {background.plugin}: {background.name}"
        task = self._group.create_task(self._keep_running(background), name=title)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _keep_running(self, background: _Background) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            began = self._clock.monotonic()
            try:
                await background.work()
                return
            except asyncio.CancelledError as error:
                if _is_cancelled():
                    raise
                self._failed(background, error)
            except _RAISED as error:
                self._failed(background, error)
            if self._clock.monotonic() - began >= LONGEST_PAUSE_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            await self._clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _failed(self, background: _Background, error: BaseException) -> None:
        self._errors.note(background.plugin, f"{_POINT} {background.name}", error)

    # --- the end -----------------------------------------------------------------------------------------------

    async def end(self, plugins: Iterable[Plugin]) -> None:
        """Cancel the tasks, then let the plugins close; gives up after a few seconds."""
        closing = [plugin for plugin in plugins if type(plugin).close is not Plugin.close]
        if self._group is None or not (self._running or closing):
            return
        ending = self._group.create_task(self._end(closing), name="plugins end")
        timer = self._group.create_task(self._clock.sleep(CLOSE_SECONDS), name="limit of the plugins' end")
        await asyncio.wait([ending, timer], return_when=asyncio.FIRST_COMPLETED)
        timer.cancel()
        if not ending.done():
            late = ", ".join(sorted(task.get_name() for task in self._running)) or "close()"
            log.warning("plugins did not end within %g s and are left alone: %s", CLOSE_SECONDS, late)
            ending.cancel()

    async def _end(self, closing: Iterable[Plugin]) -> None:
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)
        for plugin in closing:
            try:
                await plugin.close()
            except asyncio.CancelledError as error:
                if _is_cancelled():
                    raise
                self._errors.note(plugin.plugin_name(), "Close", error)
            except _RAISED as error:
                self._errors.note(plugin.plugin_name(), "Close", error)


def check_background(work: BackgroundWork) -> None:
    """TypeError if it is no coroutine function."""
    if not inspect.iscoroutinefunction(work):
        raise TypeError(f"run_in_background takes a method written as async def, without arguments, got {work!r:.200}")


def _is_cancelled() -> bool:
    """Whether the present task was cancelled by its owner, not by other code in it."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
