"""Which evictions a disruption budget would not allow.

Budgets are advice to preemption: victims whose budget is used up are spared first, but not at all costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pilotage.api.budget import UNLIMITED, Budget
from pilotage.api.indexes import ClusterIndex
from pilotage.model import Pod
from pilotage.model.frozen_map import FrozenMap
from pilotage.model.label_matcher import LabelMatcher, matcher_of
from pilotage.model.policy import PodDisruptionBudget

_KEPT_NAMES = 65_536
_MOST_LABELS = 256
"""Nothing is remembered for pods with more labels."""


class DisruptionBudgets(ClusterIndex):
    """All budgets by namespace."""

    kinds = frozenset(["PodDisruptionBudget"])

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, PodDisruptionBudget]] = {}
        self._selectors: dict[str, dict[str, LabelMatcher]] = {}
        """By namespace and name; only of budgets that select pods."""
        self._names_for: dict[tuple[str, FrozenMap], list[str]] = {}
        self._kept_names = 0
        self.selection = 0
        """Changes when a budget comes, goes, or counts other pods than before."""
        self.allowance = 0
        """Changes when a budget allows more or less than before."""

    def object_put(self, kind: str, old: PodDisruptionBudget | None, new: PodDisruptionBudget) -> None:
        self._by_namespace.setdefault(new.namespace, {})[new.name] = new
        self.allowance += 1
        if old is None or old.spec.selector != new.spec.selector:
            self._note_selector(new)
            self._select_anew()

    def object_removed(self, kind: str, obj: PodDisruptionBudget) -> None:
        budgets = self._by_namespace.get(obj.namespace, {})
        budgets.pop(obj.name, None)
        if not budgets:
            self._by_namespace.pop(obj.namespace, None)
        self._drop_selector(obj)
        self._select_anew()

    def _note_selector(self, new: PodDisruptionBudget) -> None:
        selector = new.spec.selector
        # An empty selector selects all pods elsewhere; here it protects none.
        if selector is None or selector.is_empty or selector.problem() is not None:
            self._drop_selector(new)
        else:
            self._selectors.setdefault(new.namespace, {})[new.name] = matcher_of(selector)

    def _drop_selector(self, old: PodDisruptionBudget) -> None:
        selectors = self._selectors.get(old.namespace, {})
        selectors.pop(old.name, None)
        if not selectors:
            self._selectors.pop(old.namespace, None)

    def _select_anew(self) -> None:
        self.selection += 1
        self._names_for.clear()
        self._kept_names = 0

    def concern(self, pods: Iterable[Pod]) -> bool:
        """Whether any budget counts any of these pods."""
        return bool(self._by_namespace) and any(self._names(pod) for pod in pods)

    def protected(self, pods: Sequence[Pod], cycle: Budget = UNLIMITED) -> set[str]:
        """UIDs of those that may not go if the pods go one after the other; takes its time from the cycle's."""
        if not self._by_namespace:
            return set()
        left: dict[str, int] = {}
        protected = set()
        for pod in pods:
            cycle.spend()
            for budget in self._counting(pod):
                cycle.spend()
                allowed = left.get(budget.key, budget.status.disruptions_allowed) - 1
                left[budget.key] = allowed
                if allowed < 0:
                    protected.add(pod.uid)
                    break
        return protected

    def forbidding(self, pods: Sequence[Pod]) -> dict[str, tuple[str, ...]]:
        """By UID, the budgets that do not let a pod go if the pods go one after the other; asked by people."""
        left: dict[str, int] = {}
        found: dict[str, tuple[str, ...]] = {}
        for pod in pods:
            for budget in self._counting(pod):
                allowed = left.get(budget.key, budget.status.disruptions_allowed) - 1
                left[budget.key] = allowed
                if allowed < 0:
                    found[pod.uid] = (*found.get(pod.uid, ()), budget.name)
        return found

    def _counting(self, pod: Pod) -> Iterator[PodDisruptionBudget]:
        for name in self._names(pod):
            budget = self._by_namespace[pod.namespace][name]
            # An eviction that the API server has let through is counted in the budget already.
            if pod.name not in budget.status.disrupted_pods:
                yield budget

    def _names(self, pod: Pod) -> list[str]:
        """The budgets that select this pod; a pod without labels is not selected by any."""
        selectors = self._selectors.get(pod.namespace)
        if not pod.labels or selectors is None:
            return []
        key = (pod.namespace, pod.labels)
        known = self._names_for.get(key)
        if known is None:
            known = [name for name in sorted(selectors) if selectors[name].matches(pod.labels)]
            if len(pod.labels) <= _MOST_LABELS:
                self._remember(key, known)
        return known

    def _remember(self, key: tuple[str, FrozenMap], names: list[str]) -> None:
        if self._kept_names >= _KEPT_NAMES:
            self._names_for.clear()
            self._kept_names = 0
        self._names_for[key] = names
        self._kept_names += 1 + len(names)
