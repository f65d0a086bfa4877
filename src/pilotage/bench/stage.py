"""Where benchmarks of one process take place: sandbox, scheduler and creator of the pods share an event loop.

Requests and watches go through the same client, bytes and decoding as over HTTP; only the sockets are left out. The
scheduler's own share of the CPU is measured where it is spent: in its cycles and in taking in watch events.
"""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.bench.cluster_objects import apply_change, create_object
from pilotage.bench.measure import BindingTimeline, Figures, peak_memory_mib
from pilotage.bench.progress import ProgressLine
from pilotage.bench.workloads import NAMESPACE, OTHER_NAMESPACE, BenchWorkload, Object, priority_class
from pilotage.clock import Clock, cpu_seconds, thread_cpu_seconds
from pilotage.kube.client import KubeClient
from pilotage.model import KINDS
from pilotage.model.codec import Codec
from pilotage.model.kinds import KindInfo, ListPage, WatchEvent
from pilotage.sandbox.api import Api
from pilotage.sandbox.faults import FaultKind, FaultRule, Faults
from pilotage.sandbox.http.inprocess import InProcessTransport
from pilotage.sandbox.http.server import ApiServer
from pilotage.sandbox.life.loop import Life
from pilotage.sandbox.storage.records import Change
from pilotage.sandbox.storage.store import Store

_HISTORY = 100_000
_CREATIONS_PER_TURN = 16
_POLL_SECONDS = 0.02
_BOUND = b'"nodeName":'
_TRIED = b'"Unschedulable"'


@asynccontextmanager
async def unwrapped(wanted: type[Exception]) -> AsyncIterator[None]:
    """Let an expected error out of a task group as itself."""
    try:
        yield
    except BaseExceptionGroup as group:
        found: BaseException | None = group.subgroup(wanted)
        if found is None:
            raise
        while isinstance(found, BaseExceptionGroup):
            found = found.exceptions[0]
        raise found from group


class Stalled(Exception):
    """No pod was bound for a long time: the workload does not fit, or something is broken."""


_STALL_SECONDS = 60.0


class BenchStage:
    """The cluster and the scheduler of one workload."""

    def __init__(
        self,
        workload: BenchWorkload,
        clock: Clock,
        rng: random.Random,
        options: SchedulerOptions,
        latency_seconds: float,
    ) -> None:
        self._workload = workload
        self._clock = clock
        self._rng = rng
        self.progress = ProgressLine(clock)
        self.api = Api(Store(history=_HISTORY), clock=clock, rng=rng)
        self._server = ApiServer(self.api, token=None, clock=clock)
        self._creator = KubeClient(InProcessTransport(self._server))
        pods, self._pod_codec = metered(KINDS["pods"])
        # Only the scheduler is far away from the server: the creator of the pods is not what is measured.
        faults = Faults([FaultRule(FaultKind.SLOW, latency_seconds)], clock, rng) if latency_seconds else None
        self.process = SchedulerProcess(
            KubeClient(InProcessTransport(self._server, faults)),
            clock,
            rng,
            replace(options, kinds={**options.kinds, "pods": pods}),
        )
        self._unbound: set[str] = set()
        self._bound: set[str] = set()
        self._settled_by = _BOUND
        self.timeline: BindingTimeline | None = None
        """If there is one, creations and bindings are noted in it."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Everything runs and the init pods are there; inside, the measured pods can come."""
        workload = self._workload
        self.api.store.subscribe("pods", self._on_change)
        self._make_cluster()
        await self._make_objects()
        async with unwrapped(Stalled), asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self.process.run(), name="scheduler")]
            running.append(tasks.create_task(self._server.run(), name="sandbox"))
            if workload.controllers:
                life = Life(self.api, self._clock, self._rng, controllers=workload.controllers)
                running.append(tasks.create_task(life.run(), name="sandbox life"))
            for reflector in self.process.reflectors:
                await reflector.wait_synced()
            self._settled_by = _BOUND if workload.init_pods_fit else _TRIED
            await self.schedule("init pods", (workload.make_init_pod(number) for number in range(workload.init_pods)))
            self.progress.finish(f"init pods: {workload.init_pods:,} bound")
            self._settled_by = _BOUND if workload.pods_fit else _TRIED
            # What is there now stays: the collector need not look at it again and again.
            gc.collect()
            gc.freeze()
            try:
                yield
            finally:
                gc.unfreeze()
            for task in running:
                task.cancel()

    def _make_cluster(self) -> None:
        workload = self._workload
        for namespace in (NAMESPACE, OTHER_NAMESPACE):
            self.api.create("namespaces", "", {"metadata": {"name": namespace}})
        for name, value in workload.priority_classes.items():
            self.api.create("priorityclasses.scheduling.k8s.io", "", priority_class(name, value))
        for number in range(workload.nodes):
            self.api.create("nodes", "", workload.make_node(number))
            self.progress.show("nodes", number, workload.nodes)
        self.progress.finish(f"nodes: {workload.nodes:,}")

    async def _make_objects(self) -> None:
        made = 0
        for manifest in self._workload.make_objects(self._workload):
            await create_object(self._creator, manifest)
            made += 1
            self.progress.show("objects", made, made)
        if made:
            self.progress.finish(f"objects: {made:,}")

    def own_cpu_seconds(self) -> float:
        """CPU that the scheduler itself has taken so far."""
        metrics = self.process.scheduler.metrics
        cycles, intake = metrics.cycle_cpu_seconds_total.total(), metrics.intake_cpu_seconds_total.total()
        return cycles + intake + _seconds(self._pod_codec)

    async def schedule(
        self, step: str, pods: Iterable[Object], *, changes: bool = False, at_once: bool = False
    ) -> None:
        """Create the pods, side by side with their scheduling or all at once, and wait until all are dealt with.

        With the `changes` of the workload, if they are the measured ones.
        """
        self._bound.clear()
        created = 0
        for pod in pods:
            if changes:
                for change in self._workload.make_changes(self._workload, created):
                    await apply_change(self._creator, change)
            await self._create(pod)
            created += 1
            if created % _CREATIONS_PER_TURN == 1 and not at_once:
                await self._clock.sleep(0)
                self.progress.show(step, len(self._bound), created)
        await self._all_bound(step, created)

    async def schedule_fitting(self, step: str, pods: Iterable[Object]) -> None:
        """The same with pods that fit, whether the measured ones do or not."""
        settled_by, self._settled_by = self._settled_by, _BOUND
        await self.schedule(step, pods)
        self._settled_by = settled_by

    async def delete(self, step: str, names: Sequence[str]) -> None:
        """Delete measured pods, and wait until nothing is left to write."""
        for number, name in enumerate(names):
            await self._creator.delete(KINDS["pods"], NAMESPACE, name)
            if number % _CREATIONS_PER_TURN == 0:
                await self._clock.sleep(0)
                self.progress.show(step, number, len(names))
        await self.all_written()

    async def _create(self, pod: Object) -> None:
        self._unbound.add(pod["metadata"]["name"])
        if self.timeline is not None:
            self.timeline.created[pod["metadata"]["name"]] = self._clock.monotonic()
        await self._creator.create(KINDS["pods"], pod["metadata"]["namespace"], msgspec.json.encode(pod))

    async def _all_bound(self, step: str, count: int) -> None:
        bound_before, since = -1, self._clock.monotonic()
        while len(self._bound) < count:
            if len(self._bound) != bound_before:
                bound_before, since = len(self._bound), self._clock.monotonic()
            elif self._clock.monotonic() - since > _STALL_SECONDS:
                raise Stalled(f"{step}: {bound_before:,} of {count:,} bound, and none for {_STALL_SECONDS:.0f} s")
            self.progress.show(step, len(self._bound), count)
            await self._clock.sleep(_POLL_SECONDS)

    async def all_written(self) -> None:
        """Until what may be written later, such as Events, is written too: it is part of what scheduling costs."""
        is_idle = False
        while not is_idle:
            await self._clock.sleep(_POLL_SECONDS)
            is_idle = self.process.scheduler.dispatcher.is_idle

    def _on_change(self, change: Change) -> None:
        if change.type != "MODIFIED" or self._settled_by not in change.record.body:
            return
        name = change.record.key.name
        # Pods of an earlier step change too: preemption marks its victims.
        if name not in self._unbound:
            return
        self._unbound.discard(name)
        self._bound.add(name)
        if self.timeline is not None:
            self.timeline.note_bound(name, self._clock.monotonic())


