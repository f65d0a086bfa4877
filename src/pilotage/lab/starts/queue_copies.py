"""Copies of queues, played forward: when are the workloads that wait admitted?

What the API server has of workloads is history, too: when each was made, admitted and finished. So the queues as they
were when a past workload came can be made again, and what would have been said then is held against what happened.

On a copy, those that are admitted finish after times that are drawn from what is known of their like, workloads go on
coming as they came so far, admission checks pass at once, and evicted jobs stop at once.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pilotage.clock import rfc3339
from pilotage.explain.expected_start import ExpectedStart
from pilotage.jobs.conditions import ADMITTED, EVICTED, FINISHED, QUOTA_RESERVED, epoch
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.effects import Deactivate, StatusChanged
from pilotage.jobs.engine import JobQueueing
from pilotage.jobs.filling import LeftOut, filled
from pilotage.lab.starts.lifetimes import Lifetimes
from pilotage.lab.starts.pod_copies import Effort, stated_start
from pilotage.lab.starts.ranges import NEVER, Calibration, PastStart, fared_apart, range_of
from pilotage.model.kueue import Workload, WorkloadStatus
from pilotage.rng import seeded
from pilotage.testing import VirtualClock

ObjectsByKind = Mapping[str, Sequence[Any]]
"""Decoded objects by the name of their kind: queues, flavors, workloads and what else queueing reads."""
_MOST_TURNS: Final = 10_000
_MOST_STEPS: Final = 100_000
_MOST_ARRIVALS: Final = 1_000
"""On a copy."""
_WORKLOADS_AT_ALL: Final = 20_000
_RUN_NUMBER: Final = re.compile(r"-\d+$")


class KnownWorkload(msgspec.Struct, eq=False):
    """A workload and what it says of its life, in epoch seconds."""

    obj: Workload
    alike: tuple[str, ...]
    created: int
    admitted: int | None
    finished: int | None

    def was_there(self, at: float) -> bool:
        return self.created <= at and (self.finished is None or self.finished > at)

    def ran(self, at: float) -> bool:
        return self.admitted is not None and self.admitted <= at

    @property
    def deadline(self) -> float | None:
        return self.obj.spec.maximum_execution_time_seconds

    def as_of(self, at: float) -> Workload:
        """As it was at a moment when it was there."""
        if not self.ran(at):
            return replace(self.obj, status=WorkloadStatus())
        kept = tuple(one for one in self.obj.status.conditions if one.type not in (FINISHED, EVICTED))
        return replace(self.obj, status=replace(self.obj.status, conditions=kept))


def workload_starts(
    objects: ObjectsByKind, configuration: QueueingConfiguration, now: float, effort: Effort | None = None
) -> dict[str, ExpectedStart]:
    """When each workload that waits is expected to be admitted, in seconds from now, by its key ("namespace/name").

    Nothing is asked of anybody and nothing is changed; it takes some seconds, less for few workloads.
    """
    return QueueCopies(objects, configuration).expected(now, effort)


class QueueCopies:
    """All that is known of the queues of a cluster, to be copied."""

    def __init__(self, objects: ObjectsByKind, configuration: QueueingConfiguration) -> None:
        self._objects = objects
        self._configuration = configuration
        self._workloads = sorted(map(_known, objects.get("Workload", ())), key=lambda one: (one.created, one.obj.key))

    def expected(self, now: float, effort: Effort | None = None) -> dict[str, ExpectedStart]:
        """See `workload_starts`."""
        moment = _Moment(self._objects, self._configuration, self._workloads, now, is_past=False)
        wanted = [one.obj.key for one in moment.waiting if one.obj.spec.active]
        if not wanted:
            return {}
        effort = effort or self._affordable()
        past = self.past_starts(effort)
        factor, fared = Calibration.of(past).factor, fared_apart(past)
        plays = [moment.play(wanted, effort.horizon, effort.seed + copy) for copy in range(effort.copies)]
        sources = moment.sources()
        found = {}
        for key in wanted:
            starts = [play.get(key, NEVER) for play in plays]
            stated = range_of(starts).widened(factor)
            found[key] = stated_start(stated, starts, effort.horizon, sources, fared)
        return found

    def past_starts(self, effort: Effort) -> list[PastStart]:
        """What would have been stated of workloads that had to wait, and when they were admitted.

        In turn, one is asked about when it came, and one in the middle of its wait.
        """
        waited = [one for one in self._workloads if one.created and (one.admitted or 0) > one.created + 1]
        later = waited[len(waited) // 3 :]
        count = min(len(later), effort.past)
        found = []
        for number in range(count):
            known = later[int((number + 0.5) * len(later) / count)]
            assert known.admitted is not None, "it was chosen for that"
            at = known.created + (known.admitted - known.created) // 2 * (number % 2)
            moment = _Moment(self._objects, self._configuration, self._workloads, at, is_past=True)
            key = known.obj.key
            plays = [
                moment.play([key], effort.horizon, effort.seed + 1000 * number + copy)
                for copy in range(effort.past_copies)
            ]
            stated = range_of([play.get(key, NEVER) for play in plays])
            found.append(PastStart(stated, float(known.admitted - at)))
        return found

    def _affordable(self) -> Effort:
        """Fewer copies of large queues, so that the answer does not take minutes."""
        there = max(1, sum(one.finished is None for one in self._workloads))
        turns = max(1, _WORKLOADS_AT_ALL // there)
        return Effort(copies=min(12, max(4, turns)), past=min(16, turns // 5), past_copies=5)


class _Moment:
    """The queues at a moment: now, or as they were."""

    def __init__(
        self,
        objects: ObjectsByKind,
        configuration: QueueingConfiguration,
        workloads: Sequence[KnownWorkload],
        at: float,
        *,
        is_past: bool,
    ) -> None:
        self._objects = objects
        self._configuration = configuration
        self._at = at
        there = [one for one in workloads if one.was_there(at)]
        self._there = [one.as_of(at) if is_past else one.obj for one in there]
        self._running = [one for one in there if one.ran(at)]
        self.waiting = [one for one in there if not one.ran(at)]
        self._before = [one for one in workloads if one.created <= at and one.created]
        self._lifetimes = Lifetimes()
        for one in self._before:
            if one.admitted is not None and one.admitted <= at:
                is_over = one.finished is not None and one.finished <= at
                end = one.finished if is_over and one.finished is not None else at
                self._lifetimes.learn(one.alike, end - one.admitted, is_over=is_over)
        self._alike = {one.obj.key: one for one in there}

    def sources(self) -> tuple[int, int, int]:
        """Of those that run: whose end is drawn from history, taken from a deadline, not known."""
        rest = [one for one in self._running if not self._lifetimes.knows(one.alike)]
        by_deadline = sum(one.deadline is not None for one in rest)
        return len(self._running) - len(rest), by_deadline, len(rest) - by_deadline

    def play(self, wanted: Iterable[str], horizon: float, seed: int) -> dict[str, float]:
        """On one copy: when each of these was admitted, in seconds from now; who was not is not in it."""
        rng = seeded(seed)
        clock = VirtualClock(self._at)
        engine = filled(lambda: JobQueueing(clock, seeded(seed), self._configuration), self._of_kind, LeftOut())
        copy = _Copy(engine, clock, set(wanted), lambda key: self._draw(key, rng))
        for one in self._running:
            copy.admit(one.obj.key, self._left(one, self._at - (one.admitted or self._at), rng))
        copy.run(self._arrivals(rng), horizon)
        return copy.starts

    def _of_kind(self, kind: str) -> Iterable[Any]:
        return self._there if kind == "Workload" else self._objects.get(kind, ())

    def _draw(self, key: str, rng: random.Random) -> float | None:
        """How long a workload runs that is admitted on the copy."""
        known = self._alike.get(key) or self._alike.get(key.partition(_COPY)[0])
        return None if known is None else self._left(known, 0.0, rng)

    def _left(self, one: KnownWorkload, age: float, rng: random.Random) -> float | None:
        return self._lifetimes.remaining(one.alike, age, one.deadline, rng)

    def _arrivals(self, rng: random.Random) -> Iterator[tuple[float, Workload]]:
        """Workloads come as they came so far: the history from some moment on, and again from its beginning."""
        if len(self._before) < 2:
            return
        first = self._before[0].created
        length = max(1.0, self._at - first)
        offset = rng.uniform(0.0, length)
        turn = [one for one in self._before if one.created >= first + offset]
        turn += [one for one in self._before if one.created < first + offset]
        for number in range(_MOST_ARRIVALS):
            round_number, index = divmod(number, len(turn))
            one = turn[index]
            since = (one.created - first - offset) % length
            at = round_number * length + since
            yield at, self._come_again(one, at, number)

    def _come_again(self, one: KnownWorkload, at: float, number: int) -> Workload:
        name = f"{one.obj.name}{_COPY}{number}"
        created = rfc3339(self._at + at)
        metadata = replace(one.obj.metadata, name=name, uid=name, creation_timestamp=created)
        made = replace(one.obj, metadata=metadata, status=WorkloadStatus())
        self._alike[made.key] = one
        return made


_COPY: Final = "-expected-"


class _Copy:
    """One course of events."""

    def __init__(
        self, engine: JobQueueing, clock: VirtualClock, wanted: set[str], draw: Callable[[str], float | None]
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._wanted = wanted
        self._draw = draw
        self._ends: list[tuple[float, str, int]] = []
        self._runs: dict[str, int] = {}
        """For each that is admitted, which of its runs it is in."""
        self._count = 0
        self.starts: dict[str, float] = {}

    def admit(self, key: str, seconds: float | None) -> None:
        """It runs, its pods are ready, and it will end after so long; None: it stays."""
        self._engine.pods_ready(key, True)
        self._count += 1
        self._runs[key] = self._count
        if seconds is not None:
            heappush(self._ends, (self._clock.monotonic() + seconds, key, self._count))

    def run(self, arrivals: Iterator[tuple[float, Workload]], horizon: float) -> None:
        clock, coming = self._clock, next(arrivals, None)
        self._settle()
        for _ in range(_MOST_STEPS):
            due = self._engine.next_due()
            timer = NEVER if due is None else max(0.0, due - clock.time()) + clock.monotonic()
            end = self._ends[0][0] if self._ends else NEVER
            at = max(clock.monotonic(), min(timer, end, NEVER if coming is None else coming[0]))
            if not self._wanted or at > horizon:
                return
            clock.step(at - clock.monotonic())
            self._finish(at)
            while coming is not None and coming[0] <= at:
                self._engine.upsert(coming[1])
                coming = next(arrivals, None)
            self._engine.fire_timers()
            self._settle()

    def _finish(self, at: float) -> None:
        while self._ends and self._ends[0][0] <= at:
            _, key, run = heappop(self._ends)
            if self._runs.get(key) == run:
                del self._runs[key]
                self._engine.finished(key, "Succeeded", "")

    def _settle(self) -> None:
        for _ in range(_MOST_TURNS):
            has_more = self._engine.cycle()
            if not self._perform() and not has_more:
                return

    def _perform(self) -> bool:
        has_changed = False
        for effect in self._engine.take_effects():
            if isinstance(effect, StatusChanged):
                has_changed |= self._follow(effect.workload)
            elif isinstance(effect, Deactivate):
                known = self._engine.workload(effect.key)
                if known is not None:
                    self._engine.upsert(replace(known, spec=replace(known.spec, active=False)))
                    has_changed = True
        return has_changed

    def _follow(self, workload: Workload) -> bool:
        """What the job does, and others do, when the status of its workload says so. Whether the engine is to look."""
        key = workload.key
        is_true = {one.type for one in workload.status.conditions if one.status == "True"}
        if EVICTED in is_true and QUOTA_RESERVED in is_true:
            self._runs.pop(key, None)
            self._engine.pods_gone(key)
            return True
        if ADMITTED in is_true and key not in self._runs and FINISHED not in is_true:
            self.admit(key, self._draw(key))
            if key in self._wanted:
                self._wanted.discard(key)
                self.starts[key] = self._clock.monotonic()
            return True
        if QUOTA_RESERVED in is_true and any(check.state != "Ready" for check in workload.status.admission_checks):
            checks = tuple(replace(check, state="Ready") for check in workload.status.admission_checks)
            self._engine.upsert(replace(workload, status=replace(workload.status, admission_checks=checks)))
            return True
        return False


def _known(workload: Workload) -> KnownWorkload:
    times = {one.type: epoch(one.last_transition_time) for one in workload.status.conditions if one.status == "True"}
    created, admitted = epoch(workload.metadata.creation_timestamp), times.get(ADMITTED)
    finished = times.get(FINISHED)
    return KnownWorkload(workload, _alike(workload), created, admitted, finished)


def _alike(workload: Workload) -> tuple[str, ...]:
    """Its job, those of its size in its queue, those of its queue, those of its namespace, all."""
    owner, queue = workload.metadata.controller, f"{workload.namespace}/{workload.spec.queue_name}"
    size = sum(pod_set.count for pod_set in workload.spec.pod_sets)
    requests = [
        (container.resources.requests or {}).items()
        for pod_set in workload.spec.pod_sets
        for container in pod_set.template.spec.containers
    ]
    asked = sorted(f"{name}={amount}" for one in requests for name, amount in one)
    own = () if owner is None else (f"{owner.kind} {workload.namespace}/{_RUN_NUMBER.sub('', owner.name)}",)
    return (*own, f"{queue} {size} {' '.join(asked)}", queue, workload.namespace, "")
