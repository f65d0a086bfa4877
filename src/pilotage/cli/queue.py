"""`pilotage queue`: which pods and API calls wait in a running scheduler, for how long, and for what."""

from __future__ import annotations

import sys

import click
import msgspec

from pilotage.calls.report import CallsReport
from pilotage.cli.columns import columns
from pilotage.cli.errors import bad_input, unreachable
from pilotage.cli.event_loop import run as run_loop
from pilotage.cli.event_loop import until_interrupted
from pilotage.cli.options import common_options
from pilotage.cli.output import show, show_json
from pilotage.cli.scheduler_address import QUEUE_PAGE, SANDBOX_QUEUE, SchedulerAddress, scheduler_address
from pilotage.clock import Clock, SystemClock
from pilotage.cycle.report import SchedulerReport
from pilotage.kube.client import status_error
from pilotage.kube.connection import Connection
from pilotage.kube.errors import KubeconfigError
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.transport import Transport, TransportError
from pilotage.queue.report import QueuedPodReport, QueueReport
from pilotage.queue.sub_queues import ASIDE

_EPILOG = """\b
Examples:
  pilotage sandbox --kubeconfig sandbox.yaml & pilotage queue --kubeconfig sandbox.yaml
  pilotage queue -w
  pilotage queue --scheduler https://localhost:10259 --scheduler-ca ca.crt
  pilotage queue -o json | jq '.unschedulable[] | .name, .rejectors'
"""
_LOOK_AGAIN_SECONDS = 1.0
_CALL_HEADINGS = ("CALL", "OBJECT", "LANE", "STATE", "WAITING", "TRIES")
_HEADINGS = ("QUEUE", "POD", "PODS", "PRIORITY", "ATTEMPTS", "WAITING", "BACKOFF", "WAITS FOR", "MESSAGE")


@click.command(epilog=_EPILOG)
@click.option("--kubeconfig", metavar="F", help="Kubeconfig file.  [default: as kubectl: $KUBECONFIG, ~/.kube/config]")
@click.option("--context", "context_name", metavar="C", help="Context in it.  [default: its current context]")
@scheduler_address
@click.option("-n", "--namespace", metavar="N", help="Only pods of this namespace.  [default: all]")
@click.option("--limit", type=click.IntRange(min=1), default=500, show_default=True, help="Rows of each part.")
@click.option("--all", "all_pods", is_flag=True, help="A row for each pod, also for equal ones.")
@click.option("-w", "--watch", is_flag=True, help="Look again every second until interrupted.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@common_options
def queue(
    kubeconfig: str | None,
    context_name: str | None,
    address: SchedulerAddress,
    namespace: str | None,
    limit: int,
    all_pods: bool,
    watch: bool,
    output: str,
) -> None:
    """Show the scheduling queue: active, in backoff, unschedulable, gated and in flight.

    Asks the scheduler of `pilotage run` at --scheduler, or the one that runs inside `pilotage sandbox`. Unschedulable
    pods are shown with the plugins that rejected them: only an event that one of these is interested in brings a pod
    back. Equal pods are one row; --all and JSON have each of them. A pod group is one row with its members; pods whose
    group does not exist are incomplete.
    """
    question = {"limit": str(limit), "namespace": namespace or ""}
    if output == "text" and not all_pods:
        question["group"] = "true"
    clock = SystemClock()
    if address:
        viewer = _Viewer(address.connection(kubeconfig, context_name, clock), QUEUE_PAGE, question, output)
    else:
        viewer = _Viewer(_sandbox(kubeconfig, context_name, clock), SANDBOX_QUEUE, question, output)
    run_loop(until_interrupted(viewer.watch(clock) if watch else viewer.once()))


def _sandbox(kubeconfig: str | None, context_name: str | None, clock: Clock) -> Connection:
    try:
        return load_connection(kubeconfig, context_name, clock=clock)
    except KubeconfigError as error:
        raise bad_input(str(error)) from error


class _Viewer:
    def __init__(self, connection: Connection, path: str, question: dict[str, str], output: str) -> None:
        self._connection = connection
        self._path = path
        self._question = question
        self._output = output

    async def once(self) -> None:
        transport = HttpTransport(self._connection)
        try:
            self._show(await self._report(transport))
        finally:
            await transport.close()

    async def watch(self, clock: Clock) -> None:
        transport = HttpTransport(self._connection)
        try:
            while True:
                report = await self._report(transport)
                if sys.stdout.isatty() and self._output == "text":
                    click.clear()
                self._show(report)
                sys.stdout.flush()
                await clock.sleep(_LOOK_AGAIN_SECONDS)
        finally:
            await transport.close()

    async def _report(self, transport: Transport) -> SchedulerReport:
        try:
            response = await transport.request("GET", self._path, query=self._question)
        except TransportError as error:
            raise unreachable(f"{error} ({self._connection.origin})") from error
        if response.status == 404:
            raise unreachable(
                "no scheduler answers there: say where `pilotage run` serves its pages with --scheduler "
                "https://HOST:10259, or ask a `pilotage sandbox` without --no-scheduler"
            )
        if response.status != 200:
            raise unreachable(f"{status_error(response)} ({self._connection.origin})")
        return msgspec.json.decode(response.body, type=SchedulerReport)

    def _show(self, report: SchedulerReport) -> None:
        if self._output == "json":
            show_json(report)
        else:
            show(render(report))


def render(report: QueueReport) -> str:
    """The counts in the first line, then a row for each pod, or for each group of equal ones."""
    counts = ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in report.counts.items() if count or name not in ASIDE
    )
    rows = [_row(part, pod) for part, pods in report.parts().items() for pod in pods]
    shown = [counts, *([columns(_HEADINGS, rows)] if rows else [])]
    if isinstance(report, SchedulerReport):
        shown += _calls(report.calls)
    return "\n\n".join(shown)


