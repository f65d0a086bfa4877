"""What a queueing scenario expects, compared with what is: the first difference as a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pilotage.clock import parse_rfc3339
from pilotage.jobs.visibility import VisibilityApi
from pilotage.jobs.visibility_discovery import GROUP
from pilotage.model.kueue import Workload
from pilotage.simulate.queueing_stage import QueueingStage, is_true

Json = dict[str, Any]


def first_queueing_difference(stage: QueueingStage, expected: Json) -> str | None:
    """None if everything that is named is as expected."""
    return next(_differences(stage, expected), None)


def _differences(stage: QueueingStage, expected: Json) -> Iterator[str]:
    for name, wanted in expected.items():
        yield from _COMPARISONS[name](stage, wanted)


def _compare(what: str, wanted: Any, found: Any) -> Iterator[str]:
    if wanted != found:
        yield f"{what}: expected {_text(wanted)}, is {_text(found)}"


def _text(value: Any) -> str:
    return "null" if value is None else str(value)


# --- queues -----------------------------------------------------------------------------------------------------------


def _at(stage: QueueingStage, wanted: float) -> Iterator[str]:
    yield from _compare("at", wanted, int(stage.now()))


def _holding(stage: QueueingStage, wanted: list[str]) -> Iterator[str]:
    found = sorted(
        stage.shown(key)
        for key, workload in stage.workloads.items()
        if is_true(workload, "QuotaReserved") and not is_true(workload, "Finished")
    )
    yield from _compare("holding", sorted(wanted), found)


def _admission_log(stage: QueueingStage, wanted: list[str]) -> Iterator[str]:
    found, stage.reserved = stage.reserved, []
    yield from _compare("admission_log", wanted, found)


def _pending_order(stage: QueueingStage, wanted: dict[str, list[str]]) -> Iterator[str]:
    for queue, names in wanted.items():
        found = [stage.shown(one.key) for one in stage.engine.pending(queue)]
        yield from _compare(f"pending_order of {queue}", names, found)


def _usage(stage: QueueingStage, wanted: Json) -> Iterator[str]:
    reports = {report.name: report for report in stage.engine.cluster_queues()}
    for queue, flavors in wanted.items():
        used = {(quota.flavor, quota.resource): quota.used for quota in reports[queue].quotas}
        for flavor, resources in flavors.items():
            for resource, amount in resources.items():
                found = used.get((flavor, resource), 0) / (1000 if resource == "cpu" else 1)
                yield from _compare(f"usage of {queue}: {resource} in {flavor}", amount, found)


def _cluster_queues(stage: QueueingStage, wanted: Json) -> Iterator[str]:
    for queue, facts in wanted.items():
        status = stage.engine.cluster_queue_status(queue)
        found = {
            "active": status.conditions[0].status == "True",
            "pending": status.pending_workloads,
            "reserving": status.reserving_workloads,
            "admitted": status.admitted_workloads,
        }
        for name, value in facts.items():
            yield from _compare(f"clusterQueue {queue}: {name}", value, found[name])


def _visibility(stage: QueueingStage, wanted: Json) -> Iterator[str]:
    api = VisibilityApi(lambda: stage.engine)
    for queue, lines in wanted.items():
        answer = api.answer("GET", f"/apis/{GROUP}/v1beta2/clusterqueues/{queue}/pendingworkloads", {})
        found = [
            {
                "workload": stage.shown(f"{item['metadata']['namespace']}/{item['metadata']['name']}"),
                "cq": item["positionInClusterQueue"],
                "lq": item["positionInLocalQueue"],
                "queue": item["localQueueName"],
                "priority": item["priority"],
            }
            for item in answer.document.get("items", ())
        ]
        yield from _compare(f"visibility of {queue}", lines, found)


def _jobs(stage: QueueingStage, wanted: Json) -> Iterator[str]:
    for name, facts in wanted.items():
        job = stage.jobs[name]
        spec = job.job.spec
        found = {
            "suspend": spec.suspend,
            "parallelism": spec.parallelism,
            "nodeSelector": spec.template.spec.node_selector,
            "workload": job.workload_key in stage.workloads,
        }
        for fact, value in facts.items():
            yield from _compare(f"job {name}: {fact}", value, found[fact])


def _events(stage: QueueingStage, wanted: list[str]) -> Iterator[str]:
    seen = {f"{name}:{reason}" for name, reason in stage.events}
    yield from (f"events: no {event}" for event in wanted if event not in seen)


def _no_events(stage: QueueingStage, wanted: list[str]) -> Iterator[str]:
    seen = {f"{name}:{reason}" for name, reason in stage.events}
    yield from (f"no_events: there was {event}" for event in wanted if event in seen)


# --- metrics ----------------------------------------------------------------------------------------------------------


def _metrics(stage: QueueingStage, wanted: Json) -> Iterator[str]:
    for text, value in wanted.items():
        yield from _compare(f"metric {text}", value, queueing_metric(stage, text))


def queueing_metric(stage: QueueingStage, text: str) -> int:
    """The value of `name{label=value,...}`, summed over labels that are not given."""
    name, _, rest = text.partition("{")
    labels = dict(pair.split("=", 1) for pair in rest.rstrip("}").split(",") if pair)
    if name == "pending_workloads":
        return _pending_metric(stage, labels)
    return sum(
        count
        for (metric, known), count in stage.counts.items()
        if metric == name and labels.items() <= dict(known).items()
    )


def _pending_metric(stage: QueueingStage, labels: Mapping[str, str]) -> int:
    total = 0
    for report in stage.engine.cluster_queues():
        if labels.get("cluster_queue", report.name) == report.name:
            parts = {"active": report.pending - report.inadmissible, "inadmissible": report.inadmissible}
            total += sum(count for status, count in parts.items() if labels.get("status", status) == status)
    return total


# --- workloads --------------------------------------------------------------------------------------------------------


def _workloads(stage: QueueingStage, wanted: Json) -> Iterator[str]:
    for name, facts in wanted.items():
        workload = stage.workloads.get(stage.key(name))
        if workload is None:
            yield f"workload {name}: does not exist"
            continue
        for fact, value in facts.items():
            yield from _FACTS[fact](stage, f"workload {name}: {fact}", workload, value)


def state(workload: Workload) -> str:
    if is_true(workload, "Finished"):
        return "finished"
    if is_true(workload, "QuotaReserved"):
        if is_true(workload, "Evicted"):
            return "evicting"
        return "admitted" if is_true(workload, "Admitted") else "reserved"
    return "pending" if workload.spec.active else "inactive"


def _state(_: QueueingStage, what: str, workload: Workload, wanted: str) -> Iterator[str]:
    yield from _compare(what, wanted, state(workload))


def _active(_: QueueingStage, what: str, workload: Workload, wanted: bool) -> Iterator[str]:
    yield from _compare(what, wanted, workload.spec.active)


def _priority(_: QueueingStage, what: str, workload: Workload, wanted: int) -> Iterator[str]:
    yield from _compare(what, wanted, workload.spec.priority or 0)


def _flavors(_: QueueingStage, what: str, workload: Workload, wanted: Json) -> Iterator[str]:
    admission = workload.status.admission
    found = {one.name: one.flavors for one in admission.pod_set_assignments} if admission is not None else {}
    yield from _compare(what, wanted, found)


def _counts(_: QueueingStage, what: str, workload: Workload, wanted: Json) -> Iterator[str]:
    admission = workload.status.admission
    found = {one.name: one.count for one in admission.pod_set_assignments} if admission is not None else {}
    yield from _compare(what, wanted, found)


def _requeue(stage: QueueingStage, what: str, workload: Workload, wanted: Json | None) -> Iterator[str]:
    written = workload.status.requeue_state
    at = written.requeue_at if written is not None else None
    found = {
        "count": written.count if written is not None else None,
        "at": None if at is None else stage.since_start(parse_rfc3339(at)),
    }
    yield from _compare(what, wanted or {"count": None, "at": None}, found)


def _conditions(_: QueueingStage, what: str, workload: Workload, wanted: Json) -> Iterator[str]:
    found = {one.type: f"{one.status}/{one.reason}" for one in workload.status.conditions}
    for kind, value in wanted.items():
        yield from _compare(f"{what} {kind}", value, found.get(kind))


def _transitions(stage: QueueingStage, what: str, workload: Workload, wanted: Json) -> Iterator[str]:
    found = {one.type: one.last_transition_time for one in workload.status.conditions}
    for kind, value in wanted.items():
        time = found.get(kind)
        yield from _compare(f"{what} {kind}", value, None if time is None else stage.since_start(parse_rfc3339(time)))


def _queue(stage: QueueingStage, what: str, workload: Workload, wanted: str) -> Iterator[str]:
    report = stage.engine.explain(workload.key)
    yield from _compare(what, wanted, report.place if report is not None else "none")


def _checks(_: QueueingStage, what: str, workload: Workload, wanted: Json) -> Iterator[str]:
    yield from _compare(what, wanted, {one.name: one.state for one in workload.status.admission_checks})


def _evictions(_: QueueingStage, what: str, workload: Workload, wanted: Json) -> Iterator[str]:
    stats = workload.status.scheduling_stats
    found = {}
    for one in stats.evictions if stats is not None else ():
        found[f"{one.reason}/{one.underlying_cause}" if one.underlying_cause else one.reason] = one.count
    yield from _compare(what, wanted, found)


_FACTS: Final[Mapping[str, Callable[[QueueingStage, str, Workload, Any], Iterator[str]]]] = {
    "state": _state,
    "active": _active,
    "priority": _priority,
    "flavors": _flavors,
    "counts": _counts,
    "requeue": _requeue,
    "conditions": _conditions,
    "transitions": _transitions,
    "queue": _queue,
    "checks": _checks,
    "evictions": _evictions,
}
_COMPARISONS: Final[Mapping[str, Callable[[QueueingStage, Any], Iterator[str]]]] = {
    "at": _at,
    "holding": _holding,
    "admission_log": _admission_log,
    "pending_order": _pending_order,
    "usage": _usage,
    "clusterQueues": _cluster_queues,
    "visibility": _visibility,
    "jobs": _jobs,
    "events": _events,
    "no_events": _no_events,
    "metrics": _metrics,
    "workloads": _workloads,
}
