"""One workload against an API server in another process: create the cluster and the pods, watch, measure.

What is reported as CPU and memory is the scheduler process's alone.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from pilotage.bench.child_process import Child, ChildFailed
from pilotage.bench.cluster_objects import apply_change, create_object
from pilotage.bench.measure import BindingTimeline, Figures
from pilotage.bench.process_cpu import CpuMeter
from pilotage.bench.progress import ProgressLine
from pilotage.bench.stage import Stalled, unwrapped
from pilotage.bench.workloads import NAMESPACE, OTHER_NAMESPACE, BenchWorkload, Object, priority_class
from pilotage.clock import Clock
from pilotage.kube.client import KubeClient, ListOptions
from pilotage.kube.reflector import Reflector, WatchedKind
from pilotage.model import KINDS, Pod, WatchEvent

_CONNECTIONS = 16
_POLL_SECONDS = 0.05
_STALL_SECONDS = 60.0
_QUIET_SECONDS = 0.5
_QUIET_SHARE = 0.05
_QUIET_WITHIN_SECONDS = 60.0
_PAGE = 500


class WorkloadRun:
    """One run of one workload with one scheduler. `server` and `scheduler_name` name them in the figures."""

    def __init__(
        self,
        workload: BenchWorkload,
        clock: Clock,
        rng: random.Random,
        *,
        server: str,
        scheduler_name: str = "pilotage",
    ) -> None:
        self._workload = workload
        self._clock = clock
        self._rng = rng
        self._server = server
        self._scheduler_name = scheduler_name
        self._progress = ProgressLine(clock)
        self._unbound: set[str] = set()
        self._bound: set[str] = set()
        self._timeline: BindingTimeline | None = None
        self._is_settled: Callable[[Pod], bool] = _is_bound

    async def make_cluster(self, client: KubeClient) -> None:
        """Everything that is there before the first pod."""
        workload = self._workload
        for namespace in (NAMESPACE, OTHER_NAMESPACE):
            await client.create(KINDS["namespaces"], "", msgspec.json.encode({"metadata": {"name": namespace}}))
        for name, value in workload.priority_classes.items():
            body = msgspec.json.encode(priority_class(name, value))
            await client.create(KINDS["priorityclasses"], "", body)
        nodes = [msgspec.json.encode(workload.make_node(number)) for number in range(workload.nodes)]
        await self._post_all(lambda body: client.create(KINDS["nodes"], "", body), nodes)
        self._progress.finish(f"nodes: {workload.nodes:,}")
        objects = list(workload.make_objects(workload))
        await self._post_all(lambda manifest: create_object(client, manifest), objects)
        if objects:
            self._progress.finish(f"objects: {len(objects):,}")

    async def measure(self, client: KubeClient, scheduler: Child, others: Mapping[str, int] | None = None) -> Figures:
        """Let a scheduler that runs schedule the workload; `others` are processes whose CPU is of interest too."""
        workload = self._workload
        figures: Figures
        async with unwrapped(Stalled), unwrapped(ChildFailed), asyncio.TaskGroup() as tasks:
            reflector = Reflector(client, WatchedKind(KINDS["pods"]), self, self._clock, self._rng)
            watching = tasks.create_task(reflector.run(), name="watch pods")
            await reflector.wait_synced()
            self._is_settled = _is_bound if workload.init_pods_fit else _was_tried
            await self._schedule_all(client, scheduler, "init pods", workload.make_init_pod, workload.init_pods)
            self._is_settled = _is_bound if workload.pods_fit else _was_tried
            timeline = self._timeline = BindingTimeline()
            cpu_before, beside = scheduler.cpu_seconds(), CpuMeter(others or {})
            await self._schedule_all(client, scheduler, "pods", workload.make_pod, workload.pods)
            beside_used = beside.used()
            cpu_after, events = await self._when_quiet(client, scheduler)
            figures = Figures(
                workload=workload.name,
                server=self._server,
                scheduler=self._scheduler_name,
                nodes=workload.nodes,
                init_pods=workload.init_pods,
                timeline=timeline,
                cpu_seconds=cpu_after - cpu_before,
                scheduler_cpu_seconds=cpu_after - cpu_before,
                peak_memory_mib=scheduler.peak_memory_mib(),
                events=events,
                other_cpu_seconds=beside_used,
            )
            watching.cancel()
        return figures

    async def _when_quiet(self, client: KubeClient, scheduler: Child) -> tuple[float, int]:
        """Its CPU time so far and the number of Events, when it has also written what may be written later.

        That it does little is not enough: on a busy machine it may be waiting for the API server.
        """
        deadline = self._clock.monotonic() + _QUIET_WITHIN_SECONDS
        cpu, events = scheduler.cpu_seconds(), -1
        while self._clock.monotonic() < deadline:
            await self._clock.sleep(_QUIET_SECONDS)
            cpu_before, cpu = cpu, scheduler.cpu_seconds()
            if cpu - cpu_before > _QUIET_SECONDS * _QUIET_SHARE:
                continue
            events_before, events = events, await self._count_events(client)
            if events == events_before:
                break
        return cpu, events if events >= 0 else await self._count_events(client)

    async def _count_events(self, client: KubeClient) -> int:
        options, count = ListOptions(limit=_PAGE), 0
        while True:
            page = await client.list_page(KINDS["events"], options)
            count += len(page.items)
            if not page.continue_token:
                return count
            options = ListOptions(limit=_PAGE, continue_token=page.continue_token)

    async def _schedule_all(
        self, client: KubeClient, scheduler: Child, step: str, make: Callable[[int], Object], count: int
    ) -> None:
        self._bound.clear()
        manifests = [make(number) for number in range(count)]
        self._unbound = {manifest["metadata"]["name"] for manifest in manifests}

        async def create(numbered: tuple[int, Object]) -> None:
            number, pod = numbered
            if self._timeline is not None:
                for change in self._workload.make_changes(self._workload, number):
                    await apply_change(client, change)
                self._timeline.created[pod["metadata"]["name"]] = self._clock.monotonic()
            await client.create(KINDS["pods"], pod["metadata"]["namespace"], msgspec.json.encode(pod))
            self._progress.show(step, len(self._bound), count)

        await self._post_all(create, list(enumerate(manifests)))
        before, since = -1, self._clock.monotonic()
        while len(self._bound) < count:
            scheduler.check()
            if len(self._bound) != before:
                before, since = len(self._bound), self._clock.monotonic()
            elif self._clock.monotonic() - since > _STALL_SECONDS:
                raise Stalled(f"{step}: {before:,} of {count:,} bound, and none for {_STALL_SECONDS:.0f} s")
            self._progress.show(step, len(self._bound), count)
            await self._clock.sleep(_POLL_SECONDS)
        self._progress.finish(f"{step}: {count:,} bound")

    @staticmethod
    async def _post_all(post: Callable[[Any], Any], items: Sequence[Any]) -> None:
        """Several at a time, each connection taking the next one when it is free."""
        remaining = iter(items)

        async def connection() -> None:
            for item in remaining:
                await post(item)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(_CONNECTIONS):
                tasks.create_task(connection(), name="create")

    # --- sink of the reflector ---------------------------------------------------------------------------------

    def replace(self, kind: str, objects: list[Any]) -> None:
        for pod in objects:
            self._note(pod)

    def apply(self, kind: str, events: list[WatchEvent]) -> None:
        for event in events:
            if isinstance(event.object, Pod):
                self._note(event.object)

    def _note(self, pod: Pod) -> None:
        # Pods of an earlier step change too: preemption marks its victims.
        if not self._is_settled(pod) or pod.name not in self._unbound:
            return
        self._unbound.discard(pod.name)
        self._bound.add(pod.name)
        if self._timeline is not None:
            self._timeline.note_bound(pod.name, self._clock.monotonic())


def _is_bound(pod: Pod) -> bool:
    return bool(pod.node_name)


def _was_tried(pod: Pod) -> bool:
    return pod.status.condition("PodScheduled") is not None
