"""What a kubelet writes into a pod's status as its containers start, become ready, exit and restart.

Pure: each function changes the status inside the pod that it is given, so that one write contains the whole transition.
A container's state is one of

    waiting (PodInitializing, rejected) | running -> (ready) -> terminated | terminated -> waiting (CrashLoopBackOff)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pilotage.sandbox.life.controllers.conditions import find_condition, set_condition

Object: TypeAlias = dict[str, Any]

_LISTS: Final = (
    ("initContainers", "initContainerStatuses"),
    ("containers", "containerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
)
_INITIALIZING: Final = "PodInitializing"
_BACK_OFF: Final = "CrashLoopBackOff"
_RESOURCES: Final = ("limits", "requests")


@dataclass(frozen=True, slots=True)
class Transition:
    """Where and when a transition happens."""

    now: str
    pod_ip: str = ""
    host_ip: str = ""


def status_of(pod: Object, field: str, container: Object) -> Object:
    """The status of one container, made if there is none: waiting to be run."""
    statuses: list[Object] = pod.setdefault("status", {}).setdefault(field, [])
    for status in statuses:
        if status.get("name") == container["name"]:
            status.setdefault("state", {"waiting": {"reason": _INITIALIZING}})
            return status
    image = container.get("image", "")
    status = {
        "name": container["name"],
        "image": image,
        "imageID": f"sandbox://{image}",
        "containerID": f"sandbox://{pod['metadata']['uid']}/{container['name']}",
        "ready": False,
        "started": False,
        "restartCount": 0,
        "state": {"waiting": {"reason": _INITIALIZING}},
        "lastState": {},
    }
    statuses.append(status)
    return status


def may_run(status: Object) -> bool:
    """Whether the container is not kept back by a back-off."""
    waiting = status["state"].get("waiting")
    return waiting is None or waiting.get("reason") != _BACK_OFF


def run(status: Object, now: str) -> None:
    """The container runs, for the first time or again."""
    if status.get("lastState"):
        status["restartCount"] = int(status.get("restartCount") or 0) + 1
    status.update(state={"running": {"startedAt": now}}, started=True, ready=False)


def restart(status: Object, now: str) -> None:
    """The container is replaced at once: its image or its resources have changed."""
    terminate(status, now, 0)
    status["lastState"] = status["state"]
    run(status, now)


def terminate(status: Object, now: str, exit_code: int, message: str = "") -> None:
    started = (status["state"].get("running") or {}).get("startedAt", now)
    reason = "Error" if exit_code else "Completed"
    ended = {"exitCode": exit_code, "reason": reason, "startedAt": started, "finishedAt": now}
    if message:
        ended["message"] = message
    status.update(state={"terminated": ended}, started=False, ready=False)


def back_off(status: Object, seconds: float) -> None:
    """The container has exited and is run again after the back-off."""
    message = f"back-off {seconds:g}s restarting failed container"
    # Exited while it waited: it was run again and exited at once.
    status["lastState"] = status["state"]
    status.update(state={"waiting": {"reason": _BACK_OFF, "message": message}}, started=False, ready=False)


def refresh(status: Object, container: Object) -> bool:
    """Show the image and the resources that the container has now; True if it has to be restarted for that."""
    image, resources = container.get("image", ""), container.get("resources")
    if not resources and "resources" not in status and status.get("image", image) == image:
        return False
    resources = resources or {}
    shown = {name: dict(resources[name]) for name in _RESOURCES if resources.get(name)}
    known = status.get("resources") or {}
    changed = {resource for name in _RESOURCES for resource in _differences(known.get(name), shown.get(name))}
    is_new_image = status.get("image", image) != image
    status.update(image=image, imageID=f"sandbox://{image}")
    if shown:
        status["resources"] = shown
    else:
        status.pop("resources", None)
    if shown.get("requests"):
        status["allocatedResources"] = dict(shown["requests"])
    else:
        status.pop("allocatedResources", None)
    policies = {one.get("resourceName"): one.get("restartPolicy") for one in container.get("resizePolicy") or ()}
    is_resized = bool(known) and any(policies.get(resource) == "RestartContainer" for resource in changed)
    return "running" in status["state"] and (is_new_image or is_resized)


def show_initializing(pod: Object, transition: Transition) -> None:
    """Init containers are at work; the others wait."""
    status = pod["status"]
    status.setdefault("phase", "Pending")
    for container in pod["spec"]["initContainers"]:
        status_of(pod, "initContainerStatuses", container)
    for container in pod["spec"]["containers"]:
        status_of(pod, "containerStatuses", container)
    done = {one["name"] for one in status.get("initContainerStatuses") or () if _is_done(pod, one)}
    left = [one["name"] for one in pod["spec"]["initContainers"] if one["name"] not in done]
    _order(pod)
    message = f"containers with incomplete status: [{' '.join(left)}]"
    set_condition(status, "PodReadyToStartContainers", "True", transition.now)
    set_condition(status, "Initialized", "False", transition.now, reason="ContainersNotInitialized", message=message)
    _set_readiness(pod, transition.now, ())


def show_running(pod: Object, transition: Transition, ready: Collection[str]) -> None:
    """The main containers run or will run again; those that are `ready` pass their probes."""
    status = pod["status"]
    for one in status["containerStatuses"]:
        one["ready"] = one["name"] in ready
    for one in status.get("initContainerStatuses") or ():
        one["ready"] = _is_done(pod, one)
    _order(pod)
    for kind in ("PodReadyToStartContainers", "Initialized"):
        set_condition(status, kind, "True", transition.now)
    _set_readiness(pod, transition.now, ready)


def finish(pod: Object, transition: Transition, exit_code: int) -> None:
    """All main containers have exited and stay so: the pod has succeeded or failed."""
    status = pod["status"]
    for one in status.get("initContainerStatuses") or ():
        if "running" in one["state"]:
            terminate(one, transition.now, 0)
        one["ready"] = _is_done(pod, one)
    status["phase"] = "Failed" if exit_code else "Succeeded"
    why = "PodFailed" if exit_code else "PodCompleted"
    _order(pod)
    set_condition(status, "Initialized", "True", transition.now, reason="" if exit_code else why)
    _end(pod, transition, why)


def fail_before_start(pod: Object, transition: Transition) -> None:
    """An init container has failed for good: the main containers never run."""
    show_initializing(pod, transition)
    pod["status"]["phase"] = "Failed"
    _end(pod, transition, "PodFailed")


def kill(pod: Object, transition: Transition, exit_code: int) -> None:
    """Whatever runs or is to run ends now, and the pod has failed."""
    settle(pod, transition)
    for container_field, field in _LISTS:
        for container in pod["spec"].get(container_field) or ():
            if field == "containerStatuses" or field in pod["status"]:
                status = status_of(pod, field, container)
                if "terminated" not in status["state"]:
                    terminate(status, transition.now, exit_code)
    pod["status"]["phase"] = "Failed"
    _end(pod, transition, "PodFailed")


def reject(pod: Object, transition: Transition, message: str) -> bool:
    """The containers cannot even be created; False if the status says so already."""
    waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": message}}
    known = (pod.get("status") or {}).get("containerStatuses") or ()
    if [one.get("state") for one in known] == [waiting] * len(pod["spec"]["containers"]):
        return False
    settle(pod, transition)
    for container in pod["spec"]["containers"]:
        status_of(pod, "containerStatuses", container)["state"] = waiting
    _set_readiness(pod, transition.now, ())
    return True


def refuse(pod: Object, transition: Transition, reason: str, message: str) -> None:
    """The node does not take the pod in: it has failed before anything of it was made."""
    status = pod.setdefault("status", {})
    status.setdefault("startTime", transition.now)
    status.update(phase="Failed", reason=reason, message=f"Pod was rejected: {message}")


def settle(pod: Object, transition: Transition) -> None:
    """What a kubelet notes as soon as it takes a pod in."""
    status = pod.setdefault("status", {})
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


def _end(pod: Object, transition: Transition, why: str) -> None:
    for kind in ("Ready", "ContainersReady"):
        set_condition(pod["status"], kind, "False", transition.now, reason=why)
    set_condition(pod["status"], "PodReadyToStartContainers", "False", transition.now)


def _set_readiness(pod: Object, now: str, ready: Collection[str]) -> None:
    unready = [container["name"] for container in pod["spec"]["containers"] if container["name"] not in ready]
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or ()]
    closed = [gate for gate in gates if not _is_true(pod, gate)]
    message = f"containers with unready status: [{' '.join(unready)}]"
    if unready:
        for kind in ("Ready", "ContainersReady"):
            set_condition(pod["status"], kind, "False", now, reason="ContainersNotReady", message=message)
        return
    set_condition(pod["status"], "ContainersReady", "True", now)
    if not closed:
        set_condition(pod["status"], "Ready", "True", now)
        return
    message = f'corresponding condition of pod readiness gate "{closed[0]}" does not exist.'
    set_condition(pod["status"], "Ready", "False", now, reason="ReadinessGatesNotReady", message=message)


def _is_true(pod: Object, kind: str) -> bool:
    condition = find_condition(pod["status"], kind)
    return condition is not None and condition.get("status") == "True"


def _is_done(pod: Object, status: Object) -> bool:
    """Whether an init container lets the next begin: it has ended well or, as a sidecar, runs."""
    containers = pod["spec"]["initContainers"]
    is_sidecar = any(c["name"] == status["name"] and c.get("restartPolicy") == "Always" for c in containers)
    if is_sidecar:
        return "running" in status["state"]
    return (status["state"].get("terminated") or {}).get("exitCode") == 0


def _differences(known: Object | None, shown: Object | None) -> Iterator[str]:
    before, after = known or {}, shown or {}
    yield from (name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _order(pod: Object) -> None:
    """Statuses stand in the order of their containers."""
    for container_field, field in _LISTS:
        statuses = pod["status"].get(field)
        if statuses:
            ranks = {container["name"]: rank for rank, container in enumerate(pod["spec"].get(container_field) or ())}
            statuses.sort(key=lambda one: ranks.get(one["name"], len(ranks)))
