"""Admission that knows the nodes: quota is given only to workloads whose pods fit, all of them, beside all others.

A workload that does not fit waits, and others go first, so that nothing stands idle. But not for ever: one that has
waited for nodes for as long as its ClusterQueue says (`NODES_KEPT_AFTER`) is *due*. As many nodes as it needs are then
kept for it, those that are free soonest: no workload of the same or a lower priority is admitted there any more, what
runs there ends in its own time, and then it fits. At any time nodes are kept for one workload: of those that are due
the one with the highest priority, then the one that has waited longest. None are kept for one that would not fit even
if no workload had any pods, nor for one that lacks quota by now.

Nodes are not asked where a ClusterQueue does not want it (`NODE_AWARE`), where a check is going to make the nodes
(`PROVISIONING`), and while there are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from pilotage.jobs import conditions as c
from pilotage.jobs.assignment import Assignment
from pilotage.jobs.cluster_queue import QueueState
from pilotage.jobs.flavors import Flavor
from pilotage.jobs.quota_tree import QuotaTree
from pilotage.jobs.record import WorkloadRecord
from pilotage.jobs.rejections import Obstacle
from pilotage.jobs.room import NoRoom, PodsToPlace, Room, TopologyDomains
from pilotage.jobs.shapes import PodSetNeed
from pilotage.jobs.timers import Timers
from pilotage.model.pod_spec import PodSpec
from pilotage.model.pod_wire import unique_spec

PROVISIONING: Final = "kueue.x-k8s.io/provisioning-request"
"""The controller of checks that make nodes for a workload."""
_SECONDS_BETWEEN_LOOKS: Final = 60
_MOST_LOOKED_AT: Final = 8


@dataclass(slots=True, eq=False)
class _Waiting:
    """A workload that nodes keep waiting."""

    record: WorkloadRecord
    queue: QueueState
    since: int
    wanted: tuple[PodsToPlace, ...]
    looked_at: int = 0
    """When it was last found out which nodes could be kept for it."""
    nodes: frozenset[str] = frozenset()

    def is_due(self, now: int) -> bool:
        after, rejection = self.queue.nodes_kept_after, self.record.rejection
        if not 0 < after <= now - self.since or not self.record.is_queued or not self.record.is_eligible(now):
            return False
        return rejection is not None and rejection.reason == c.WAITING_FOR_NODES


class NodeFit:
    def __init__(self, room: Room, tree: QuotaTree, timers: Timers) -> None:
        self.room = room
        self._tree = tree
        self._timers = timers
        self._waiting: dict[str, _Waiting] = {}
        """By UID."""
        self._first: _Waiting | None = None
        """For whom nodes are kept."""
        self._looked_at = 0

    def asks(self, queue: QueueState) -> bool:
        return queue.is_node_aware and self.room.is_known and not self._makes_nodes(queue)

    def _makes_nodes(self, queue: QueueState) -> bool:
        checks = (self._tree.check_of(rule.name) for rule in queue.check_rules)
        return any(check is not None and check.spec.controller_name == PROVISIONING for check in checks)

    # --- before there is quota ----------------------------------------------------------------------------------

    def obstacle(
        self, record: WorkloadRecord, queue: QueueState, index: int, flavor: str, count: int
    ) -> Obstacle | None:
        """Why the nodes of a flavor do not take a pod set; None if they do, or are not asked."""
        if not self.asks(queue):
            return None
        need = record.shape.pod_sets[index]
        wanted = (self._wanted(record, need, [flavor], count),)
        found = self.room.rejection(record.key, wanted)
        return None if found is None else self._noted(record, queue, need.name, found, [flavor])

    def take(self, record: WorkloadRecord, queue: QueueState, assignment: Assignment) -> TopologyDomains | Obstacle:
        """Keep the places of all pods; or why there are not enough."""
        wanted, flavors = self._all_wanted(record, assignment), _flavors_of(assignment)
        if not self.asks(queue):
            self.room.follow_pods()
            if self.room.is_known and not self._makes_nodes(queue) and self._counts_elsewhere():
                self.room.keep(record.key, wanted, insists=False)
            self.forget(record)
            return {}
        found = self.room.take(record.key, wanted)
        if isinstance(found, NoRoom):
            return self._noted(record, queue, wanted[0].pod_set, found, flavors)
        self.forget(record)
        return found

    def _counts_elsewhere(self) -> bool:
        """Whether other queues want to know what room is taken."""
        return any(queue.is_node_aware for queue in self._tree.queues.values())

    def obstacle_after(
        self, record: WorkloadRecord, queue: QueueState, assignment: Assignment, victims: Iterable[WorkloadRecord]
    ) -> Obstacle | None:
        """Why the nodes would not even take the pods once these workloads are gone: then none has to go."""
        if not self.asks(queue):
            return None
        wanted, flavors = self._all_wanted(record, assignment), _flavors_of(assignment)
        if (found := self.room.rejection(record.key, wanted)) is not None:
            keys = [victim.key for victim in victims]
            if self.room.may_fit_without(keys, wanted):
                with self.room.without(keys):
                    if self.room.fits_now(record.key, wanted):
                        return None
            return self._noted(record, queue, wanted[0].pod_set, found, flavors)
        return None

    def _all_wanted(self, record: WorkloadRecord, assignment: Assignment) -> tuple[PodsToPlace, ...]:
        return tuple(
            self._wanted(record, need, dict.fromkeys(choice.flavors.values()), choice.count)
            for need, choice in zip(record.shape.pod_sets, assignment.pod_sets, strict=True)
        )

    def _wanted(self, record: WorkloadRecord, need: PodSetNeed, flavors: Iterable[str], count: int) -> PodsToPlace:
        known = [flavor for name in flavors if (flavor := self._tree.flavors.get(name)) is not None]
        spec = _steered(need.spec, known, _priority_of_pods(record))
        required, preferred = need.required_topology, need.preferred_topology
        avoid = self._kept_from(record)
        return PodsToPlace(need.name, record.namespace, count, spec, need.labels, required, preferred, avoid)

    def _noted(
        self, record: WorkloadRecord, queue: QueueState, pod_set: str, found: NoRoom, flavors: Sequence[str]
    ) -> Obstacle:
        waiting = self._waiting.get(record.uid)
        if waiting is None:
            waiting = self._waiting[record.uid] = _Waiting(record, queue, self._since(record), found.wanted)
        waiting.wanted, waiting.queue = found.wanted, queue
        text, first = found.message, self._first
        if first is not None and any(one.avoid for one in found.wanted):
            seconds = self._timers.now() - first.since
            nodes = "1 node is" if len(first.nodes) == 1 else f"{len(first.nodes)} nodes are"
            text += f" ({nodes} kept for {first.record.key}, which has been waiting for {seconds}s)"
        return Obstacle(pod_set, ", ".join(flavors), "", c.WAITING_FOR_NODES, text, nodes=found)

    def _since(self, record: WorkloadRecord) -> int:
        """It may have waited for nodes already when this engine began."""
        known = record.conditions.get(c.QUOTA_RESERVED)
        is_old = known is not None and known.reason == c.WAITING_FOR_NODES
        return known.since if known is not None and is_old else self._timers.now()

    def forget(self, record: WorkloadRecord) -> None:
        """It waits no longer: nothing need be kept for it."""
        one = self._waiting.pop(record.uid, None)
        if one is not None and one is self._first:
            self._keep_nodes_for(None)

    def may_fit(self, rejection: NoRoom) -> bool:
        """Whether enough has become free to ask again for what did not fit."""
        avoided = rejection.wanted[0].avoid if rejection.wanted else frozenset()
        are_kept = self._first is not None and self._first.nodes is avoided
        return self.room.may_fit(rejection, avoided if are_kept else frozenset())

    # --- whose turn it is ---------------------------------------------------------------------------------------

    def _kept_from(self, record: WorkloadRecord) -> frozenset[str]:
        """The nodes that are kept for another one."""
        first = self._current_first()
        if first is None or first.record is record or record.priority > first.record.priority:
            return frozenset()
        return first.nodes

    def _current_first(self) -> _Waiting | None:
        now, first = self._timers.now(), self._first
        if first is not None and first.is_due(now) and now - first.looked_at < _SECONDS_BETWEEN_LOOKS:
            return first
        if first is None and now == self._looked_at:
            return None
        self._looked_at = now
        self._keep_nodes_for(next((one for one in self._due(now) if self._has_nodes(one, now)), None))
        return self._first

    def _due(self, now: int) -> Sequence[_Waiting]:
        """Those for whom nodes may be kept, the first one first."""
        due = [one for one in self._waiting.values() if one.is_due(now)]
        due.sort(key=lambda one: (one is not self._first, -one.record.priority, one.since, one.record.uid))
        return due[:_MOST_LOOKED_AT]

    def _has_nodes(self, one: _Waiting, now: int) -> bool:
        if not one.looked_at or now - one.looked_at >= _SECONDS_BETWEEN_LOOKS:
            one.looked_at, before = now, one.nodes
            asked = [replace(pods, avoid=frozenset()) for pods in one.wanted]
            one.nodes = self.room.nodes_to_keep(asked)
            if one is self._first:
                self.room.free(before - one.nodes)
        return bool(one.nodes)

    def _keep_nodes_for(self, one: _Waiting | None) -> None:
        before, self._first = self._first, one
        if before is not None and before is not one:
            self.room.free(before.nodes)

    # --- with quota ---------------------------------------------------------------------------------------------

    def keep(self, record: WorkloadRecord) -> None:
        """What its admission says, less what is reclaimed already: it had quota before, or needs less now."""
        admission, queue = record.admission, self._tree.queues.get(record.cluster_queue)
        if admission is None or queue is None or record.is_evicted:
            return
        if self._makes_nodes(queue) or not self.room.is_known or not self._counts_elsewhere():
            return
        left = {need.name: (need, record.count_of(index)) for index, need in enumerate(record.shape.pod_sets)}
        wanted = []
        for one in admission.pod_set_assignments:
            if one.name in left:
                need, count = left[one.name]
                given = count if one.count is None else min(count, one.count)
                own = self._wanted(record, need, dict.fromkeys(one.flavors.values()), given)
                wanted.append(replace(own, required="", preferred="", avoid=frozenset()))
        self.room.keep(record.key, wanted, insists=queue.is_node_aware)


def _flavors_of(assignment: Assignment) -> list[str]:
    return list(dict.fromkeys(name for choice in assignment.pod_sets for name in choice.flavors.values()))


def _priority_of_pods(record: WorkloadRecord) -> int | None:
    """As far as the workload knows it: its priority comes from the class of its pods, or from one of its own."""
    reference = record.seen.spec.priority_class_ref
    return record.priority if reference is not None and reference.kind == "PriorityClass" else None


def _steered(spec: PodSpec, flavors: Sequence[Flavor], priority: int | None) -> PodSpec:
    """The spec as admission to these flavors will make it."""
    labels: Mapping[str, str] = {key: value for one in flavors for key, value in one.spec.node_labels.items()}
    tolerations = tuple(toleration for one in flavors for toleration in one.spec.tolerations)
    key = (_steered, tuple(labels.items()), tolerations, priority)
    known: PodSpec | None = spec.memo.get(key)
    if known is None:
        own = {name: getattr(spec, name) for name in spec.__struct_fields__}
        own["node_selector"] = {**spec.node_selector, **labels}
        own["tolerations"] = (*spec.tolerations, *(one for one in tolerations if one not in spec.tolerations))
        own["priority"] = spec.priority if priority is None else priority
        known = spec.memo[key] = unique_spec(PodSpec(**own))
    return known
