"""`pilotage bench --viewer`: what somebody who looks at the console takes from those who wait for the scheduler.

Pods come to one large cluster as fast as they are bound, for some seconds at a time: while a page is kept open, and
right before and right after that while nobody looks. Every other round goes in the opposite order. What counts is a
page beside its two neighbours, and how far the rounds agree: what disturbs the machine for a while disturbs all three.
CPU time tells it on a machine on which other things go on, pods per second on one where nothing else does.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Final

import click
import uvloop
from msgspec import Struct
from msgspec.structs import asdict
from rich.table import Table

from pilotage.assembly import SchedulerOptions
from pilotage.bench.measure import BindingTimeline
from pilotage.bench.stage import BenchStage, Stalled
from pilotage.bench.workloads import BenchWorkload, Object, bench_pod
from pilotage.cli.bench_console import MOST_SHARE, PAGES, Viewer, looked_at, room_of
from pilotage.cli.errors import ExitCode
from pilotage.cli.output import show, show_json
from pilotage.cli.terminal import PlainConsole
from pilotage.clock import Clock, SystemClock, cpu_seconds
from pilotage.console.site import ConsolePages
from pilotage.console.source import ConsoleSource

ROUNDS: Final = 6
_SECONDS: Final = 4.0
_NOBODY: Final = "nobody"
_LOOKED_AT: Final = ("overview", "waiting", "a pod")


class ViewedSpan(Struct, frozen=True):
    """What was done in some seconds while one page was open, or none."""

    page: str
    pods: int
    seconds: float
    cpu_seconds: float
    viewer_cpu_seconds: float

    @property
    def pods_per_second(self) -> float:
        return _divided(self.pods, self.seconds)

    @property
    def pods_per_cpu_second(self) -> float:
        return _divided(self.pods, self.cpu_seconds)


class ViewedRound(Struct, frozen=True):
    """One page, and nobody before and after."""

    before: ViewedSpan
    viewed: ViewedSpan
    after: ViewedSpan

    def fewer(self, rate: Callable[[ViewedSpan], float]) -> float:
        """What is missing from the rate of the neighbours, as a share of it."""
        return 1 - _divided(rate(self.viewed), (rate(self.before) + rate(self.after)) / 2)


class Spread(Struct, frozen=True):
    """One figure of all rounds."""

    median: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.median:.1%} ({self.least:.0%}..{self.most:.0%})"


class ViewerCost(Struct, frozen=True):
    """What one page takes while it is open, as shares."""

    page: str
    own_cpu: float
    """Of the CPU time of the process in all rounds: what its answers took."""
    by_cpu: Spread
    """How many pods fewer were bound with as much CPU time as without a viewer."""
    by_time: Spread
    """How many pods fewer were bound per second."""

    @property
    def is_met(self) -> bool:
        """Whether its answers take little, and no more is lost beside them in each and every round."""
        return self.own_cpu < MOST_SHARE and self.by_cpu.least < MOST_SHARE


def costs_of(rounds: Sequence[ViewedRound]) -> list[ViewerCost]:
    """Of each page."""
    by_page: dict[str, list[ViewedRound]] = {page: [] for page in _LOOKED_AT}
    for one in rounds:
        by_page[one.viewed.page].append(one)
    return [
        ViewerCost(
            page,
            _divided(sum(one.viewed.viewer_cpu_seconds for one in found), sum(one.viewed.cpu_seconds for one in found)),
            _spread(one.fewer(lambda span: span.pods_per_cpu_second) for one in found),
            _spread(one.fewer(lambda span: span.pods_per_second) for one in found),
        )
        for page, found in by_page.items()
        if found
    ]


def _divided(a: float, b: float) -> float:
    return a / max(b, 1e-9)


def _spread(values: Iterator[float]) -> Spread:
    found = sorted(values)
    return Spread(statistics.median(found), found[0], found[-1])


class _PageKeptOpen:
    """Looks as often as a browser would whose time passes only in the spans in which it looks."""

    def __init__(self, viewer: Viewer, clock: Clock) -> None:
        self.viewer = viewer
        self._clock = clock
        self._left = viewer.again_seconds

    async def look(self) -> None:
        """Again and again, until cancelled."""
        begin = self._clock.monotonic()
        try:
            while True:
                await self._clock.sleep(self._left)
                self.viewer.look()
                begin, self._left = self._clock.monotonic(), self.viewer.again_seconds
        finally:
            self._left = max(0.0, self._left - (self._clock.monotonic() - begin))


class ViewedRounds:
    """Pods that come and go in a cluster that is looked at now and then."""

    def __init__(self, stage: BenchStage, source: ConsoleSource, room: int, clock: Clock, seconds: float) -> None:
        """Each span takes `seconds`, or as long as there is `room` for another pod."""
        self._stage = stage
        self._room = room
        self._source = source
        self._clock = clock
        self._seconds = seconds
        console = ConsolePages(source, "benchmark")
        self._pages = {page: _PageKeptOpen(Viewer(console, PAGES[page]), clock) for page in _LOOKED_AT}

    async def run(self, rounds: int) -> AsyncIterator[ViewedRound]:
        """The first of them comes when everything has been opened and done once."""
        for page in self._pages.values():
            page.viewer.open()
        await self._span("warming up", None)
        for number in range(rounds):
            before = await self._span(_NOBODY, None)
            for name in _LOOKED_AT if number % 2 == 0 else _LOOKED_AT[::-1]:
                viewed = await self._span(name, self._pages[name])
                after = await self._span(_NOBODY, None)
                yield ViewedRound(before, viewed, after)
                before = after
            self._stage.progress.finish(f"rounds: {number + 1} of {rounds}")

    async def _span(self, name: str, page: _PageKeptOpen | None) -> ViewedSpan:
        gc.collect()
        timeline = self._stage.timeline = BindingTimeline()
        before, viewed_before = cpu_seconds(), page.viewer.cpu_seconds if page else 0.0
        async with asyncio.TaskGroup() as tasks:
            company = [] if page is None else [tasks.create_task(page.look(), name="viewer")]
            if page is not None:
                company.append(tasks.create_task(self._source.keep_time(), name="console samples"))
            await self._stage.schedule_fitting(name, self._pods(self._clock.monotonic() + self._seconds))
            await self._stage.all_written()
            for task in company:
                task.cancel()
        cpu, viewed = cpu_seconds() - before, page.viewer.cpu_seconds - viewed_before if page else 0.0
        await self._stage.delete(f"{name}: gone", [*timeline.created])
        return ViewedSpan(name, len(timeline.bound), timeline.seconds(), cpu, viewed)

    def _pods(self, until: float) -> Iterator[Object]:
        for number in range(self._room):
            if number and self._clock.monotonic() >= until:
                break
            pod = bench_pod(f"more-{number:06}")
            pod["spec"]["terminationGracePeriodSeconds"] = 0
            yield pod

    async def _look(self, viewer: Viewer) -> None:
        while True:
            viewer.look()
            await self._clock.sleep(viewer.again_seconds)


def bench_viewer(
    workload: BenchWorkload,
    options: SchedulerOptions,
    *,
    rounds: int,
    seed: int,
    output: str,
) -> int:
    """Measure and show; FAILED if one viewer takes too much."""
    clock = SystemClock()

    async def measured() -> list[ViewedRound]:
        async with looked_at(workload, options, seed) as (stage, source):
            viewed = ViewedRounds(stage, source, room_of(workload), clock, _SECONDS)
            return [one async for one in viewed.run(rounds)]

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
            done = loop.run(measured())
    except Stalled as error:
        raise click.ClickException(str(error)) from error
    return show_costs(workload, done, output)


def show_costs(workload: BenchWorkload, done: Sequence[ViewedRound], output: str) -> int:
    """FAILED if a goal is missed."""
    costs = costs_of(done)
    if output == "json":
        show_json(_facts(workload, done, costs))
    else:
        _print(workload, done, costs)
    return ExitCode.OK if all(cost.is_met for cost in costs) else ExitCode.FAILED


def _facts(workload: BenchWorkload, done: Sequence[ViewedRound], costs: Sequence[ViewerCost]) -> dict[str, Any]:
    return {
        "nodes": workload.nodes,
        "initPods": workload.init_pods,
        "waiting": workload.pods,
        "rounds": done,
        "viewers": [{**asdict(cost), "isMet": cost.is_met} for cost in costs],
    }


def _print(workload: BenchWorkload, done: Sequence[ViewedRound], costs: Sequence[ViewerCost]) -> None:
    sizes = f"{workload.nodes:,} nodes, {workload.init_pods:,} pods on them, {workload.pods:,} that wait"
    table = Table(title=f"One viewer: {sizes}", title_justify="left")
    for heading in ("PAGE", "OWN CPU", "FEWER BY CPU TIME", "FEWER PER SECOND", "MET"):
        table.add_column(heading, justify="left" if heading in ("PAGE", "MET") else "right", no_wrap=True)
    for cost in costs:
        shares = (f"{cost.own_cpu:.1%}", str(cost.by_cpu), str(cost.by_time))
        table.add_row(cost.page, *shares, "yes" if cost.is_met else "NO")
    PlainConsole().print(table)
    alone = statistics.median(one.before.pods_per_second for one in done)
    show(
        f"Without a viewer {alone:,.0f} pods/s. Fewer pods than before and after: of the rounds the median, the least "
        f"and the most. The goal: less than {MOST_SHARE:.0%} of the CPU time, and no more lost by it in every round. "
        "Where least and most are far apart, other things went on here."
    )
