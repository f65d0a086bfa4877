"""What `kubectl logs` shows of a simulated container: an annotation, what its command has printed, or one short line.

    sandbox.pilotage.dev/logs: "ready\nlistening on :8080"         of all containers of the pod
    sandbox.pilotage.dev/logs.proxy: "..."                         of the one called proxy

There is nothing to follow: `--follow` ends where the log ends. Times are those at which a line was printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pilotage.clock import parse_rfc3339, rfc3339
from pilotage.sandbox.api import Api
from pilotage.sandbox.errors import bad_request
from pilotage.sandbox.life.container_env import container_env
from pilotage.sandbox.life.pod_plan import PREFIX
from pilotage.sandbox.life.programs import outcome_of

Object = dict[str, Any]

_LISTS: Final = (
    ("containers", "containerStatuses"),
    ("initContainers", "initContainerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
)


def pod_log(pod: Object, query: Mapping[str, str], api: Api) -> str:
    """The log of one container; ApiError 400 if there is no such container, or if it has not started."""
    name = pod["metadata"]["name"]
    container, status = find_container(pod, query.get("container", ""))
    is_previous = query.get("previous", "") in ("true", "1")
    state = status.get("lastState" if is_previous else "state") or {}
    if is_previous and "terminated" not in state:
        raise bad_request(f'previous terminated container "{container["name"]}" in pod "{name}" not found')
    running = state.get("running") or state.get("terminated") or (status.get("lastState") or {}).get("terminated")
    if running is None:
        reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
        problem = f'container "{container["name"]}" in pod "{name}" is waiting to start: {reason}'
        raise bad_request(problem)
    begin = parse_rfc3339(running.get("startedAt") or rfc3339(0))
    end = parse_rfc3339(running["finishedAt"]) if running.get("finishedAt") else api.clock.time()
    has_times = query.get("timestamps", "") in ("true", "1")
    lines = [
        f"{rfc3339(int(begin + at))} {line}" if has_times else line
        for at, text in _printed(pod, container, api)
        if at <= max(end - begin, 0.0)
        for line in text.splitlines(keepends=True)
    ]
    tail = query.get("tailLines", "")
    if tail.isdecimal():
        lines = lines[len(lines) - min(int(tail), len(lines)) :]
    text = "".join(lines)
    limit = query.get("limitBytes", "")
    return text.encode()[: int(limit)].decode(errors="ignore") if limit.isdecimal() else text


def find_container(pod: Object, wanted: str) -> tuple[Object, Object]:
    """The container of this name (none given: the default one) and its status; ApiError 400 if there is none."""
    name, spec, statuses = pod["metadata"]["name"], pod["spec"], pod.get("status") or {}
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


def written_text(pod: Object, container: Object, name: str) -> str | None:
    """What an annotation says for a container, or for all of them; with a new line at its end."""
    annotations = pod["metadata"].get("annotations") or {}
    for key in (f"{PREFIX}{name}.{container['name']}", PREFIX + name):
        text: str | None = annotations.get(key)
        if text is not None:
            return text if text.endswith("\n") or not text else f"{text}\n"
    return None


def _printed(pod: Object, container: Object, api: Api) -> Sequence[tuple[float, str]]:
    """Lines, and how many seconds after its start the container printed them."""
    written = written_text(pod, container, "logs")
    if written is not None:
        return [(0.0, written)]
    outcome = outcome_of(container, container_env(pod, container, api))
    if outcome is not None:
        return outcome.printed
    line = f"container {container['name']} is simulated: nothing runs, nothing is logged (see {PREFIX}logs)\n"
    return [(0.0, line)]
