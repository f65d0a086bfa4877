"""All objects that workload queueing knows, and how they hang together: queues, flavors, checks, the quota trees.

A change of configuration is only noted at first. Before anything is decided the trees are built anew and every
ClusterQueue is told whether it is usable (`refresh`), so that reading a thousand objects at the start builds one tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pilotage.clock import Clock
from pilotage.jobs.admission_shares import AdmissionShares
from pilotage.jobs.cluster_queue import READY, LocalQueueState, QueueState
from pilotage.jobs.configuration.kinds import QueueingConfiguration, WaitForPodsReady
from pilotage.jobs.flavors import Flavor
from pilotage.jobs.ordering import OrderKey, RequeuingTimestamp, order_key, queue_timestamp
from pilotage.jobs.outbox import Outbox
from pilotage.jobs.pod_rules import PodRules
from pilotage.jobs.quota import FlavorResource, QuotaNode, quotas_of, weight_of
from pilotage.jobs.record import WorkloadRecord
from pilotage.jobs.timers import Timers
from pilotage.model.kueue import AdmissionCheck, Cohort
from pilotage.model.selectors import selector_matches

MOST_LEVELS: Final = 100
"""Of cohorts above each other: quota is added up along them again and again."""
_LONGEST_MESSAGE: Final = 1024
_MOST_NAMES: Final = 10


class World:
    def __init__(self, clock: Clock, configuration: QueueingConfiguration) -> None:
        self._clock = clock
        self.configuration = configuration
        self.pods_ready: WaitForPodsReady | None = configuration.wait_for_pods_ready
        ready = self.pods_ready
        self.timestamp: RequeuingTimestamp = "Eviction" if ready is None else ready.requeuing_strategy.timestamp
        self._sorts_by_priority = configuration.feature_gates.get("PrioritySortingWithinCohort", True)
        self.blocks_admission = ready is not None and ready.block_admission
        sharing = configuration.admission_fair_sharing
        self.shares = AdmissionShares(sharing) if sharing is not None else None
        self.outbox = Outbox()
        self.timers = Timers()
        self.records: dict[str, WorkloadRecord] = {}
        self.queues: dict[str, QueueState] = {}
        self.local_queues: dict[str, LocalQueueState] = {}
        self.cohorts: dict[str, Cohort] = {}
        self.flavors: dict[str, Flavor] = {}
        self.checks: dict[str, AdmissionCheck] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.pod_rules = PodRules(configuration.resources)
        self.unready: dict[str, WorkloadRecord] = {}
        """Holders of quota whose pods are not ready."""
        self.dirty: dict[str, None] = {}
        """ClusterQueues that something happened to since the last cycle."""
        self.emptied: dict[str, None] = {}
        """ClusterQueues that were deleted and whose last workload is gone by now."""
        self.changed_queues: dict[str, None] = {}
        self.changed_local_queues: dict[str, None] = {}
        self._unusable_cohorts: dict[str, tuple[str, str]] = {}
        """Name -> reason and message of the ClusterQueues in them."""
        self.inspected: Any = None
        """The object, or the workload's record, that is being looked at: to be found if looking at it fails."""

    def now(self) -> int:
        """Whole seconds: what the API can say."""
        return int(self._clock.time())

    def monotonic(self) -> float:
        """For how long something took."""
        return self._clock.monotonic()

    # --- finding ------------------------------------------------------------------------------------------------------

    def local_queue(self, key: str) -> LocalQueueState:
        found = self.local_queues.get(key)
        if found is None:
            found = self.local_queues[key] = LocalQueueState(key)
        return found

    def queue_of(self, record: WorkloadRecord) -> QueueState | None:
        """The ClusterQueue that the workload's LocalQueue leads to."""
        local = self.local_queues.get(record.local_queue_key)
        if local is None or local.obj is None:
            return None
        found = self.queues.get(local.obj.spec.cluster_queue)
        return None if found is None or found.is_gone else found

    def order_key(self, record: WorkloadRecord) -> OrderKey:
        """Inside of a ClusterQueue."""
        return order_key(record, self.timestamp, sorts_by_priority=self._sorts_by_priority)

    def head_key(self, record: WorkloadRecord) -> OrderKey:
        """Between the heads of ClusterQueues."""
        key = self.order_key(record)
        return key if self._sorts_by_priority else (0, *key[1:])

    def queue_timestamp(self, record: WorkloadRecord) -> float:
        return queue_timestamp(record, self.timestamp, sorts_by_priority=self._sorts_by_priority)

    def selects(self, queue: QueueState, namespace: str) -> bool:
        return selector_matches(queue.obj.spec.namespace_selector, self.namespaces.get(namespace, {}))

    def tree_of(self, queue: QueueState) -> Iterator[QueueState]:
        """All ClusterQueues that share quota with this one, itself included."""
        for leaf in queue.node.root.leaves():
            yield self.queues[leaf.name]

    def reserving_of(self, pair: FlavorResource, queue: QueueState) -> Iterator[tuple[QueueState, WorkloadRecord, int]]:
        """Who holds how much of what this ClusterQueue shares with others."""
        for other in self.tree_of(queue):
            for record in other.reserving.values():
                if pair in record.usage:
                    yield other, record, record.usage[pair]

    def admitted_amounts(self, local_queue: str) -> dict[str, int]:
        """What the admitted workloads of a LocalQueue use, by resource."""
        total: dict[str, int] = {}
        for record in self.local_queue(local_queue).members.values():
            if record.is_admitted:
                for (_, resource), amount in record.usage.items():
                    total[resource] = total.get(resource, 0) + amount
        return total

    def mark_dirty(self, queue: QueueState) -> None:
        self.dirty[queue.name] = None

    def touch(self, record: WorkloadRecord) -> None:
        """Counts of its queues may have changed."""
        if record.cluster_queue:
            self.changed_queues[record.cluster_queue] = None
        self.changed_local_queues[record.local_queue_key] = None

    # --- configuration ------------------------------------------------------------------------------------------------

    def rebuild(self) -> None:
        """Build the quota trees and judge every ClusterQueue."""
        nodes = self._cohort_nodes()
        for queue in self.queues.values():
            self.inspected = queue.obj
            node = queue.new_node()
            cohort = queue.obj.spec.cohort_name
            if cohort and cohort not in self._unusable_cohorts:
                node.attach(nodes[cohort])
        self.inspected = None
        roots = {id(queue.node.root): queue.node.root for queue in self.queues.values()}
        for root in roots.values():
            root.total_up()
        for queue in self.queues.values():
            self.inspected = queue.obj
            queue.reason, queue.message = self._usability(queue)
            queue.is_active = queue.reason == READY
        self.inspected = None

    def _cohort_nodes(self) -> dict[str, QuotaNode]:
        names = {queue.obj.spec.cohort_name for queue in self.queues.values()} | set(self.cohorts)
        names |= {cohort.spec.parent_name for cohort in self.cohorts.values()}
        ordered = sorted(name for name in names if name)
        self._unusable_cohorts = self._unusable(ordered)
        nodes = {name: self._cohort_node(name) for name in ordered}
        for name in ordered:
            parent = self._parent(name)
            if parent and name not in self._unusable_cohorts:
                nodes[name].attach(nodes[parent])
        return nodes

    def _cohort_node(self, name: str) -> QuotaNode:
        cohort = self.cohorts.get(name)
        if cohort is None:
            return QuotaNode(name, {}, is_queue=False)
        self.inspected = cohort
        try:
            weight, quotas = weight_of(cohort.spec.fair_sharing), quotas_of(cohort.spec.resource_groups)
        except (ValueError, ArithmeticError) as error:
            # Those below have the quota that they have themselves, and see why there is no other.
            self._unusable_cohorts[name] = ("Misconfigured", _cannot(f"cohort {name}: {error}"))
            return QuotaNode(name, {}, is_queue=False)
        return QuotaNode(name, quotas, is_queue=False, weight=weight)

    def _parent(self, name: str) -> str:
        cohort = self.cohorts.get(name)
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
        missing = [name for name in queue.flavor_names if name not in self.flavors]
        if missing:
            return "FlavorNotFound", _missing("references missing ResourceFlavor(s)", missing)
        checks = {rule.name: self.checks.get(rule.name) for rule in queue.check_rules}
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
    """Resources and flavors that stand in two groups: nobody could tell which quota is meant."""
    covered = Counter(resource for resources, _ in queue.groups for resource in resources)
    flavors = Counter(queue.flavor_names)
    return sorted({name for counts in (covered, flavors) for name, times in counts.items() if times > 1})
