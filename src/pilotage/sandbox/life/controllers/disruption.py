"""PodDisruptionBudgets: how many pods there are, how many are healthy, and how many may be disrupted now.

Which pods a budget covers is kept per budget from changes (`budget_cover`). Budgets over a share of all pods
(percentages, maxUnavailable) need to know how many there should be: the replicas that the pods' controllers ask for.

A pod that the eviction API has let go (`status.disruptedPods`) counts as lost until it is seen to be deleted, or until
two minutes have passed without that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from pilotage.model.selectors import LabelSelector
from pilotage.sandbox.life.controllers.budget_cover import Cover, is_healthy
from pilotage.sandbox.life.controllers.conditions import set_condition
from pilotage.sandbox.life.controllers.controller import CHILD_DELAY, ControllerContext, Due, Interest, Object
from pilotage.sandbox.life.controllers.int_or_percent import scaled_value
from pilotage.sandbox.life.facts import ObjectFacts, PodFacts
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.storage.store import Key

BUDGETS: Final = "poddisruptionbudgets.policy"

_EVICTION_SECONDS: Final = 120.0
_SCALABLE: Final = {
    "ReplicaSet": "replicasets.apps",
    "Deployment": "deployments.apps",
    "StatefulSet": "statefulsets.apps",
    "ReplicationController": "replicationcontrollers",
}


class _Spec(msgspec.Struct):
    selector: LabelSelector | None = None


class _Budget(msgspec.Struct):
    spec: _Spec


class DisruptionController:
    name = "disruption"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._covers_in: dict[str, dict[Key, Cover]] = {}

    def interests(self) -> Mapping[str, Interest]:
        return {BUDGETS: self._budget_seen, "pods": self._pod_seen}

    def reconcile(self, key: Key) -> float | None:
        budget = self._context.read(key)
        cover = self._covers_in.get(key.namespace, {}).get(key)
        if budget is None or cover is None or "deletionTimestamp" in budget["metadata"]:
            return None
        disrupted, again = self._still_disrupted(budget, cover)
        status = self._status(budget, cover, disrupted)
        if status != budget.get("status"):
            budget["status"] = status
            self._context.write_status(key, budget)
        return again

    def _budget_seen(self, seen: ObservedChange) -> Iterable[Due]:
        key = seen.key
        covers = self._covers_in.setdefault(key.namespace, {})
        record = self._context.api.store.get(key) if seen.new is not None else None
        if record is None:
            covers.pop(key, None)
            return ()
        selector = _selector(record.body)
        known = covers.get(key)
        if known is None or known.selector != selector:
            covers[key] = cover = Cover(selector)
            for pod in self._context.api.store.list("pods", key.namespace):
                cover.note(pod.key, self._context.index.pod(pod.key))
        return (Due(key),)

    def _pod_seen(self, seen: ObservedChange) -> Iterable[Due]:
        covers = self._covers_in.get(seen.key.namespace)
        if not covers:
            return ()
        pod = seen.new if isinstance(seen.new, PodFacts) else None
        return [Due(key, CHILD_DELAY) for key, cover in covers.items() if cover.note(seen.key, pod)]

    def _status(self, budget: Object, cover: Cover, disrupted: Mapping[str, str]) -> Object:
        problem = ""
        try:
            expected, desired = self._demand(budget["spec"], cover)
        except ValueError as error:
            expected, desired, problem = 0, 0, str(error)
        evicted = [cover.get(Key("pods", budget["metadata"]["namespace"], name)) for name in disrupted]
        healthy = cover.healthy - sum(pod is not None and is_healthy(pod) for pod in evicted)
        allowed = max(healthy - desired, 0) if expected > 0 else 0
        status: Object = {
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": budget["metadata"].get("generation", 0),
            "conditions": [dict(c) for c in (budget.get("status") or {}).get("conditions") or ()],
        }
        if disrupted:
            status["disruptedPods"] = dict(disrupted)
        reason = "SyncFailed" if problem else "SufficientPods" if allowed else "InsufficientPods"
        truth = "True" if allowed else "False"
        set_condition(status, "DisruptionAllowed", truth, self._context.timestamp(), reason=reason, message=problem)
        return status

    def _demand(self, spec: Object, cover: Cover) -> tuple[int, int]:
        """How many pods there should be, and how many of them must be healthy."""
        limit, floor = spec.get("maxUnavailable"), spec.get("minAvailable")
        if limit is not None:
            expected = self._expected_scale(cover)
            return expected, max(expected - scaled_value(limit, expected, round_up=True), 0)
        if floor is None:
            return 0, 0
        if isinstance(floor, int):
            return len(cover), floor
        expected = self._expected_scale(cover)
        return expected, scaled_value(floor, expected, round_up=True)

    def _expected_scale(self, cover: Cover) -> int:
        """The replicas that the pods' controllers ask for; ValueError if one cannot be asked."""
        replicas_of: dict[str, int] = {}
        for pod in cover.a_pod_of_each_controller():
            facts = self._scaled_by(pod)
            if facts is None:
                raise ValueError(f'found no controllers for pod "{pod.key.name}"')
            replicas_of[facts.uid] = _replicas(self._context.read(facts.key))
        return sum(replicas_of.values())

    def _scaled_by(self, pod: PodFacts) -> ObjectFacts | None:
        """The topmost controller with a scale: the Deployment of a ReplicaSet rather than the set."""
        facts: ObjectFacts | None = pod
        found: ObjectFacts | None = None
        while facts is not None and (owner := facts.controller) is not None and owner.kind in _SCALABLE:
            facts = self._context.index.by_uid(owner.uid)
            found = facts or found
        return found

    def _still_disrupted(self, budget: Object, cover: Cover) -> tuple[dict[str, str], float | None]:
        """The evictions that have not shown yet, and in how many seconds the first of them is given up."""
        noted = (budget.get("status") or {}).get("disruptedPods") or {}
        kept: dict[str, str] = {}
        waits: list[float] = []
        for name, time in noted.items():
            wait = self._context.seconds_until(time, _EVICTION_SECONDS)
            pod = cover.get(Key("pods", budget["metadata"]["namespace"], name))
            if pod is not None and not pod.is_deleting and wait > 0:
                kept[name] = time
                waits.append(wait)
        return kept, min(waits, default=None)


def _selector(body: bytes) -> LabelSelector | None:
    try:
        return msgspec.json.decode(body, type=_Budget).spec.selector
    except msgspec.DecodeError:
        return None


def _replicas(obj: Object | None) -> int:
    replicas = None if obj is None else obj["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)
