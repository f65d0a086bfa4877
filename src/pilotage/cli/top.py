"""`pilotage top`: who waits and why, queues and nodes of a cluster, live in the terminal."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import termios
import tty
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

import click
from msgspec.structs import replace as replaced
from rich.live import Live

from pilotage.api.budget import Budget, BudgetExceeded
from pilotage.assembly import SchedulerOptions
from pilotage.cli.console import followed
from pilotage.cli.errors import bad_input
from pilotage.cli.event_loop import run, until_interrupted
from pilotage.cli.logs import logs_held_back
from pilotage.cli.options import common_options
from pilotage.cli.queueing_flags import queueing_flags
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags
from pilotage.cli.terminal import PlainConsole
from pilotage.cli.top_view import SORTS, Screen, TopView, wrapped
from pilotage.clock import Clock, SystemClock
from pilotage.console.source import ConsoleSource, Waiting
from pilotage.explain.group_text import render_group
from pilotage.explain.render import render
from pilotage.explain.report import GroupReport
from pilotage.explain.subject import UnknownSubject
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.kube.connection import Connection
from pilotage.kube.errors import KubeconfigError
from pilotage.kube.kubeconfig import load_connection
from pilotage.serve.console_door import Sight

_EPILOG = """\b
Examples:
  pilotage top
  pilotage top --kubeconfig staging.yaml --sort p
  pilotage top --once | head -20
"""
_LOOK_AGAIN_SECONDS: Final = 2.0
_REPORT_SECONDS: Final = 1.0
_WIDTH_WITHOUT_TERMINAL: Final = 160
_EVERYTHING: Final = Sight()
_QUIT: Final = frozenset({"q", "Q"})
_MOST_KEYS: Final = 1024
_KEY: Final = re.compile(rb"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|[\x00-\x7f]")
_KEY_NAMES: Final = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1b": "escape",
    b"\r": "enter",
    b"\n": "enter",
    b"\x7f": "escape",
}


@click.command(epilog=_EPILOG)
@click.option("--kubeconfig", metavar="F", help="Kubeconfig file.  [default: as kubectl: $KUBECONFIG, ~/.kube/config]")
@click.option("--context", "context_name", metavar="C", help="Context in it.  [default: its current context]")
@click.option("--once", is_flag=True, help="Print everything once and end; so it is without a terminal.")
@click.option(
    "--sort",
    type=click.Choice(list(SORTS)),
    default="w",
    show_default=True,
    help="Who comes first: waits longest, most pods, priority (r), name.",
)
@queueing_flags(is_on=True)
@scheduler_flags
@common_options
def top(
    kubeconfig: str | None,
    context_name: str | None,
    once: bool,
    sort: str,
    queueing: QueueingConfiguration | None,
    flags: SchedulerFlags,
) -> None:
    """Watch a cluster in the terminal: queues, throughput, why pods wait, nodes.

    Keys: w, p, r, n sort; up and down choose, Enter opens a pod or a group with the reasons, Escape goes back, q ends.
    Follows the cluster with the rights of the kubeconfig and never writes.
    """
    clock = SystemClock()
    try:
        connection = load_connection(kubeconfig, context_name, clock=clock)
    except KubeconfigError as error:
        raise bad_input(str(error)) from error
    options = replace(flags.options(), queueing=queueing)
    run(until_interrupted(_show(connection, clock, options, sort, once or not sys.stdout.isatty())))


async def _show(connection: Connection, clock: Clock, options: SchedulerOptions, sort: str, once: bool) -> None:
    console = PlainConsole(width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL)
    async with followed(connection, clock, options) as (process, title):
        source = ConsoleSource(process, clock, options, decides=False)
        view = TopView(source, f"pilotage top: {title}")
        await process.wait_synced()
        while not process.scheduler.inbox.is_empty:
            await clock.sleep(0)
        if once:
            console.print(view.whole(sort))
        else:
            await _Session(source, view, console, clock).run(Screen(sort))


class _Session:
    """Somebody who looks."""

    def __init__(self, source: ConsoleSource, view: TopView, console: PlainConsole, clock: Clock) -> None:
        self._source = source
        self._view = view
        self._console = console
        self._clock = clock

    async def run(self, screen: Screen) -> None:
        """Until q is pressed."""
        async with pressed_keys() as keys:
            with logs_held_back(), Live(console=self._console, screen=True, auto_refresh=False) as live:
                while True:
                    height = self._console.height
                    rows = self._view.rows(screen.sort)
                    screen = replaced(screen, chosen=min(screen.chosen, max(0, len(rows) - 1)))
                    screen = self._draw(live, screen, rows, height)
                    key = await self._next(keys)
                    if key in _QUIT:
                        return
                    screen = screen.after(key, rows, height)

    async def _next(self, keys: asyncio.Queue[str]) -> str:
        """The next key; "" if it is time to look again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_AGAIN_SECONDS):
                return await keys.get()
        self._source.take_sample()
        return ""

    def _draw(self, live: Live, screen: Screen, rows: list[Waiting], height: int) -> Screen:
        """What is drawn: nobody scrolls beyond the end."""
        if screen.opened is None:
            frame = self._view.frame(screen, rows, height)
        else:
            lines = wrapped(self._report(*screen.opened), self._console.width)
            frame = self._view.report(screen, lines, height)
            screen = replaced(screen, scrolled=screen.first_of(len(lines), height))
        live.update(frame, refresh=True)
        return screen

    def _report(self, namespace: str, subject: str) -> str:
        try:
            report = self._source.answered(subject, namespace, _EVERYTHING, Budget(_REPORT_SECONDS))
        except UnknownSubject as error:
            return str(error)
        except BudgetExceeded:
            return "This takes too long here: pilotage explain takes its time."
        return render_group(report, wide=True) if isinstance(report, GroupReport) else render(report, wide=True)


def keys_of(read: bytes) -> list[str]:
    """Names of the keys in what a terminal sent; of letters, themselves. What is none is left out."""
    found = (_KEY_NAMES.get(key, key.decode()) for key in _KEY.findall(read))
    return [key for key in found if key.isprintable()]


@asynccontextmanager
async def pressed_keys() -> AsyncIterator[asyncio.Queue[str]]:
    """A queue of keys as they are pressed, without waiting for Enter; none come if the input is no terminal.

    The terminal is as before in the end.
    """
    queue: asyncio.Queue[str] = asyncio.Queue()
    if not sys.stdin.isatty():
        yield queue
        return
    number, loop = sys.stdin.fileno(), asyncio.get_running_loop()

    def read() -> None:
        for key in keys_of(os.read(number, _MOST_KEYS)):
            queue.put_nowait(key)

    before = termios.tcgetattr(number)
    tty.setcbreak(number)
    loop.add_reader(number, read)
    try:
        yield queue
    finally:
        loop.remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, before)
