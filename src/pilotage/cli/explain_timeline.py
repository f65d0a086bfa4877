"""`pilotage explain POD --timeline`: what happened to a pod so far, asked of the scheduler that saw it."""

from __future__ import annotations

import msgspec

from pilotage.cli.errors import CommandError, ExitCode, bad_input, unreachable
from pilotage.cli.event_loop import run as run_loop
from pilotage.cli.output import show, show_json, show_yaml
from pilotage.cli.scheduler_address import SANDBOX_TIMELINE, TIMELINE_PAGE, SchedulerAddress
from pilotage.clock import SystemClock, rfc3339_micro
from pilotage.escaping import visible_lines
from pilotage.kube.client import status_error
from pilotage.kube.connection import Connection
from pilotage.kube.errors import KubeconfigError
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.transport import Response, TransportError
from pilotage.queue.timeline import Timeline, TimelineItem

_OK = 200
_NOT_FOUND = 404
_DATE_AND_T = len("2026-11-15T")
_MILLISECONDS = len("20:19:00.123")


def explain_timeline(
    subject: str, namespace: str, kubeconfig: str | None, context_name: str | None, address: SchedulerAddress
) -> Timeline:
    """CommandError if it is no pod, if no scheduler answers, or if it does not remember the pod."""
    word, slash, name = subject.rpartition("/")
    if slash and word not in ("pod", "pods", "po"):
        raise bad_input(f"--timeline is about one pod: {subject} is a {word}; its pods are shown by kubectl get pods")
    if address:
        connection, path = address.connection(kubeconfig, context_name, SystemClock()), TIMELINE_PAGE
    else:
        connection, path = _sandbox(kubeconfig, context_name), SANDBOX_TIMELINE
    found = msgspec.json.decode(_asked(connection, path, f"{namespace}/{name}").body, type=Timeline | None)
    if found is None:
        raise CommandError(
            ExitCode.BAD_INPUT,
            f"the scheduler remembers no pod {namespace}/{name}: it is not its own, or it was bound too long ago",
        )
    return found


def show_timeline(timeline: Timeline, output: str) -> None:
    if output == "json":
        show_json(timeline)
    elif output == "yaml":
        show_yaml(timeline)
    else:
        show(render_timeline(timeline))


def _sandbox(kubeconfig: str | None, context_name: str | None) -> Connection:
    try:
        return load_connection(kubeconfig, context_name, clock=SystemClock())
    except KubeconfigError as error:
        raise bad_input(str(error)) from error


def _asked(connection: Connection, path: str, key: str) -> Response:
    async def ask() -> Response:
        transport = HttpTransport(connection)
        try:
            return await transport.request("GET", path, query={"pod": key})
        finally:
            await transport.close()

    try:
        answer = run_loop(ask())
    except TransportError as error:
        raise unreachable(f"{error} ({connection.origin})") from error
    if answer.status == _NOT_FOUND:
        raise unreachable(
            "no scheduler answers there: ask one of `pilotage run` with --scheduler URL, or `pilotage sandbox`"
        )
    if answer.status != _OK:
        raise unreachable(f"{status_error(answer)} ({connection.origin})")
    return answer


def render_timeline(timeline: Timeline) -> str:
    """Times of day are in UTC; the second column is the time since the first step."""
    first = timeline.items[0].time
    lines = [f"{timeline.pod}: {_state(timeline)}", ""]
    for item in timeline.items:
        lines.append(f"{_time_of_day(item.time)}  {item.time - first:>+10.3f}s  {_sentence(item)}")
    return visible_lines(lines)


def _state(timeline: Timeline) -> str:
    attempts = sum(item.what == "tried" for item in timeline.items)
    attempts_made = f"{attempts} attempt{'' if attempts == 1 else 's'}"
    last = next(item for item in reversed(timeline.items) if item.what in ("moved", "tried", "bound", "left"))
    match last.what:
        case "bound":
            return f"bound to {last.detail} after {attempts_made}"
        case "left":
            return f"left the queue after {attempts_made}"
        case "tried":
            return f"in its attempt number {last.detail}"
        case _:
            return f"{last.detail} after {attempts_made}"


def _sentence(item: TimelineItem) -> str:
    match item.what:
        case "moved":
            text = f"to {item.detail}: {item.why}"
        case "tried":
            text = f"attempt {item.detail}"
        case "rejected":
            text = f"rejected by {', '.join(item.detail.split(','))}"
            text += f": {item.why}" if item.why else ""
        case "failed":
            text = f"failed: {item.why}"
        case "asked":
            plugin, _, answer = item.detail.partition(": ")
            text = f"{item.why}: {plugin} says {answer}"
        case "bound":
            text = f"bound to {item.detail}"
        case _:
            text = "left the queue"
    return text if item.times == 1 else f"{text} ({item.times} times within a second)"


def _time_of_day(seconds: float) -> str:
    return rfc3339_micro(seconds)[_DATE_AND_T:][:_MILLISECONDS]
