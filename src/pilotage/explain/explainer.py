"""Builds the report of a pod: asks the same engine that schedules, and keeps everything it says."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pilotage.api import points
from pilotage.api.budget import UNLIMITED, Budget
from pilotage.api.results import Reason
from pilotage.api.state import CycleState
from pilotage.api.table import Mask
from pilotage.cluster.node_view import RowView
from pilotage.cycle.placement import NoNodes, ProfileEngine, diagnose
from pilotage.cycle.unserved_pods import unserved_fields
from pilotage.explain.advice import Advisor
from pilotage.explain.eviction import victims_of
from pilotage.explain.render import with_answer
from pilotage.explain.report import Lack, LackDetail, NearNode, RejectionGroup, Report, RetryEvent, ScoredNode
from pilotage.framework.diagnosis import Diagnosis
from pilotage.framework.errors import PluginError
from pilotage.framework.profile import name_of
from pilotage.framework.shared_columns import choose
from pilotage.model import Pod
from pilotage.model.suggestions import suggestion

_EXAMPLES = 3
_NEAREST = 3
_BEST = 3
_MOST_DETAILS = 20
_MOST_SKIPPED = 10


class UnknownNode(LookupError):
    """The node that was asked about does not exist."""


def explain(engine: ProfileEngine, pod: Pod, node_name: str | None = None, budget: Budget = UNLIMITED) -> Report:
    """Everything about where the pod can go, as of now; with a node name, that node is included in any case.

    BudgetExceeded if that takes too long; advice is only looked for as long as the budget lasts.
    """
    if node_name and engine.nodes.row(node_name) is None:
        raise UnknownNode(f'there is no node "{node_name}"{suggestion(node_name, engine.nodes.names)}')
    blank = Report(
        pod=pod.key,
        answer="",
        fits=False,
        scheduler=pod.spec.scheduler_name,
        nodes=len(engine.nodes),
        skipped=skipped_objects(engine, pod.namespace),
        unserved=tuple(field.sentence(pod.spec.scheduler_name) for field in unserved_fields(pod, engine.profile)),
    )
    if pod.node_name:
        return with_answer(replace(blank, fits=True, assigned_to=pod.node_name))
    gated = _gates(engine, pod)
    if gated:
        return with_answer(replace(blank, gated_by=gated))
    try:
        return with_answer(_placed_or_not(engine, pod, blank, node_name, budget))
    except (PluginError, NoNodes) as error:
        return with_answer(replace(blank, error=str(error)))


def skipped_objects(engine: ProfileEngine, namespace: str) -> tuple[str, ...]:
    """What is not taken into account and may matter to pods of this namespace."""
    found = [one.sentence for one in engine.skipped.concerning(namespace)]
    more = [f"... and {len(found) - _MOST_SKIPPED} more"] if len(found) > _MOST_SKIPPED else []
    return (*found[:_MOST_SKIPPED], *more)


def _gates(engine: ProfileEngine, pod: Pod) -> tuple[str, ...]:
    try:
        rejected = engine.runner.pre_enqueue(pod)
    except PluginError as error:
        return (str(error),)
    return () if rejected is None else tuple(reason.message for reason in rejected.rejection.reasons)


def _placed_or_not(engine: ProfileEngine, pod: Pod, blank: Report, node_name: str | None, budget: Budget) -> Report:
    if not len(engine.nodes):
        raise NoNodes
    state = CycleState(budget)
    outcome = engine.runner.pre_filter(state, pod)
    diagnosis = diagnose(engine, state, pod, outcome)
    if outcome.rejected is None:
        totals = engine.evaluator.totals(state, pod, outcome.allowed)
        row = choose(totals, engine.nodes)
        if row is not None:
            fitting = replace(blank, rejections=rejection_groups(diagnosis))
            return _fitting(engine, pod, fitting, row, node_name)
    nearest = nearest_nodes(engine, pod, state, diagnosis, node_name=node_name)
    blank = replace(blank, preemption=victims_of(engine, state, pod, diagnosis), nearest=nearest)
    return _rejected(engine, pod, blank, diagnosis, budget)


def _fitting(engine: ProfileEngine, pod: Pod, blank: Report, chosen: int, node_name: str | None) -> Report:
    state = CycleState()
    outcome = engine.runner.pre_filter(state, pod)
    rows = np.flatnonzero(engine.evaluator.feasible(state, pod, outcome.allowed))
    asked_for = engine.nodes.row(node_name or "")
    breakdown = engine.evaluator.score_breakdown(state, pod, rows)
    totals = np.full(len(rows), engine.evaluator.base_total, dtype=np.int64)
    for _, weighted in breakdown.values():
        totals += weighted
    order = sorted(range(len(rows)), key=lambda at: (-int(totals[at]), rows[at] != chosen))
    best = tuple(
        ScoredNode(
            engine.nodes.names[int(rows[at])],
            int(totals[at]),
            {name: int(weighted[at]) for name, (_, weighted) in breakdown.items()},
            place,
        )
        for place, at in enumerate(order, 1)
        if place <= _BEST or rows[at] == asked_for
    )
    tied = int(np.count_nonzero(totals == totals.max()))
    return replace(
        blank,
        fits=True,
        nearest=() if asked_for is None or asked_for in rows else (_near(engine, pod, state, asked_for),),
        best=best,
        feasible=len(rows),
        tied=tied,
    )


def _rejected(engine: ProfileEngine, pod: Pod, blank: Report, diagnosis: Diagnosis, budget: Budget) -> Report:
    return replace(
        blank,
        message=diagnosis.message(),
        rejections=rejection_groups(diagnosis),
        would_fit_if=Advisor(engine, pod, budget).advice(blank.nearest),
        retried_after=_events(engine, diagnosis),
    )


def rejection_groups(diagnosis: Diagnosis) -> tuple[RejectionGroup, ...]:
    """Rejections by plugin and message, the most frequent first."""
    rows: dict[tuple[str, str], Mask] = {}
    reasons: dict[tuple[str, str], list[Reason]] = defaultdict(list)
    for rejection in diagnosis.rejections():
        key = (rejection.plugin, rejection.reason.message)
        rows[key] = rows[key] | rejection.rows if key in rows else rejection.rows
        reasons[key].append(rejection.reason)
    groups = [
        RejectionGroup(
            plugin=plugin,
            code=reasons[plugin, message][0].code,
            message=message,
            nodes=int(np.count_nonzero(mask)),
            examples=tuple(diagnosis.node_names[row] for row in np.flatnonzero(mask)[:_EXAMPLES].tolist()),
            preemption_may_help=not all(reason.unresolvable for reason in reasons[plugin, message]),
        )
        for (plugin, message), mask in rows.items()
    ]
    return tuple(sorted(groups, key=lambda group: (-group.nodes, group.plugin, group.message)))


def nearest_nodes(
    engine: ProfileEngine,
    pod: Pod,
    state: CycleState,
    diagnosis: Diagnosis,
    *,
    within: Mask | None = None,
    node_name: str | None = None,
) -> tuple[NearNode, ...]:
    """Nodes (of those `within`) that lack least: every filter is asked about every node, not only until one says no."""
    if diagnosis.pre_filter is not None:
        return ()
    nodes = engine.nodes
    shortage = np.zeros(len(nodes))
    for plugin in engine.profile.filters:
        if name_of(plugin) in state.skip_filter or not isinstance(plugin, points.VectorFilter):
            continue
        for mask, reason in plugin.filter_all(state, pod, nodes):
            shortage[mask] += _weight(engine, reason)[mask]
    if within is not None:
        shortage[~within] = np.inf
    order = np.argsort(shortage, kind="stable")[: min(_NEAREST, np.count_nonzero(np.isfinite(shortage)))].tolist()
    asked_for = nodes.row(node_name) if node_name else None
    if asked_for is not None:
        order = [asked_for, *(row for row in order if row != asked_for)]
    return tuple(_near(engine, pod, state, row) for row in order)


def _near(engine: ProfileEngine, pod: Pod, state: CycleState, row: int) -> NearNode:
    return NearNode(engine.nodes.names[row], _lacks(engine, pod, state, row))


def _weight(engine: ProfileEngine, reason: Reason) -> NDArray[np.float64]:
    """How much a reason counts against each node: an amount by the part that is missing, everything else fully."""
    if not reason.resource or not reason.need:
        return np.full(len(engine.nodes), 1.5 if reason.unresolvable else 1.0)
    return 1.0 - engine.nodes.free(reason.resource).astype(np.float64) / reason.need


def _lacks(engine: ProfileEngine, pod: Pod, state: CycleState, row: int) -> tuple[Lack, ...]:
    node = RowView(engine.nodes, row)
    lacks = []
    for plugin in engine.profile.filters:
        name = name_of(plugin)
        if name in state.skip_filter or not isinstance(plugin, points.Filter):
            continue
        rejection = plugin.filter(state, pod, node)
        for reason in () if rejection is None else rejection.reasons:
            resource = reason.resource
            have = node.allocatable(resource) - node.requested(resource) if resource else reason.have
            lacks.append(Lack(name, reason.message, reason.need, have, resource))
        if rejection is not None and rejection.reasons and isinstance(plugin, points.Details):
            lacks[-1] = replace(lacks[-1], behind=_behind(plugin, state, pod, node))
    return tuple(lacks)


def _behind(plugin: points.Details, state: CycleState, pod: Pod, node: RowView) -> tuple[LackDetail, ...]:
    details = islice(plugin.details(state, pod, node), _MOST_DETAILS)
    return tuple(LackDetail(detail.code, detail.message, detail.objects, detail.count) for detail in details)


def _events(engine: ProfileEngine, diagnosis: Diagnosis) -> tuple[RetryEvent, ...]:
    """What would make the queue try the pod again: what the plugins that rejected it listen to."""
    found = []
    for plugin in engine.profile.plugins:
        if name_of(plugin) not in diagnosis.rejectors:
            continue
        for registration in plugin.registrations():
            event = registration.event
            found.append(RetryEvent(name_of(plugin), str(event.resource), event.action_names))
    return tuple(found)
