"""Replay a trace in virtual time: what happens is taken from the trace, what is decided is the real scheduler's.

    next event = the earliest of: a line of the trace, the end of a pod, a sleeper of the scheduler, a second in which
                 the scheduler has something to do
    the clock jumps there -> what happens goes into the live cluster -> the scheduler works until it has nothing to do

Nothing takes time but what is written to take time: a scheduling cycle and a binding take none.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, Protocol

import msgspec
from msgspec import structs

from pilotage.assembly import SchedulerOptions, build_scheduler
from pilotage.cluster.state import Cluster
from pilotage.cycle.observer import SchedulerObserver
from pilotage.cycle.scheduling_loop import Ticks
from pilotage.framework.shared_columns import HEAP, Ties
from pilotage.framework.ties import OrderedTies, RandomTies
from pilotage.lab.checkpoint import (
    SavedChance,
    SavedEntry,
    SavedLives,
    SavedMeasures,
    SavedRejections,
    SavedReplay,
    SavedShapes,
)
from pilotage.lab.controllers import release_claims
from pilotage.lab.live_cluster import LiveCluster
from pilotage.lab.lives import LivePod, Lives, NodeLives, NodeStory, PodStory
from pilotage.lab.measures import Measures, RejectedFor, RejectionCounts, Shapes
from pilotage.lab.queued_workloads import KINDS as QUEUEING_KINDS
from pilotage.lab.queued_workloads import QueuedWorkloads, WorkloadStory
from pilotage.lab.trace.format import ObjectName, TraceHeader, TraceRecord
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup
from pilotage.model.pod_status import PodStatus
from pilotage.queue.sub_queues import QueuedPodInfo, SubQueue
from pilotage.rng import seeded
from pilotage.simulate.memory_api import Json, Key
from pilotage.tasks import sole_error
from pilotage.testing import VirtualClock

_AFTERMATH: Final = 600.0
"""Seconds that a replay goes on after the last thing that happens, so that pods that wait are tried once more."""
_MOST_TURNS: Final = 10_000
_BUSY_SECONDS: Final = 0.1
_EVENTS_PER_OBJECT: Final = 4
_SURVIVE: Final = {"backoff", "flush of unschedulable pods", "gated groups", "nodes kept for groups"}
"""What is done every second or so for those who wait. Nodes that are kept for a group are so after its next attempt."""
TIES: Final = ("scheduler", "random", "first")

_WAITING: Final = (SubQueue.ACTIVE, SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF, SubQueue.UNSCHEDULABLE)

Probe = Callable[[Cluster], Mapping[str, float]]
"""What the series is made of, instead of the usual measures: asked whenever a sample is taken, in the same columns."""


class ReplaySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What can be chosen about a replay."""

    seed: int = 0
    until: float = math.inf
    """Seconds after the start at which it ends, whatever is left of the trace."""
    every: float = 60.0
    """Seconds between two samples of the series."""
    ties: str = "scheduler"
    """Which of equally good nodes is taken: one of `TIES`."""
    leg: int = 100_000
    """After so many events and attempts it goes on with a new scheduler, see `pilotage.lab.checkpoint`; 0: never."""
    resumes_evicted: bool = False
    """A pod that comes again after an eviction runs for what was left of its lifetime, not for all of it."""

    def tie_rule(self, rng: random.Random) -> Ties:
        match self.ties:
            case "random":
                return RandomTies(rng)
            case "first":
                return OrderedTies(rng)
            case _:
                return HEAP


class ReplaySink(Protocol):
    """Whoever takes what a replay finds."""

    def decision(self, story: PodStory) -> None:
        """The story of a pod has ended."""

    def node(self, story: NodeStory) -> None:
        """The story of a node has ended."""

    def workload(self, story: WorkloadStory) -> None:
        """The story of a workload has ended."""

    def sample(self, time: float, values: Mapping[str, float], rejections: Sequence[RejectedFor] = ()) -> None:
        """A row of the series, and why pods were rejected since the row before."""


class _Ended(Exception):
    """Everything was played."""


