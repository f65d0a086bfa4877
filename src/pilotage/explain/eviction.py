"""What preemption would do for a pod that fits nowhere: asked, not done."""

from __future__ import annotations

from pilotage.api.budget import Budget
from pilotage.api.preemption import Candidate
from pilotage.api.state import CycleState
from pilotage.cycle.placement import ProfileEngine, diagnose
from pilotage.explain.report import Victims
from pilotage.framework.diagnosis import Diagnosis
from pilotage.framework.errors import PluginError
from pilotage.model import Pod

NAMED_VICTIMS = 3
_ENOUGH_CANDIDATES = 100


def victims_of(engine: ProfileEngine, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> Victims | None:
    """Whom preemption would evict for the pod; None if the profile does not preempt."""
    if not engine.profile.post_filter:
        return None
    if pod.spec.preemption_policy == "Never":
        return Victims("NeverPreempts")
    candidate = _candidate(engine, state, pod, diagnosis)
    if candidate is None:
        return Victims("NothingHelps")
    names = tuple(victim.key for victim in candidate.victims)
    return Victims("WouldEvict", len(names), names[:NAMED_VICTIMS], candidate.node_name, candidate.violations)


def candidate_for(engine: ProfileEngine, pod: Pod, budget: Budget) -> Candidate | None:
    """The node that preemption would choose for this pod, from scratch."""
    return next(iter(candidates_for(engine, pod, budget)), None)


def candidates_for(engine: ProfileEngine, pod: Pod, budget: Budget) -> list[Candidate]:
    """The nodes where evictions would help, from scratch; the one that preemption would choose comes first."""
    state = CycleState(budget)
    try:
        outcome = engine.runner.pre_filter(state, pod)
        if outcome.rejected is not None:
            return []
        rows = diagnose(engine, state, pod, outcome).resolvable_rows()
        found = engine.preemption.search(state, pod, rows, _ENOUGH_CANDIDATES).candidates if len(rows) else ()
        return sorted(found, key=lambda candidate: candidate.cost)
    except PluginError:
        return []


def _candidate(engine: ProfileEngine, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> Candidate | None:
    rows = diagnosis.resolvable_rows()
    if not len(rows):
        return None
    return engine.preemption.search(state, pod, rows, _ENOUGH_CANDIDATES).best