def _seconds(codec: MeteredCodec) -> float:
    return codec.cpu_seconds


class MeteredCodec(Codec[Any]):
    """Adds up the CPU time of decoding: taking in a pod's own events is part of the scheduler's share."""

    def __init__(self, inner: Codec[Any]) -> None:
        self._inner = inner
        self.cpu_seconds = 0.0

    def decode(self, data: bytes) -> Any:
        return self._inner.decode(data)

    def decode_list(self, data: bytes) -> ListPage:
        return self._inner.decode_list(data)

    def decode_events(self, data: bytes) -> list[WatchEvent]:
        started = thread_cpu_seconds()
        events = self._inner.decode_events(data)
        self.cpu_seconds += thread_cpu_seconds() - started
        return events


def metered(kind: KindInfo) -> tuple[KindInfo, MeteredCodec]:
    codec = MeteredCodec(kind.codec)
    return replace(kind, codec=codec), codec


class InProcessBench:
    """One run of one workload."""

    def __init__(
        self,
        workload: BenchWorkload,
        clock: Clock,
        rng: random.Random,
        options: SchedulerOptions,
        latency_seconds: float,
    ) -> None:
        self._workload = workload
        self._stage = BenchStage(workload, clock, rng, options, latency_seconds)
        self.api = self._stage.api

    async def run(self) -> Figures:
        async with self._stage.running():
            return await self._measure()

    async def _measure(self) -> Figures:
        workload, stage = self._workload, self._stage
        timeline = stage.timeline = BindingTimeline()
        own_before, cpu_before = stage.own_cpu_seconds(), cpu_seconds()
        pods = (workload.make_pod(number) for number in range(workload.pods))
        await stage.schedule("pods", pods, changes=True, at_once=workload.comes_at_once)
        stage.progress.finish(f"pods: {workload.pods:,} bound")
        await stage.all_written()
        cpu, own = cpu_seconds() - cpu_before, stage.own_cpu_seconds() - own_before
        return Figures(
            workload=workload.name,
            server="in-process",
            nodes=workload.nodes,
            init_pods=workload.init_pods,
            timeline=timeline,
            cpu_seconds=cpu,
            scheduler_cpu_seconds=own,
            peak_memory_mib=peak_memory_mib(),
        )
