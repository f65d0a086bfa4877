"""Which evictions a disruption budget would not allow.

Budgets are advice to preemption: victims whose budget is used up are spared first, but not at all costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilotage.api.indexes import ClusterIndex
from pilotage.model import Pod
from pilotage.model.frozen_map import FrozenMap
from pilotage.model.policy import PodDisruptionBudget

_KEPT_LABELS = 65_536


class DisruptionBudgets(ClusterIndex):
    """All budgets by namespace."""

    kinds = frozenset(["PodDisruptionBudget"])

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, PodDisruptionBudget]] = {}
        self._names_for: dict[tuple[str, FrozenMap], list[str]] = {}
        self.selection = 0
        """Changes when a budget comes, goes, or counts other pods than before."""
        self.allowance = 0
        """Changes when a budget allows more or less than before."""

    def object_put(self, kind: str, old: PodDisruptionBudget | None, new: PodDisruptionBudget) -> None:
        self._by_namespace.setdefault(new.namespace, {})[new.name] = new
        self.allowance += 1
        if old is None or old.spec.selector != new.spec.selector:
            self._select_anew()

    def object_removed(self, kind: str, obj: PodDisruptionBudget) -> None:
        budgets = self._by_namespace.get(obj.namespace, {})
        budgets.pop(obj.name, None)
        if not budgets:
            self._by_namespace.pop(obj.namespace, None)
        self._select_anew()

    def _select_anew(self) -> None:
        self.selection += 1
        self._names_for.clear()

    def concern(self, pods: Iterable[Pod]) -> bool:
        """Does any budget count any of these pods?"""
        return bool(self._by_namespace) and any(self._names(pod) for pod in pods)

    def protected(self, pods: Sequence[Pod]) -> set[str]:
        """UIDs of those that may not go if the pods go one after the other."""
        if not self._by_namespace:
            return set()
        left: dict[str, int] = {}
        protected = set()
        for pod in pods:
            for budget in self._counting(pod):
                allowed = left.get(budget.key, budget.status.disruptions_allowed) - 1
                left[budget.key] = allowed
                if allowed < 0:
                    protected.add(pod.uid)
                    break
        return protected

    def _counting(self, pod: Pod) -> list[PodDisruptionBudget]:
        budgets = [self._by_namespace[pod.namespace][name] for name in self._names(pod)]
        # An eviction that the API server has let through is counted in the budget already.
        return [budget for budget in budgets if pod.name not in budget.status.disrupted_pods]

    def _names(self, pod: Pod) -> list[str]:
        """The budgets that select this pod; a pod without labels is not selected by any."""
        if not pod.labels or pod.namespace not in self._by_namespace:
            return []
        key = (pod.namespace, pod.labels)
        known = self._names_for.get(key)
        if known is None:
            if len(self._names_for) >= _KEPT_LABELS:
                self._names_for.clear()
            budgets = self._by_namespace[pod.namespace]
            known = self._names_for[key] = [name for name in sorted(budgets) if _selects(budgets[name], pod)]
        return known


def _selects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    selector = budget.spec.selector
    # An empty selector selects all pods elsewhere; here it protects nobody.
    if selector is None or selector.is_empty or selector.problem() is not None:
        return False
    return selector.matches(pod.labels)
