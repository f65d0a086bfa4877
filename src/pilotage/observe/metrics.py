"""Every metric of the scheduler, in one table.

Names, types, labels and buckets are kube-scheduler's, so that the dashboards and alerts that people have go on working.
What kube-scheduler counts and we have no counterpart of is left out rather than shown as 0; what only we have is called
`pilotage_...`. `docs/metrics.md` explains them; `tests/observe/golden_metrics.txt` is the list that must not
change by accident.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from pilotage.observe.declaration import ALPHA, BETA, STABLE, MetricTable, counter, gauge, histogram
from pilotage.observe.instruments import exponential
from pilotage.observe.skipped_objects import SkippedObjects
from pilotage.observe.task_errors import TaskErrors

_ATTEMPT = exponential(0.001, 2, 15)
_POINT = exponential(0.0001, 2, 12)
_PLUGIN = exponential(0.00001, 1.5, 20)
_LONG = exponential(0.01, 2, 20)
_REQUEST = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)

_ASYNC_CALLS = "SchedulerAsyncAPICalls"
_ASYNC_PREEMPTION = "SchedulerAsyncPreemption"
_BINDING_CONDITIONS = "DRADeviceBindingConditions"
_GROUPS = "GenericWorkload"
_PLACEMENTS = "TopologyAwareWorkloadScheduling"
_OURS = "pilotage_"


class Metrics(MetricTable):
    """One attribute per metric: its name without the `scheduler_` prefix, other names in full."""

    prefix: ClassVar[str] = "scheduler_"

    # --- attempts ----------------------------------------------------------------------------------------------
    schedule_attempts_total = counter(STABLE, "Attempts to schedule a pod, by how they ended.", "result", "profile")
    scheduling_attempt_duration_seconds = histogram(
        STABLE, "Time from the start of a cycle to the pod being bound or rejected.", _ATTEMPT, "result", "profile"
    )
    scheduling_algorithm_duration_seconds = histogram(
        BETA, "Time to find a node, or that there is none: filters, scores, and what follows a failure.", _ATTEMPT
    )
    pod_scheduling_sli_duration_seconds = histogram(
        BETA,
        "Time from a pod's first entry into the active queue to its binding, over all attempts.",
        _LONG,
        "attempts",
    )
    pod_scheduling_attempts = histogram(STABLE, "Attempts that a pod needed until it was bound.", exponential(1, 2, 5))
    pod_scheduled_after_flush_total = counter(
        ALPHA,
        "Pods bound after only the flush of unschedulable pods requeued them: each is a hint that missed something.",
    )

    # --- extension points and plugins --------------------------------------------------------------------------
    framework_extension_point_duration_seconds = histogram(
        STABLE, "Time for all plugins of an extension point.", _POINT, "extension_point", "status", "profile"
    )
    plugin_execution_duration_seconds = histogram(
        BETA, "Time for one plugin at one extension point, in some of the cycles.", _PLUGIN,
        "plugin", "extension_point", "status",
    )  # fmt: skip
    plugin_evaluation_total = counter(
        BETA, "Cycles in which a plugin was asked; not those in which it declined beforehand.",
        "plugin", "extension_point", "profile",
    )  # fmt: skip
    permit_wait_duration_seconds = histogram(BETA, "Time that pods waited for permission.", _ATTEMPT, "result")
    goroutines = gauge(BETA, "Tasks that run beside the scheduling cycle, by what they do.", "operation")

    # --- queue -------------------------------------------------------------------------------------------------
    queue_incoming_pods_total = counter(
        STABLE, "Pods that came into a part of the queue, by what brought them there.", "queue", "event"
    )
    queue_incoming_entities_total = counter(
        ALPHA, "Pods and pod groups that came into a part of the queue.", "queue", "event", "type"
    )
    pending_pods = gauge(STABLE, "Pods in each part of the queue.", "queue")
    queued_entities = gauge(ALPHA, "Pods and pod groups in each part of the queue.", "queue", "type")
    unschedulable_pods = gauge(
        BETA, "Waiting pods that a plugin rejected; a pod counts for each of them.", "plugin", "profile"
    )
    inflight_events = gauge(ALPHA, "Events that are kept for pods in flight, and those pods (PodPopped).", "event")
    event_handling_duration_seconds = histogram(ALPHA, "Time to let one watch event take effect.", _POINT, "event")
    queueing_hint_execution_duration_seconds = histogram(
        ALPHA, "Time that a plugin's hint took to say whether an event may help a pod.", _PLUGIN,
        "plugin", "event", "hint",
    )  # fmt: skip
    pre_queueing_hint_evaluations_total = counter(
        ALPHA, "How often a plugin was asked which pods an event can concern, and what it said.", "plugin", "result"
    )

    # --- preemption --------------------------------------------------------------------------------------------
    preemption_attempts_total = counter(STABLE, "Attempts to make room by preemption.")
    preemption_victims = histogram(STABLE, "Pods that had to go for one preemption.", exponential(1, 2, 7))
    preemption_goroutines_execution_total = counter(
        ALPHA, "Preemptions carried out beside the cycle, by how they ended.", "result", gate=_ASYNC_PREEMPTION
    )
    preemption_goroutines_duration_seconds = histogram(
        ALPHA, "Time to carry out a preemption beside the cycle.", _LONG, "result", gate=_ASYNC_PREEMPTION
    )

    # --- pod groups --------------------------------------------------------------------------------------------
    podgroup_schedule_attempts_total = counter(
        ALPHA, "Attempts to schedule a pod group, by how they ended.", "result", "profile", gate=_GROUPS
    )
    podgroup_scheduling_attempt_duration_seconds = histogram(
        ALPHA, "Time from the start of a group's cycle to its end.", _ATTEMPT, "result", "profile", gate=_GROUPS
    )
    podgroup_scheduling_algorithm_duration_seconds = histogram(
        ALPHA, "Time to find places for the members of a group, or that there are too few.", _ATTEMPT, gate=_GROUPS
    )
    workload_preemption_attempts_total = counter(
        ALPHA, "Attempts to make room for a whole group, by how they ended.", "result", gate=_GROUPS
    )
    workload_preemption_victims = histogram(
        ALPHA, "Pods that had to go for one group.", exponential(1, 2, 11), gate=_GROUPS
    )
    preemption_workload_disruptions = histogram(
        ALPHA, "Groups, and members of groups, that had to go for one preemption.", exponential(1, 2, 11),
        "preemptor", gate=_GROUPS,
    )  # fmt: skip
    preemption_pdb_violations_total = counter(
        ALPHA, "Victims that a disruption budget would have protected.", "preemptor", gate=_GROUPS
    )
    preemption_evaluation_duration_seconds = histogram(
        ALPHA, "Time to find out whom a preemption would take.", exponential(0.001, 2, 16),
        "preemptor", "result", gate=_GROUPS,
    )  # fmt: skip
    preemption_execution_duration_seconds = histogram(
        ALPHA, "Time to carry out a preemption.", exponential(0.001, 2, 16), "preemptor", "result", gate=_GROUPS
    )
    generated_placements_total = counter(
        ALPHA, "Sets of nodes that were offered to groups.", "profile", gate=_PLACEMENTS
    )
    placement_evaluations_total = counter(
        ALPHA, "Sets of nodes in which a group was tried, by whether it fits there.", "result", "profile",
        gate=_PLACEMENTS,
    )  # fmt: skip
    placement_evaluation_duration_seconds = histogram(
        ALPHA, "Time to try a group in one set of nodes.", _ATTEMPT, "result", "profile", gate=_PLACEMENTS
    )

    # --- asynchronous API calls --------------------------------------------------------------------------------
    async_api_call_execution_total = counter(
        ALPHA, "API calls that were made, by how they ended.", "call_type", "result", gate=_ASYNC_CALLS
    )
    async_api_call_execution_duration_seconds = histogram(
        ALPHA, "Time that an API call took.", _ATTEMPT, "call_type", "result", gate=_ASYNC_CALLS
    )
    pending_async_api_calls = gauge(ALPHA, "API calls that wait for their turn.", "call_type", gate=_ASYNC_CALLS)

    # --- cluster, volumes, devices -----------------------------------------------------------------------------
    cache_size = gauge(ALPHA, "Nodes, pods and assumed pods that the scheduler knows.", "type")
    volume_scheduling_stage_error_total = counter(ALPHA, "Failures around volumes, by stage.", "operation")
    dra_bindingconditions_allocations_total = counter(
        ALPHA, "Allocated devices whose binding conditions were waited for, by how that ended.",
        "profile", "driver", "status", gate=_BINDING_CONDITIONS,
    )  # fmt: skip
    dra_bindingconditions_wait_duration_seconds = histogram(
        ALPHA, "Time that pods waited for the binding conditions of their devices.", exponential(0.1, 2, 14),
        "profile", "driver", "status", gate=_BINDING_CONDITIONS,
    )  # fmt: skip
    dynamic_resource_allocation_resourceclaim_creates_total = counter(
        ALPHA, "Claims created on behalf of pods that ask for extended resources.",
        "status", "admin_access", "owner_api_group", "owner_api_kind", gate="DRAExtendedResource", prefix="",
    )  # fmt: skip

    # --- what every Kubernetes component reports ---------------------------------------------------------------
    leader_election_master_status = gauge(ALPHA, "1 for the replica that leads, 0 for others.", "name", prefix="")
    leader_election_slowpath_total = counter(
        ALPHA, "Renewals of the lease that had to read it anew first.", "name", prefix=""
    )
    rest_client_requests_total = counter(
        ALPHA, "Requests to the API server by answer.", "code", "method", "host", prefix=""
    )
    rest_client_request_duration_seconds = histogram(
        ALPHA, "Time until the API server answered.", _REQUEST, "verb", "host", prefix=""
    )
    kubernetes_feature_enabled = gauge(
        BETA, "1 for feature gates that are on, 0 for others.", "name", "stage", prefix=""
    )
    kubernetes_build_info = gauge(
        ALPHA, "Always 1; the Kubernetes version whose behaviour is followed, and what this was built with.",
        "major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version", "compiler",
        "platform", prefix="",
    )  # fmt: skip
    kubernetes_healthcheck = gauge(
        STABLE, "1 if a health check passes, 0 if not.", "name", "type", prefix="", page="slis"
    )
    kubernetes_healthchecks_total = counter(
        STABLE, "Health checks by how they ended.", "name", "type", "status", prefix="", page="slis"
    )

    # --- what only we have -------------------------------------------------------------------------------------
    build_info = gauge(ALPHA, "Always 1; the version of Pilotage and of Python.", "version", "python", prefix=_OURS)
    skipped_objects_total = counter(
        ALPHA, "Objects of the API server that were skipped, by where they failed; decode: they are malformed.",
        "kind", "stage", prefix=_OURS,
    )  # fmt: skip
    task_errors_total = counter(
        ALPHA, "Rounds of periodic tasks that ended in an exception; the next round came.", "task", prefix=_OURS
    )
    watch_contact_age_seconds = gauge(
        ALPHA,
        "How long ago the API server was last heard of by the watch of a kind; up to 240 if nothing happens.",
        "resource",
        prefix=_OURS,
    )
    refused_writes_total = counter(
        ALPHA,
        "Writes that the API server refused, by what was to be done and the reason it gave.",
        "verb",
        "resource",
        "reason",
        prefix=_OURS,
    )
    extender_call_duration_seconds = histogram(
        ALPHA,
        "Time that a call of an extender took: ok, rejected (no node, no victims, no binding), error, timeout.",
        _REQUEST,
        "extender",
        "verb",
        "outcome",
        prefix=_OURS,
    )
    plugin_errors_total = counter(ALPHA, "Exceptions and forbidden answers of plugins.", "plugin", prefix=_OURS)
    unserved_field_pods_total = counter(
        ALPHA, "Pods that use a field that no plugin of their profile serves.", "field", prefix=_OURS
    )
    slow_plugin_total = counter(
        ALPHA, "How often a plugin kept everything else waiting for more than a second.", "plugin", prefix=_OURS
    )
    cycle_budget_exceeded_total = counter(
        ALPHA, "Scheduling cycles that were ended because a plugin used up their CPU time.", "plugin", prefix=_OURS
    )
    plugin_counter_total = counter(ALPHA, "What plugins count themselves, by the name they gave.", "name", prefix=_OURS)
    queueing_hint_errors_total = counter(
        ALPHA, "Exceptions of hints and narrowings; the pods were retried.", "plugin", prefix=_OURS
    )
    api_calls_pending = gauge(ALPHA, "API calls that wait for their turn, by lane.", "lane", prefix=_OURS)
    api_calls_in_flight = gauge(ALPHA, "API calls that wait for an answer, by lane.", "lane", prefix=_OURS)
    api_calls_allowed = gauge(
        ALPHA, "How many API calls of a lane may be in flight, as the API server can take them.", "lane", prefix=_OURS
    )
    connections_closed_total = counter(
        ALPHA,
        "Connections to the pages that were closed or refused because there were too many, of one address or in total.",
        "reason",
        prefix=_OURS,
    )
    cycle_cpu_seconds_total = counter(ALPHA, "CPU time of the scheduling cycles.", prefix=_OURS)
    intake_cpu_seconds_total = counter(ALPHA, "CPU time of taking in watch events.", prefix=_OURS)

    def __init__(self, is_enabled: Callable[[str], bool] = lambda gate: True) -> None:
        super().__init__(is_enabled)
        self.skipped = SkippedObjects(self.skipped_objects_total)
        self.task_errors = TaskErrors(self.task_errors_total)
