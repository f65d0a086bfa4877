"""What events cost the queue while many pods wait that they cannot help, and whether that depends on how many wait.

    node events      pods of 50 signatures, rejected by NodeAffinity; updates of nodes whose labels match none of them
    claim events     the same pods; updates of a resource claim that none of them uses
    own claims       as many pods that each wait for a claim of their own; updates of these claims
    gated pods       scheduling with and without 10,000 pods that wait at a gate
    narrowing        how many hints own claims cost with and without SchedulerPreQueueingHints

Everything goes through the intake of the real scheduler with all default plugins; only the API server is missing.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from pilotage.assembly import SchedulerOptions, build_scheduler
from pilotage.bench.workloads import Object, bench_node, bench_pod
from pilotage.calls.no_api import NoApi
from pilotage.clock import SystemClock, thread_cpu_seconds
from pilotage.config.feature_gates import FeatureGates
from pilotage.cycle.scheduling_loop import SchedulingLoop
from pilotage.model import KINDS, WatchEvent
from pilotage.queue.sub_queues import SubQueue
from pilotage.rng import seeded

NAME: Final = "EventHandling"
WAITING_PODS: Final = 50_000
SIGNATURES: Final = 50
_NODE_EVENTS: Final = 10_000
_CLAIM_EVENTS: Final = 5_000
_NODES: Final = 100
_GATED: Final = 10_000
_BATCHES: Final = 12
_PODS_PER_BATCH: Final = 250
_REPEATS: Final = 3
_NARROWED: Final = 1_000
_CLAIM_UPDATED: Final = "resource.k8s.io/ResourceClaimUpdate"


@dataclass(frozen=True, slots=True)
class MeasuredFigure:
    """One measured number and what it should be."""

    name: str
    value: float
    unit: str
    goal: str
    is_met: bool


@dataclass(frozen=True, slots=True)
class _Costs:
    """CPU seconds per event."""

    node: float
    claim: float
    own_claim: float
    kept_when_idle: int


def measure(waiting_pods: int, report: Callable[[str], None]) -> Iterator[MeasuredFigure]:
    """All figures; `report` hears what is being done."""
    report(f"{waiting_pods // 10:,} waiting pods")
    few = _costs(waiting_pods // 10)
    report(f"{waiting_pods:,} waiting pods")
    many = _costs(waiting_pods)
    rate = 1 / many.node
    yield MeasuredFigure("node events that help no pod", rate, "events/s", ">= 5,000", rate >= 5000)
    yield _micros("resource claim event that helps no pod", many.claim)
    yield _micros("update of a claim that one pod waits for", many.own_claim)
    for name, dear, cheap in (
        ("node events", many.node, few.node),
        ("claim events", many.claim, few.claim),
        ("own claims", many.own_claim, few.own_claim),
    ):
        ratio = dear / cheap
        yield MeasuredFigure(f"{name}: ten times as many waiting pods", ratio, "times as dear", "< 2", ratio < 2)
    kept = few.kept_when_idle + many.kept_when_idle
    yield MeasuredFigure("events kept for pods in flight when idle", kept, "events", "0", kept == 0)
    report(f"{_GATED:,} gated pods")
    slower = _slowdown_by_gated_pods() * 100
    yield MeasuredFigure(f"scheduling beside {_GATED:,} gated pods", slower, "% slower", "<= 10", slower <= 10)
    report(f"{_NARROWED:,} waiting pods with and without SchedulerPreQueueingHints")
    yield _narrowing_contrast()


def _micros(name: str, seconds: float) -> MeasuredFigure:
    return MeasuredFigure(name, seconds * 1e6, "us", "<= 100", seconds <= 100e-6)


# --- events -----------------------------------------------------------------------------------------------------------


def _costs(pods: int) -> _Costs:
    affine = _scheduler()
    _fill(affine, [_affine_pod(number) for number in range(pods)], "NodeAffinity")
    node = _per_event(affine, "Node", [_node_update(number) for number in range(_NODE_EVENTS)])
    claim = _per_event(affine, "ResourceClaim", [_claim("other", str(number)) for number in range(_CLAIM_EVENTS)])
    kept = affine.queue.recorded_events
    devices = _scheduler()
    _put(devices, "ResourceClaim", [_claim(f"claim-{number}", "") for number in range(pods)])
    _fill(devices, [_claiming_pod(number) for number in range(pods)], "DynamicResources")
    own = [_claim(f"claim-{number}", "changed") for number in range(min(pods, _CLAIM_EVENTS))]
    own_claim = _per_event(devices, "ResourceClaim", own)
    return _Costs(node, claim, own_claim, kept + devices.queue.recorded_events)


def _per_event(scheduler: SchedulingLoop, kind: str, changes: Sequence[Any]) -> float:
    """The best of a few runs; no pod may be requeued."""
    before = scheduler.queue.size(SubQueue.UNSCHEDULABLE)
    best = float("inf")
    for _ in range(_REPEATS):
        for obj in changes:
            scheduler.intake.apply(kind, [WatchEvent("MODIFIED", obj)])
        gc.collect()
        began = thread_cpu_seconds()
        _drain_inbox(scheduler)
        best = min(best, (thread_cpu_seconds() - began) / len(changes))
    assert scheduler.queue.size(SubQueue.UNSCHEDULABLE) == before, "the events were to help no pod"
    return best


def _fill(scheduler: SchedulingLoop, pods: Sequence[Object], rejector: str) -> None:
    """Pods that were tried once and rejected by this plugin, while something happened."""
    _put(scheduler, "Pod", [_decoded("pods", obj) for obj in pods])
    first = scheduler.queue.pop()
    _put(scheduler, "Node", [_node_update(0)])
    assert first is not None and scheduler.queue.recorded_events, "events are kept for pods in flight"
    scheduler.queue.give_back(first, first.pod, frozenset([rejector]), frozenset())
    while (ticket := scheduler.queue.pop()) is not None:
        scheduler.queue.give_back(ticket, ticket.pod, frozenset([rejector]), frozenset())
    assert scheduler.queue.size(SubQueue.UNSCHEDULABLE) == len(pods)


# --- narrowing --------------------------------------------------------------------------------------------------------


def _narrowing_contrast() -> MeasuredFigure:
    """Counts, not times: they are the same on every machine."""
    narrowed, all_pods = (_hints_asked(FeatureGates({"SchedulerPreQueueingHints": on})) for on in (True, False))
    ratio = all_pods / narrowed
    name = f"hints asked without pre-queueing hints, {_NARROWED:,} pods"
    return MeasuredFigure(name, ratio, "times as many", f">= {_NARROWED // 2:,}", ratio >= _NARROWED // 2)


def _hints_asked(gates: FeatureGates) -> int:
    """How many hints updates of claims cost that one pod each waits for."""
    scheduler = _scheduler(gates)
    claims = [f"claim-{number}" for number in range(_NARROWED)]
    _put(scheduler, "ResourceClaim", [_claim(name, "") for name in claims])
    _fill(scheduler, [_claiming_pod(number) for number in range(_NARROWED)], "DynamicResources")
    durations = scheduler.metrics.queueing_hint_execution_duration_seconds
    before = durations.count("DynamicResources", _CLAIM_UPDATED, "QueueSkip")
    scheduler.intake.apply("ResourceClaim", [WatchEvent("MODIFIED", _claim(name, "changed")) for name in claims[:5]])
    _drain_inbox(scheduler)
    return durations.count("DynamicResources", _CLAIM_UPDATED, "QueueSkip") - before


# --- gated pods -------------------------------------------------------------------------------------------------------


def _slowdown_by_gated_pods() -> float:
    """How much dearer a pod is beside gated ones: batches in turn, the best of each kind."""
    plain, beside = _scheduler(), _scheduler()
    _put(beside, "Pod", [_decoded("pods", _gated_pod(number)) for number in range(_GATED)])
    assert beside.queue.size(SubQueue.GATED) == _GATED
    best = {id(plain): float("inf"), id(beside): float("inf")}
    for scheduler in (plain, beside):
        _put(scheduler, "Node", [_node_update(number) for number in range(_NODES)])
    for batch in range(_BATCHES):
        for scheduler in (plain, beside):
            best[id(scheduler)] = min(best[id(scheduler)], _scheduled(scheduler, batch))
    return best[id(beside)] / best[id(plain)] - 1


def _scheduled(scheduler: SchedulingLoop, batch: int) -> float:
    """CPU seconds to schedule a batch of pods, to see them bound, and to see them go."""
    names = [f"batch-{batch}-{number}" for number in range(_PODS_PER_BATCH)]
    pods = [_decoded("pods", _with_uid(bench_pod(name, {"cpu": "10m"}))) for name in names]
    gc.collect()
    began = thread_cpu_seconds()
    _put(scheduler, "Pod", pods)
    bound = []
    while (ticket := scheduler.queue.pop()) is not None:
        decision = scheduler.cycle.decide(ticket)
        assert decision is not None, "the pods were to fit"
        scheduler.queue.done(ticket, decision.pod.node_name)
        bound.append(decision.pod)
    scheduler.intake.apply("Pod", [WatchEvent("MODIFIED", pod) for pod in bound])
    scheduler.intake.apply("Pod", [WatchEvent("DELETED", pod) for pod in bound])
    _drain_inbox(scheduler)
    return thread_cpu_seconds() - began


# --- objects ----------------------------------------------------------------------------------------------------------


def _scheduler(gates: FeatureGates | None = None) -> SchedulingLoop:
    options = SchedulerOptions(feature_gates=gates or FeatureGates())
    return build_scheduler(NoApi(), SystemClock(), seeded(1), options)


def _put(scheduler: SchedulingLoop, kind: str, objects: Sequence[Any]) -> None:
    scheduler.intake.apply(kind, [WatchEvent("ADDED", obj) for obj in objects])
    _drain_inbox(scheduler)


def _drain_inbox(scheduler: SchedulingLoop) -> None:
    """In as many turns as it takes: a turn is over after a slice of time."""
    while not scheduler.inbox.is_empty:
        scheduler.drain_inbox()


def _decoded(resource: str, obj: Object) -> Any:
    return KINDS[resource].decode(msgspec.json.encode(obj))


def _node_update(number: int) -> Any:
    """One label of a hundred nodes changes again and again."""
    obj = bench_node(number % _NODES)
    obj["metadata"]["labels"] |= {"pool": "none", "heartbeat": str(number)}
    obj["metadata"]["resourceVersion"] = str(number + 1)
    return _decoded("nodes", obj)


def _claim(name: str, note: str) -> Any:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    metadata = {"name": name, "namespace": "bench", "uid": name, "annotations": {"note": note}}
    return _decoded("resourceclaims", {"metadata": metadata, "spec": {"devices": {"requests": [request]}}})


def _with_uid(pod: Object) -> Object:
    pod["metadata"]["uid"] = f"uid-{pod['metadata']['name']}"
    pod["spec"]["schedulerName"] = "default-scheduler"
    return pod


def _affine_pod(number: int) -> Object:
    pod = _with_uid(bench_pod(f"waiting-{number}"))
    wanted = {"key": "pool", "operator": "In", "values": [f"pool-{number % SIGNATURES}"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    pod["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return pod


def _claiming_pod(number: int) -> Object:
    pod = _with_uid(bench_pod(f"claiming-{number}"))
    pod["spec"]["resourceClaims"] = [{"name": "device", "resourceClaimName": f"claim-{number}"}]
    return pod


def _gated_pod(number: int) -> Object:
    pod = _with_uid(bench_pod(f"gated-{number}"))
    pod["spec"]["schedulingGates"] = [{"name": "example.com/later"}]
    return pod
