"""Our answer to a filter-score case, in the form of the recorded one."""

from __future__ import annotations

from typing import Any

import numpy as np

from pilotage.api.state import CycleState
from pilotage.conformance.allocations import allocations
from pilotage.conformance.statuses import node_statuses, status
from pilotage.conformance.world import LoadedCase
from pilotage.cycle.placement import diagnose
from pilotage.framework.errors import PluginError
from pilotage.framework.profile import name_of
from pilotage.framework.runner import PreFilterOutcome

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
