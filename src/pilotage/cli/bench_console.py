"""What pages of the console cost: `pilotage bench --workload ConsolePages`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import uvloop
from msgspec.structs import replace

from pilotage.assembly import SchedulerOptions
from pilotage.bench.event_handling import MeasuredFigure
from pilotage.bench.stage import BenchStage
from pilotage.bench.workloads import DEFAULT_REQUESTS, NAMESPACE, BenchWorkload, Object, bench_node, bench_pod
from pilotage.cli.bench_goals import print_figures
from pilotage.cli.errors import ExitCode
from pilotage.cli.output import show_json
from pilotage.clock import SystemClock, thread_cpu_seconds
from pilotage.console.site import PREFIX, ConsolePages
from pilotage.console.source import KEPT_SAMPLES, SAMPLE_SECONDS, ConsoleSource
from pilotage.console.view import LOOK_AGAIN_MILLISECONDS
from pilotage.model.quantity import parse_quantity
from pilotage.rng import seeded
from pilotage.serve.console_door import LIVE, Sight
from pilotage.serve.page import PageRequest

NAME: Final = "ConsolePages"
_NODES: Final = 5_000
_PODS_ON_NODES: Final = 50_000
_WAITING: Final = 5_000
_PODS_PER_OWNER: Final = 50
_KINDS: Final = 20
_FIRST: Final = "waiting-000000"
_LOOK_AGAIN_SECONDS: Final = LOOK_AGAIN_MILLISECONDS / 1000
_LOOKS: Final = 10
_MOST_SECONDS: Final = 1.0
_MOST_KB: Final = 500
_MOST_KB_PER_SECOND: Final = 50
MOST_SHARE: Final = 0.03
"""Of the time of the scheduler, for one viewer."""
PAGES: Final = {
    "overview": "",
    "waiting": "waiting",
    "a pod": f"pods/{NAMESPACE}/{_FIRST}",
    "a node": "nodes/node-00000",
    "inside": "inside",
}
"""What is looked at: paths by name."""
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


def bench_console(nodes: int | None, init_pods: int | None, pods: int | None, seed: int, output: str) -> int:
    """Measure every page of a large cluster; FAILED if a goal is missed."""
    workload = console_workload(nodes, init_pods, pods)

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


def console_workload(nodes: int | None, init_pods: int | None, waiting: int | None) -> BenchWorkload:
    """The cluster that is looked at; the measured pods are those that wait."""
    return BenchWorkload(
        name=NAME,
        about="pages of the console",
        nodes=_NODES if nodes is None else nodes,
        init_pods=_PODS_ON_NODES if init_pods is None else init_pods,
        pods=_WAITING if waiting is None else waiting,
        make_node=bench_node,
        make_init_pod=lambda number: bench_pod(f"init-{number:06}"),
        make_pod=_waiting_pod,
        pods_fit=False,
    )


def room_of(workload: BenchWorkload) -> int:
    """How many more pods fit beside those that are on its nodes from the start."""
    node, pod = bench_node(0)["status"]["allocatable"], DEFAULT_REQUESTS
    each = min(parse_quantity(node[resource]) // parse_quantity(amount) for resource, amount in pod.items())
    return workload.nodes * int(each) - workload.init_pods


def _waiting_pod(number: int) -> Object:
    """Of a ReplicaSet with fifty pods; each twentieth of them asks for as much."""
    owner = number // _PODS_PER_OWNER
    pod = bench_pod(f"waiting-{number:06}", {"cpu": str(100 + owner % _KINDS), "memory": "500Mi"})
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"owner-{owner}", "uid": f"u-{owner}"}
    pod["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    return pod


@asynccontextmanager
async def looked_at(
    workload: BenchWorkload, options: SchedulerOptions, seed: int
) -> AsyncIterator[tuple[BenchStage, ConsoleSource]]:
    """The cluster with all its waiting pods, and its console after an hour in which nobody has looked."""
    clock = SystemClock()
    stage = BenchStage(workload, clock, seeded(seed), options, 0.0)
    async with stage.running():
        await stage.schedule("waiting pods", (workload.make_pod(number) for number in range(workload.pods)))
        await stage.all_written()
        stage.progress.finish(f"waiting pods: {workload.pods:,}")
        source = ConsoleSource(stage.process, clock, options, decides=True)
        _remember_an_hour(source)
        yield stage, source


def _remember_an_hour(source: ConsoleSource) -> None:
    """As if the pods had been bound steadily for as long as samples are kept."""
    source.take_sample()
    last = source.samples.pop()
    for number in range(1, KEPT_SAMPLES + 1):
        share = number / KEPT_SAMPLES
        then = replace(
            last,
            time=last.time - (KEPT_SAMPLES - number) * SAMPLE_SECONDS,
            bound=int(last.bound * share),
            on_nodes=int(last.on_nodes * share),
            durations=tuple((bound, int(count * share)) for bound, count in last.durations),
        )
        source.samples.append(then)


async def _measured(workload: BenchWorkload, seed: int) -> AsyncIterator[MeasuredFigure]:
    async with looked_at(workload, SchedulerOptions(), seed) as (stage, source):
        console = ConsolePages(source, "benchmark")
        for name, path in PAGES.items():
            for figure in _page(console, name, path):
                yield figure
        yield await _updates(console, stage)


def _page(console: ConsolePages, name: str, path: str) -> list[MeasuredFigure]:
    # The first page of all loads the templates and the engine that judges pods, as it does for its first viewer.
    viewer = Viewer(console, path)
    size = viewer.open() / 1000
    cpu, update = viewer.cpu_seconds, Viewer(console, path)
    rate = update.look() / 1000 / update.again_seconds
    once = update.cpu_seconds
    update.look()
    again = update.cpu_seconds - once
    share, most = again / update.again_seconds, f"< {_MOST_SECONDS * 1000:,.0f} ms"
    figures = [
        MeasuredFigure(f"{name}: page", cpu * 1000, "ms", most, cpu < _MOST_SECONDS),
        MeasuredFigure(f"{name}: size", size, "kB", f"< {_MOST_KB} kB", size < _MOST_KB),
        MeasuredFigure(f"{name}: update", again * 1000, "ms", most, again < _MOST_SECONDS),
        MeasuredFigure(f"{name}: CPU", 100 * share, "%", f"< {MOST_SHARE:.0%}", share < MOST_SHARE),
    ]
    if path:
        # On any other page, everything may have changed each time.
        figures.append(_rate(f"{name}: all anew", rate))
    return figures


def _rate(name: str, kilobytes: float) -> MeasuredFigure:
    return MeasuredFigure(name, kilobytes, "kB/s", f"< {_MOST_KB_PER_SECOND} kB/s", kilobytes < _MOST_KB_PER_SECOND)


async def _updates(console: ConsolePages, stage: BenchStage) -> MeasuredFigure:
    """Of the overview, while pods are bound between any two looks and samples are taken as often as they are."""
    viewer = Viewer(console, "")
    viewer.open()
    size, sampled = 0, 0.0
    for number in range(_LOOKS):
        await stage.schedule_fitting(f"more {number}", [bench_pod(f"more-{number:03}-{at}") for at in range(10)])
        sampled += _LOOK_AGAIN_SECONDS
        if sampled >= SAMPLE_SECONDS:
            console.source.take_sample()
            sampled -= SAMPLE_SECONDS
        size += viewer.look()
    return _rate("overview: updates", size / 1000 / (_LOOKS * _LOOK_AGAIN_SECONDS))
