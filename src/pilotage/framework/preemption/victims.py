"""Who would have to go from one node so that the pod fits there.

First all pods of lower priority are imagined away: if the pod does not fit then, the node is no candidate. Then they
are brought back one by one, the most important first (those under a disruption budget before all others); who cannot
come back without displacing the pod is a victim. So no victim is one too many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from pilotage.api.preemption import Candidate
from pilotage.api.results import Reason, Reject
from pilotage.clock import parse_rfc3339
from pilotage.framework.diagnosis import ABSENT_PLUGIN, Refused
from pilotage.framework.dry_run import Place, Trial
from pilotage.framework.preemption.budgets import DisruptionBudgets
from pilotage.model import Pod

NO_VICTIMS = Refused(
    ABSENT_PLUGIN,
    Reject(Reason("NoVictims", "No preemption victims found for incoming pod", unresolvable=True)),
)

_PRIORITY_OFFSET = 2**31
"""Makes every priority positive, so that a sum of priorities grows with the number of pods."""


class NoVictimNeeded(Exception):
    """The pod fits although the filters said that it does not: nothing that evictions could mend."""

    def __init__(self, node_name: str) -> None:
        super().__init__(f'expected at least one victim pod on node "{node_name}"')


def try_node(trial: Trial, row: int, rivals: Sequence[Pod], budgets: DisruptionBudgets) -> Candidate | Refused:
    """The victims on a node, or what refuses the pod there even without all pods of lower priority.

    `rivals` are promised the node, and are not asked to give way.
    """
    lower = trial.lower_pods(row)
    if not lower:
        return NO_VICTIMS
    place = trial.place_without(row, lower)
    refused = (place.refusal_beside(rivals) if rivals else None) or place.refusal()
    if refused is not None:
        return refused
    lower.sort(key=_importance)
    protected = budgets.protected(lower)
    victims = _not_spared(place, rivals, lower, protected)
    if not victims:
        raise NoVictimNeeded(place.node.name)
    violations = sum(victim.uid in protected for victim in victims)
    return Candidate(place.node.name, tuple(victims), violations, _cost(victims, violations))


def _not_spared(place: Place, rivals: Sequence[Pod], lower: Sequence[Pod], protected: set[str]) -> list[Pod]:
    in_order = sorted(lower, key=lambda pod: pod.uid not in protected) if protected else lower
    victims = [pod for pod in in_order if not place.brings_back(pod, rivals)]
    if protected:
        victims.sort(key=_importance)
    return victims


def _importance(pod: Pod) -> tuple[float, float]:
    """Smaller is more important: higher priority, then longer running."""
    return -pod.priority, _started_at(pod)


def _started_at(pod: Pod) -> float:
    """When the kubelet started the pod; one that it has not started yet counts as the latest of all."""
    start_time = pod.status.start_time
    return math.inf if start_time is None else _seconds(start_time)


@lru_cache(maxsize=65_536)
def _seconds(text: str) -> float:
    return parse_rfc3339(text)


def _cost(victims: Sequence[Pod], violations: int) -> tuple[float, ...]:
    """What kube-scheduler compares, in its order; `victims` has the most important first."""
    highest = victims[0].priority
    earliest = min(_started_at(pod) for pod in victims if pod.priority == highest)
    priorities = sum(pod.priority + _PRIORITY_OFFSET for pod in victims)
    return violations, highest, priorities, len(victims), -earliest
