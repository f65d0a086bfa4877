"""`pilotage explain`: why is this pod where it is, or nowhere, and what would help?"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import msgspec

from pilotage.api.kinds import WatchedKinds
from pilotage.assembly import SchedulerOptions, watched_kinds
from pilotage.cli.cluster_source import ClusterSource
from pilotage.cli.errors import CommandError, ExitCode, bad_input, unreachable
from pilotage.cli.event_loop import run as run_loop
from pilotage.cli.expected_starts import WHEN, When, pods_of_server, start_of_report, starts_of_view
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
from pilotage.explain.group_text import render_group
from pilotage.explain.inquiry import AnyReport, Inquiry, Witnesses, answered
from pilotage.explain.queueing import owner_of
from pilotage.explain.render import render
from pilotage.explain.report import GroupReport, JobQuota, Report
from pilotage.explain.subject import UnknownSubject, is_about_group
from pilotage.explain.workload_advice import what_would_help
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

log = logging.getLogger(__name__)

_OK = 200
_NOT_FOUND = 404
_WHOLE_QUEUE = 1_000_000
_WORKLOAD_WORDS: Final = ("workload", "workloads", "wl", "kwl")
_EPILOG = """\b
Examples:
  pilotage explain web-7d4b9 -n shop
  pilotage explain deploy/web -f cluster/ -f web.yaml
  pilotage explain job/train -o json
  pilotage explain podgroup/train -n research
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
@click.option("--timeline", "wants_timeline", is_flag=True, help="Show what happened to the pod so far instead.")
@WHEN
@click.option("--history", type=click.Path(path_type=Path), metavar="TRACE", help="What else is known of lifetimes.")
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
    when: bool | None,
    history: Path | None,
    output: str,
    flags: SchedulerFlags,
) -> int:
    """Explain where a pod goes, or what keeps it from going anywhere.

    POD is a name, or pod/NAME, deploy/NAME, rs/NAME, sts/NAME, job/NAME. The cluster is read from manifests (-f) or
    from an API server, or a running scheduler answers itself (--scheduler); nothing is changed. Exits with 1 if the pod
    fits nowhere.

    podgroup/NAME explains a group of pods that are placed together: how many exist, how many fit now, what the others
    lack, in which domain most of them fit, and what would help. Exits with 1 if the group does not fit.

    With --timeline, the scheduler itself (--scheduler, or the one in `pilotage sandbox`) shows what it remembers of
    the pod: every event that it was asked about, each plugin's answer, its moves and its attempts.

    workload/NAME explains what a queued workload waits for: which flavor lacks what, who holds it, and when it is
    tried again. NAME may also be that of its job. Exits with 1 if it is not admitted.

    When a pod, a group or a workload is expected to start is said as a range, if something is known of when those that
    run end: from what has ended in this cluster, from a trace (--history), or from deadlines.
    """
    if subject.partition("/")[0] in _WORKLOAD_WORDS and "/" in subject:
        source = QueueingSource(kubeconfig, context_name, files)
        is_admitted = explain_workload(source, subject.partition("/")[2], namespace, output, when)
        return ExitCode.OK if is_admitted else ExitCode.FAILED
    if wants_timeline:
        show_timeline(explain_timeline(subject, namespace, kubeconfig, context_name, address), output)
        return ExitCode.OK
    if address:
        if when or history is not None:
            raise bad_input("--when and --history need the cluster itself: leave --scheduler out")
        question = {"pod": subject, "namespace": namespace, "node": node_name or ""}
        report = _of_scheduler(address.connection(kubeconfig, context_name, SystemClock()), question)
    else:
        cluster = ClusterSource(files, kubeconfig, context_name)
        inquiry = Inquiry(subject, namespace, node_name or "")
        report = _of_cluster(cluster, inquiry, flags.options(), When(when, history))
    _show(report, output)
    return ExitCode.OK if report.fits else ExitCode.FAILED


def _of_scheduler(connection: Connection, question: dict[str, str]) -> AnyReport:
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
    if is_about_group(question["pod"]):
        return msgspec.json.decode(answer.body, type=GroupReport)
    return msgspec.json.decode(answer.body, type=Report)


class _Loaded(NamedTuple):
    cluster: Cluster
    pods: Sequence[bytes]
    """The pods as they were shown: they know more of their past."""
    queue: QueueReport | None = None
    """Of the scheduler that runs there, if it can be asked."""


def _of_cluster(source: ClusterSource, inquiry: Inquiry, options: SchedulerOptions, when: When) -> AnyReport:
    try:
        kinds = watched_kinds(options)
        loaded = _loaded_files(source.files, kinds) if source.files else _loaded_server(source, kinds, when)
        quotas = QueueingSource(source.kubeconfig, source.context, source.files)
        witnesses = Witnesses(
            thinking_engines(loaded.cluster, SystemClock(), options),
            loaded.queue,
            lambda job: _quota(quotas, job, inquiry.namespace),
            options.feature_gates["PodGroupPreemptionPolicy"],
        )
        report = answered(inquiry, loaded.cluster, witnesses)
        start = start_of_report(report, loaded.cluster, loaded.pods, options, when)
        return msgspec.structs.replace(report, expected_start=start)
    except UnknownSubject as error:
        raise CommandError(ExitCode.BAD_INPUT, str(error)) from error
    except (ProfileError, UnknownNode) as error:
        raise bad_input(str(error)) from error


