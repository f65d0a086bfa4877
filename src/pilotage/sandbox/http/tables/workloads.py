"""Deployments and their relatives, Jobs and CronJobs, PodGroups."""

from __future__ import annotations

from typing import Any, Final

from pilotage.sandbox.http.tables.cell_text import (
    NONE,
    condition_is_true,
    containers_and_images,
    count,
    labels_text,
    selector_text,
    text,
)
from pilotage.sandbox.http.tables.columns import Cells, PrintedKind, age_of, columns, name_of
from pilotage.sandbox.http.tables.durations import human_duration, seconds_of, since
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, dicts_in, nested

_WIDE: Final = ("Containers*", "Images*", "Selector*")
_JOB_STATES: Final = ("Complete", "Failed")
_LATER_JOB_STATES: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _wide_cells(obj: Json) -> Cells:
    spec = dict_or_empty(obj.get("spec"))
    return [*containers_and_images(nested(spec, "template", "spec")), selector_text(spec.get("selector"))]


def _deployment_cells(obj: Json, now: float) -> Cells:
    status = dict_or_empty(obj.get("status"))
    return [
        name_of(obj),
        f"{count(status.get('readyReplicas'))}/{count(nested(obj, 'spec', 'replicas'))}",
        count(status.get("updatedReplicas")),
        count(status.get("availableReplicas")),
        age_of(obj, now),
        *_wide_cells(obj),
    ]


def _replica_set_cells(obj: Json, now: float) -> Cells:
    status = dict_or_empty(obj.get("status"))
    return [
        name_of(obj),
        count(nested(obj, "spec", "replicas")),
        count(status.get("replicas")),
        count(status.get("readyReplicas")),
        age_of(obj, now),
        *_wide_cells(obj),
    ]


def _replication_controller_cells(obj: Json, now: float) -> Cells:
    # Its selector is a plain map of labels.
    return [*_replica_set_cells(obj, now)[:-1], labels_text(nested(obj, "spec", "selector"))]


def _stateful_set_cells(obj: Json, now: float) -> Cells:
    ready = count(nested(obj, "status", "readyReplicas"))
    wide = containers_and_images(nested(obj, "spec", "template", "spec"))
    return [name_of(obj), f"{ready}/{count(nested(obj, 'spec', 'replicas'))}", age_of(obj, now), *wide]


def _daemon_set_cells(obj: Json, now: float) -> Cells:
    status = dict_or_empty(obj.get("status"))
    return [
        name_of(obj),
        count(status.get("desiredNumberScheduled")),
        count(status.get("currentNumberScheduled")),
        count(status.get("numberReady")),
        count(status.get("updatedNumberScheduled")),
        count(status.get("numberAvailable")),
        labels_text(nested(obj, "spec", "template", "spec", "nodeSelector")),
        age_of(obj, now),
        *_wide_cells(obj),
    ]


def _job_cells(obj: Json, now: float) -> Cells:
    status = dict_or_empty(obj.get("status"))
    return [
        name_of(obj),
        _job_state(obj, status),
        _completions(dict_or_empty(obj.get("spec")), status),
        _job_duration(status, now),
        age_of(obj, now),
        *_wide_cells(obj),
    ]


def _job_state(obj: Json, status: Json) -> str:
    for state in _JOB_STATES:
        if condition_is_true(status, state):
            return state
    if nested(obj, "metadata", "deletionTimestamp") is not None:
        return "Terminating"
    return next((state for state in _LATER_JOB_STATES if condition_is_true(status, state)), "Running")


def _completions(spec: Json, status: Json) -> str:
    succeeded = count(status.get("succeeded"))
    if spec.get("completions") is not None:
        return f"{succeeded}/{count(spec['completions'])}"
    parallelism = count(spec.get("parallelism"))
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(status: Json, now: float) -> str:
    started = seconds_of(status.get("startTime"))
    if started is None:
        return ""
    ended = seconds_of(status.get("completionTime"))
    return human_duration((now if ended is None else ended) - started)


def _cron_job_cells(obj: Json, now: float) -> Cells:
    spec, status = dict_or_empty(obj.get("spec")), dict_or_empty(obj.get("status"))
    active = status.get("active")
    last = status.get("lastScheduleTime")
    job_spec = nested(spec, "jobTemplate", "spec")
    return [
        name_of(obj),
        text(spec.get("schedule")),
        text(spec.get("timeZone"), NONE),
        _flag(spec.get("suspend")),
        len(active) if isinstance(active, list) else 0,
        since(last, now) if last is not None else NONE,
        age_of(obj, now),
        *containers_and_images(nested(job_spec, "template", "spec")),
        selector_text(nested(job_spec, "selector")),
    ]


def _pod_group_cells(obj: Json, now: float) -> Cells:
    policy = "Gang" if nested(obj, "spec", "schedulingPolicy", "gang") is not None else "Basic"
    workload = text(nested(obj, "spec", "workloadRef", "workloadName"), NONE)
    return [name_of(obj), policy, workload, _pod_group_state(obj), age_of(obj, now)]


def _pod_group_state(obj: Json) -> str:
    conditions = {text(one.get("type")): one for one in dicts_in(obj.get("status"), "conditions")}
    if "DisruptionTarget" in conditions:
        return text(conditions["DisruptionTarget"].get("reason"))
    if "PodGroupInitiallyScheduled" not in conditions:
        return "Pending"
    return "Scheduled" if conditions["PodGroupInitiallyScheduled"].get("status") == "True" else "Unschedulable"


def _flag(value: Any) -> str:
    return str(value) if isinstance(value, bool) else "<unset>"


_REPLICAS: Final = columns("Name", "Desired:integer", "Current:integer", "Ready:integer", "Age", *_WIDE)

WORKLOADS: Final = {
    "Deployment": PrintedKind(
        columns("Name", "Ready", "Up-to-date:integer", "Available:integer", "Age", *_WIDE), _deployment_cells
    ),
    "ReplicaSet": PrintedKind(_REPLICAS, _replica_set_cells),
    "ReplicationController": PrintedKind(_REPLICAS, _replication_controller_cells),
    "StatefulSet": PrintedKind(columns("Name", "Ready", "Age", "Containers*", "Images*"), _stateful_set_cells),
    "DaemonSet": PrintedKind(
        columns(
            "Name",
            "Desired:integer",
            "Current:integer",
            "Ready:integer",
            "Up-to-date:integer",
            "Available:integer",
            "Node Selector",
            "Age",
            *_WIDE,
        ),
        _daemon_set_cells,
    ),
    "Job": PrintedKind(columns("Name", "Status", "Completions", "Duration", "Age", *_WIDE), _job_cells),
    "CronJob": PrintedKind(
        columns("Name", "Schedule", "Timezone", "Suspend:boolean", "Active:integer", "Last Schedule", "Age", *_WIDE),
        _cron_job_cells,
    ),
    "PodGroup": PrintedKind(columns("Name", "Policy", "Workload", "Status", "Age"), _pod_group_cells),
}
