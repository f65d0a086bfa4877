"""Copies of a cluster, played forward: when do the pods that wait get their nodes?

On each copy, those that run end after times that are drawn from what is known of their like, pods go on coming as they
came so far (the history from a moment that is drawn, over and over), and the real scheduler decides.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from pilotage.assembly import SchedulerOptions
from pilotage.explain.expected_start import ExpectedStart, PastStarts
from pilotage.lab.lives import NodeStory, PodStory
from pilotage.lab.measures import RejectedFor
from pilotage.lab.queued_workloads import WorkloadStory
from pilotage.lab.replay import Replay, ReplaySettings
from pilotage.lab.starts.pod_history import KnownPod, PodHistory
from pilotage.lab.starts.ranges import NEVER, Calibration, PastStart, StartRange, fared, fared_apart, range_of
from pilotage.lab.trace.format import TraceHeader, TraceRecord
from pilotage.model import Pod
from pilotage.rng import seeded

_MOST_ARRIVALS: Final = 5_000
"""On a copy."""
_ONCE: Final = 1e12
"""Seconds between two samples of a copy: nobody looks at them."""
_STOPPING: Final = 30.0
_PODS_AT_ALL: Final = 30_000
"""On all copies together, if nobody asks for more."""
_PAST_COPIES: Final = 5
_LEAST_SHARE: Final = 0.5
"""With fewer past starts than this part of them, nothing is checked."""
_AFTER: Final = 0.001
"""Seconds after its arrival at which a pod of the past is asked about."""


class Effort(msgspec.Struct, frozen=True):
    """How much is computed."""

    copies: int = 20
    past: int = 20
    """So many starts of the past are looked at."""
    past_copies: int = 10
    horizon: float = 86_400.0
    seed: int = 0


class _Nobody:
    """Takes what a replay finds, and forgets it."""

    def decision(self, story: PodStory) -> None:
        """It is not needed."""

    def node(self, story: NodeStory) -> None:
        """It is not needed."""

    def workload(self, story: WorkloadStory) -> None:
        """It is not needed."""

    def sample(self, time: float, values: Mapping[str, float], rejections: Sequence[RejectedFor] = ()) -> None:
        """It is not needed."""


class CopyReplay(Replay):
    """Ends as soon as those have started who are asked about."""

    def __init__(
        self, header: TraceHeader, options: SchedulerOptions, settings: ReplaySettings, wanted: Sequence[str]
    ) -> None:
        super().__init__(header, options, settings, _Nobody())
        self._wanted = set(wanted)
        self.starts: dict[str, float] = {}

    def pod_bound(self, pod: Pod, node_name: str) -> None:
        super().pod_bound(pod, node_name)
        if pod.key in self._wanted:
            self._wanted.discard(pod.key)
            self.starts[pod.key] = self.clock.monotonic()
            if not self._wanted:
                self.end_now()


class Present:
    """A moment of a history, to be copied."""

    def __init__(self, history: PodHistory, at: float, options: SchedulerOptions) -> None:
        self._history = history
        self._at = at
        self._options = options
        self._lifetimes = history.lifetimes(at)
        self._others = [TraceRecord(0.0, put=put) for put in history.others_at(at)]
        there = history.pods_at(at)
        self._running = [(pod, _placed(pod)) for pod in there if pod.ran(at)]
        self.waiting = [pod for pod in there if not pod.ran(at)]

    def play(self, wanted: Sequence[str], horizon: float, seed: int) -> dict[str, float]:
        """On one copy: when each of these pods was bound, in seconds from now; who was not is not in it."""
        rng = seeded(seed)
        header = TraceHeader(pilotage_trace=1, start=self._history.time(self._at), source="copy")
        settings = ReplaySettings(seed=seed, until=horizon, every=_ONCE)
        with _quiet():
            copy = CopyReplay(header, self._options, settings, wanted)
            asyncio.run(copy.run(self._records(rng)))
        return copy.starts

    def sources(self) -> tuple[int, int, int]:
        """Of those that run: whose end is drawn from history, taken from a deadline, not known."""
        known = sum(self._lifetimes.knows(pod.alike) for pod, _ in self._running)
        rest = [pod for pod, _ in self._running if not self._lifetimes.knows(pod.alike)]
        by_deadline = sum(pod.deadline is not None for pod in rest)
        return known, by_deadline, len(rest) - by_deadline

    def _records(self, rng: random.Random) -> Iterator[TraceRecord]:
        yield from self._others
        for pod, put in self._running:
            assert pod.bound is not None, "it runs"
            yield TraceRecord(0.0, put=put, runs=self._left(pod, self._at - pod.bound, rng))
        for pod in self.waiting:
            yield TraceRecord(0.0, put=pod.put, runs=self._left(pod, 0.0, rng))
        yield from self._arrivals(rng)

    def _left(self, pod: KnownPod, age: float, rng: random.Random) -> float | None:
        return self._lifetimes.remaining(pod.alike, age, pod.deadline, rng)

    def _arrivals(self, rng: random.Random) -> Iterator[TraceRecord]:
        """Pods come as they came so far: the history from some moment on, and again from its beginning."""
        past = [pod for pod in self._history.pods if 0 < pod.arrived <= self._at]
        if not past:
            return
        offset = rng.uniform(0.0, self._at)
        turn = [pod for pod in past if pod.arrived >= offset] + [pod for pod in past if pod.arrived < offset]
        for number in range(_MOST_ARRIVALS):
            round_number, index = divmod(number, len(turn))
            pod = turn[index]
            since = pod.arrived - offset if pod.arrived >= offset else pod.arrived - offset + self._at
            yield TraceRecord(
                round_number * self._at + since, put=_renamed(pod.put, number), runs=self._left(pod, 0.0, rng)
            )


def _placed(pod: KnownPod) -> msgspec.Raw:
    obj: dict[str, Any] = msgspec.json.decode(pod.put)
    obj["spec"] = {**(obj.get("spec") or {}), "nodeName": pod.node}
    return msgspec.Raw(msgspec.json.encode(obj))


def _renamed(put: msgspec.Raw, number: int) -> msgspec.Raw:
    obj: dict[str, Any] = msgspec.json.decode(put)
    metadata = obj["metadata"]
    obj["metadata"] = {**metadata, "name": f"{metadata['name']}-expected-{number}", "uid": ""}
    return msgspec.Raw(msgspec.json.encode(obj))


@contextmanager
def _quiet() -> Iterator[None]:
    """What a scheduler logs of pods on a copy did not happen."""
    log = logging.getLogger("pilotage")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


# --- the past ---------------------------------------------------------------------------------------------------------

OnLook = Callable[[int, int], None]
"""Called with how many past starts were looked at, and how many there are to look at."""


def past_starts(
    history: PodHistory, options: SchedulerOptions, effort: Effort, on_look: OnLook | None = None
) -> list[PastStart]:
    """What would have been stated of pods of the past that had to wait, and when they started.

    In turn, one is asked about when it came, and one in the middle of its wait.
    """
    chosen = _chosen(history, effort.past)
    found = []
    for number, pod in enumerate(chosen):
        if on_look is not None:
            on_look(number, len(chosen))
        waited = 0.0 if pod.bound is None else (pod.bound - pod.arrived) / 2 * (number % 2)
        at = pod.arrived + max(waited, _AFTER)
        present = Present(history, at, options)
        plays = [
            present.play([pod.key], effort.horizon, effort.seed + 1000 * number + copy)
            for copy in range(effort.past_copies)
        ]
        stated = range_of([play.get(pod.key, NEVER) for play in plays])
        actual = NEVER if pod.bound is None else pod.bound - at
        gone = history.end if pod.ended is None else pod.ended
        found.append(PastStart(stated, actual, min(gone - at, effort.horizon)))
    return found


def _chosen(history: PodHistory, count: int) -> list[KnownPod]:
    """Pods that waited, evenly over the second half of all that did: before that, too little was known."""
    waited = [
        pod
        for pod in history.pods
        if pod.is_tried and pod.arrived > 0 and (pod.bound is None or pod.bound > pod.arrived + 1.0)
    ]
    later = waited[len(waited) // 3 :]
    if len(later) <= count:
        return later
    return [later[int((number + 0.5) * len(later) / count)] for number in range(count)]


def affordable(history: PodHistory, copies: int = 10, past: int = 12) -> Effort:
    """Fewer copies of a large cluster, so that the answer takes seconds; none of one that is too large for that."""
    there = max(1, sum(pod.was_there(history.end) for pod in history.pods), len(history.others))
    share = min(1.0, _PODS_AT_ALL / (there * (copies + past * _PAST_COPIES)))
    if share < _LEAST_SHARE:
        return Effort(copies=max(0, min(copies, _PODS_AT_ALL // there)), past=0)
    return Effort(copies=copies, past=round(past * share), past_copies=_PAST_COPIES)


# --- now --------------------------------------------------------------------------------------------------------------


def expected_start(
    history: PodHistory,
    pods: Sequence[str],
    options: SchedulerOptions,
    effort: Effort,
    past: Sequence[PastStart] = (),
) -> ExpectedStart | None:
    """When the last of these pods ("namespace/name") starts, from the end of the history on; None if none waits."""
    present = Present(history, history.end, options)
    wanted = [pod.key for pod in present.waiting if pod.key in set(pods)]
    if not wanted:
        return None
    starts = []
    for copy in range(effort.copies):
        play = present.play(wanted, effort.horizon, effort.seed + copy)
        starts.append(max((play.get(key, NEVER) for key in wanted), default=NEVER))
    stated = range_of(starts).widened(Calibration.of(past).factor)
    return stated_start(stated, starts, effort.horizon, present.sources(), fared_apart(past))


def stated_start(
    stated: StartRange,
    starts: Sequence[float],
    horizon: float,
    sources: tuple[int, int, int],
    past: PastStarts | None,
) -> ExpectedStart:
    """What is said of a range."""
    return ExpectedStart(
        soonest=None if stated.soonest == NEVER else stated.soonest,
        latest=None if stated.latest == NEVER else stated.latest,
        copies=len(starts),
        started=sum(start < NEVER for start in starts),
        horizon=horizon,
        from_history=sources[0],
        from_deadline=sources[1],
        without_end=sources[2],
        past=past,
    )


# --- how good it is ---------------------------------------------------------------------------------------------------


class Coverage(msgspec.Struct, frozen=True, rename="camel"):
    """How often starts lay within their range, on the later half of those that were looked at.

    What the earlier half needed is known by then; of the later half nothing is.
    """

    looked_at: int
    factor: float
    """By which ranges were made wider, after the earlier half."""
    copies_alone: PastStarts | None
    """Of the later half, as the copies had it."""
    put_right: PastStarts | None
    """Of the later half, made wider by the factor."""


def coverage(past: Sequence[PastStart]) -> Coverage:
    """Of past starts in the order of time."""
    middle = len(past) // 2
    factor = Calibration.of(past[:middle]).factor
    later = past[middle:]
    return Coverage(len(past), factor, fared(later, 1.0), fared(later, factor))