def _quota(source: QueueingSource, job: str, namespace: str) -> JobQuota | None:
    """What workload queueing says of a job; None if it does not queue it, or cannot be looked at."""
    try:
        view = source.view(SystemClock(), with_nodes=True)
    except CommandError as error:
        log.info("quota is not looked at: %s", error)
        return None
    workload = view.find(job, namespace)
    if workload is None and (unqueued := view.find_unqueued(job, namespace)) is not None:
        return JobQuota(unqueued.key, "unqueued", "", unqueued.reason, unqueued.message, None)
    known = None if workload is None else view.engine.explain(workload.key)
    if workload is None or known is None:
        return None
    found = view.judged(workload) or known
    if found.state != known.state:
        next_state = f"looked at again now it would be {found.state}"
        return JobQuota(known.key, known.state, known.cluster_queue, known.reason, next_state, known.position)
    return JobQuota(found.key, found.state, found.cluster_queue, found.reason, found.message, found.position)


def _loaded_files(files: tuple[Path, ...], kinds: WatchedKinds) -> _Loaded:
    try:
        objects = [manifest.obj for manifest in read_manifests(files)]
        pods = [msgspec.json.encode(_named(obj)) for obj in objects if obj.get("kind") == "Pod"]
        return _Loaded(cluster_of_manifests(objects, kinds), pods)
    except ManifestError as error:
        raise bad_input(error.problems) from error
    except DecodeError as error:
        raise bad_input(str(error)) from error


def _named(pod: dict[str, Any]) -> dict[str, Any]:
    """In the namespace that kubectl would choose."""
    return {**pod, "metadata": {"namespace": "default", **(pod.get("metadata") or {})}}


def _loaded_server(source: ClusterSource, kinds: WatchedKinds, when: When) -> _Loaded:
    try:
        connection = load_connection(source.kubeconfig, source.context, clock=SystemClock())
    except KubeconfigError as error:
        raise bad_input(str(error)) from error

    async def load() -> _Loaded:
        transport = HttpTransport(connection)
        try:
            cluster = await cluster_of_server(KubeClient(transport), kinds)
            answer = await transport.request("GET", SANDBOX_QUEUE, query={"limit": str(_WHOLE_QUEUE)})
            queue = msgspec.json.decode(answer.body, type=SchedulerReport) if answer.status == _OK else None
            pods = await pods_of_server(transport) if when.is_asked(cluster) else []
            return _Loaded(cluster, pods, queue)
        finally:
            await transport.close()

    try:
        return run_loop(load())
    except (TransportError, ApiStatusError) as error:
        raise unreachable(f"{error} ({connection.origin})") from error


def _show(report: AnyReport, output: str) -> None:
    if output == "json":
        show_json(report, indent=2)
    elif output == "yaml":
        show_yaml(report)
    elif isinstance(report, GroupReport):
        show(render_group(report, wide=output == "wide"))
    else:
        show(render(report, wide=output == "wide"))


def explain_workload(source: QueueingSource, name: str, namespace: str, output: str, when: bool | None = None) -> bool:
    """Show it; returns whether the workload may run."""
    clock = SystemClock()
    view = source.view(clock, with_nodes=True)
    workload = view.find(name, namespace)
    if workload is None and (unqueued := view.find_unqueued(name, namespace)) is not None:
        show(f"job {unqueued.key} is not queued: {unqueued.reason}: {unqueued.message}")
        return False
    if workload is None:
        known = [one.name for one in view.workloads.values() if one.namespace == namespace]
        known += [owner for one in view.workloads.values() if one.namespace == namespace and (owner := owner_of(one))]
        near = suggestion(name, known) or "; pilotage jobs shows those that there are"
        raise CommandError(ExitCode.BAD_INPUT, f'no workload "{name}" in namespace {namespace}{near}')
    before = view.engine.explain(workload.key)
    report = view.judged(workload)
    assert before is not None and report is not None
    start = starts_of_view(view, clock.time(), when).get(workload.key) if before.state == "pending" else None
    if report.state == "pending":
        report = replace(report, would_be_admitted_if=tuple(what_would_help(view, workload, report)))
    shown = {**msgspec.to_builtins(report), "expected_start": start}
    if output == "json":
        show_json(shown, indent=2)
    elif output == "yaml":
        show_yaml(shown)
    else:
        show(render_workload(report, clock.time(), before.state, start))
    return before.state in ("admitted", "finished")
