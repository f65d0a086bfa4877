"""The pods to evict from one node so that another pod fits there.

First all pods that may go are imagined away: if the pod does not fit then, the node is no candidate. Then they are
brought back one by one, the most important first (those under a disruption budget before all others); who cannot come
back without displacing the pod is a victim. So no victim is one too many.

Who may go, who is important and what a node costs is the policy's word: kube-scheduler's, or that of a plugin. By
kube-scheduler's, pods of groups go by units (`units`); a plugin's policy decides about each pod.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pilotage.api.preemption import Candidate, VictimPolicy
from pilotage.api.results import Reason, Reject
from pilotage.framework.diagnosis import ABSENT_PLUGIN, Rejected
from pilotage.framework.dry_run import DryRunNode, PodFilters
from pilotage.framework.errors import shown
from pilotage.framework.preemption.units import VictimUnits
from pilotage.model import Pod

NO_VICTIMS = Rejected(
    ABSENT_PLUGIN,
    Reject(Reason("NoVictims", "No preemption victims found for incoming pod", unresolvable=True)),
)

KUBE_SCHEDULERS: Final = VictimPolicy()
_STEPS_PER_POD = 32
_NUMBERS: Final = frozenset((int, float))


class NoVictimNeeded(Exception):
    """The pod fits although the filters said that it does not: nothing that evictions could mend."""

    def __init__(self, node_name: str) -> None:
        super().__init__(f'expected at least one victim pod on node "{node_name}"')


def try_node(
    filters: PodFilters,
    row: int,
    rivals: Sequence[Pod],
    units: VictimUnits,
    policy: VictimPolicy = KUBE_SCHEDULERS,
) -> Candidate | Rejected:
    """The victims on a node, or what rejects the pod there even without all pods that may go.

    `rivals` are nominated to the node, and need not give way.
    """
    filters.budget.check()
    if policy is KUBE_SCHEDULERS:
        if units.are_among(filters.all_pods(row)):
            return _try_units(filters, row, rivals, units)
        evictable = filters.lower_pods(row)
        node = filters.node_without(row, evictable) if evictable else None
    else:
        evictable = filters.pods_on(row, lambda victim: _may_evict(policy, filters.pod, victim))
        node = filters.node_without_pods(row, evictable) if evictable else None
    if node is None:
        return NO_VICTIMS
    rejected = (node.rejection_beside(rivals) if rivals else None) or node.rejection()
    if rejected is not None:
        return rejected
    importance = _importance(policy)
    evictable.sort(key=importance)
    protected = units.budgets.protected(evictable, filters.budget)
    victims = _not_spared(node, rivals, evictable, protected)
    if not victims:
        raise NoVictimNeeded(node.view.name)
    if protected:
        victims.sort(key=importance)
    violations = sum(victim.uid in protected for victim in victims)
    cost = policy.cost(filters.pod, victims, violations)
    if policy is not KUBE_SCHEDULERS:
        _check_numbers(policy, "cost", cost)
    return Candidate(node.view.name, tuple(victims), violations, cost)


def _try_units(filters: PodFilters, row: int, rivals: Sequence[Pod], units: VictimUnits) -> Candidate | Rejected:
    """The same on a node with members of groups: the pods of a unit may be on other nodes too."""
    evictable = units.below(filters.all_pods(row), filters.pod.priority)
    if not evictable:
        return NO_VICTIMS
    node = filters.node_without_pods(row, [pod for unit in evictable for pod in unit.pods])
    rejected = (node.rejection_beside(rivals) if rivals else None) or node.rejection()
    if rejected is not None:
        return rejected
    evictable.sort(key=lambda unit: unit.importance)
    protected = units.budgets.protected([pod for unit in evictable for pod in unit.pods], filters.budget)
    in_order = sorted(evictable, key=lambda unit: all(pod.uid not in protected for pod in unit.pods))
    victims = []
    for unit in in_order:
        filters.budget.spend(_STEPS_PER_POD * len(unit.pods))
        if not node.brings_all_back(unit.pods, rivals):
            victims.append(unit)
    if not victims:
        raise NoVictimNeeded(node.view.name)
    victims.sort(key=lambda unit: unit.importance)
    pods = tuple(pod for unit in victims for pod in unit.pods)
    violations = sum(pod.uid in protected for pod in pods)
    return Candidate(node.view.name, pods, violations, KUBE_SCHEDULERS.cost(filters.pod, pods, violations))


def _not_spared(node: DryRunNode, rivals: Sequence[Pod], lower: Sequence[Pod], protected: set[str]) -> list[Pod]:
    in_order = sorted(lower, key=lambda pod: pod.uid not in protected) if protected else lower
    victims = []
    for pod in in_order:
        node.budget.spend(_STEPS_PER_POD)
        if not node.brings_back(pod, rivals):
            victims.append(pod)
    return victims


def _may_evict(policy: VictimPolicy, pod: Pod, victim: Pod) -> bool:
    answer: object = policy.may_evict(pod, victim)
    if isinstance(answer, bool):
        return answer
    raise TypeError(f"{type(policy).__name__}.may_evict must answer True or False, got {shown(answer)}")


def _importance(policy: VictimPolicy) -> Callable[[Pod], tuple[float, ...]]:
    if policy is KUBE_SCHEDULERS:
        return policy.importance

    def importance(pod: Pod) -> tuple[float, ...]:
        answer = policy.importance(pod)
        _check_numbers(policy, "importance", answer)
        return answer

    return importance


def _check_numbers(policy: VictimPolicy, method: str, answer: object) -> None:
    """Only then it can be compared with any other answer."""
    if type(answer) is tuple and _NUMBERS.issuperset(map(type, answer)) and not any(part != part for part in answer):
        return
    raise TypeError(f"{type(policy).__name__}.{method} must answer a tuple of numbers, got {shown(answer)}")
