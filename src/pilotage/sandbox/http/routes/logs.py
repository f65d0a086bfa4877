"""What `kubectl logs` shows of a simulated container: an annotation, what its command prints, or one short line.

    sandbox.pilotage.dev/logs: "ready\nlistening on :8080"         of all containers of the pod
    sandbox.pilotage.dev/logs.proxy: "..."                         of the one called proxy

The log is complete at once: `--follow` ends where it ends. Times are those at which the container started.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pilotage.sandbox.errors import bad_request
from pilotage.sandbox.life.pod_plan import PREFIX
from pilotage.sandbox.life.programs import outcome_of

Object = dict[str, Any]

_LISTS: Final = (
    ("containers", "containerStatuses"),
    ("initContainers", "initContainerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
)


def pod_log(pod: Object, query: Mapping[str, str]) -> str:
    """The log of one container; ApiError 400 if there is no such container, or if it has not started."""
    name = pod["metadata"]["name"]
    container, status = _find(pod, name, query.get("container", ""))
    is_previous = query.get("previous", "") in ("true", "1")
    state = status.get("lastState" if is_previous else "state") or {}
    if is_previous and "terminated" not in state:
        raise bad_request(f'previous terminated container "{container["name"]}" in pod "{name}" not found')
    running = state.get("running") or state.get("terminated") or (status.get("lastState") or {}).get("terminated")
    if running is None:
        reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
        problem = f'container "{container["name"]}" in pod "{name}" is waiting to start: {reason}'
        raise bad_request(problem)
    lines = _text(pod, container).splitlines(keepends=True)
    if query.get("timestamps", "") in ("true", "1"):
        lines = [f"{running.get('startedAt', '')} {line}" for line in lines]
    tail = query.get("tailLines", "")
    if tail.isdecimal():
        lines = lines[len(lines) - min(int(tail), len(lines)) :]
    text = "".join(lines)
    limit = query.get("limitBytes", "")
    return text.encode()[: int(limit)].decode(errors="ignore") if limit.isdecimal() else text


def _find(pod: Object, name: str, wanted: str) -> tuple[Object, Object]:
    spec, statuses = pod["spec"], pod.get("status") or {}
    if not wanted:
        names = [one["name"] for one in spec["containers"]]
        annotations = pod["metadata"].get("annotations") or {}
        default = str(annotations.get("kubectl.kubernetes.io/default-container"))
        if len(names) > 1 and default not in names:
            choice = " ".join(names)
            raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{choice}]")
        wanted = default if default in names else names[0]
    for field, status_field in _LISTS:
        for container in spec.get(field) or ():
            if container["name"] == wanted:
                found = (one for one in statuses.get(status_field) or () if one.get("name") == wanted)
                return container, next(found, {})
    raise bad_request(f"container {wanted} is not valid for pod {name}")


def _text(pod: Object, container: Object) -> str:
    annotations = pod["metadata"].get("annotations") or {}
    for name in (f"logs.{container['name']}", "logs"):
        written = annotations.get(PREFIX + name)
        if written is not None:
            return written if written.endswith("\n") or not written else f"{written}\n"
    outcome = outcome_of(container)
    if outcome is not None:
        return outcome.output
    return f"container {container['name']} is simulated: nothing runs, nothing is logged (see {PREFIX}logs)\n"
