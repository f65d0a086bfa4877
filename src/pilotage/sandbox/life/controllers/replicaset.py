"""ReplicaSets and ReplicationControllers: as many living pods as asked for, and a status that counts them.

A living pod is one that the set controls and that neither ended nor is being deleted. Too few: create from the
template. Too many: delete those that are missed least (not on a node yet, not running, not ready, ready for the
shortest time, newest). A rejected creation shows in the condition ReplicaFailure and tried again, later and later.
The two kinds differ in how their selector is written, which only `adoption` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.life.controllers.conditions import drop_condition, has_condition, set_condition
from pilotage.sandbox.life.controllers.controller import (
    BATCH,
    CHILD_DELAY,
    ControllerContext,
    Due,
    Interest,
    Object,
    itself,
    pause_after_batch,
)
from pilotage.sandbox.life.controllers.pod_template import PodTemplate
from pilotage.sandbox.life.facts import PodFacts
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.life.owned_pods import OwnedPods
from pilotage.sandbox.storage.store import Key

REPLICA_SETS: Final = "replicasets.apps"
REPLICATION_CONTROLLERS: Final = "replicationcontrollers"

_DELETIONS: Final = 4 * BATCH
"""More than creations at a time, because all pods are ranked for each batch."""
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSetController:
    """The controller of one of the two kinds."""

    def __init__(self, context: ControllerContext, kind: str = "ReplicaSet", resource: str = REPLICA_SETS) -> None:
        self._context = context
        self._kind = kind
        self._resource = resource
        self.name = kind.lower()

    @classmethod
    def of_replication_controllers(cls, context: ControllerContext) -> ReplicaSetController:
        return cls(context, "ReplicationController", REPLICATION_CONTROLLERS)

    def interests(self) -> Mapping[str, Interest]:
        return {self._resource: itself, "pods": self._owner_of_pod}

    def reconcile(self, key: Key) -> float | None:
        replica_set = self._context.read(key)
        if replica_set is None or "deletionTimestamp" in replica_set["metadata"]:
            return None
        owned = self._context.index.owned_pods(replica_set["metadata"]["uid"])
        try:
            lacking = self._scale(replica_set, owned)
            if lacking:
                return pause_after_batch(lacking)
        except ApiError as error:
            self._update_status(key, replica_set, error)
            raise
        return self._update_status(key, replica_set, None)

    def _owner_of_pod(self, seen: ObservedChange) -> Iterable[Due]:
        """The owner of a pod, and the one that it had before it was released."""
        owner = seen.facts.controller
        before = seen.old.controller if seen.old is not None else None
        dues: list[Due] = []
        if owner is not None and owner.kind == self._kind:
            dues.append(Due(Key(self._resource, seen.key.namespace, owner.name), CHILD_DELAY))
        if before is not owner and before is not None and before.kind == self._kind:
            dues.append(Due(Key(self._resource, seen.key.namespace, before.name), CHILD_DELAY))
        return dues

    def _scale(self, replica_set: Object, owned: OwnedPods) -> int:
        """Create or delete a batch of pods; how many are lacking, or too many, if that was not enough."""
        missing = _replicas(replica_set) - owned.active
        if missing > 0:
            template = PodTemplate(replica_set)
            self._context.create_pods(replica_set, (template.make() for _ in range(min(missing, BATCH))))
            return missing if missing > BATCH else 0
        if missing < 0:
            for pod in least_missed(owned.active_pods())[: min(-missing, _DELETIONS)]:
                self._context.delete(pod)
        # Deleting is not paced: it makes room for all.
        return 1 if -missing > _DELETIONS else 0

    def _update_status(self, key: Key, replica_set: Object, rejection: ApiError | None) -> float | None:
        owned = self._context.index.owned_pods(replica_set["metadata"]["uid"])
        waits = self._seconds_until_available(owned, replica_set["spec"].get("minReadySeconds") or 0)
        status = _status(replica_set, owned, available=owned.ready - len(waits))
        if rejection is None:
            drop_condition(status, "ReplicaFailure")
        elif not has_condition(status, "ReplicaFailure"):  # a repeated rejection is no news
            now = self._context.timestamp()
            set_condition(status, "ReplicaFailure", "True", now, reason="FailedCreate", message=rejection.message)
        if status != replica_set.get("status"):
            replica_set["status"] = status
            self._context.write_status(key, replica_set)
        return min(waits, default=None)

    def _seconds_until_available(self, owned: OwnedPods, min_ready_seconds: int) -> list[float]:
        """For each ready pod that is not available yet: in how many seconds it will be."""
        if not min_ready_seconds:
            return []
        ready = (pod for pod in owned.active_pods() if pod.is_ready)
        waits = (self._context.seconds_until(pod.ready_since, min_ready_seconds) for pod in ready)
        return [wait for wait in waits if wait > 0]


def _status(replica_set: Object, owned: OwnedPods, *, available: int) -> Object:
    counts = {
        "fullyLabeledReplicas": owned.active,
        "readyReplicas": owned.ready,
        "availableReplicas": available,
    }
    status: Object = {"replicas": owned.active, **{name: count for name, count in counts.items() if count}}
    status["observedGeneration"] = replica_set["metadata"].get("generation", 0)
    conditions = (replica_set.get("status") or {}).get("conditions")
    if conditions:
        status["conditions"] = [dict(condition) for condition in conditions]
    return status


def least_missed(pods: Iterable[PodFacts]) -> list[PodFacts]:
    """The pods in the order in which to give them up."""
    # Timestamps sort as text. Sorting is stable, so the rule that counts least comes first.
    by_age = sorted(pods, key=lambda pod: (pod.ready_since, pod.created, pod.key.name), reverse=True)
    return sorted(by_age, key=lambda pod: (bool(pod.node_name), _PHASES.get(pod.phase, 1), pod.is_ready))


def _replicas(replica_set: Object) -> int:
    replicas = replica_set["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)
