"""Our answer to a filter-score case, in the form of the recorded one."""

from __future__ import annotations

from typing import Any

import numpy as np

from pilotage.api.state import CycleState
from pilotage.conformance.statuses import node_statuses, status
from pilotage.conformance.world import LoadedCase
from pilotage.cycle.placement import diagnose
from pilotage.framework.errors import PluginError
from pilotage.framework.profile import name_of
from pilotage.framework.runner import PreFilterOutcome
from pilotage.plugins.dynamic_resources.allocation import POD_CLAIMS
from pilotage.plugins.dynamic_resources.capacity import written
from pilotage.plugins.dynamic_resources.search import Pick

Answer = dict[str, Any]


def answer_filter_score(world: LoadedCase) -> Answer:
    """What the scheduler would decide, stage by stage."""
    answer: Answer = {
        "preEnqueue": _pre_enqueue(world),
        "filter": {},
        "unschedulablePlugins": [],
        "scores": {},
        "best": [],
        "choice": [],
        "message": "",
    }
    state = CycleState()
    try:
        _evaluate(world, state, answer)
    except PluginError as error:
        answer["error"] = str(error)
        answer["scores"] = {}
    return answer


def _evaluate(world: LoadedCase, state: CycleState, answer: Answer) -> None:
    engine, pod = world.engine, world.pod
    outcome = engine.runner.pre_filter(state, pod)
    answer["preFilter"] = _pre_filter(outcome, state)
    diagnosis = diagnose(engine, state, pod, outcome)
    answer["filter"] = node_statuses(diagnosis)
    answer["unschedulablePlugins"] = sorted(diagnosis.rejectors)
    fitting = np.array([answer["filter"][name] is None for name in diagnosis.node_names], dtype=np.bool_)
    rows = np.flatnonzero(fitting)
    if not len(rows):
        answer["message"] = diagnosis.message()
        return
    answer["scores"] = _scores(world, state, rows)
    given = allocations(state, [diagnosis.node_names[row] for row in rows.tolist()])
    if given is not None:
        answer["allocations"] = given
    _choose(world, answer)


def _pre_enqueue(world: LoadedCase) -> list[Answer]:
    found = []
    for plugin in world.engine.profile.pre_enqueue:
        rejection = plugin.pre_enqueue(world.pod)
        if rejection is not None:
            found.append({"plugin": name_of(plugin), **status(rejection)})
    return found


def _pre_filter(outcome: PreFilterOutcome, state: CycleState) -> Answer:
    rejected = outcome.rejected
    return {
        **({"code": "Success", "reasons": []} if rejected is None else status(rejected.rejection)),
        "plugin": "" if rejected is None else rejected.plugin,
        "nodeNames": None if outcome.names is None else sorted(outcome.names),
        "skipped": sorted(state.skip_filter),
    }


def _scores(world: LoadedCase, state: CycleState, rows: Any) -> dict[str, Answer]:
    evaluator, names = world.engine.evaluator, world.cluster.nodes.names
    breakdown = evaluator.score_breakdown(state, world.pod, rows)
    return {
        names[row]: {
            "total": evaluator.base_total + sum(int(weighted[place]) for _, weighted in breakdown.values()),
            "plugins": {plugin: int(weighted[place]) for plugin, (_, weighted) in breakdown.items()},
            "raw": {plugin: int(raw[place]) for plugin, (raw, _) in breakdown.items()},
        }
        for place, row in enumerate(rows.tolist())
    }


def _choose(world: LoadedCase, answer: Answer) -> None:
    totals = {name: score["total"] for name, score in answer["scores"].items()}
    best = max(totals.values())
    answer["best"] = answer["choice"] = sorted(name for name, total in totals.items() if total == best)
    nominated = world.pod.status.nominated_node_name
    if nominated in totals:
        answer["choice"] = [nominated]


def allocations(state: CycleState, feasible: list[str]) -> dict[str, Answer] | None:
    """For each feasible node, what every claim without devices would get; None if there is no such claim."""
    claims = state.get(POD_CLAIMS)
    if claims is None or not claims.to_allocate or not feasible:
        return None
    named = {prepared.claim.name for prepared in claims.to_allocate}
    found: dict[str, Answer] = {}
    for node_name in feasible:
        outcome = claims.outcome(node_name)
        assert outcome is not None
        pairs = zip(outcome.claims, outcome.picks, strict=True)
        found[node_name] = {c.claim.name: [_device(pick) for pick in p] for c, p in pairs if c.claim.name in named}
    return found


def _device(pick: Pick) -> Answer:
    device: Answer = {
        "request": pick.wanted.label,
        "driver": pick.device.id.driver,
        "pool": pick.device.id.pool,
        "device": pick.device.id.device,
    }
    if pick.wanted.admin_access:
        device["adminAccess"] = True
    if pick.consumed is not None:
        device["consumedCapacity"] = dict(written(pick.consumed, pick.device.device))
    return device
