"""`pilotage explain`: why is this pod where it is, or nowhere, and what would help?"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
import msgspec

from pilotage.api.kinds import WatchedKinds
from pilotage.assembly import SchedulerOptions, watched_kinds
from pilotage.cli.errors import CommandError, ExitCode, bad_input, unreachable
from pilotage.cli.event_loop import run as run_loop
from pilotage.cli.explain_timeline import explain_timeline, show_timeline
from pilotage.cli.options import common_options
from pilotage.cli.output import show, show_json, show_yaml
from pilotage.cli.queueing_view import QueueingSource
from pilotage.cli.scheduler_address import EXPLAIN_PAGE, SANDBOX_QUEUE, SchedulerAddress, scheduler_address
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags
from pilotage.clock import SystemClock
from pilotage.cluster.state import Cluster
from pilotage.cycle.report import SchedulerReport
from pilotage.explain.engine import cluster_of_manifests, cluster_of_server, thinking_engines
from pilotage.explain.explainer import UnknownNode
from pilotage.explain.explainer import explain as explain_pod
from pilotage.explain.queue_place import with_queue, with_siblings
from pilotage.explain.queueing import owner_of
from pilotage.explain.render import render
from pilotage.explain.report import Report
from pilotage.explain.subject import UnknownSubject, find_siblings, find_subject
from pilotage.explain.workload_text import render_workload
from pilotage.framework.errors import ProfileError
from pilotage.kube.client import KubeClient, status_error
from pilotage.kube.connection import Connection
from pilotage.kube.errors import ApiStatusError, KubeconfigError
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.transport import Response, TransportError
from pilotage.model import DecodeError
from pilotage.model.suggestions import suggestion
from pilotage.queue.report import QueueReport
from pilotage.sandbox.manifests import ManifestError, read_manifests

_OK = 200
_NOT_FOUND = 404
_WHOLE_QUEUE = 1_000_000
_WORKLOAD_WORDS: Final = ("workload", "workloads", "wl", "kwl")
_EPILOG = """\b
Examples:
  pilotage explain web-7d4b9 -n shop
  pilotage explain deploy/web -f cluster/ -f web.yaml
  pilotage explain job/train -o json
  pilotage explain web-7d4b9 --scheduler http://localhost:10251
  pilotage explain web-7d4b9 --timeline
  pilotage explain workload/train -n research
