"""`pilotage demo`: sandbox, scheduler and sample workloads, seen live."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import click
from rich.live import Live

from pilotage.assembly import SchedulerOptions
from pilotage.cli.console import console_of
from pilotage.cli.demo_picture import Camera
from pilotage.cli.demo_view import DemoView, Moment
from pilotage.cli.embedding import started
from pilotage.cli.errors import CommandError, ExitCode
from pilotage.cli.event_loop import run, until_interrupted
from pilotage.cli.logs import logs_held_back
from pilotage.cli.options import common_options
from pilotage.cli.sandbox import embedded_scheduler
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags
from pilotage.cli.terminal import PlainConsole
from pilotage.clock import Clock, SystemClock
from pilotage.rng import fresh_seed, seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.sandbox.life.kubelet import KubeletSettings
from pilotage.sandbox.manifests import read_manifests
from pilotage.sandbox.seeding import seed

_EPILOG = """\b
Examples:
  pilotage demo
  pilotage demo --once --nodes 12
"""
WORKLOADS: Final = Path(__file__).parent / "demo_workloads"
_NODES: Final = WORKLOADS / "nodes.yaml"
_PAUSE_SECONDS: Final = 0.6
_STILL_SECONDS: Final = 1.5
_FAR_SECONDS: Final = 5.0
_KUBELET: Final = KubeletSettings(start_seconds=0.2, start_jitter_seconds=0.6, manages_all_nodes=True)
_FRAME_SECONDS: Final = 0.125
_PATIENCE_SECONDS: Final = 60.0
_WIDTH_WITHOUT_TERMINAL: Final = 120


@click.command(epilog=_EPILOG)
@click.option("--once", is_flag=True, help="End when nothing changes any more.")
@click.option("--nodes", type=click.IntRange(min=3), default=5, show_default=True, metavar="N", help="Simulated nodes.")
@scheduler_flags
@common_options
def demo(once: bool, nodes: int, flags: SchedulerFlags) -> None:
    """Watch pods being placed in an embedded cluster.

    Three pools of nodes (one of them tainted), two Deployments of different priority, a Job, a pod that wants a fast
    disk, pods for the tainted pool, and one pod that fits nowhere, with the reason. Ctrl-C ends it and prints what came
    out. Without a terminal it behaves as with --once.
    """
    console = PlainConsole(width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL)
    options = flags.options()
    is_live = sys.stdout.isatty() and not console.is_dumb_terminal
    show = _Show(DemoView(console), SystemClock(), is_live=is_live, ends=once or not is_live)
    finished = run(until_interrupted(show.play(nodes, options)))
    if show.last is not None:
        show.view.summary(show.last)
    if show.ends and not finished:
        raise CommandError(ExitCode.FAILED, "the demo was interrupted before it came to rest")
    if show.ends and show.last is not None and any(not line.reason for line in show.last.picture.pending):
        raise CommandError(ExitCode.FAILED, "a pod is pending and the scheduler has not said why")


class _Show:
    """One performance of the demo."""

    def __init__(self, view: DemoView, clock: Clock, *, is_live: bool, ends: bool) -> None:
        self.view = view
        self.ends = ends
        self.last: Moment | None = None
        self._clock = clock
        self._is_live = is_live

    async def play(self, nodes: int, options: SchedulerOptions) -> None:
        rng = seeded(fresh_seed())
        async with started(stage_options(nodes, is_served=self._is_live), self._clock, rng) as cluster:
            play = Play(cluster, self._clock)
            process = embedded_scheduler(cluster, self._clock, rng, options)
            async with console_of(process, self._clock, options, "demo") as link, asyncio.TaskGroup() as tasks:
                scheduling = tasks.create_task(process.run(), name="scheduler")
                tasks.create_task(play.perform(), name="workloads")
                await self._watch(cluster, play, link)
                scheduling.cancel()

    async def _watch(self, cluster: EmbeddedCluster, play: Play, console: str) -> None:
        begin = self._clock.monotonic()
        footer = _footer(cluster, console)
        with closing(Camera(cluster.api.store)) as camera, self._screen() as draw:
            while not (self.ends and play.is_still()):
                elapsed = self._clock.monotonic() - begin
                self.last = self._moment(camera, elapsed, footer)
                draw(self.last)
                if self.ends and elapsed > _PATIENCE_SECONDS:
                    raise CommandError(ExitCode.FAILED, f"the demo did not come to rest in {_PATIENCE_SECONDS:.0f} s")
                await self._clock.sleep(_FRAME_SECONDS)

    def _moment(self, camera: Camera, elapsed: float, footer: str) -> Moment:
        picture = camera.picture()
        is_same = self.last is not None and picture == self.last.picture
        changed = self.last.changed_seconds if self.last is not None and is_same else elapsed
        return Moment(picture, tuple(camera.placements), elapsed, changed, footer)

    @contextmanager
    def _screen(self) -> Iterator[Callable[[Moment], None]]:
        """Where frames go: the terminal, or nowhere."""
        if not self._is_live:
            yield lambda moment: None
            return
        with logs_held_back(), Live(console=self.view.console, screen=True, auto_refresh=False) as live:
            yield lambda moment: live.update(self.view.frame(moment), refresh=True)


def _footer(cluster: EmbeddedCluster, console: str) -> str:
    if cluster.kubeconfig is None:
        return ""
    path = shlex.quote(str(cluster.kubeconfig))
    return f"Play along from another shell: export KUBECONFIG={path}\nConsole: {console}\nCtrl-C ends."


def stage_options(nodes: int, *, is_served: bool) -> EmbeddedOptions:
    return EmbeddedOptions(nodes=nodes, node_templates=[_NODES], port=0 if is_served else None, kubelet=_KUBELET)


def acts() -> Sequence[Path]:
    """The files of workloads, in the order in which they are played."""
    return sorted(path for path in WORKLOADS.glob("*.yaml") if path != _NODES)


class Play:
    """Creates the workloads and knows when everything has come to rest."""

    def __init__(self, cluster: EmbeddedCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._is_over = False
        self._revision = -1
        self._still_since = clock.monotonic()

    async def perform(self) -> None:
        for act in acts():
            await self._clock.sleep(_PAUSE_SECONDS)
            seed(self._cluster.api, read_manifests([act]))
        self._is_over = True

    def is_still(self) -> bool:
        """Everything has been created, nothing was written for a while, and no pod is about to start or end."""
        now, revision = self._clock.monotonic(), self._cluster.api.store.revision
        due = self._cluster.life.next_due
        if not self._is_over or revision != self._revision or (due is not None and due < now + _FAR_SECONDS):
            self._revision, self._still_since = revision, now
            return False
        return now - self._still_since >= _STILL_SECONDS
