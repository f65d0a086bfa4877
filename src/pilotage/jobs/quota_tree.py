"""Quota: ClusterQueues, the cohorts above them, and what is reserved of it.

`QuotaTree` is the only writer of all three. A change of configuration is kept at once and has an effect with the next
`rebuild`, so that reading a thousand objects at the start builds one tree. Quota trees are independent of each other:
ClusterQueues share quota if they have the same root.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pilotage.jobs.cluster_queue import READY, QueueState
from pilotage.jobs.flavors import Flavor
from pilotage.jobs.quota import FlavorResource, QuotaNode, quotas_of, weight_of
from pilotage.jobs.record import WorkloadRecord
from pilotage.model.kueue import AdmissionCheck, ClusterQueue, Cohort, ResourceFlavor

MOST_LEVELS: Final = 100
"""Of cohorts above each other: quota is added up along them again and again."""
_LONGEST_MESSAGE: Final = 1024
_MOST_NAMES: Final = 10


class Inspection:
    """What the engine is looking at: the object, or the workload's record, to be found if looking at it fails."""

    __slots__ = ("obj",)

    def __init__(self) -> None:
        self.obj: Any = None

    @property
    def culprit(self) -> tuple[str, str] | None:
        """Kind and key."""
        if self.obj is None:
            return None
        kind = "Workload" if isinstance(self.obj, WorkloadRecord) else type(self.obj).__name__
        return kind, self.obj.key


