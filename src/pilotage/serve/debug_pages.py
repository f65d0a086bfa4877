"""`/debug/queue`, `/debug/cache`, `/debug/explain`: what the scheduler has in mind at this moment.

They look at the live state between two scheduling cycles, without copying it. Explaining a pod costs about as much as
scheduling it with all its reasons written out.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from pilotage.api.budget import Budget, BudgetExceeded
from pilotage.assembly import SchedulerOptions
from pilotage.clock import Clock
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import ProfileEngine
from pilotage.cycle.report import scheduler_report, selection_of
from pilotage.cycle.scheduling_loop import SchedulingLoop
from pilotage.explain.engine import thinking_engines
from pilotage.explain.explainer import UnknownNode
from pilotage.explain.inquiry import Inquiry, Witnesses, answered
from pilotage.explain.subject import UnknownSubject
from pilotage.observe.verbosity import level_of
from pilotage.queue.report import Selection
from pilotage.queue.timeline import timeline
from pilotage.serve.page import Page, PageAnswer, PageRequest, error_answer, json_answer, text_answer

_DEFAULT_LIMIT: Final = 500
_WHOLE_QUEUE: Final = 1_000_000
_TOO_COSTLY: Final = (
    "explaining this pod would keep all others waiting; `pilotage explain` does it in a process of its own"
)
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")


def queue_page(scheduler: SchedulingLoop) -> Page:
    """The queue and the API calls on their way; `selection_of` has the parameters."""

    def answer(request: PageRequest) -> PageAnswer:
        return json_answer(scheduler_report(scheduler, selection_of(request.first)))

    return answer


def cache_page(scheduler: SchedulingLoop) -> Page:
    """What is believed about the cluster; `?limit=N` nodes."""

    def answer(request: PageRequest) -> PageAnswer:
        return json_answer(cluster_picture(scheduler.cluster, _limit(request)))

    return answer


def explain_page(scheduler: SchedulingLoop, clock: Clock, options: SchedulerOptions) -> Page:
    """`?pod=NAME&namespace=NS&node=N`: the report of `pilotage explain -o json`, from the scheduler itself."""
    engines: dict[str, ProfileEngine] = {}

    def answer(request: PageRequest) -> PageAnswer:
        subject, namespace = request.first("pod"), request.first("namespace", "default")
        if not subject:
            return error_answer(
                400,
                "BadRequest",
                "say which pod: ?pod=NAME&namespace=NAMESPACE, or pod=podgroup/NAME",
            )
        if not engines:
            engines.update(thinking_engines(scheduler.cluster, clock, options))
        queue = scheduler_report(scheduler, Selection(_WHOLE_QUEUE))
        has_own_policy = options.feature_gates["PodGroupPreemptionPolicy"]
        witnesses = Witnesses(engines, queue, has_own_policy=has_own_policy, may_add_nodes=False)
        inquiry = Inquiry(subject, namespace, request.first("node"))
        try:
            return json_answer(answered(inquiry, scheduler.cluster, witnesses, Budget(options.cycle_budget_seconds)))
        except (UnknownSubject, UnknownNode) as error:
            return error_answer(404, "NotFound", str(error))
        except BudgetExceeded:
            return error_answer(503, "ServiceUnavailable", _TOO_COSTLY)

    return answer


def verbosity_page() -> Page:
    """PUT a number, which counts as that of `-v` does."""

    def answer(request: PageRequest) -> PageAnswer:
        text = request.body.decode("ascii", "replace").strip()
        if request.method != "PUT" or not text.isdigit():
            return error_answer(400, "BadRequest", "PUT the verbosity as a number, such as 4")
        logging.getLogger().setLevel(level_of(int(text)))
        return text_answer(f"successfully set klog.logging.verbosity to {text}")

    return answer


def _limit(request: PageRequest) -> int:
    text = request.first("limit")
    return int(text) if text.isdigit() else _DEFAULT_LIMIT


def cluster_picture(cluster: Cluster, limit: int) -> dict[str, Any]:
    """What is believed about the cluster, of at most `limit` nodes and assumed pods."""
    pods: Mapping[str, Any] = cluster.objects("Pod")
    assumed = [pod.key for pod in pods.values() if not pod.node_name and cluster.is_assumed(pod.uid)]
    columns = {
        resource: (cluster.nodes.allocatable(resource).tolist(), cluster.nodes.requested(resource).tolist())
        for resource in _RESOURCES
    }
    per_node = Counter(pod.node_name for pod in pods.values() if pod.node_name)
    nodes = [
        {
            "name": name,
            "pods": per_node[name],
            "allocatable": {resource: columns[resource][0][row] for resource in _RESOURCES},
            "requested": {resource: columns[resource][1][row] for resource in _RESOURCES},
            "nominated": [pod.key for pod in cluster.nominations.on(name)],
        }
        for row, name in enumerate(cluster.nodes.names[:limit])
    ]
    return {
        "counts": {"nodes": len(cluster.nodes.names), "pods": len(pods), "assumed": len(assumed)},
        "assumed": sorted(assumed)[:limit],
        "nodes": nodes,
    }


def timeline_page(scheduler: SchedulingLoop) -> Page:
    """`?pod=NAMESPACE/NAME`; null if nothing is remembered of it."""

    def answer(request: PageRequest) -> PageAnswer:
        key = request.first("pod")
        if not key:
            return error_answer(400, "BadRequest", "say which pod: ?pod=NAMESPACE/NAME")
        return json_answer(timeline(scheduler.queue, key))

    return answer
