"""A ClusterQueue with its quota: what is reserved in it, by whom, and whether it is usable. `QuotaTree` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pilotage.jobs.admission_shares import USAGE_BASED
from pilotage.jobs.quota import FlavorResource, QuotaNode, quotas_of, weight_of
from pilotage.jobs.record import WorkloadRecord
from pilotage.model.durations import parse_duration
from pilotage.model.kueue import AdmissionCheckRule, ClusterQueue

READY = "Ready"
NODE_AWARE: Final = "queueing.pilotage.dev/node-aware-admission"
"""Annotation of a ClusterQueue: "false" if its workloads are to be admitted whether their pods fit or not."""
NODES_KEPT_AFTER: Final = "queueing.pilotage.dev/nodes-kept-after"
"""How long a workload waits for nodes before they are kept for it; "0s": they never are."""
_KEPT_AFTER_SECONDS: Final = 300.0
UNSCHEDULABLE_TIMEOUT: Final = "queueing.pilotage.dev/unschedulable-timeout"
"""On a ClusterQueue, a workload or its job: how long a pod may wait for a node that takes it; "0s": for ever."""
_LONGEST_PROBLEM = 300


class QueueState:
    __slots__ = (
        "admitted",
        "by_priority",
        "generation",
        "group_of",
        "groups",
        "is_active",
        "is_gone",
        "is_node_aware",
        "message",
        "name",
        "node",
        "nodes_kept_after",
        "obj",
        "oversights",
        "problem",
        "reason",
        "reserving",
        "unschedulable_timeout",
    )

    def __init__(self, obj: ClusterQueue) -> None:
        self.name = obj.name
        self.reserving: dict[str, WorkloadRecord] = {}
        self.by_priority: dict[FlavorResource, dict[int, int]] = {}
        """What is reserved by workloads of each priority."""
        self.admitted = 0
        self.generation = 0
        """Grows when quota becomes free: what was found out about full flavors may no longer be true."""
        self.is_active = False
        self.reason = "Unknown"
        self.message = ""
        self.problem = ""
        """Why its quota cannot be read."""
        self.is_gone = False
        """Deleted while its quota is reserved: stays until that is over."""
        self.node = QuotaNode(self.name, {}, is_queue=True)
        self.update(obj)

    def update(self, obj: ClusterQueue) -> None:
        self.obj = obj
        self.is_gone = False
        self._read_annotations(obj.metadata.annotations)
        self.groups = tuple(
            (group.covered_resources, tuple(flavor.name for flavor in group.flavors))
            for group in obj.spec.resource_groups
        )
        self.group_of = {resource: at for at, (covered, _) in enumerate(self.groups) for resource in covered}

    def refresh(self, obj: ClusterQueue) -> bool:
        before, self.obj = self.obj, obj
        self._read_annotations(obj.metadata.annotations)
        return any(
            before.metadata.annotations.get(name) != obj.metadata.annotations.get(name)
            for name in (NODE_AWARE, NODES_KEPT_AFTER, UNSCHEDULABLE_TIMEOUT)
        )

    def _read_annotations(self, annotations: Mapping[str, str]) -> None:
        self.oversights: list[str] = []
        """What stands in annotations and has no effect."""
        aware = annotations.get(NODE_AWARE, "true")
        self.is_node_aware = aware != "false"
        if aware not in ("true", "false"):
            self.oversights.append(f'annotation {NODE_AWARE} is "{aware}"; write "true" or "false"')
        self.nodes_kept_after = self._seconds(annotations, NODES_KEPT_AFTER, _KEPT_AFTER_SECONDS)
        self.unschedulable_timeout = self._seconds(annotations, UNSCHEDULABLE_TIMEOUT, 0.0)

    def _seconds(self, annotations: Mapping[str, str], name: str, default: float) -> float:
        text = annotations.get(name)
        try:
            seconds = default if text is None else parse_duration(text)
            if seconds < 0:
                raise ValueError(text)
        except ValueError:
            self.oversights.append(f'annotation {name} is "{text}"; write a duration such as 10m')
            return default
        return seconds

    def new_node(self) -> QuotaNode:
        """A leaf with the present quota and usage, to be put into the tree."""
        held = self.node.usage
        self.problem = ""
        try:
            weight, quotas = weight_of(self.obj.spec.fair_sharing), quotas_of(self.obj.spec.resource_groups)
        except (ValueError, ArithmeticError) as error:
            self.problem = str(error)[:_LONGEST_PROBLEM]
            weight, quotas = 1.0, {}
        self.node = QuotaNode(self.name, quotas, is_queue=True, weight=weight)
        for pair, amount in held.items():
            self.node.account(pair).usage = amount
        return self.node

    def book(self, record: WorkloadRecord) -> None:
        """Add what a workload uses."""
        self.node.add(record.usage)
        for pair, amount in record.usage.items():
            held = self.by_priority.setdefault(pair, {})
            held[record.priority] = held.get(record.priority, 0) + amount

    def unbook(self, record: WorkloadRecord) -> None:
        self.node.remove(record.usage)
        for pair, amount in record.usage.items():
            held = self.by_priority[pair]
            held[record.priority] -= amount
            if not held[record.priority]:
                del held[record.priority]

    def judge(self, reason: str, message: str) -> None:
        """Set the condition Active."""
        self.reason, self.message = reason, message
        self.is_active = reason == READY

    def largest(self, pair: FlavorResource) -> int:
        """The most that a single workload has reserved."""
        return max((record.usage.get(pair, 0) for record in self.reserving.values()), default=0)

    @property
    def is_stopped(self) -> bool:
        return self.obj.spec.stop_policy in ("Hold", "HoldAndDrain")

    @property
    def wants_shares(self) -> bool:
        """Its LocalQueues are to be served by what they have used."""
        scope = self.obj.spec.admission_scope
        return scope is not None and scope.admission_mode == USAGE_BASED

    @property
    def is_strict(self) -> bool:
        return self.obj.spec.queueing_strategy == "StrictFIFO"

    @property
    def flavor_names(self) -> list[str]:
        return [name for _, flavors in self.groups for name in flavors]

    @property
    def check_rules(self) -> tuple[AdmissionCheckRule, ...]:
        strategy = self.obj.spec.admission_checks_strategy
        return strategy.admission_checks if strategy is not None else ()

    @property
    def can_preempt(self) -> bool:
        policy = self.obj.spec.preemption
        return policy.within_cluster_queue != "Never" or policy.reclaim_within_cohort != "Never"

    def required_checks(self, flavors: Iterable[str] | None) -> list[str]:
        """Checks for a workload with these flavors; before a reservation (None) those that every flavor needs."""
        chosen = None if flavors is None else set(flavors)
        found = []
        for rule in self.check_rules:
            if not rule.on_flavors:
                applies = True
            elif chosen is None:
                applies = set(self.flavor_names) <= set(rule.on_flavors)
            else:
                applies = not chosen.isdisjoint(rule.on_flavors)
            if applies:
                found.append(rule.name)
        return found

    def sync_checks(self, record: WorkloadRecord, now: int) -> bool:
        """Bring a workload's checks in line with those of the queue. Whether they changed."""
        if not self.check_rules and not record.checks:
            return False
        return record.require_checks(self.required_checks(record.assigned_flavors()), now)
