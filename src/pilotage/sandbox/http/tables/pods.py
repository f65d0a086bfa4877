"""Pods and pod templates.

The status of a pod follows from its containers, not by its phase alone: the last reason found while walking from
the phase over the init containers to the containers wins, and a deletion under way hides all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pilotage.sandbox.http.tables.cell_text import (
    NONE,
    condition_is_true,
    containers_and_images,
    count,
    labels_text,
    text,
)
from pilotage.sandbox.http.tables.columns import Cells, PrintedKind, age_of, columns, name_of
from pilotage.sandbox.http.tables.durations import human_duration, seconds_of
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, dicts_in, nested

_POD_COLUMNS: Final = columns(
    "Name", "Ready", "Status", "Restarts", "Age", "IP*", "Node*", "Nominated Node*", "Readiness Gates*"
)
_TERMINAL: Final = ("Succeeded", "Failed")
_COMPLETED: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


@dataclass(slots=True)
class _Progress:
    """What is known about a pod after looking at its containers."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: float = 0.0
    is_initializing: bool = False


def row_conditions(pod: Json) -> list[Json]:
    """kubectl hides or marks rows by these: a pod that has ended."""
    phase = nested(pod, "status", "phase")
    if not isinstance(phase, str) or phase not in _COMPLETED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}]


def _pod_cells(pod: Json, now: float) -> Cells:
    spec, status = dict_or_empty(pod.get("spec")), dict_or_empty(pod.get("status"))
    progress = _progress(spec, status)
    reason = _reason_of_deletion(pod, status) or progress.reason
    sidecars = sum(one.get("restartPolicy") == "Always" for one in dicts_in(spec, "initContainers"))
    total = len(dicts_in(spec, "containers")) + sidecars
    restarts = str(progress.restarts)
    if progress.restarts and progress.last_restart:
        restarts += f" ({human_duration(now - progress.last_restart)} ago)"
    addresses = dicts_in(status, "podIPs")
    return [
        name_of(pod),
        f"{progress.ready}/{total}",
        reason,
        restarts,
        age_of(pod, now),
        text(addresses[0].get("ip") if addresses else status.get("podIP"), NONE),
        text(spec.get("nodeName"), NONE),
        text(status.get("nominatedNodeName"), NONE),
        _gates_text(spec, status),
    ]


def _progress(spec: Json, status: Json) -> _Progress:
    progress = _Progress(text(status.get("reason")) or text(status.get("phase")))
    for condition in dicts_in(status, "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            progress.reason = "SchedulingGated"
    sidecar_restarts = _walk_init_containers(progress, spec, status)
    if not progress.is_initializing or condition_is_true(status, "Initialized"):
        progress.restarts = sidecar_restarts
        _walk_containers(progress, status)
    return progress


def _walk_init_containers(progress: _Progress, spec: Json, status: Json) -> int:
    """Up to the first init container that is not done; returns the restarts of the sidecars before it."""
    declared = dicts_in(spec, "initContainers")
    sidecars = {
        one.get("name") for one in declared if one.get("restartPolicy") == "Always" and _is_text(one.get("name"))
    }
    sidecar_restarts = 0
    for index, container in enumerate(dicts_in(status, "initContainerStatuses")):
        _count_restarts(progress, container)
        is_sidecar = _is_text(container.get("name")) and container["name"] in sidecars
        if is_sidecar:
            sidecar_restarts += count(container.get("restartCount"))
        terminated, waiting = _state(container, "terminated"), _state(container, "waiting")
        if terminated is not None and count(terminated.get("exitCode")) == 0:
            continue
        if is_sidecar and container.get("started") is True:
            progress.ready += container.get("ready") is True
            continue
        progress.is_initializing = True
        if terminated is not None:
            progress.reason = f"Init:{_ending(terminated)}"
        elif waiting is not None and text(waiting.get("reason")) not in ("", "PodInitializing"):
            progress.reason = f"Init:{text(waiting.get('reason'))}"
        else:
            progress.reason = f"Init:{index}/{len(declared)}"
        break
    return sidecar_restarts


def _walk_containers(progress: _Progress, status: Json) -> None:
    is_running = False
    for container in reversed(dicts_in(status, "containerStatuses")):
        _count_restarts(progress, container)
        terminated, waiting = _state(container, "terminated"), _state(container, "waiting")
        if waiting is not None and text(waiting.get("reason")):
            progress.reason = text(waiting.get("reason"))
        elif terminated is not None:
            progress.reason = _ending(terminated)
        elif container.get("ready") is True and _state(container, "running") is not None:
            is_running = True
            progress.ready += 1
    if progress.reason == "Completed" and is_running:
        # One container is done, another goes on.
        progress.reason = "Running" if condition_is_true(status, "Ready") else "NotReady"


def _count_restarts(progress: _Progress, container: Json) -> None:
    progress.restarts += count(container.get("restartCount"))
    ended = seconds_of(nested(container, "lastState", "terminated", "finishedAt"))
    progress.last_restart = max(progress.last_restart, ended or 0.0)


def _state(container: Json, name: str) -> Json | None:
    state = nested(container, "state", name)
    return state if isinstance(state, dict) else None


def _ending(terminated: Json) -> str:
    if reason := text(terminated.get("reason")):
        return reason
    signal = count(terminated.get("signal"))
    return f"Signal:{signal}" if signal else f"ExitCode:{count(terminated.get('exitCode'))}"


def _reason_of_deletion(pod: Json, status: Json) -> str:
    if nested(pod, "metadata", "deletionTimestamp") is None:
        return ""
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return "" if status.get("phase") in _TERMINAL else "Terminating"


def _gates_text(spec: Json, status: Json) -> str:
    gates = dicts_in(spec, "readinessGates")
    if not gates:
        return NONE
    fulfilled = sum(condition_is_true(status, text(gate.get("conditionType"))) for gate in gates)
    return f"{fulfilled}/{len(gates)}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _template_cells(obj: Json, now: float) -> Cells:
    names, images = containers_and_images(nested(obj, "template", "spec"))
    return [name_of(obj), names, images, labels_text(nested(obj, "template", "metadata", "labels"))]


PODS: Final = {
    "Pod": PrintedKind(_POD_COLUMNS, _pod_cells),
    "PodTemplate": PrintedKind(columns("Name", "Containers", "Images", "Pod Labels"), _template_cells),
}