class QuotaTree:
    def __init__(self, inspection: Inspection) -> None:
        self._inspection = inspection
        self._queues: dict[str, QueueState] = {}
        self.queues: Mapping[str, QueueState] = self._queues
        """ClusterQueues by name."""
        self._cohorts: dict[str, Cohort] = {}
        self._flavors: dict[str, Flavor] = {}
        self.flavors: Mapping[str, Flavor] = self._flavors
        self._checks: dict[str, AdmissionCheck] = {}
        self._unusable_cohorts: dict[str, tuple[str, str]] = {}
        """Name -> reason and message of the ClusterQueues in them."""
        self.emptied: list[str] = []
        """ClusterQueues that were deleted and of which nothing is reserved any more."""

    # --- looking ------------------------------------------------------------------------------------------------------

    def tree_of(self, queue: QueueState) -> Iterator[QueueState]:
        """All ClusterQueues that share quota with this one, itself included."""
        for leaf in queue.node.root.leaves:
            yield self._queues[leaf.name]

    def reserving_of(self, pair: FlavorResource, queue: QueueState) -> Iterator[tuple[QueueState, WorkloadRecord, int]]:
        """Who has reserved how much of what this ClusterQueue shares with others."""
        for other in self.tree_of(queue):
            for record in other.reserving.values():
                if pair in record.usage:
                    yield other, record, record.usage[pair]

    # --- reserving ----------------------------------------------------------------------------------------------------

    def reserve(self, record: WorkloadRecord, queue: QueueState, usage: dict[FlavorResource, int]) -> None:
        record.reserve(queue.name, usage)
        queue.book(record)
        queue.reserving[record.uid] = record
        queue.admitted += record.is_admitted

    def admit(self, record: WorkloadRecord) -> None:
        """A workload that has its quota may use it."""
        self._queues[record.cluster_queue].admitted += 1

    def release(self, record: WorkloadRecord) -> QueueState:
        """Give back what a workload has reserved; returns where."""
        queue = self._queues[record.cluster_queue]
        queue.unbook(record)
        del queue.reserving[record.uid]
        queue.admitted -= record.is_admitted
        record.release()
        if queue.is_gone and not queue.reserving:
            self.emptied.append(queue.name)
        return queue

    def change_usage(self, record: WorkloadRecord, usage: dict[FlavorResource, int]) -> QueueState:
        queue = self._queues[record.cluster_queue]
        queue.unbook(record)
        record.set_usage(usage)
        queue.book(record)
        return queue

    def change_priority(self, record: WorkloadRecord, priority: int) -> QueueState:
        queue = self._queues[record.cluster_queue]
        queue.unbook(record)
        record.set_priority(priority)
        queue.book(record)
        return queue

    def renew(self, queue: QueueState) -> None:
        """What was found out about its full flavors may no longer be true."""
        queue.generation += 1

    # --- configuration ------------------------------------------------------------------------------------------------

    def set_queue(self, obj: ClusterQueue) -> None:
        known = self._queues.get(obj.name)
        if known is None:
            self._queues[obj.name] = QueueState(obj)
        else:
            known.update(obj)

    def refresh_queue(self, obj: ClusterQueue) -> bool:
        """Another version with the same spec. Whether its annotations say something else."""
        return self._queues[obj.name].refresh(obj)

    def delete_queue(self, name: str) -> None:
        """Its quota stays as long as some of it is reserved."""
        queue = self._queues[name]
        queue.is_gone = True
        if not queue.reserving:
            self.emptied.append(name)

    def remove_emptied(self) -> list[QueueState]:
        """Deleted ClusterQueues lend their quota until their last workload is gone; returns those that are over."""
        emptied, self.emptied = dict.fromkeys(self.emptied), []
        found = [queue for name in emptied if (queue := self._queues[name]).is_gone and not queue.reserving]
        for queue in found:
            del self._queues[queue.name]
        return found

    def cohort(self, name: str) -> Cohort | None:
        return self._cohorts.get(name)

    def set_cohort(self, obj: Cohort) -> None:
        self._cohorts[obj.name] = obj

    def delete_cohort(self, name: str) -> bool:
        return self._cohorts.pop(name, None) is not None

    def set_flavor(self, obj: ResourceFlavor) -> None:
        self._flavors[obj.name] = Flavor(obj)

    def delete_flavor(self, name: str) -> bool:
        return self._flavors.pop(name, None) is not None

    def check_of(self, name: str) -> AdmissionCheck | None:
        return self._checks.get(name)

    def set_check(self, obj: AdmissionCheck) -> None:
        self._checks[obj.name] = obj

    def delete_check(self, name: str) -> bool:
        return self._checks.pop(name, None) is not None

    def rebuild(self) -> None:
        """Build the trees out of the present configuration and usage, and find out which ClusterQueues are usable."""
        nodes = self._cohort_nodes()
        for queue in self._queues.values():
            self._inspection.obj = queue.obj
            node = queue.new_node()
            cohort = queue.obj.spec.cohort_name
            if cohort and cohort not in self._unusable_cohorts:
                node.attach(nodes[cohort])
        self._inspection.obj = None
        roots = {id(queue.node.root): queue.node.root for queue in self._queues.values()}
        for root in roots.values():
            root.total_up()
        for queue in self._queues.values():
            self._inspection.obj = queue.obj
            queue.judge(*self._usability(queue))
        self._inspection.obj = None

    def _cohort_nodes(self) -> dict[str, QuotaNode]:
        names = {queue.obj.spec.cohort_name for queue in self._queues.values()} | set(self._cohorts)
        names |= {cohort.spec.parent_name for cohort in self._cohorts.values()}
        ordered = sorted(name for name in names if name)
        self._unusable_cohorts = self._unusable(ordered)
        nodes = {name: self._cohort_node(name) for name in ordered}
        for name in ordered:
            parent = self._parent(name)
            if parent and name not in self._unusable_cohorts:
                nodes[name].attach(nodes[parent])
        return nodes

    def _cohort_node(self, name: str) -> QuotaNode:
        cohort = self._cohorts.get(name)
        if cohort is None:
            return QuotaNode(name, {}, is_queue=False)
        self._inspection.obj = cohort
        try:
            weight, quotas = weight_of(cohort.spec.fair_sharing), quotas_of(cohort.spec.resource_groups)
        except (ValueError, ArithmeticError) as error:
            # Those below have the quota that they have themselves, and see why there is no other.
            self._unusable_cohorts[name] = ("Misconfigured", _cannot(f"cohort {name}: {error}"))
            return QuotaNode(name, {}, is_queue=False)
        return QuotaNode(name, quotas, is_queue=False, weight=weight)

    def _parent(self, name: str) -> str:
        cohort = self._cohorts.get(name)
        return cohort.spec.parent_name if cohort is not None else ""

    def _unusable(self, names: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Cohorts from which no way leads to a root, or only one that is too long: reason and message of each."""
        found: dict[str, tuple[str, str]] = {}
        levels: dict[str, int] = {"": 0}
        for name in names:
            way: dict[str, None] = {}
            while name not in levels and name not in way:
                way[name] = None
                name = self._parent(name)
            if name in way:
                ring = [*way][[*way].index(name) :]
                found |= dict.fromkeys(
                    way, ("CohortCycle", _cannot(f"cohorts are their own ancestors: {_circle(ring)}"))
                )
                levels |= dict.fromkeys(way, 0)
                continue
            above = found.get(name)
            for at, below in enumerate(reversed(way), start=levels[name] + 1):
                levels[below] = at
                if above is not None:
                    found[below] = above
                elif at > MOST_LEVELS:
                    text = f"more than {MOST_LEVELS} cohorts above each other, {below} is one of them"
                    found[below] = above = ("CohortTooDeep", _cannot(text))
        return found

    def _usability(self, queue: QueueState) -> tuple[str, str]:
        """Reason and message of the condition Active."""
        if queue.is_gone or queue.obj.metadata.deletion_timestamp:
            return "Terminating", "Can't admit new workloads; clusterQueue is terminating"
        if queue.is_stopped:
            return "Stopped", "Can't admit new workloads: is stopped"
        missing = [name for name in queue.flavor_names if name not in self._flavors]
        if missing:
            return "FlavorNotFound", _missing("references missing ResourceFlavor(s)", missing)
        checks = {rule.name: self._checks.get(rule.name) for rule in queue.check_rules}
        unknown = [name for name, check in checks.items() if check is None]
        if unknown:
            return "AdmissionCheckNotFound", _missing("references missing AdmissionCheck(s)", unknown)
        idle = [name for name, check in checks.items() if check is not None and not _is_active(check)]
        if idle:
            return "AdmissionCheckInactive", _missing("references inactive AdmissionCheck(s)", idle)
        if (unusable := self._unusable_cohorts.get(queue.obj.spec.cohort_name)) is not None:
            return unusable
        if queue.problem:
            return "Misconfigured", _cannot(queue.problem)
        twice = _repeated(queue)
        if twice:
            return "Misconfigured", _missing("in more than one resource group", twice)
        return READY, "Can admit new workloads"


def _missing(what: str, names: list[str]) -> str:
    rest = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return _cannot(f"{what}: {', '.join(names[:_MOST_NAMES])}{rest}")


def _cannot(why: str) -> str:
    return f"Can't admit new workloads: {why}"[:_LONGEST_MESSAGE]


def _circle(ring: list[str]) -> str:
    shown = ring if len(ring) <= _MOST_NAMES else [*ring[:_MOST_NAMES], "..."]
    return " -> ".join((*shown, ring[0]))


def _is_active(check: AdmissionCheck) -> bool:
    return any(one.type == "Active" and one.status == "True" for one in check.status.conditions)


def _repeated(queue: QueueState) -> list[str]:
    """Resources and flavors that stand in two groups: which quota is meant is not clear."""
    covered = Counter(resource for resources, _ in queue.groups for resource in resources)
    flavors = Counter(queue.flavor_names)
    return sorted({name for counts in (covered, flavors) for name, times in counts.items() if times > 1})
