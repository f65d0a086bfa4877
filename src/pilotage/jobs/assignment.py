"""Flavor assignment: which flavor gives each pod set its resources, and does that need borrowing or preemption?

For each pod set, in order, and each resource group it asks something of, the flavors of the group are tried in the
order of the ClusterQueue: one flavor serves all resources of the group. How good a flavor is:

    NO_FIT < NO_CANDIDATES (room only by preemption, and none is allowed) < PREEMPT < RECLAIM < FIT

`flavorFungibility` says whether to go on looking when a flavor would do, but by borrowing or preempting. Where a search
ended is remembered, so that a workload that lost the race for one flavor goes on with the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

from pilotage.jobs import conditions as c
from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.flavors import Flavor
from pilotage.jobs.quota import FlavorResource
from pilotage.jobs.record import Resumption, WorkloadRecord
from pilotage.jobs.rejections import Obstacle, mildest, most_severe
from pilotage.jobs.shapes import PODS, PodSetNeed


class Mode(IntEnum):
    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4


@dataclass(slots=True)
class PodSetChoice:
    name: str
    count: int
    flavors: dict[str, str] = field(default_factory=dict)
    usage: dict[str, int] = field(default_factory=dict)
    passed_over: list[Obstacle] = field(default_factory=list)
    """Why flavors that come before the chosen ones were not taken."""


@dataclass(slots=True)
class Assignment:
    pod_sets: list[PodSetChoice] = field(default_factory=list)
    usage: dict[FlavorResource, int] = field(default_factory=dict)
    mode: Mode = Mode.FIT
    """The worst of all groups."""
    level: int = 0
    """How distant the quota is that it borrows; 0: it does not."""
    preempting: set[FlavorResource] = field(default_factory=set)
    """What must be made free by preemption."""
    obstacles: list[Obstacle] = field(default_factory=list)
    reason: str = ""
    """Why it does not fit, if it does not."""
    tried: dict[tuple[int, str], int] = field(default_factory=dict)
    resumed: bool = False
    """The search began behind a flavor that was tried before."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One flavor for one pod set and resource group."""

    flavor: str
    mode: Mode
    level: int
    modes: Mapping[str, Mode]


class Oracle(Protocol):
    """Whether preemption would make room."""

    def possibility(
        self, record: WorkloadRecord, queue: QueueState, pair: FlavorResource, amount: int
    ) -> tuple[Mode, int]:
        """NO_CANDIDATES, PREEMPT or RECLAIM, and the borrowing level once the victims are gone."""


class Nodes(Protocol):
    """Whether there is room beside quota."""

    def obstacle(
        self, record: WorkloadRecord, queue: QueueState, index: int, flavor: str, count: int
    ) -> Obstacle | None:
        """Why the nodes of a flavor do not take so many pods of a pod set."""


class _Anywhere:
    def obstacle(self, record: WorkloadRecord, queue: QueueState, index: int, flavor: str, count: int) -> None:
        return None


class Assigner:
    def __init__(self, flavors: Mapping[str, Flavor], oracle: Oracle, nodes: Nodes, *, is_fair: bool) -> None:
        """`is_fair`: with fair sharing."""
        self.flavors = flavors
        self.oracle = oracle
        self.nodes = nodes
        self.is_fair = is_fair

    def by_quota_alone(self) -> Assigner:
        """The same, whatever room there is on nodes."""
        return Assigner(self.flavors, self.oracle, _Anywhere(), is_fair=self.is_fair)

    def assign(
        self, record: WorkloadRecord, queue: QueueState, counts: Sequence[int], resumption: Resumption | None = None
    ) -> Assignment:
        """The best assignment of these numbers of pods under the present usage.

        The search goes on where it ended last, or at `resumption`.
        """
        search = _Search(self, record, queue, record.attempt.resumption if resumption is None else resumption)
        for index, need in enumerate(record.shape.pod_sets):
            search.pod_set(index, need, counts[index])
        return search.finish()


