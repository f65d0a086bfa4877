"""What preemption would do for a pod, as a picture: who would go, and which disruption budgets speak against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from pilotage.api.budget import Budget, BudgetExceeded
from pilotage.api.preemption import Candidate, VictimPolicy
from pilotage.console import pictures
from pilotage.console.source import ConsoleSource, owner_of
from pilotage.cycle.placement import ProfileEngine
from pilotage.explain.amounts import readable
from pilotage.explain.eviction import candidates_for
from pilotage.explain.report import Report
from pilotage.explain.text_lines import victims_text
from pilotage.framework.preemption.budgets import DisruptionBudgets
from pilotage.model import Pod
from pilotage.model.pod_resources import assigned_requests
from pilotage.serve.console_door import Sight

_MOST_VICTIMS: Final = 40
_MOST_CANDIDATES: Final = 6
_IMPORTANCE: Final = VictimPolicy().importance


class VictimRow(Struct, frozen=True):
    """A pod that would go."""

    key: str
    """"" if this visitor may not know it."""
    owner: str
    priority: int
    cpu: str
    budgets: tuple[str, ...]
    """Disruption budgets that forbid it."""


class CandidateRow(Struct, frozen=True):
    """A node where evictions would help."""

    node: str
    victims: int
    highest: int
    """Priority of the most important of them."""
    violations: int
    """How many of them are under a budget that forbids it."""
    budgets: tuple[str, ...] = ()
    """Those budgets, as far as this visitor may know them."""


def preemption(
    source: ConsoleSource, sight: Sight, engine: ProfileEngine, pod: Pod, report: Report, budget: Budget
) -> dict[str, Any]:
    """Of the nodes where evictions would help the best, whose victims are shown one by one."""
    candidates: Sequence[Candidate] = ()
    if engine.profile.post_filter and pod.spec.preemption_policy != "Never":
        try:
            candidates = candidates_for(engine, pod, budget)
        except BudgetExceeded:
            candidates = ()
    sentence = "" if report.preemption is None else victims_text(report.preemption)
    values: dict[str, Any] = {"sentence": sentence, "candidate": None, "victims": [], "others": [], "hidden": 0}
    if not candidates:
        return values
    best, others = candidates[0], candidates[1:]
    victims = _victims(source, sight, engine, pod, best)
    return values | {
        "candidate": best,
        "picture": _picture(engine, sight, pod, best),
        "victims": victims[:_MOST_VICTIMS],
        "hidden": max(0, len(victims) - _MOST_VICTIMS),
        "others": [_row(source, sight, engine, pod, one) for one in others[:_MOST_CANDIDATES]],
        "more": max(0, len(others) - _MOST_CANDIDATES),
    }


def _row(source: ConsoleSource, sight: Sight, engine: ProfileEngine, pod: Pod, candidate: Candidate) -> CandidateRow:
    forbidding = _forbidding(source, engine, pod, candidate) if candidate.violations else {}
    seen = (forbidding.get(one.uid, ()) for one in candidate.victims if sight.sees(one.namespace))
    return CandidateRow(
        node=candidate.node_name,
        victims=len(candidate.victims),
        highest=max(one.priority for one in candidate.victims),
        violations=candidate.violations,
        budgets=tuple(sorted({name for names in seen for name in names})),
    )


def _victims(
    source: ConsoleSource, sight: Sight, engine: ProfileEngine, pod: Pod, candidate: Candidate
) -> list[VictimRow]:
    forbidding = _forbidding(source, engine, pod, candidate)
    rows = []
    for one in candidate.victims:
        budgets, cpu = forbidding.get(one.uid, ()), readable("cpu", _cpu(one))
        if sight.sees(one.namespace):
            rows.append(VictimRow(one.key, owner_of(one), one.priority, cpu, budgets))
        else:
            rows.append(VictimRow("", "", one.priority, cpu, ("one",) if budgets else ()))
    return rows


def _forbidding(
    source: ConsoleSource, engine: ProfileEngine, pod: Pod, candidate: Candidate
) -> Mapping[str, tuple[str, ...]]:
    """As preemption counts: if all pods that may go went one after the other, the most important first."""
    row = engine.nodes.row(candidate.node_name) or 0
    lower = {one.uid: one for one in engine.nodes.pods_on(row).values() if one.priority < pod.priority}
    everybody = lower | {one.uid: one for one in candidate.victims}
    return source.cluster.index(DisruptionBudgets).forbidding(sorted(everybody.values(), key=_IMPORTANCE))


def _picture(engine: ProfileEngine, sight: Sight, pod: Pod, candidate: Candidate) -> Any:
    """The cpu of the node: who stays, each of those who would go, the pod, and what would be free then."""
    row = engine.nodes.row(candidate.node_name) or 0
    victims = {victim.uid for victim in candidate.victims}
    stays = sum(_cpu(one) for one in engine.nodes.pods_on(row).values() if one.uid not in victims)
    whole = int(engine.nodes.allocatable("cpu")[row])
    here = [one for one in candidate.victims if one.uid in engine.nodes.pods_on(row)]
    before = [
        ("stay", "stays", float(stays)),
        *((one.key if sight.sees(one.namespace) else "would go", "goes", float(_cpu(one))) for one in here),
    ]
    after = [("stay", "stays", float(stays)), ("this pod", "comes", float(_cpu(pod)))]
    return [
        (title, pictures.bar(f"{title}: cpu of {candidate.node_name}", float(whole), _with_free(parts, whole), _shown))
        for title, parts in (("now", before), ("then", after))
    ]


def _with_free(parts: list[tuple[str, str, float]], whole: int) -> list[tuple[str, str, float]]:
    return [*parts, ("free", "free", max(0.0, whole - sum(size for _, _, size in parts)))]


def _shown(amount: float) -> str:
    return f"{readable('cpu', amount)} cpu"


def _cpu(pod: Pod) -> int:
    return assigned_requests(pod).get("cpu", 0)
