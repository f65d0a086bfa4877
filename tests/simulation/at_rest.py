"""What must hold when the faults are over and the cluster has come to rest.

everything that fits is bound    `place` on a new engine, filled from the API server, finds nothing for pending pods
everybody knows why              pending pods have a condition, unless writing it was not allowed
nothing is stale                 both replicas hold what the API server has; nothing is assumed, in flight or queued
quota is used                    no Workload waits for what is free
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pilotage.api.group_members import group_key
from pilotage.api.state import CycleState
from pilotage.assembly import SchedulerOptions
from pilotage.clock import Clock
from pilotage.cycle.placement import NoNodes, Placed, place
from pilotage.explain.engine import cluster_of_server, thinking_engines
from pilotage.kube.client import KubeClient
from pilotage.model import KINDS, Pod
from pilotage.queue.sub_queues import SubQueue
from pilotage.sandbox.embedded import EmbeddedCluster
from pilotage.sandbox.storage.records import Record
from pilotage.sandbox.storage.store import Store
from tests.simulation.gangs import groups_at_unrest
from tests.simulation.replicas import Replica, Slot
from tests.simulation.store_invariants import (
    CLAIMS,
    QUEUES,
    WORKLOADS,
    cpu_millis,
    has_condition,
    nominal_cpu,
    quota_used,
)

_ALL_BOUND = "everything that fits is bound"
Finding = tuple[str, str]
"""Which invariant, and how it is broken."""


async def unrest(cluster: EmbeddedCluster, clock: Clock, slots: list[Slot], options: SchedulerOptions) -> list[Finding]:
    """Everything that is not as it should be."""
    found = [*_leaders(slots)]
    for slot in slots:
        if slot.replica is not None:
            found += _replica(slot.replica, cluster.api.store)
    found += _claims(cluster.api.store)
    found += _workloads(cluster.api.store)
    has_groups = options.feature_gates["GenericWorkload"]
    found += await _pending(cluster, clock, slots[0].monitor.untold, has_groups)
    if has_groups:
        waiting = await groups_at_unrest(KubeClient(cluster.transport()), clock, options)
        found += [(_ALL_BOUND, text) for text in waiting]
    return found


def _leaders(slots: list[Slot]) -> Iterator[Finding]:
    leading = [slot.replica.identity for slot in slots if slot.replica is not None and slot.replica.is_leading]
    if len(leading) != 1:
        yield "one leader", f"{leading} lead"


# --- one replica ------------------------------------------------------------------------------------------------------


def _replica(replica: Replica, store: Store) -> Iterator[Finding]:
    for invariant, detail in (*_memory(replica), *_view(replica, store)):
        yield invariant, f"{replica.identity}: {detail}"


def _memory(replica: Replica) -> Iterator[Finding]:
    scheduler = replica.process.scheduler
    scheduler.cluster.check()
    scheduler.queue.check()
    scheduler.cluster.nominations.check()
    if replica.process.queueing is not None and (engine := replica.process.queueing.controller.engine) is not None:
        engine.check()
    if not replica.is_leading:
        return
    if in_flight := [ticket.pod.key for ticket in scheduler.queue.tickets()]:
        yield "in-flight is empty", f"{in_flight} are still being scheduled or bound"
    if scheduler.queue.recorded_events:
        yield "in-flight is empty", f"{scheduler.queue.recorded_events} events are kept for nobody"
    for call in scheduler.dispatcher.report(limit=10).calls:
        text = f"{call.kind} of {call.object}: {call.state} for {call.waiting_seconds:.1f} s, {call.tries} tries"
        yield "in-flight is empty", text
    if scheduler.cluster.assumed_count:
        yield "nothing stale", f"{scheduler.cluster.assumed_count} pods are assumed"
    if active := [entry.pod.key for entry in scheduler.queue.entries() if entry.home is SubQueue.ACTIVE]:
        yield "in-flight is empty", f"{active} are active and not tried"


def _view(replica: Replica, store: Store) -> Iterator[Finding]:
    cluster = replica.process.scheduler.cluster
    pods = cluster.objects("Pod")
    for node_name in cluster.nominations.nodes():
        for pod in cluster.nominations.on(node_name):
            known = pods.get(pod.key)
            if known is None or known.uid != pod.uid or known.node_name:
                yield "nothing stale", f"{node_name} is nominated for {pod.key}, which is not pending"
            elif group_key(pod):
                yield "no partial gang", f"{node_name} is kept for {pod.key}, and nobody is leaving it"
    for resource in cluster.kinds.own:
        kind = KINDS[resource]
        name = resource if not kind.group else f"{resource}.{kind.group}"
        stored = {record.uid: record.revision for record in store.list(name) if not _is_finished_pod(resource, record)}
        held = {one.uid: int(one.resource_version) for one in cluster.objects(kind.kind).values()}
        if stored != held:
            apart = dict(sorted(set(stored.items()) ^ set(held.items())))
            yield "nothing stale", f"{resource} differ from the API server's: {apart}"


def _is_finished_pod(resource: str, record: Record) -> bool:
    return resource == "pods" and record.object()["status"].get("phase") in ("Succeeded", "Failed")


# --- the API server ---------------------------------------------------------------------------------------------------


def _claims(store: Store) -> Iterator[Finding]:
    pods = {record.uid for record in store.list("pods")}
    for record in store.list(CLAIMS):
        for one in (record.object().get("status") or {}).get("reservedFor") or ():
            if one["uid"] not in pods:
                yield "nothing stale", f"claim {record.key.name} is reserved for {one['name']}, which is gone"


def _workloads(store: Store) -> Iterator[Finding]:
    used = quota_used(store)
    queues = {record.key.name: record.object()["spec"] for record in store.list(QUEUES)}
    for record in store.list(WORKLOADS):
        workload = record.object()
        status = workload.get("status") or {}
        if has_condition(status, "QuotaReserved") or has_condition(status, "Finished"):
            continue
        name = f"cq-{workload['spec']['queueName'].removeprefix('lq-')}"
        cohort = queues[name].get("cohortName")
        members = [one for one, spec in queues.items() if one == name or (cohort and spec.get("cohortName") == cohort)]
        free = sum(nominal_cpu(queues[one]) - used[one] for one in members)
        needed = sum(
            pod_set["count"] * cpu_millis(container["resources"]["requests"]["cpu"])
            for pod_set in workload["spec"]["podSets"]
            for container in pod_set["template"]["spec"]["containers"]
        )
        if needed <= free:
            yield "quota is used", f"workload {record.key.name} waits for {needed}m cpu of {name}, {free}m are free"


async def _pending(cluster: EmbeddedCluster, clock: Clock, untold: Collection[str], has_groups: bool) -> list[Finding]:
    """The naive scheduler: nothing remembered, one pod at a time, nothing is assumed. Of groups `gangs` thinks."""
    found: list[Finding] = []
    client = KubeClient(cluster.transport())
    known = await cluster_of_server(client)
    for pod in sorted(known.objects("Pod").values(), key=lambda one: str(one.key)):
        if pod.node_name or pod.is_terminating:
            continue
        is_told = any(one.type == "PodScheduled" for one in pod.status.conditions)
        if not is_told and f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}" not in untold:
            found.append(("everybody knows why", f"pod {pod.key} is pending without a condition"))
        if has_groups and group_key(pod):
            continue
        answer = await _answer(client, clock, pod)
        if answer:
            found.append((_ALL_BOUND, f"pod {pod.key} is pending: {answer}"))
    return found


async def _answer(client: KubeClient, clock: Clock, pod: Pod) -> str:
    """Where the pod could go; "" if nowhere."""
    engine = thinking_engines(await cluster_of_server(client), clock, SchedulerOptions())[pod.spec.scheduler_name]
    if engine.runner.pre_enqueue(pod) is not None:
        return ""
    try:
        placement = place(engine, CycleState(), pod)
    except NoNodes:
        return ""
    if isinstance(placement, Placed):
        return f"it fits on {placement.node_name}"
    nominated = placement.nomination.node_name
    return f"it can preempt on {nominated}" if nominated else ""
