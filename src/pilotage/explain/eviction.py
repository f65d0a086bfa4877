"""What preemption would do for a pod that fits nowhere: asked, not done."""

from __future__ import annotations

from pilotage.api.budget import Budget
from pilotage.api.preemption import Candidate
from pilotage.api.state import CycleState
from pilotage.cycle.placement import ProfileEngine, diagnose
from pilotage.framework.diagnosis import Diagnosis
from pilotage.framework.errors import PluginError
from pilotage.model import Pod

_NAMED_VICTIMS = 3
_ENOUGH_CANDIDATES = 100


def preemption_text(engine: ProfileEngine, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> str:
    """One sentence; empty if the profile does not preempt."""
    if not engine.profile.post_filter:
        return ""
    if pod.spec.preemption_policy == "Never":
        return "not tried, because its preemptionPolicy is Never"
    candidate = _candidate(engine, state, pod, diagnosis)
    if candidate is None:
        return "evicting pods of lower priority does not help on any node"
    names = [victim.key for victim in candidate.victims]
    more = f" and {len(names) - _NAMED_VICTIMS} more" if len(names) > _NAMED_VICTIMS else ""
    budgets = f", against {candidate.violations} disruption budget(s)" if candidate.violations else ""
    return f"would evict {', '.join(names[:_NAMED_VICTIMS])}{more} from {candidate.node_name}{budgets}"


def candidate_for(engine: ProfileEngine, pod: Pod, budget: Budget) -> Candidate | None:
    """The node that preemption would choose for this pod, from scratch."""
    state = CycleState(budget)
    try:
        outcome = engine.runner.pre_filter(state, pod)
        if outcome.rejected is not None:
            return None
        return _candidate(engine, state, pod, diagnose(engine, state, pod, outcome))
    except PluginError:
        return None


def _candidate(engine: ProfileEngine, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> Candidate | None:
    rows = diagnosis.resolvable_rows()
    if not len(rows):
        return None
    return engine.preemption.search(state, pod, rows, _ENOUGH_CANDIDATES).best
