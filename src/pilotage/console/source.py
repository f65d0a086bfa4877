"""What the console looks at, and what its visitor may see of it.

A scheduler process is looked at in memory, between two of its cycles: one that schedules (`pilotage run`, the sandbox),
or one that only follows a cluster (`pilotage console`). The pages are the same for both.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from pilotage.api.budget import Budget
from pilotage.api.group_members import PodGroups
from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.clock import Clock, parse_rfc3339
from pilotage.console.seen import as_seen
from pilotage.console.starts import ExpectedStarts
from pilotage.cycle.placement import ProfileEngine
from pilotage.cycle.report import scheduler_report
from pilotage.explain.engine import thinking_engines
from pilotage.explain.inquiry import AnyReport, Inquiry, Witnesses, answered
from pilotage.model import Pod
from pilotage.model.pod_group import POD_GROUP_SCHEDULED
from pilotage.queue.pod_groups import QueuedGroup, gate_text
from pilotage.queue.report import Selection
from pilotage.queue.sub_queues import QueuedPodInfo, SubQueue
from pilotage.serve.console_door import Sight

SAMPLE_SECONDS: Final = 5.0
KEPT_SAMPLES: Final = 720
_WHOLE_QUEUE: Final = 1_000_000
_POD_SCHEDULED: Final = "PodScheduled"
_NUMBER: Final = re.compile(r"\b\d+\b")


class Sample(Struct, frozen=True):
    """Counts at one moment."""

    time: float
    bound: int
    """Pods on nodes through this scheduler, since it started."""
    on_nodes: int
    """All pods that have a node."""
    waiting: dict[str, int]
    """By part of the queue."""
    durations: tuple[tuple[float, int], ...]
    """Pods that were bound within so many seconds of their arrival, cumulative."""


class Waiting(Struct, frozen=True):
    """Pods of one owner that wait in the same part of the queue for the same reason.

    On how many nodes, may differ: it was another moment when each of them was tried.
    """

    owner: str
    namespace: str
    kind: str
    """`Pod`, or `PodGroup`: its members are placed together."""
    example: str
    """Name of the group, or of the pod that waits longest."""
    home: str
    plugins: tuple[str, ...]
    message: str
    """Of the pod that was tried last."""
    pods: int
    seconds: float
    """That the oldest of them has waited."""
    priority: int


class ConsoleSource:
    """One scheduler process."""

    def __init__(
        self,
        process: SchedulerProcess,
        clock: Clock,
        options: SchedulerOptions,
        *,
        decides: bool,
        is_standby: Callable[[], bool] = lambda: False,
        reports: Path | None = None,
    ) -> None:
        """`decides` if the process schedules itself; otherwise it follows what another scheduler does.

        So does one of several schedulers for as long as it `is_standby`. `reports` is a folder with
        results of simulations.
        """
        self.process = process
        self.scheduler = process.scheduler
        self.cluster = process.scheduler.cluster
        self.queue = process.scheduler.queue
        self.metrics = process.scheduler.metrics
        self.clock = clock
        self.options = options
        self._may_decide = decides
        self.is_standby = is_standby
        self.reports = reports
        self.starts = ExpectedStarts(process, options.queueing, clock)
        self.started = clock.time()
        self.samples: deque[Sample] = deque(maxlen=KEPT_SAMPLES)
        self.delays: deque[float] = deque(maxlen=KEPT_SAMPLES)
        """How late the event loop woke the sampling each time: so long had others kept it."""
        self._engines: dict[str, ProfileEngine] = {}
        self._made: dict[str, tuple[Sample | None, Any]] = {}

    @property
    def decides(self) -> bool:
        """Whether what is shown is decided here."""
        return self._may_decide and not self.is_standby()

    async def run(self) -> None:
        """What goes on beside the pages, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.keep_time(), name="console samples")
            tasks.create_task(self.starts.keep(), name="expected starts")

    async def keep_time(self) -> None:
        """Take a sample of a few counters every few seconds, until cancelled; all else is computed when asked for."""
        while True:
            self.take_sample()
            due = self.clock.monotonic() + SAMPLE_SECONDS
            await self.clock.sleep(SAMPLE_SECONDS)
            self.delays.append(max(0.0, self.clock.monotonic() - due))

    def take_sample(self) -> None:
        totals = (self.bound(), self.cluster.placed_count, self.counts(), self._durations())
        self.samples.append(Sample(self.clock.time(), *totals))

    def of_samples(self, name: str, make: Callable[[], Any]) -> Any:
        """What is made of the samples; made anew, for all who look, when there is another one."""
        newest = self.samples[-1] if self.samples else None
        found = self._made.get(name)
        if found is None or found[0] is not newest:
            found = self._made[name] = (newest, make())
        return found[1]

    def counts(self) -> dict[str, int]:
        """Pods in each part of the queue."""
        size = self.queue.size
        return {
            "in flight": size(SubQueue.IN_FLIGHT),
            "active": size(SubQueue.ACTIVE),
            "backoff": size(SubQueue.BACKOFF) + size(SubQueue.ERROR_BACKOFF),
            "unschedulable": size(SubQueue.UNSCHEDULABLE),
            "gated": size(SubQueue.GATED),
        }

    def engines(self) -> Mapping[str, ProfileEngine]:
        """By scheduler name, such as decide as its profile does and never write."""
        if not self._engines:
            self._engines.update(thinking_engines(self.cluster, self.clock, self.options))
        return self._engines

    def engine_of(self, pod: Pod) -> ProfileEngine | None:
        """None if no profile serves the pod."""
        return self.engines().get(pod.spec.scheduler_name)

    def answered(
        self, subject: str, namespace: str, sight: Sight, budget: Budget, *, with_queue: bool = True
    ) -> AnyReport:
        """What `explain` says of a pod or a group, without what this visitor may not see.

        UnknownSubject if there is no such thing, BudgetExceeded if it takes too long.
        """
        own_policy = self.options.feature_gates["PodGroupPreemptionPolicy"]
        queue = None
        if with_queue and self.decides:
            queue = scheduler_report(self.scheduler, Selection(_WHOLE_QUEUE, namespace=namespace))
        witnesses = Witnesses(self.engines(), queue, has_own_policy=own_policy, may_add_nodes=False)
        return as_seen(sight, answered(Inquiry(subject, namespace), self.cluster, witnesses, budget))

    def pod(self, namespace: str, name: str) -> Pod | None:
        found: Pod | None = self.cluster.objects("Pod").get(f"{namespace}/{name}")
        return found

    def waiting(self, sight: Sight) -> list[Waiting]:
        """Who waits for what, those who wait longest first."""
        now = self.clock.time()
        grouped = {uid for group in self.queue.groups() for uid in group.members}
        alike: dict[tuple[str, str, str, tuple[str, ...], str], list[QueuedPodInfo]] = {}
        for entry in self._entries(sight):
            if entry.pod.uid not in grouped:
                plugins, message = reason_of(entry)
                home, kind = _home_of(entry, self.decides), without_numbers(message)
                alike.setdefault((entry.pod.namespace, owner_of(entry.pod), home, plugins, kind), []).append(entry)
        found = [self._waiting_pods(*key[:-1], entries, now) for key, entries in alike.items()]
        found += [self._waiting_group(one, now) for one in self.queue.groups() if sight.sees(one.pod.namespace)]
        return sorted(found, key=lambda one: (-one.seconds, one.namespace, one.owner, one.message))

    def _waiting_pods(
        self,
        namespace: str,
        owner: str,
        home: str,
        plugins: tuple[str, ...],
        entries: list[QueuedPodInfo],
        now: float,
    ) -> Waiting:
        oldest, tried_last = min(entries, key=self._since), max(entries, key=lambda entry: entry.timestamp)
        return Waiting(
            owner=owner,
            namespace=namespace,
            kind="Pod",
            example=oldest.pod.name,
            home=home,
            plugins=plugins,
            message=reason_of(tried_last)[1],
            pods=len(entries),
            seconds=max(0.0, now - self._since(oldest)),
            priority=max(entry.pod.priority for entry in entries),
        )

    def _since(self, entry: QueuedPodInfo) -> float:
        if not self.decides and entry.pod.creation_timestamp:
            # Who only follows has seen a pod for the first time when it began to follow.
            with suppress(ValueError):
                return parse_rfc3339(entry.pod.creation_timestamp)
        return entry.first_attempt_at or entry.timestamp

    def _waiting_group(self, entry: QueuedGroup, now: float) -> Waiting:
        plugins, message = reason_of(entry)
        if entry.gated_by:
            message = gate_text(entry, self.cluster.index(PodGroups).count(entry.key, self.options.profiles))
        elif not message:
            message = next(
                (one.message for one in entry.group.status.conditions if one.type == POD_GROUP_SCHEDULED), ""
            )
        name = entry.key.partition("/")[2]
        return Waiting(
            owner=f"PodGroup/{name}",
            namespace=entry.pod.namespace,
            kind="PodGroup",
            example=name,
            home=_home_of(entry, self.decides),
            plugins=plugins,
            message=message,
            pods=entry.size,
            seconds=max(0.0, now - self._since(entry)),
            priority=entry.group.priority,
        )

    def _entries(self, sight: Sight) -> Iterator[QueuedPodInfo]:
        return (entry for entry in self.queue.entries() if sight.sees(entry.pod.namespace))

    def reasons(self, sight: Sight) -> list[tuple[str, int]]:
        """How many waiting pods each plugin has rejected."""
        counts: Counter[str] = Counter()
        for entry in self._entries(sight):
            counts.update(reason_of(entry)[0])
        return counts.most_common()

    def bound(self) -> int:
        """Pods on nodes: through this scheduler since it started, or all if it only follows."""
        if not self.decides:
            return self.cluster.placed_count
        attempts = self.metrics.schedule_attempts_total.values()
        return int(sum(count for labels, count in attempts.items() if labels[0] == "scheduled"))

    def _durations(self) -> tuple[tuple[float, int], ...]:
        sums: dict[float, int] = {}
        for distribution in self.metrics.pod_scheduling_sli_duration_seconds.lines().values():
            for bound, count in distribution.cumulative():
                sums[bound] = sums.get(bound, 0) + count
        return tuple(sorted(sums.items()))


