"""What a kubelet writes into a pod's status as its containers start, become ready, exit and restart.

Pure: each function changes the status inside the pod that it is given, so that one write tells the whole transition.
All containers of a pod do the same at the same time; a container's state is one of

    waiting (refused) | running -> (ready) -> terminated | running -> waiting (CrashLoopBackOff) -> running ...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pilotage.sandbox.life.controllers.conditions import find_condition, set_condition

Object: TypeAlias = dict[str, Any]

_ALL_TRUE: Final = ("PodReadyToStartContainers", "Initialized")


@dataclass(frozen=True, slots=True)
class Transition:
    """Where and when a transition happens."""

    now: str
    pod_ip: str = ""
    host_ip: str = ""


def start(pod: Object, transition: Transition, *, is_ready: bool) -> None:
    """All containers run, for the first time or again."""
    status = _status(pod)
    _settle(pod, transition)
    status["phase"] = "Running"
    status["initContainerStatuses"] = [
        _init_status(pod, c, transition.now) for c in pod["spec"].get("initContainers") or ()
    ]
    if not status["initContainerStatuses"]:
        del status["initContainerStatuses"]
    status["containerStatuses"] = [
        _container_status(
            pod, container, {"running": {"startedAt": transition.now}}, is_ready=is_ready, is_new_run=True
        )
        for container in pod["spec"]["containers"]
    ]
    for name in _ALL_TRUE:
        set_condition(status, name, "True", transition.now)
    _tell_readiness(pod, transition.now, is_ready)


def become_ready(pod: Object, now: str) -> None:
    """The running containers pass their probes from now on."""
    for container in _status(pod).get("containerStatuses") or ():
        container["ready"] = True
    _tell_readiness(pod, now, True)


def finish(pod: Object, transition: Transition, exit_code: int, reason: str = "") -> None:
    """All containers have exited and stay so: the pod has succeeded or failed."""
    status = _status(pod)
    _settle(pod, transition)
    status["phase"] = "Failed" if exit_code else "Succeeded"
    status["containerStatuses"] = [
        _container_status(pod, container, {"terminated": _termination(pod, transition.now, exit_code, reason)})
        for container in pod["spec"]["containers"]
    ]
    why = "PodFailed" if exit_code else "PodCompleted"
    set_condition(status, "Initialized", "True", transition.now, reason="" if exit_code else why)
    set_condition(status, "Ready", "False", transition.now, reason=why)
    set_condition(status, "ContainersReady", "False", transition.now, reason=why)
    set_condition(status, "PodReadyToStartContainers", "False", transition.now)


def crash(pod: Object, transition: Transition, exit_code: int, backoff_seconds: float) -> None:
    """All containers have exited and are to be restarted after the back-off."""
    status = _status(pod)
    _settle(pod, transition)
    status["phase"] = "Running"
    termination = _termination(pod, transition.now, exit_code, "")
    message = f"back-off {backoff_seconds:g}s restarting failed container"
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    # Exited while it waited: it was restarted and exited at once.
    statuses = [_container_status(pod, container, waiting, is_new_run=True) for container in pod["spec"]["containers"]]
    for container in statuses:
        container["lastState"] = {"terminated": termination}
    status["containerStatuses"] = statuses
    for name in _ALL_TRUE:
        set_condition(status, name, "True", transition.now)
    _tell_readiness(pod, transition.now, False)


def refuse(pod: Object, transition: Transition, message: str) -> bool:
    """The containers cannot even be created; False if the status says so already."""
    status = _status(pod)
    waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": message}}
    if [c.get("state") for c in status.get("containerStatuses") or ()] == [waiting] * len(pod["spec"]["containers"]):
        return False
    _settle(pod, transition)
    status["containerStatuses"] = [_container_status(pod, c, waiting) for c in pod["spec"]["containers"]]
    _tell_readiness(pod, transition.now, False)
    return True


def first_state(pod: Object) -> Object:
    """The state of the first container, which is that of all: {"running": ...}, {"waiting": ...} or {}."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
    state: Object = statuses[0].get("state") or {}
    return state


def restart_count(pod: Object) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return int(statuses[0].get("restartCount") or 0)


def _status(pod: Object) -> Object:
    status: Object = pod.setdefault("status", {})
    return status


def _settle(pod: Object, transition: Transition) -> None:
    """What a kubelet notes as soon as it takes a pod in."""
    status = _status(pod)
    status.setdefault("startTime", transition.now)
    if transition.host_ip:
        status.setdefault("hostIP", transition.host_ip)
        status.setdefault("hostIPs", [{"ip": transition.host_ip}])
    pod_ip = transition.host_ip if pod["spec"].get("hostNetwork") else transition.pod_ip
    if pod_ip:
        status.setdefault("podIP", pod_ip)
        status.setdefault("podIPs", [{"ip": status["podIP"]}])
    generation = pod["metadata"].get("generation")
    if generation is not None:
        status["observedGeneration"] = generation
    if find_condition(status, "PodScheduled") is None:
        set_condition(status, "PodScheduled", "True", transition.now)


def _tell_readiness(pod: Object, now: str, is_ready: bool) -> None:
    names = " ".join(container["name"] for container in pod["spec"]["containers"])
    for kind in ("Ready", "ContainersReady"):
        if is_ready:
            set_condition(_status(pod), kind, "True", now)
        else:
            message = f"containers with unready status: [{names}]"
            set_condition(_status(pod), kind, "False", now, reason="ContainersNotReady", message=message)


def _container_status(
    pod: Object, container: Object, state: Object, *, is_ready: bool = False, is_new_run: bool = False
) -> Object:
    known = (pod.get("status") or {}).get("containerStatuses") or ()
    previous: Object = next((c for c in known if c.get("name") == container["name"]), {})
    is_restart = is_new_run and "waiting" in previous.get("state", {}) and bool(previous.get("lastState"))
    image = container.get("image", "")
    return {
        "name": container["name"],
        "image": image,
        "imageID": f"sandbox://{image}",
        "containerID": f"sandbox://{pod['metadata']['uid']}/{container['name']}",
        "ready": is_ready,
        "started": "running" in state,
        "restartCount": previous.get("restartCount", 0) + is_restart,
        "state": state,
        "lastState": previous.get("lastState", {}),
    }


def _init_status(pod: Object, container: Object, now: str) -> Object:
    if container.get("restartPolicy") == "Always":  # a sidecar runs as long as the pod does
        return _container_status(pod, container, {"running": {"startedAt": now}}, is_ready=True)
    done = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}
    return _container_status(pod, container, {"terminated": done}, is_ready=True)


def _termination(pod: Object, now: str, exit_code: int, reason: str) -> Object:
    started = (first_state(pod).get("running") or {}).get("startedAt", now)
    reason = reason or ("Error" if exit_code else "Completed")
    return {"exitCode": exit_code, "reason": reason, "startedAt": started, "finishedAt": now}
