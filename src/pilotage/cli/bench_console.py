"""What the console costs: a viewer beside a benchmark, and `pilotage bench --workload ConsolePages`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Final

import uvloop

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.bench.event_handling import MeasuredFigure
from pilotage.bench.measure import Figures
from pilotage.bench.stage import BenchStage
from pilotage.bench.workloads import BenchWorkload, Object, bench_node, bench_pod
from pilotage.cli.bench_goals import print_figures
from pilotage.cli.errors import ExitCode
from pilotage.cli.output import show, show_json
from pilotage.clock import Clock, SystemClock, thread_cpu_seconds
from pilotage.console.site import PREFIX, ConsolePages
from pilotage.console.source import ConsoleSource
from pilotage.console.view import LOOK_AGAIN_MILLISECONDS
from pilotage.rng import seeded
from pilotage.serve.console_door import LIVE, Sight
from pilotage.serve.page import PageRequest

NAME: Final = "ConsolePages"
_NODES: Final = 5_000
_PODS_ON_NODES: Final = 50_000
_WAITING: Final = 5_000
_PODS_PER_OWNER: Final = 50
_KINDS: Final = 20
_LOOK_AGAIN_SECONDS: Final = LOOK_AGAIN_MILLISECONDS / 1000
_LOOKS: Final = 10
_MOST_SECONDS: Final = 1.0
_MOST_KB: Final = 500
_MOST_KB_PER_SECOND: Final = 50
_MOST_SHARE: Final = 0.03
"""Of the time of the scheduler, for one viewer."""
_EVERYTHING: Final = Sight()
_ID: Final = re.compile(rb"^id: (.*)$", re.MULTILINE)
_AGAIN: Final = re.compile(rb"^retry: (\d+)$", re.MULTILINE)


class Viewer:
    """A browser that keeps a page open; what the answers cost is counted."""

    def __init__(self, console: ConsolePages, path: str) -> None:
        self._console = console
        self._path = f"{PREFIX}/{path}"
        self._known = ""
        self.again_seconds = _LOOK_AGAIN_SECONDS
        """When to look again, as the last answer said."""
        self.looks = 0
        self.cpu_seconds = 0.0
        self.size = 0

    def open(self) -> int:
        """Load the page; returns its size."""
        return self._ask(PageRequest(self._path))

    def look(self) -> int:
        """Ask what has changed; returns the size of the answer."""
        self.looks += 1
        return self._ask(PageRequest(LIVE, query={"view": [self._path]}, headers={"last-event-id": self._known}))

    def _ask(self, request: PageRequest) -> int:
        before = thread_cpu_seconds()
        answer = self._console.answer(request, _EVERYTHING)
        self.cpu_seconds += thread_cpu_seconds() - before
        if found := _ID.search(answer.body):
            self._known = found[1].decode()
        if found := _AGAIN.search(answer.body):
            self.again_seconds = int(found[1]) / 1000
        self.size += len(answer.body)
        return len(answer.body)


class ViewedRun:
    """Goes on beside a benchmark: a console, and one viewer of the overview."""

    def __init__(self, clock: Clock, options: SchedulerOptions) -> None:
        self._clock = clock
        self._options = options
        self.viewer: Viewer | None = None

    async def beside(self, process: SchedulerProcess) -> None:
        """Look again and again, until cancelled."""
        source = ConsoleSource(process, self._clock, self._options, decides=True)
        self.viewer = Viewer(ConsolePages(source, "benchmark"), "")
        self.viewer.open()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(source.keep_time(), name="console samples")
            while True:
                await self._clock.sleep(self.viewer.again_seconds)
                self.viewer.look()


def show_viewer(viewed: ViewedRun, with_viewer: Figures, without: Figures) -> None:
    """What the viewer cost: as a ratio of two runs, and by itself."""
    viewer = viewed.viewer
    assert viewer is not None, "the viewer came with the first pod"
    pods = max(with_viewer.pods, 1)
    cost, plain = (run.cpu_seconds / pods * 1e3 for run in (with_viewer, without))
    ratio = with_viewer.pods_per_second / max(without.pods_per_second, 1e-9)
    show(
        f"With one viewer of the console a pod costs {cost:.3f} ms of CPU instead of {plain:.3f} ms, and {ratio:.1%} "
        f"as many pods per second are bound. The viewer itself took {viewer.cpu_seconds:.3f} s of CPU for one page and "
        f"{viewer.looks} updates: {viewer.cpu_seconds / max(with_viewer.cpu_seconds, 1e-9):.1%} of all."
    )


def bench_console(nodes: int | None, init_pods: int | None, pods: int | None, seed: int, output: str) -> int:
    """Measure every page of a large cluster; FAILED if a goal is missed."""
    workload = BenchWorkload(
        name=NAME,
        about="pages of the console",
        nodes=nodes or _NODES,
        init_pods=_PODS_ON_NODES if init_pods is None else init_pods,
        pods=pods or _WAITING,
        make_node=bench_node,
        make_init_pod=lambda number: bench_pod(f"init-{number:06}"),
        make_pod=_waiting_pod,
        pods_fit=False,
    )

    async def collected() -> list[MeasuredFigure]:
        return [figure async for figure in _measured(workload, seed)]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        figures = loop.run(collected())
    if output == "json":
        sizes = {"nodes": workload.nodes, "initPods": workload.init_pods, "pods": workload.pods}
        show_json({"workload": NAME, **sizes, "figures": figures})
    else:
        title = f"{NAME} ({workload.nodes:,} nodes, {workload.init_pods:,} pods, {workload.pods:,} wait; CPU time)"
        print_figures(title, figures)
    return ExitCode.OK if all(figure.is_met for figure in figures) else ExitCode.FAILED


def _waiting_pod(number: int) -> Object:
    """Of a ReplicaSet with fifty pods; each twentieth of them asks for as much."""
    owner = number // _PODS_PER_OWNER
    pod = bench_pod(f"waiting-{number:06}", {"cpu": str(100 + owner % _KINDS), "memory": "500Mi"})
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"owner-{owner}", "uid": f"u-{owner}"}
    pod["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    return pod


async def _measured(workload: BenchWorkload, seed: int) -> AsyncIterator[MeasuredFigure]:
    clock, options = SystemClock(), SchedulerOptions()
    stage = BenchStage(workload, clock, seeded(seed), options, 0.0)
    async with stage.running():
        await stage.schedule("waiting pods", (workload.make_pod(number) for number in range(workload.pods)))
        await stage.all_written()
        stage.progress.finish(f"waiting pods: {workload.pods:,}")
        source = ConsoleSource(stage.process, clock, options, decides=True)
        source.take_sample()
        console = ConsolePages(source, "benchmark")
        waiting = workload.make_pod(0)["metadata"]
        for path in ("", "waiting", f"pods/{waiting['namespace']}/{waiting['name']}", "nodes/node-00000", "inside"):
            for figure in _page(console, path):
                yield figure
        yield await _updates(console, stage)


def _page(console: ConsolePages, path: str) -> list[MeasuredFigure]:
    # The first page of all loads the templates and the engine that judges pods, as it does for its first viewer.
    viewer = Viewer(console, path)
    size, name = viewer.open() / 1000, path.partition("/")[0] or "overview"
    cpu, update = viewer.cpu_seconds, Viewer(console, path)
    rate = update.look() / 1000 / update.again_seconds
    once = update.cpu_seconds
    update.look()
    again = update.cpu_seconds - once
    share, most = again / update.again_seconds, f"< {_MOST_SECONDS * 1000:,.0f} ms"
    return [
        MeasuredFigure(f"{name}: page", cpu * 1000, "ms", most, cpu < _MOST_SECONDS),
        MeasuredFigure(f"{name}: size", size, "kB", f"< {_MOST_KB} kB", size < _MOST_KB),
        MeasuredFigure(f"{name}: update", again * 1000, "ms", most, again < _MOST_SECONDS),
        MeasuredFigure(f"{name}: CPU", 100 * share, "%", f"< {_MOST_SHARE:.0%}", share < _MOST_SHARE),
        MeasuredFigure(f"{name}: all anew", rate, "kB/s", f"< {_MOST_KB_PER_SECOND} kB/s", rate < _MOST_KB_PER_SECOND),
    ]


async def _updates(console: ConsolePages, stage: BenchStage) -> MeasuredFigure:
    """Of the overview, while pods are bound between any two looks."""
    viewer = Viewer(console, "")
    viewer.look()
    size = 0
    for number in range(_LOOKS):
        await stage.schedule_fitting(f"more {number}", [bench_pod(f"more-{number:03}-{at}") for at in range(10)])
        size += viewer.look()
    rate = size / 1000 / (_LOOKS * _LOOK_AGAIN_SECONDS)
    return MeasuredFigure(
        "overview: updates", rate, "kB/s", f"< {_MOST_KB_PER_SECOND} kB/s", rate < _MOST_KB_PER_SECOND
    )