class Replay(SchedulerObserver):
    """One run of one trace, or a leg of it. It runs once."""

    def __init__(
        self,
        header: TraceHeader,
        options: SchedulerOptions,
        settings: ReplaySettings,
        sink: ReplaySink,
        probe: Probe | None = None,
    ) -> None:
        self._settings = settings
        self._until = settings.until
        self._sink = sink
        self._probe = probe
        self.clock = VirtualClock(header.start_time)
        self.api = LiveCluster(self.clock, self)
        self.lives = Lives(self.clock.monotonic, sink.decision)
        self._nodes = NodeLives(self.clock.monotonic, sink.node)
        self.queued = QueuedWorkloads(self.clock, options.queueing, self, sink.workload, settings.seed)
        self._rng, self._rng_of_ties = seeded(settings.seed), seeded(settings.seed + 1)
        self._ties = settings.tie_rule(self._rng_of_ties)
        options = replace(options, observer=self, is_simulation=True, ties=self._ties, cycle_budget_seconds=math.inf)
        self.scheduler = build_scheduler(self.api, self.clock, self._rng, options)
        self.api.connect(self.scheduler.intake, self.scheduler.cluster)
        self._shapes = Shapes()
        self._measures = Measures(self.scheduler.cluster.nodes, self._shapes)
        self._rejections = RejectionCounts()
        self._resources: list[str] | None = None
        self._samples = 0
        self._heirs: dict[Key, Key] = {}
        """For pods that came again under another name: under which."""
        self.events = 0
        """What has happened: lines of the trace, ends of pods."""
        self.bound = 0
        self.gap_seconds = 0.0
        self.busy_instants = 0
        self.ignored: dict[str, int] = {}
        """Objects that scheduling does not read, by kind."""
        self._last = 0.0
        """When something happened last."""
        self._second = 0
        self._restored: SavedReplay | None = None
        self._done = 0
        """Events and attempts, in this leg."""
        self.paused_at: TraceRecord | None = None
        """Set if it stopped to go on as another one: the next thing that happens."""

    # --- playing -----------------------------------------------------------------------------------------------

    async def run(self, records: Iterable[TraceRecord], nodes: Sequence[Json] | None = None) -> None:
        """Play all of it, or until it is `paused_at` something.

        With `nodes`, those of the trace are left out and these are there from the start.
        """
        with suppress(_Ended), sole_error():
            async with asyncio.TaskGroup() as tasks:
                ticks = self.scheduler.start_by_hand(tasks)
                if self._restored is not None:
                    ticks.last = self._restored.second
                    self._fill(self._restored)
                else:
                    for node in nodes or ():
                        self._put_node_or_object(node)
                await self._play(iter(records), ticks, tasks, keeps_nodes=nodes is None)
                # Ends what is left in the group: calls, pods that wait for permission, the tasks of plugins.
                raise _Ended

    async def _play(
        self,
        records: Iterator[TraceRecord],
        ticks: Ticks,
        tasks: asyncio.TaskGroup,
        *,
        keeps_nodes: bool,
    ) -> None:
        clock, lives = self.clock, self.lives
        record = next(records, None)
        while True:
            if record is not None and self._is_at_rest(ticks):
                self._second, self.paused_at = ticks.last, record
                return
            now = clock.monotonic()
            happens = min(math.inf if record is None else record.at, lives.next_due)
            tick = ticks.next(now)
            timer = min(self.queued.next_due, math.inf if (wake := clock.next_wake) is None else wake)
            at = max(now, min(happens, tick, timer))
            if at > self._until:
                end = now if at == math.inf else self._until
                break
            if happens == math.inf and at > self._last + _AFTERMATH:
                end = now
                break
            self._take_samples(at)
            await self._move(at)
            if happens <= at:
                self._last = at
                self._end_due()
                while record is not None and record.at <= at:
                    self._happen(record, keeps_nodes=keeps_nodes)
                    record = next(records, None)
            if tick <= at:
                ticks.run(int(tick))
            await self._settle(tasks)
        clock.step(end - clock.monotonic())
        self._take_samples(math.nextafter(end, math.inf))
        lives.close()
        self._nodes.close()
        self.queued.close()

    def end_now(self) -> None:
        """Play nothing more but what belongs to this instant."""
        self._until = self.clock.monotonic()

    async def _move(self, at: float) -> None:
        wake = self.clock.next_wake
        if wake is not None and wake <= at:
            await self.clock.advance(at - self.clock.monotonic())
        else:
            self.clock.step(at - self.clock.monotonic())

    async def _settle(self, tasks: asyncio.TaskGroup) -> None:
        """Let the scheduler work until it has nothing more to do at this instant."""
        scheduler = self.scheduler
        for _ in range(_MOST_TURNS):
            scheduler.drain_inbox()
            has_worked = await scheduler.turn(tasks)
            await self.clock.settle()
            has_worked |= self.queued.settle()
            if not has_worked and scheduler.inbox.is_empty and not scheduler.queue.has_next:
                return
        # Something goes on and on although no time passes; on a real cluster, time would pass.
        self.busy_instants += 1
        self.clock.step(_BUSY_SECONDS)

    # --- legs --------------------------------------------------------------------------------------------------

    def _is_at_rest(self, ticks: Ticks) -> bool:
        """Whether it is time for a new leg, and nothing goes on that would not survive."""
        leg = self._settings.leg
        if self._done < leg or not leg or self._probe is not None:
            return False
        if self._done < _EVENTS_PER_OBJECT * (len(self.lives) + len(self._nodes)):
            return False
        queue, cluster = self.scheduler.queue, self.scheduler.cluster
        is_quiet = self.clock.next_wake is None and self.scheduler.inbox.is_empty and self.scheduler.dispatcher.is_idle
        return (
            is_quiet
            and not (queue.has_next or queue.size(SubQueue.IN_FLIGHT) or len(cluster.nominations))
            and not self.lives.are_evicted
            and self.queued.is_untouched
            and ticks.waiting() <= _SURVIVE
        )

    def saved(self) -> SavedReplay:
        """All that a later leg needs of one that is paused."""
        queue, lives = self.scheduler.queue, SavedLives(*self.lives.saved(), self._nodes.saved())
        waiting = {one.pod.uid: _saved_entry(one) for one in queue.entries()}
        groups = {one.key: _saved_entry(one) for one in queue.groups()}
        shapes, rejections = SavedShapes(*self._shapes.saved()), SavedRejections(*self._rejections.saved())
        counted = self.events, self.bound, self.gap_seconds, self.busy_instants, self.ignored
        measures = SavedMeasures(self._samples, *counted, self._resources, shapes, rejections)
        drawn = self._ties.drawn if isinstance(self._ties, OrderedTies) else {}
        walk = self.scheduler.cycle.engines.walk.start
        chance = SavedChance(self._rng.getstate(), self._rng_of_ties.getstate(), drawn, walk)
        heirs = list(self._heirs.items())
        now = self.clock.monotonic()
        cluster = self.api.saved(self.lives.bound_at)
        return SavedReplay(now, self._last, self._second, chance, cluster, lives, heirs, waiting, groups, measures)

    def restore(self, saved: SavedReplay) -> None:
        """Go on, when it is run, where another one was paused."""
        self._restored = saved
        self.clock.step(saved.now)
        self._last = saved.last
        self._rng.setstate(saved.chance.rng)
        self._rng_of_ties.setstate(saved.chance.ties)
        if isinstance(self._ties, OrderedTies):
            self._ties.drawn.update(saved.chance.drawn)
        self.scheduler.cycle.engines.walk.start = saved.chance.walk
        self.lives.restore(saved.lives.pods, saved.lives.due, saved.lives.order)
        self._nodes.restore(saved.lives.nodes)
        self._heirs = dict(saved.heirs)
        was = saved.measures
        self._samples, self._resources = was.samples, was.resources
        self.events = was.events
        self.bound, self.gap_seconds, self.busy_instants = was.bound, was.gap_seconds, was.busy_instants
        self.ignored = was.ignored
        self._shapes.restore(was.shapes.counts, was.shapes.chosen_at, was.shapes.chosen)
        counted = was.rejections
        self._rejections.restore(counted.reasons, counted.waiting, counted.attempts, counted.reported)

    def _fill(self, saved: SavedReplay) -> None:
        """The cluster comes, and the queue."""
        for obj in self.api.restore(saved.cluster):
            if obj["kind"] in QUEUEING_KINDS:
                metadata = obj["metadata"]
                name = ObjectName(obj["apiVersion"], obj["kind"], metadata["name"], metadata.get("namespace", ""))
                self.queued.put(name, obj, None)
        scheduler = self.scheduler
        scheduler.drain_inbox()
        for uid, one in saved.waiting.items():
            entry = scheduler.queue.entry(uid)
            assert entry is not None, "all pods that waited have come"
            scheduler.queue.restore(entry, structs.asdict(one))
        for key, one in saved.groups.items():
            group = scheduler.queue.group(key)
            assert group is not None, "all members that waited have come"
            scheduler.queue.restore(group, structs.asdict(one))
        self._restored = None

    # --- what happens ------------------------------------------------------------------------------------------

    def _happen(self, record: TraceRecord, *, keeps_nodes: bool) -> None:
        self.events += 1
        self._done += 1
        if record.gap is not None:
            self.gap_seconds += record.gap.seconds
            return
        name = record.name
        assert name is not None
        if name.kind == "Node" and not keeps_nodes:
            return
        if name.kind == "Pod":
            key = self._current(("Pod", name.namespace or "default", name.name))
            if record.puts:
                self._put_pod(key, record, keeps_nodes=keeps_nodes)
            else:
                self._remove_pod(key, "deleted")
        elif record.puts:
            obj = record.put_object()
            if not (name.kind in QUEUEING_KINDS and self.queued.put(name, obj, record.runs)):
                self._put_object(name, obj)
        elif name.kind in QUEUEING_KINDS and self.queued.drop(name):
            return
        elif self.api.drop((name.kind, name.namespace, name.name)) and name.kind == "Node":
            self._nodes.end(name.name)
            self._lose_pods(name.name)

    def _put_object(self, name: ObjectName, obj: Json) -> None:
        kinds = self.scheduler.cluster.kinds
        if not any(kinds.has(info.kind) for info in kinds.of_manifest(obj)):
            self.ignored[name.kind] = self.ignored.get(name.kind, 0) + 1
            return
        self._put_node_or_object(obj)

    def _put_node_or_object(self, obj: Json) -> None:
        self.api.put(obj)
        if obj["kind"] == "Node":
            self._nodes.put(obj)

    def _put_pod(self, key: Key, record: TraceRecord, *, keeps_nodes: bool) -> None:
        pod = self.api.decode_pod(record.put)
        if pod.is_finished:
            self._remove_pod(key, "ended")
        elif self.api.pod(key) is not None:
            self.api.change_pod(structs.replace(pod, name=key[2]), record.put)
        elif not self.queued.owns(pod):
            if pod.node_name and (not keeps_nodes or self.api.find(("Node", "", pod.node_name)) is None):
                pod = pod.with_node("")
            self._shapes.note(pod)
            self._begin(pod, record.put, record.runs)

    def _begin(self, pod: Pod, raw: msgspec.Raw, runs: float | None, replaced: LivePod | None = None) -> None:
        self.lives.begin(self.api.add_pod(pod, raw), runs, replaced)

    def _remove_pod(self, key: Key, how: str) -> None:
        pod = self.api.pod(key)
        if pod is None:
            return
        raw = self.api.raw_of(key)
        self.api.remove_pod(key)
        life = self.lives.end(pod.uid, how)
        self._rejections.settled(pod.uid)
        self._heirs.pop(life.origin, None)
        if pod.spec.resource_claims or pod.status.extended_resource_claim_status is not None:
            release_claims(self.api, pod)
        if how in ("evicted", "lost") and pod.controller is not None:
            self._come_again(life, pod, raw)
        else:
            self.queued.pod_gone(life.origin)

    def _come_again(self, life: LivePod, pod: Pod, raw: msgspec.Raw) -> None:
        """Its controller makes another pod: under the same name if it belongs to a StatefulSet."""
        assert pod.controller is not None
        is_stateful = pod.controller.kind == "StatefulSet"
        name = pod.name if is_stateful else f"{life.origin[2]}-again-{life.generation + 1}"
        # Claims of its own stay those of the old one: nobody here makes claims from templates.
        status = PodStatus(resource_claim_statuses=pod.status.resource_claim_statuses)
        runs = life.runs
        if runs is not None and self._settings.resumes_evicted and life.story.bound is not None:
            runs = max(0.0, runs - (self.clock.monotonic() - life.story.bound))
        own = {"name": name, "uid": "", "node_name": "", "status": status}
        times = {"creation_timestamp": None, "deletion_timestamp": None}
        again = structs.replace(pod, **own, **times)
        self._begin(again, raw, runs, life)
        self._heirs[life.origin] = ("Pod", again.namespace, again.name)

    def _current(self, key: Key) -> Key:
        return self._heirs.get(key, key)

    def _end_due(self) -> None:
        for life in self.lives.due():
            self.events += 1
            self._done += 1
            self._remove_pod(life.key, "evicted" if life.is_evicted else "ended")

    def _lose_pods(self, node_name: str) -> None:
        lost = [pod for pod in self.api.pods() if pod.node_name == node_name]
        for pod in lost:
            self._remove_pod(("Pod", pod.namespace, pod.name), "lost")

    # --- what the queues do ------------------------------------------------------------------------------------

    def start_pod(self, document: Json, runs: float | None) -> Key | None:
        raw = msgspec.Raw(msgspec.json.encode(self._with_priority(document)))
        pod = self.api.decode_pod(raw)
        key = ("Pod", pod.namespace, pod.name)
        if self.api.pod(key) is not None:
            return None
        self._shapes.note(pod)
        self._begin(pod, raw, runs)
        return key

    def stop_pod(self, origin: Key) -> None:
        self._remove_pod(self._current(origin), "stopped")

    def _with_priority(self, document: Json) -> Json:
        """As the API server completes it: the priority of its class."""
        known = self.scheduler.cluster.objects("PriorityClass").get(document["spec"].get("priorityClassName") or "")
        return document if known is None else {**document, "spec": {**document["spec"], "priority": known.value}}

    # --- what the scheduler does -------------------------------------------------------------------------------

    def pod_bound(self, pod: Pod, node_name: str) -> None:
        self.bound += 1
        self.lives.bound(pod.uid, node_name)
        self._rejections.settled(pod.uid)
        self.queued.pod_bound(self.lives[pod.uid].origin)

    def pod_rejected(self, pod: Pod, message: str) -> None:
        self.lives.rejected(pod.uid, message)

    def attempt_failed(self, pod: Pod, why: str) -> None:
        self._rejections.rejected(pod.uid, why)

    def pod_stopping(self, pod: Pod, seconds: float) -> None:
        self.lives.evicted(pod.uid, seconds)

    def cycle_began(self, pod: Pod) -> None:
        self._done += 1
        self.lives.tried(pod.uid)

    def group_cycle_began(self, group: PodGroup, pods: Sequence[Pod]) -> None:
        self._done += len(pods)
        for pod in pods:
            self.lives.tried(pod.uid)

    # --- the series --------------------------------------------------------------------------------------------

    def _take_samples(self, before: float) -> None:
        """Rows for all steps of time before this instant: nothing has changed since the last one."""
        every = self._settings.every
        values: Mapping[str, float] | None = None
        while (time := self._samples * every) < before:
            values = self._measured() if values is None else values
            self._samples += 1
            self._sink.sample(time, values, self._rejections.take())

    def _measured(self) -> Mapping[str, float]:
        cluster, queue = self.scheduler.cluster, self.scheduler.queue
        if self._probe is not None:
            return self._probe(cluster)
        if self._resources is None:
            nodes = cluster.objects("Node").values()
            self._resources = self._measures.resources([name for node in nodes for name in node.status.allocatable])
        found = self._measures.take(self._resources)
        found["waiting"] = float(sum(map(queue.size, _WAITING)))
        found["gated"] = float(queue.size(SubQueue.GATED))
        return found


def _saved_entry(entry: QueuedPodInfo) -> SavedEntry:
    return SavedEntry(*(getattr(entry, name) for name in SavedEntry.__struct_fields__))
