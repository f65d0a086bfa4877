"""Which evictions a disruption budget would not allow.

Budgets are advice to preemption: victims whose budget is used up are spared first, but not at all costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pilotage.api.indexes import ClusterIndex
from pilotage.model import Pod
from pilotage.model.policy import PodDisruptionBudget

KIND = "PodDisruptionBudget"

_NONE: Mapping[str, PodDisruptionBudget] = {}


class DisruptionBudgets(ClusterIndex):
    """All budgets by namespace."""

    kinds = frozenset([KIND])

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, PodDisruptionBudget]] = {}

    def object_put(self, kind: str, old: PodDisruptionBudget | None, new: PodDisruptionBudget) -> None:
        self._by_namespace.setdefault(new.namespace, {})[new.name] = new

    def object_removed(self, kind: str, obj: PodDisruptionBudget) -> None:
        budgets = self._by_namespace.get(obj.namespace, {})
        budgets.pop(obj.name, None)
        if not budgets:
            self._by_namespace.pop(obj.namespace, None)

    def protecting(self, pod: Pod) -> list[PodDisruptionBudget]:
        """The budgets that count this pod, by name; a pod without labels has none."""
        budgets = self._by_namespace.get(pod.namespace, _NONE)
        if not budgets or not pod.labels:
            return []
        return [budgets[name] for name in sorted(budgets) if _covers(budgets[name], pod)]

    def protected(self, pods: Sequence[Pod]) -> set[str]:
        """UIDs of those that may not go if the pods go one after the other."""
        if not self._by_namespace:
            return set()
        left: dict[str, int] = {}
        protected = set()
        for pod in pods:
            for budget in self.protecting(pod):
                allowed = left.get(budget.key, budget.status.disruptions_allowed) - 1
                left[budget.key] = allowed
                if allowed < 0:
                    protected.add(pod.uid)
                    break
        return protected


def _covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    selector = budget.spec.selector
    # An empty selector selects all pods elsewhere; here it protects nobody.
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return False
    # The API server has already counted an eviction that it has let through.
    return selector.matches(pod.labels) and pod.name not in budget.status.disrupted_pods