class _Search:
    def __init__(self, assigner: Assigner, record: WorkloadRecord, queue: QueueState, resumption: Resumption) -> None:
        self._flavors = assigner.flavors
        self._oracle = assigner.oracle
        self._nodes = assigner.nodes
        self._fair = assigner.is_fair
        self._record = record
        self._queue = queue
        self._tried = resumption.tried
        self._found = Assignment(resumed=bool(resumption.tried))
        self._reasons: list[str] = []
        self._rejected_at: int | None = None
        """The first pod set that has no flavor."""

    def finish(self) -> Assignment:
        found = self._found
        found.reason = most_severe(self._reasons)
        if self._rejected_at is not None:
            # Other flavors for the pod sets before it may leave it what it needs; its own were all tried.
            found.tried = {place: at for place, at in found.tried.items() if place[0] < self._rejected_at}
        return found

    def pod_set(self, index: int, need: PodSetNeed, count: int) -> None:
        choice = PodSetChoice(need.name, count)
        self._found.pod_sets.append(choice)
        asked = {resource: amount * count for resource, amount in need.per_pod.items()}
        if PODS in self._queue.group_of:
            asked[PODS] = count
        by_group: dict[int, dict[str, int]] = {}
        for resource, amount in asked.items():
            group = self._queue.group_of.get(resource)
            if group is not None:
                by_group.setdefault(group, {})[resource] = amount
            elif amount:
                self._reject(index, [self._unlisted(need, resource, amount)])
        for group, wanted in by_group.items():
            self._resource_group(index, need, group, wanted, choice)

    def _unlisted(self, need: PodSetNeed, resource: str, amount: int) -> Obstacle:
        text = f"resource {resource} unavailable in ClusterQueue {self._queue.name}"
        return Obstacle(need.name, "", resource, c.NO_MATCHING_FLAVOR, text, need=amount)

    def _reject(self, index: int, obstacles: list[Obstacle]) -> None:
        self._found.mode = Mode.NO_FIT
        if self._rejected_at is None:
            self._rejected_at = index
        self._found.obstacles += obstacles
        self._reasons.append(mildest(obstacles))

    def _resource_group(
        self, index: int, need: PodSetNeed, group: int, wanted: dict[str, int], choice: PodSetChoice
    ) -> None:
        names = self._queue.groups[group][1]
        obstacles: list[Obstacle] = []
        best, last = self._walk(index, need, names, wanted, obstacles)
        for resource in wanted:
            self._found.tried[index, resource] = -1 if last >= len(names) - 1 else last
        if best is None:
            self._reject(index, obstacles)
            return
        found = self._found
        found.mode = min(found.mode, best.mode)
        found.level = max(found.level, best.level)
        choice.passed_over += obstacles
        if best.mode is not Mode.FIT:
            found.obstacles += obstacles
            self._reasons.append(c.WAITING_FOR_QUOTA)
        for resource, amount in wanted.items():
            pair = (best.flavor, resource)
            choice.flavors[resource] = best.flavor
            choice.usage[resource] = amount
            found.usage[pair] = found.usage.get(pair, 0) + amount
            if best.modes[resource] is not Mode.FIT:
                found.preempting.add(pair)

    def _walk(
        self, index: int, need: PodSetNeed, names: Sequence[str], wanted: dict[str, int], obstacles: list[Obstacle]
    ) -> tuple[Judged | None, int]:
        """The best flavor, and the index of the last one that was looked at."""
        best: Judged | None = None
        start = self._tried.get((index, next(iter(wanted))), -1) + 1
        for at in range(start, len(names)):
            flavor = self._flavors.get(names[at])
            objection = f"flavor {names[at]} not found" if flavor is None else flavor.objection(need)
            if objection:
                obstacles.append(Obstacle(need.name, names[at], "", c.NO_MATCHING_FLAVOR, objection))
                continue
            judged = self._judge(need, names[at], wanted, obstacles)
            if judged.mode is Mode.NO_FIT:
                continue
            if judged.mode is Mode.FIT:
                count = self._found.pod_sets[index].count
                no_room = self._nodes.obstacle(self._record, self._queue, index, names[at], count)
                if no_room is not None:
                    obstacles.append(no_room)
                    continue
            if not self._goes_on(judged):
                return judged, at
            if best is None or self._rank(judged) > self._rank(best):
                best = judged
        return best, len(names) - 1

    def _goes_on(self, judged: Judged) -> bool:
        fungibility = self._queue.obj.spec.flavor_fungibility
        if judged.mode is Mode.NO_CANDIDATES:
            return True
        if judged.mode is not Mode.FIT and fungibility.when_can_preempt == "TryNextFlavor":
            return True
        return judged.level > 0 and fungibility.when_can_borrow == "TryNextFlavor"

    def _rank(self, judged: Judged) -> tuple[int, ...]:
        is_possible = judged.mode is not Mode.NO_CANDIDATES
        if self._queue.obj.spec.flavor_fungibility.preference == "PreemptionOverBorrowing":
            return is_possible, -judged.level, judged.mode
        return is_possible, judged.mode, -judged.level

    def _judge(self, need: PodSetNeed, flavor: str, wanted: dict[str, int], obstacles: list[Obstacle]) -> Judged:
        modes: dict[str, Mode] = {}
        worst, level = Mode.FIT, 0
        for resource, amount in wanted.items():
            pair = (flavor, resource)
            total = amount + self._found.usage.get(pair, 0)
            mode, distance = self._judge_pair(need, pair, total, obstacles)
            modes[resource] = mode
            worst = min(worst, mode)
            level = max(level, distance)
            if worst is Mode.NO_FIT:
                break
        return Judged(flavor, worst, level, modes)

    def _judge_pair(
        self, need: PodSetNeed, pair: FlavorResource, amount: int, obstacles: list[Obstacle]
    ) -> tuple[Mode, int]:
        node = self._queue.node
        account = node.account(pair)
        most = account.potential()
        if amount > most:
            obstacles.append(Obstacle(need.name, *pair, c.EXCEEDS_MAX_QUOTA, need=amount, have=0, most=most))
            return Mode.NO_FIT, 0
        have = max(0, account.available())
        level, is_below_root = node.borrowing_level(pair, amount)
        if amount <= have:
            return Mode.FIT, level
        obstacles.append(Obstacle(need.name, *pair, c.WAITING_FOR_QUOTA, need=amount, have=have, most=most))
        if amount <= account.nominal or is_below_root or self._may_preempt_while_borrowing():
            return self._oracle.possibility(self._record, self._queue, pair, amount)
        return Mode.NO_FIT, 0

    def _may_preempt_while_borrowing(self) -> bool:
        policy = self._queue.obj.spec.preemption
        if self._fair:
            return policy.reclaim_within_cohort != "Never"
        return policy.borrow_within_cohort is not None and policy.borrow_within_cohort.policy != "Never"