"""


@click.command(epilog=_EPILOG)
@click.argument("subject", metavar="POD")
@click.option(
    "-f", "files", multiple=True, type=click.Path(path_type=Path), help="Manifests of the cluster and the pod."
)
@click.option("--kubeconfig", metavar="F", help="Ask the cluster of this kubeconfig (without -f).")
@click.option("--context", "context_name", metavar="C", help="Context in it.")
@scheduler_address
@click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the pod.")
@click.option("--node", "node_name", metavar="N", help="Say everything that keeps the pod from this node.")
@click.option("--timeline", "wants_timeline", is_flag=True, help="Tell what happened to the pod so far instead.")
@click.option("-o", "--output", type=click.Choice(["text", "wide", "json", "yaml"]), default="text", show_default=True)
@scheduler_flags
@common_options
def explain(
    subject: str,
    files: tuple[Path, ...],
    kubeconfig: str | None,
    context_name: str | None,
    address: SchedulerAddress,
    namespace: str,
    node_name: str | None,
    wants_timeline: bool,
    output: str,
    flags: SchedulerFlags,
) -> int:
    """Explain where a pod goes, or what keeps it from going anywhere.

    POD is a name, or pod/NAME, deploy/NAME, rs/NAME, sts/NAME, job/NAME. The cluster is read from manifests (-f) or
    from an API server, or a running scheduler answers itself (--scheduler); nothing is changed. Exits with 1 if the pod
    fits nowhere.

    With --timeline, the scheduler itself (--scheduler, or the one in `pilotage sandbox`) tells what it remembers of
    the pod: every event that it was asked about, each plugin's answer, its moves and its attempts.

    workload/NAME explains what a queued workload waits for: which flavor lacks what, who holds it, and when it is
    tried again. NAME may also be that of its job. Exits with 1 if it is not admitted.
    """
    if subject.partition("/")[0] in _WORKLOAD_WORDS and "/" in subject:
        source = QueueingSource(kubeconfig, context_name, files)
        is_admitted = explain_workload(source, subject.partition("/")[2], namespace, output)
        return ExitCode.OK if is_admitted else ExitCode.FAILED
    if wants_timeline:
        show_timeline(explain_timeline(subject, namespace, kubeconfig, context_name, address), output)
        return ExitCode.OK
    if address:
        question = {"pod": subject, "namespace": namespace, "node": node_name or ""}
        report = _of_scheduler(address.connection(kubeconfig, context_name, SystemClock()), question)
    else:
        report = _of_cluster(subject, files, kubeconfig, context_name, namespace, node_name, flags.options())
    _show(report, output)
    return ExitCode.OK if report.fits else ExitCode.FAILED


def _of_scheduler(connection: Connection, question: dict[str, str]) -> Report:
    """What the scheduler at this address says itself."""

    async def ask() -> Response:
        transport = HttpTransport(connection)
        try:
            return await transport.request("GET", EXPLAIN_PAGE, query=question)
        finally:
            await transport.close()

    try:
        answer = run_loop(ask())
    except TransportError as error:
        raise unreachable(str(error)) from error
    if answer.status == _NOT_FOUND:
        raise bad_input(status_error(answer).message)
    if answer.status != _OK:
        raise unreachable(f"{status_error(answer)} ({connection.shown})")
    return msgspec.json.decode(answer.body, type=Report)


def _of_cluster(
    subject: str,
    files: tuple[Path, ...],
    kubeconfig: str | None,
    context_name: str | None,
    namespace: str,
    node_name: str | None,
    options: SchedulerOptions,
) -> Report:
    queue: QueueReport | None = None
    try:
        kinds = watched_kinds(options)
        if files:
            cluster = _cluster_of_files(files, kinds)
        else:
            cluster, queue = _cluster_of_server(kubeconfig, context_name, kinds)
        pod = find_subject(cluster, subject, namespace)
        engines = thinking_engines(cluster, SystemClock(), options)
    except UnknownSubject as error:
        raise CommandError(ExitCode.BAD_INPUT, str(error)) from error
    except ProfileError as error:
        raise bad_input(str(error)) from error
    engine = engines.get(pod.spec.scheduler_name)
    if engine is None:
        known = ", ".join(engines)
        raise bad_input(f'{pod.key} is scheduled by "{pod.spec.scheduler_name}", which is no profile here ({known})')
    try:
        report = explain_pod(engine, pod, node_name)
    except UnknownNode as error:
        raise bad_input(str(error)) from error
    siblings = find_siblings(cluster, subject, pod)
    if queue is None:
        return with_siblings(report, pod, *siblings)
    return with_queue(report, queue, pod, *siblings)


def _cluster_of_files(files: tuple[Path, ...], kinds: WatchedKinds) -> Cluster:
    try:
        return cluster_of_manifests((manifest.obj for manifest in read_manifests(files)), kinds)
    except ManifestError as error:
        raise bad_input(error.problems) from error
    except DecodeError as error:
        raise bad_input(str(error)) from error


def _cluster_of_server(
    kubeconfig: str | None, context_name: str | None, kinds: WatchedKinds
) -> tuple[Cluster, QueueReport | None]:
    """The cluster, and the queue of the scheduler that runs there if it can be asked."""
    try:
        connection = load_connection(kubeconfig, context_name, clock=SystemClock())
    except KubeconfigError as error:
        raise bad_input(str(error)) from error

    async def load() -> tuple[Cluster, QueueReport | None]:
        transport = HttpTransport(connection)
        try:
            cluster = await cluster_of_server(KubeClient(transport), kinds)
            answer = await transport.request("GET", SANDBOX_QUEUE, query={"limit": str(_WHOLE_QUEUE)})
            return cluster, msgspec.json.decode(answer.body, type=SchedulerReport) if answer.status == _OK else None
        finally:
            await transport.close()

    try:
        return run_loop(load())
    except (TransportError, ApiStatusError) as error:
        raise unreachable(f"{error} ({connection.origin})") from error


def _show(report: Report, output: str) -> None:
    if output == "json":
        show_json(report, indent=2)
    elif output == "yaml":
        show_yaml(report)
    else:
        show(render(report, wide=output == "wide"))


def explain_workload(source: QueueingSource, name: str, namespace: str, output: str) -> bool:
    """Show it; returns whether the workload may run."""
    clock = SystemClock()
    view = source.view(clock)
    workload = view.find(name, namespace)
    if workload is None:
        known = [one.name for one in view.workloads.values() if one.namespace == namespace]
        known += [owner for one in view.workloads.values() if one.namespace == namespace and (owner := owner_of(one))]
        near = suggestion(name, known) or "; pilotage jobs shows those that there are"
        raise CommandError(ExitCode.BAD_INPUT, f'no workload "{name}" in namespace {namespace}{near}')
    before = view.engine.explain(workload.key)
    report = view.judged(workload)
    assert before is not None and report is not None
    if output == "json":
        show_json(report, indent=2)
    elif output == "yaml":
        show_yaml(report)
    else:
        show(render_workload(report, clock.time(), before.state))
    return before.state in ("admitted", "finished")
