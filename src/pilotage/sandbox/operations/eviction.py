"""Evict: a deletion that asks the pod's disruption budget first.

A pod that does no work (pending, finished or on its way out) needs no budget. An unready pod may go too if its budget
allows that, by policy or because enough others are healthy. Otherwise the eviction takes one of the disruptions that
the budget allows, in the same step, so that two evictions cannot take the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pilotage.model.selectors import LabelSelector
from pilotage.sandbox.errors import ApiError, forbidden, internal_error, too_many_requests
from pilotage.sandbox.operations.backend import Backend, Object
from pilotage.sandbox.operations.deletion import Deletion
from pilotage.sandbox.storage.records import Record

_PDBS: Final = "poddisruptionbudgets.policy"
_NO_WORK: Final = ("Pending", "Succeeded", "Failed")
_NOT_ALLOWED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_MOST_DISRUPTED: Final = 2000


class PodEviction:
    """The eviction subresource of pods."""

    def __init__(self, backend: Backend, deletion: Deletion) -> None:
        self._backend = backend
        self._deletion = deletion

    def evict(self, namespace: str, name: str, options: Mapping[str, Any], *, dry_run: bool = False) -> None:
        """Begin to delete the pod; ApiError 429 when its disruption budget forbids it now."""
        pods = self._backend.registry.of("pods")
        record = self._backend.record(pods, namespace, name)
        pod = record.object()
        if not _does_no_work(pod):
            self._ask_budget(record, pod, dry_run=dry_run)
            if not dry_run:
                record = self._announce(record, pod)
        self._deletion.delete(pods, record, _without_stale_version(options), dry_run=dry_run)

    def _ask_budget(self, record: Record, pod: Object, *, dry_run: bool) -> None:
        budgets = [
            (found, budget)
            for found in self._backend.store.list(_PDBS, record.key.namespace)
            if _covers(budget := found.object(), record.labels)
        ]
        if len(budgets) > 1:
            problem = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise internal_error(problem)
        for found, budget in budgets:
            if not _goes_unready(pod, budget):
                _take_disruption(budget, record.key.name, self._backend.now())
                if not dry_run:
                    self._backend.store.update(found.key, budget)

    def _announce(self, record: Record, pod: Object) -> Record:
        """Leave word in the pod's status why it goes, as the API server does."""
        conditions = pod.setdefault("status", {}).setdefault("conditions", [])
        conditions[:] = [condition for condition in conditions if condition.get("type") != "DisruptionTarget"]
        conditions.append(
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
                "lastTransitionTime": self._backend.now(),
            }
        )
        return self._backend.store.update(record.key, pod)


def _does_no_work(pod: Mapping[str, Any]) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase in _NO_WORK or bool(pod["metadata"].get("deletionTimestamp"))


def _covers(budget: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    return selector is not None and msgspec.convert(selector, LabelSelector).matches(labels)


def _goes_unready(pod: Mapping[str, Any], budget: Mapping[str, Any]) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def _take_disruption(budget: Object, pod_name: str, now: str) -> None:
    name = budget["metadata"]["name"]
    status = budget.setdefault("status", {})
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _rejection(f"The disruption budget {name} is still being processed by the server.", retry_after=10)
    if len(status.get("disruptedPods") or {}) > _MOST_DISRUPTED:
        raise forbidden(_PDBS, name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise forbidden(_PDBS, name, "pdb disruptions allowed is negative")
    if allowed == 0:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise _rejection(f"The disruption budget {name} needs {needs} healthy pods and has {has} currently")
    status["disruptionsAllowed"] = allowed - 1
    status.setdefault("disruptedPods", {})[pod_name] = now


def _rejection(message: str, *, retry_after: int = 0) -> ApiError:
    return too_many_requests(
        _NOT_ALLOWED, retry_after=retry_after, causes=[{"reason": "DisruptionBudget", "message": message}]
    )


def _without_stale_version(options: Mapping[str, Any]) -> dict[str, Any]:
    """The condition just written made a new version; the caller's precondition was on the one before."""
    plain = dict(options)
    preconditions = plain.get("preconditions")
    if isinstance(preconditions, Mapping):
        plain["preconditions"] = {key: value for key, value in preconditions.items() if key != "resourceVersion"}
    return plain
