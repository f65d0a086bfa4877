"""Our answer to a preemption case: what PostFilter makes of a pod that fits nowhere."""

from __future__ import annotations

from typing import Any

from pilotage.api.preemption import Candidate, VictimSearch
from pilotage.api.state import CycleState
from pilotage.conformance.statuses import node_statuses, status
from pilotage.conformance.world import LoadedCase
from pilotage.cycle.placement import diagnose
from pilotage.framework.diagnosis import Diagnosis
from pilotage.framework.runner import PostFiltered

Answer = dict[str, Any]


def answer_preemption(world: LoadedCase, *, searched_before: bool = True) -> Answer:
    """Every node where evictions would help, the one that is chosen, and what becomes of the pod's nomination.

    In the recordings the search came first, for pods that may preempt: what filters note down about nodes on its way
    (DynamicResources: claims that are in the way) was known to PostFilter. A scheduler asks PostFilter at once.
    """
    engine, pod = world.engine, world.pod
    state, diagnosis = _filtered(world)
    answer: Answer = {"filter": node_statuses(diagnosis), "filterMessage": diagnosis.message()}
    rows = diagnosis.resolvable_rows()
    tried = rows if pod.spec.preemption_policy != "Never" else rows[:0]
    state_of_search = state if searched_before else _filtered(world)[0]
    search = engine.preemption.search(state_of_search, pod, tried, wanted=len(rows) + 1)
    outcome = engine.runner.post_filter(state, pod, diagnosis)
    was_tried = outcome.nomination.node_name is not None
    answer |= _searched(search) if was_tried else _searched(engine.preemption.search(state, pod, rows[:0], wanted=1))
    answer |= _chosen(search, outcome, diagnosis)
    return answer


def _filtered(world: LoadedCase) -> tuple[CycleState, Diagnosis]:
    state = CycleState()
    return state, diagnose(world.engine, state, world.pod, world.engine.runner.pre_filter(state, world.pod))


def _searched(search: VictimSearch) -> Answer:
    return {
        "candidates": {candidate.node_name: _candidate(candidate) for candidate in search.candidates},
        "notCandidates": {
            name: {"plugin": plugin, **status(rejection)} for name, (plugin, rejection) in search.rejections().items()
        },
    }


def _candidate(candidate: Candidate) -> Answer:
    victims = sorted(victim.key for victim in candidate.victims)
    return {"victims": victims, "pdbViolations": candidate.violations}


def _chosen(search: VictimSearch, outcome: PostFiltered, diagnosis: Diagnosis) -> Answer:
    node_name, message = outcome.nomination.node_name, diagnosis.post_filter_message
    tied: list[str] = []
    if node_name:
        best = min(candidate.cost for candidate in search.candidates)
        tied = sorted(candidate.node_name for candidate in search.candidates if candidate.cost == best)
        if node_name in tied:
            # Which of equally good nodes is taken is left to chance; the answer speaks of the first.
            message = message.replace(f" {node_name},", f" {tied[0]},")
            node_name = tied[0]
    return {
        "nominatedNode": node_name or "",
        "nomination": "keep" if node_name is None else "set" if node_name else "clear",
        "tie": len(tied) > 1,
        "tied": tied,
        "code": _code(outcome),
        "plugin": outcome.rejected_by,
        "message": message,
    }


def _code(outcome: PostFiltered) -> str:
    if outcome.error is not None:
        return "Error"
    return "Unschedulable" if outcome.rejected_by else "Success"