def _home_of(entry: QueuedPodInfo, decides: bool) -> str:
    """The part of the queue, by its name in the counts."""
    if not decides and entry.home is SubQueue.ACTIVE:
        # Nobody takes pods out of the queue of a process that only follows.
        return SubQueue.UNSCHEDULABLE.value if _scheduler_said(entry.pod) else SubQueue.ACTIVE.value
    return "backoff" if entry.home is SubQueue.ERROR_BACKOFF else str(entry.home.value)


def reason_of(entry: QueuedPodInfo) -> tuple[tuple[str, ...], str]:
    """The plugins that the pod waits for, and the message; from its own status if another scheduler decides."""
    plugins = tuple(sorted(entry.rejectors)) or ((entry.gated_by,) if entry.gated_by else ())
    return plugins, entry.gate_message or entry.message or _scheduler_said(entry.pod)


@lru_cache(maxsize=10_000)
def without_numbers(message: str) -> str:
    """What messages have in common that were written at different moments."""
    return _NUMBER.sub("", message)


def _scheduler_said(pod: Pod) -> str:
    condition = pod.status.condition(_POD_SCHEDULED)
    return "" if condition is None or condition.status == "True" else condition.message


def owner_of(pod: Pod) -> str:
    owner = pod.controller
    return f"Pod/{pod.name}" if owner is None else f"{owner.kind}/{owner.name}"
