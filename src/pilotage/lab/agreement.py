"""Would this scheduler have decided as the one that was watched? Decision by decision, each in the state that it met.

A free replay goes its own way after the first difference, even if that was a choice among equals. Here the cluster is
put into the state of each binding that was observed, and the engine is asked about that pod alone:

same    the node that was taken
tied    another one, but the node that was taken has the same score: the rules have more than one answer
other   another one with a better score, or the node that was taken is rejected: the rules differ, or something that
        was decided by is not in the trace
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import structs

from pilotage.api.state import CycleState
from pilotage.assembly import SchedulerOptions, watched_kinds
from pilotage.clock import Clock
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import NoNodes, Placed, ProfileEngine, place
from pilotage.explain.engine import read, thinking_engines
from pilotage.explain.explainer import UnknownNode, explain
from pilotage.explain.report import Report, ScoredNode
from pilotage.framework.errors import PluginError
from pilotage.lab.starts.pod_history import KnownPod, PodHistory
from pilotage.lab.trace.format import TraceRecord
from pilotage.model import Pod
from pilotage.model.pod import decode_pod

SAME: Final = "same"
TIED: Final = "tied"
OTHER: Final = "other"
_ROUNDED: Final = 0.0015
"""Seconds by which an end may stand too late in a trace: a binding and a lifetime are rounded each."""
_END, _OBJECT, _BINDING = range(3)


class ObservedDecision(msgspec.Struct, frozen=True):
    """A binding that was observed, judged."""

    at: float
    pod: str
    observed: str
    """The node that was taken."""
    verdict: str
    ours: str = ""
    """The node that would be taken; "" if none would."""
    why: str = ""


class _Step(msgspec.Struct, frozen=True, order=True):
    """Something that happened, in its order."""

    at: float
    rank: int
    number: int


def judged(history: PodHistory, options: SchedulerOptions, clock: Clock) -> Iterator[ObservedDecision]:
    """All decisions that were observed, in order; ProfileError if the scheduler cannot be made."""
    cluster = Cluster(kinds=watched_kinds(options))
    engines = thinking_engines(cluster, clock, options)
    for step in _steps(history):
        if step.rank == _OBJECT:
            _put_object(cluster, history.others[step.number])
            continue
        known = history.pods[step.number]
        # Pods of one name come one after the other, and those of a trace need not have a UID.
        pod = structs.replace(decode_pod(bytes(known.put)), uid=f"{known.key} {step.number}")
        if step.rank == _END:
            cluster.remove_pod(pod.uid)
            continue
        engine = engines.get(pod.spec.scheduler_name)
        cluster.settle()
        if known.is_observed and engine is not None:
            yield _decision(engine, pod, known)
        cluster.put_pod(pod.with_node(known.node))


def _steps(history: PodHistory) -> Iterator[_Step]:
    """In the order of time; of one instant, what ends comes first and what is bound last."""
    steps = [_Step(record.at, _OBJECT, number) for number, record in enumerate(history.others)]
    for number, pod in enumerate(history.pods):
        if pod.bound is not None:
            steps.append(_Step(pod.bound, _BINDING, number))
            if pod.ended is not None:
                steps.append(_Step(max(pod.ended - _ROUNDED, pod.bound), _END, number))
    heapq.heapify(steps)
    while steps:
        yield heapq.heappop(steps)


def _put_object(cluster: Cluster, record: TraceRecord) -> None:
    if record.puts:
        obj = record.put_object()
        for kind in cluster.kinds.of_manifest(obj):
            read(cluster, kind, obj)
        return
    name = record.name
    assert name is not None, "it puts or deletes"
    for kind in cluster.kinds.of_manifest({"apiVersion": name.api_version, "kind": name.kind}):
        key = f"{name.namespace}/{name.name}" if name.namespace else name.name
        known = cluster.objects(kind.kind).get(key)
        if known is not None:
            cluster.remove(kind.kind, known)


def _decision(engine: ProfileEngine, pod: Pod, known: KnownPod) -> ObservedDecision:
    assert known.bound is not None, "it is a binding"
    at, observed = known.bound, known.node
    try:
        found = place(engine, CycleState(), pod, asks_post_filter=False)
    except (NoNodes, PluginError) as error:
        return ObservedDecision(at, pod.key, observed, OTHER, why=str(error))
    ours = found.node_name if isinstance(found, Placed) else ""
    if ours == observed:
        return ObservedDecision(at, pod.key, observed, SAME, ours)
    try:
        report = explain(engine, pod, observed)
    except UnknownNode as error:
        return ObservedDecision(at, pod.key, observed, OTHER, ours, str(error))
    taken = next((one for one in report.best if one.node == observed), None)
    if taken is not None and report.best[0].total == taken.total:
        return ObservedDecision(at, pod.key, observed, TIED, ours)
    return ObservedDecision(at, pod.key, observed, OTHER, ours, _why(report, taken))


def _why(report: Report, taken: ScoredNode | None) -> str:
    if taken is None:
        lacks = [lack.message for node in report.nearest for lack in node.lacks]
        return f"it is rejected there: {lacks[0] if lacks else report.message}"
    best = report.best[0]
    differing = [
        f"{name} {best.plugins.get(name, 0)} against {taken.plugins.get(name, 0)}"
        for name in best.plugins
        if best.plugins.get(name, 0) != taken.plugins.get(name, 0)
    ]
    return f"{best.node} has the score {best.total}, it has {taken.total}: {', '.join(differing)}"
