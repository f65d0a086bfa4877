"""Placement of a pod by the answers of extenders.

As pure as `placement`: what they have said comes in as `ExtenderAdvice`, and what they have to be asked first goes out
as a question. Their answers are applied to the cluster as it is then: a node that they kept may be full by now, and one
that they were not asked about is left for the next attempt, which its own event brings about.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from pilotage.api.results import Nominate, Reason
from pilotage.api.state import CycleState
from pilotage.api.table import Mask, Rows
from pilotage.cycle.placement import NoNodes, Placed, ProfileEngine, Unplaced, diagnose, nominated_row, place, unplaced
from pilotage.extenders.extender import ExtenderError, Filtered, NodeRejection
from pilotage.extenders.extenders import ExtenderAdvice, Extenders, NodesQuestion, Points, Question, VictimsQuestion
from pilotage.framework.diagnosis import Diagnosis, RejectedRows
from pilotage.framework.preemption.review import REVIEW, CandidatesFound, Review
from pilotage.framework.runner import PreFilterOutcome
from pilotage.framework.shared_columns import INFEASIBLE, choose
from pilotage.model import Node, Pod
from pilotage.queue.sub_queues import ExtenderRejection

EXTENDER: Final = "Extender"
"""What all extenders are called among the plugins that rejected a pod."""
_EXAMPLES: Final = 3
_SILENT: Final = NodeRejection("", "", unresolvable=True)


class Council(Struct, eq=False):
    """The extenders that are interested in a pod, and what they have said of it in this attempt."""

    extenders: Extenders
    nodes: Mapping[str, Node]
    rng: random.Random
    advice: ExtenderAdvice = msgspec.field(default_factory=ExtenderAdvice)


def place_advised(engine: ProfileEngine, state: CycleState, pod: Pod, council: Council) -> Placed | Unplaced | Question:
    """As `place`; a question if there is one to be answered first, ExtenderError if it could not be answered."""
    names, advice = engine.nodes.names, council.advice
    if not len(engine.nodes):
        raise NoNodes
    if council.extenders.asked_about_victims(pod):
        state[REVIEW] = Review(advice.victims)
    try:
        outcome = engine.runner.pre_filter(state, pod)
        if outcome.rejected is not None:
            return unplaced(engine, state, pod, diagnose(engine, state, pod, outcome))
        nominated = nominated_row(engine, pod)
        if nominated is not None and engine.evaluator.dry_run.rejection_as_nominated(state, pod, nominated) is None:
            if not council.extenders.asked_about_nodes(pod):
                return Placed(names[nominated], 0)
            if advice.nominated is None and advice.nodes is None:
                return NodesQuestion(pod, [council.nodes[names[nominated]]], is_nominated=True)
            if advice.nominated is not None and names[nominated] in advice.nominated.kept:
                return Placed(names[nominated], 0)
        return _searched(engine, state, pod, outcome, council)
    except CandidatesFound as found:
        return VictimsQuestion(pod, found.candidates)


def _searched(
    engine: ProfileEngine, state: CycleState, pod: Pod, outcome: PreFilterOutcome, council: Council
) -> Placed | Unplaced | Question:
    advice, extenders = council.advice, council.extenders
    filtered = advice.nodes
    if filtered is None:
        found = engine.evaluator.found(state, pod, outcome.allowed)
        if not len(found):
            return unplaced(engine, state, pod, diagnose(engine, state, pod, outcome))
        names = [engine.nodes.names[row] for row in found.tolist()]
        if extenders.asked_about_nodes(pod) or (len(names) > 1 and extenders.line_of(pod)):
            return NodesQuestion(pod, [council.nodes[name] for name in names])
        # An extender that is interested in the pod and scores nothing gives every node the same.
        filtered = Filtered(tuple(names))
        council.advice = replace(advice, nodes=filtered, points=Points({}, frozenset(names)))
    if isinstance(filtered, ExtenderError):
        raise filtered
    feasible = engine.evaluator.feasible(state, pod, outcome.allowed)
    rows = np.flatnonzero(feasible & engine.nodes.rows_of(frozenset(filtered.kept)))
    if len(rows):
        return _best(engine, state, pod, rows, council)
    diagnosis = diagnose(engine, state, pod, outcome)
    _note_rejections(diagnosis, feasible, filtered)
    return unplaced(engine, state, pod, diagnosis)


# --- members of groups ------------------------------------------------------------------------------------------------


def question_about_member(engine: ProfileEngine, pod: Pod, council: Council, preempts: int | None) -> Question | None:
    """What is to be asked about a member before its group is placed; None if it fits nowhere.

    Extenders do not know of the siblings that are placed beside it, so it is about all nodes where it fits by itself;
    with `preempts` also about those where it would if all pods below that priority were gone.
    """
    if not len(engine.nodes) or not council.extenders.line_of(pod):
        return None
    names = dict.fromkeys(_fitting(engine, pod))
    if preempts is not None:
        with engine.nodes.without_lower(preempts):
            names |= dict.fromkeys(_fitting(engine, pod))
    return NodesQuestion(pod, [council.nodes[name] for name in names]) if names else None


def _fitting(engine: ProfileEngine, pod: Pod) -> list[str]:
    state, names = CycleState(), engine.nodes.names
    outcome = engine.runner.pre_filter(state, pod)
    found = engine.evaluator.found(state, pod, outcome.allowed).tolist() if outcome.rejected is None else []
    return [names[row] for row in found]


def place_member(
    engine: ProfileEngine, state: CycleState, pod: Pod, council: Council | None, within: Mask | None
) -> Placed | Unplaced:
    """As `place` without PostFilter, by what was said about the member; its nominated node comes first."""
    filtered = None if council is None else council.advice.nodes
    if council is None or (filtered is None and not council.extenders.asked_about_nodes(pod)):
        return place(engine, state, pod, within=within, asks_post_filter=False)
    # Nodes that no extender was asked about are not taken: they are asked about the next time.
    filtered = filtered if filtered is not None else Filtered(())
    if isinstance(filtered, ExtenderError):
        raise filtered
    if not len(engine.nodes):
        raise NoNodes
    outcome = engine.runner.pre_filter(state, pod)
    outcome.keep_within(within)
    if outcome.rejected is None:
        feasible = engine.evaluator.feasible(state, pod, outcome.allowed)
        kept = feasible & engine.nodes.rows_of(frozenset(filtered.kept))
        nominated = nominated_row(engine, pod)
        if nominated is not None and kept[nominated]:
            return Placed(engine.nodes.names[nominated], 0)
        rows = np.flatnonzero(kept)
        if len(rows):
            return _best(engine, state, pod, rows, council)
    diagnosis = diagnose(engine, state, pod, outcome)
    if outcome.rejected is None:
        _note_rejections(diagnosis, feasible, filtered)
    if within is not None:
        diagnosis.limit_to(within)
    return Unplaced(diagnosis, Nominate())


def rejected_nodes_in(advice: ExtenderAdvice) -> tuple[ExtenderRejection, ...]:
    """Return the nodes that extenders rejected in an attempt, by extender and reason."""
    if not isinstance(advice.nodes, Filtered):
        return ()
    nodes_of: dict[NodeRejection, list[str]] = {}
    for name, rejection in sorted(advice.nodes.rejected.items()):
        nodes_of.setdefault(rejection, []).append(name)
    return tuple(
        ExtenderRejection(
            rejection.extender, rejection.message, rejection.unresolvable, len(names), tuple(names[:_EXAMPLES])
        )
        for rejection, names in nodes_of.items()
    )


def _best(engine: ProfileEngine, state: CycleState, pod: Pod, rows: Rows, council: Council) -> Placed:
    """Extenders' points are added; ties between nodes of which they said something are broken by chance."""
    names, points = engine.nodes.names, council.advice.points
    totals = engine.evaluator.totals_among(state, pod, rows) + _points(points, [names[row] for row in rows.tolist()])
    best = int(totals.max())
    tied = rows[totals == best].tolist()
    named = [row for row in tied if names[row] in points.named]
    if len(tied) == 1 or named:
        row = council.rng.choice(named) if named else tied[0]
    else:
        places = np.full(len(names), INFEASIBLE, dtype=np.int64)
        places[rows] = 0
        places[tied] = 1
        row = choose(places, engine.nodes)
        assert row is not None
    return Placed(names[row], best)


def _points(points: Points, names: list[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([points.by_node.get(name, 0) for name in names], dtype=np.int64)


def _note_rejections(diagnosis: Diagnosis, feasible: Mask, filtered: Filtered) -> None:
    """Into the diagnosis what was said of nodes that would do; nothing was said of those that were not sent."""
    rows_of: dict[tuple[str, bool], list[int]] = {}
    for row in np.flatnonzero(feasible).tolist():
        rejection = filtered.rejected.get(diagnosis.node_names[row], _SILENT)
        rows_of.setdefault((rejection.message, rejection.unresolvable), []).append(row)
    for (message, is_unresolvable), rows in rows_of.items():
        mask = np.zeros(len(diagnosis.node_names), dtype=np.bool_)
        mask[rows] = True
        reason = Reason("RejectedByExtender", message, unresolvable=is_unresolvable)
        diagnosis.add(RejectedRows(EXTENDER, reason, mask))
    if filtered.rejected:
        diagnosis.rejectors.add(EXTENDER)