def _calls(report: CallsReport) -> list[str]:
    """How much is on its way to the API server, and what; nothing if nothing is."""
    busy = {name: lane for name, lane in report.lanes.items() if lane.pending or lane.in_flight}
    if not busy:
        return []
    pending, flying = sum(lane.pending for lane in busy.values()), sum(lane.in_flight for lane in busy.values())
    lanes = ", ".join(f"{name} {lane.pending}+{lane.in_flight}/{lane.allowed}" for name, lane in busy.items())
    rows = [
        (call.kind, call.object, call.lane, call.state, f"{call.waiting_seconds:.0f}s", str(call.tries))
        for call in report.calls
    ]
    return [f"API calls: {pending} pending, {flying} in flight ({lanes})", columns(_CALL_HEADINGS, rows)]


def _row(part: str, pod: QueuedPodReport) -> tuple[str, ...]:
    return (
        "error backoff" if pod.is_error else part,
        f"podgroup/{pod.namespace}/{pod.name}" if pod.kind == "PodGroup" else f"{pod.namespace}/{pod.name}",
        f"{pod.count} (min {pod.min_count})" if pod.min_count else str(pod.count),
        str(pod.priority),
        str(pod.attempts),
        f"{pod.waiting_seconds:.0f}s",
        f"{pod.backoff_seconds:.0f}s" if pod.backoff_seconds else "-",
        _awaited(part, pod),
        pod.message or "-",
    )


def _awaited(part: str, pod: QueuedPodReport) -> str:
    if pod.held_by:
        return f"permit: {','.join(pod.held_by)}"
    if pod.asked:
        return f"extender: {','.join(pod.asked)}"
    if part == "in flight":
        group = f" of podgroup/{pod.pod_group}" if pod.pod_group else ""
        return f"binding{group}" if pod.is_binding else f"scheduling{group}"
    if part == "gated":
        return pod.gated_by
    if part == "incomplete":
        return "its PodGroup"
    if part == "pending":
        return "its group's cycle"
    if pod.kind == "PodGroup" and part != "active":
        return "time"
    return ",".join(pod.rejectors) or "-"
