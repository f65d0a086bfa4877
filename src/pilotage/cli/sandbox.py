"""`pilotage sandbox`: the embedded cluster in the foreground, for kubectl and any other client."""

from __future__ import annotations

import asyncio
import os
import random
import shlex
import sys
import threading
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.cli.console import console_of
from pilotage.cli.embedding import started
from pilotage.cli.event_loop import run, until_interrupted
from pilotage.cli.options import common_options
from pilotage.cli.output import show
from pilotage.cli.queueing_flags import admitted_frameworks, queueing_flags
from pilotage.cli.sandbox_pages import add_pages
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags, scheduler_process
from pilotage.clock import Clock, SystemClock
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.kube.client import KubeClient
from pilotage.rng import fresh_seed, fresh_token, seeded
from pilotage.sandbox.embedded import DEFAULT_NODES, EmbeddedCluster, EmbeddedOptions
from pilotage.sandbox.faults import FaultError, FaultRule, parse_fault
from pilotage.sandbox.http.kubeconfig import NamedUser
from pilotage.sandbox.life.controllers.controller import MOST_PODS
from pilotage.sandbox.life.kubelet import KubeletSettings
from pilotage.sandbox.life.pod_plan import parse_duration

_EPILOG = """\b
Examples:
  pilotage sandbox --nodes 10
  pilotage sandbox --kubeconfig sandbox.yaml -f manifests/ & export KUBECONFIG=sandbox.yaml
  pilotage sandbox --data-dir ~/.pilotage --port 7443
  pilotage sandbox --ephemeral < pipe   # prints the kubeconfig's path; ends when the pipe is closed
  pilotage sandbox --rbac --user bob:developers   # then: kubectl --context bob get pods
  pilotage sandbox --fault latency=20ms --fault 500,resource=pods/binding,p=0.1
"""
_FILE = click.Path(path_type=Path)
_INPUT_BYTES: Final = 65536
_Announce: TypeAlias = Callable[[EmbeddedCluster, str], None]


@click.command(epilog=_EPILOG)
@click.option("--nodes", type=click.IntRange(min=0), metavar="N", help=f"Simulated nodes.  [default: {DEFAULT_NODES}]")
@click.option("--node-template", "templates", multiple=True, type=_FILE, metavar="F", help="Node manifests to copy.")
@click.option("-f", "--filename", "manifests", multiple=True, type=_FILE, metavar="F", help="Manifests to start with.")
@click.option("--data-dir", type=_FILE, metavar="D", help="Keep all objects here; they survive a restart.")
@click.option("--no-scheduler", is_flag=True, help="Leave pods pending, for a scheduler from outside.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="P", help="Port to serve.  [default: a free one]"
)
@click.option(
    "--kubeconfig", type=_FILE, metavar="F", help="Where to write the kubeconfig.  [default: a printed place]"
)
@click.option(
    "--max-pods",
    type=click.IntRange(min=1),
    default=MOST_PODS,
    show_default=True,
    metavar="N",
    help="Controllers create no pods beyond.",
)
@click.option(
    "--run-for",
    metavar="D",
    default="10s",
    show_default=True,
    help="How long pods run that are to end (of Jobs, with restartPolicy Never) if nothing else says so, or: forever.",
)
@click.option("--pod-rules", type=_FILE, metavar="F", help="What pods do whose annotations do not say (see the docs).")
@click.option(
    "--tls/--insecure-http",
    default=True,
    help="Serve HTTPS with a certificate made for this run, or plain HTTP.  [default: HTTPS]",
)
@click.option("--rbac", is_flag=True, help="Users but the administrator may do what roles allow.")
@click.option(
    "--user",
    "users",
    multiple=True,
    metavar="NAME[:GROUP,...]",
    help="With --rbac: a user, with a context of that name in the kubeconfig; may be repeated.",
)
@click.option(
    "--audit-log",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="F",
    help="Record every request from outside there, a line of JSON each.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="F",
    help="Let requests fail or be slow, e.g. 429=1s,every=10 or latency=20ms; may be repeated (see the docs).",
)
@click.option(
    "--ephemeral", is_flag=True, help="For tests: print the kubeconfig's path alone, and end when standard input does."
)
@click.option("--fault-seed", type=int, metavar="N", help="Seed of faults by chance.  [default: another one each time]")
@queueing_flags(is_on=True)
@scheduler_flags
@common_options
def sandbox(
    nodes: int | None,
    templates: tuple[Path, ...],
    manifests: tuple[Path, ...],
    data_dir: Path | None,
    no_scheduler: bool,
    port: int,
    kubeconfig: Path | None,
    max_pods: int,
    run_for: str,
    pod_rules: Path | None,
    tls: bool,
    rbac: bool,
    users: tuple[str, ...],
    audit_log: Path | None,
    faults: tuple[str, ...],
    fault_seed: int | None,
    ephemeral: bool,
    queueing: QueueingConfiguration | None,
    flags: SchedulerFlags,
) -> None:
    """Run an embedded cluster until interrupted.

    An API server in this process, simulated nodes whose pods start and end, small controllers, the scheduler, and
    workload queueing for Jobs that name a queue.
    Unmodified kubectl works with it. It listens on loopback only. The kubeconfig is written once the server answers;
    what is printed then can be pasted into a shell.
    """
    options = EmbeddedOptions(
        nodes=nodes,
        node_templates=templates,
        manifests=manifests,
        data_dir=data_dir,
        port=port,
        tls=tls,
        users=_named_users(users, rbac=rbac, tls=tls),
        audit_log=audit_log,
        kubeconfig=None if kubeconfig is None else kubeconfig.absolute(),
        faults=_fault_rules(faults),
        fault_seed=fault_seed,
        most_pods=max_pods,
        queued=admitted_frameworks(queueing if not no_scheduler else None),
        mounts_tokens=True,
        kubelet=_kubelet(run_for),
        pod_rules=pod_rules,
    )
    scheduler = None if no_scheduler else replace(flags.options(), queueing=queueing)
    if ephemeral:
        run(until_interrupted(_until_input_ends(_live(options, scheduler, _announce_kubeconfig))))
    else:
        run(until_interrupted(_live(options, scheduler, _announce)))


def _named_users(texts: tuple[str, ...], *, rbac: bool, tls: bool) -> list[NamedUser] | None:
    if not rbac:
        if texts:
            raise click.UsageError("--user needs --rbac: without roles there is one user, who may do everything")
        return None
    if texts and not tls:
        raise click.UsageError("--user does not go with --insecure-http: clients send tokens over HTTPS only")
    users: list[NamedUser] = []
    for text in texts:
        name, _, groups = text.partition(":")
        if not name or name in (user.name for user in users):
            raise click.UsageError(f"--user {text}: a name of its own is needed, such as bob or bob:developers,testers")
        users.append(NamedUser(name, tuple(group for group in groups.split(",") if group), fresh_token()))
    return users


def _kubelet(run_for: str) -> KubeletSettings:
    try:
        seconds = None if run_for == "forever" else parse_duration(run_for)
    except ValueError as error:
        raise click.UsageError(f"--run-for: {error}, or forever") from error
    return KubeletSettings(manages_all_nodes=True, job_run_seconds=seconds, never_run_seconds=seconds)


def _fault_rules(texts: tuple[str, ...]) -> list[FaultRule]:
    try:
        return [parse_fault(text) for text in texts]
    except FaultError as error:
        raise click.UsageError(f"--fault {error}") from error


async def _live(options: EmbeddedOptions, scheduler: SchedulerOptions | None, announce: _Announce) -> None:
    clock, rng = SystemClock(), seeded(fresh_seed())
    async with started(options, clock, rng) as cluster:
        if scheduler is None:
            announce(cluster, "")
            await asyncio.get_running_loop().create_future()
            return
        process = embedded_scheduler(cluster, clock, rng, scheduler)
        async with console_of(process, clock, scheduler, f"sandbox at {cluster.url}") as link:
            announce(cluster, link)
            await process.run()


async def _until_input_ends(work: Coroutine[Any, Any, None]) -> None:
    """Whoever started us holds the other end: it is closed when they end, however they do."""
    loop, ended, number = asyncio.get_running_loop(), asyncio.Event(), sys.stdin.fileno()

    def read() -> None:
        # Without a buffer, whose lock a process that ends otherwise would not get.
        while os.read(number, _INPUT_BYTES):
            pass
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=read, name="standard input", daemon=True).start()
    async with asyncio.TaskGroup() as tasks:
        living = tasks.create_task(work, name="sandbox")
        waiting = tasks.create_task(ended.wait(), name="standard input")
        await asyncio.wait([living, waiting], return_when=asyncio.FIRST_COMPLETED)
        living.cancel()
        waiting.cancel()


def embedded_scheduler(
    cluster: EmbeddedCluster, clock: Clock, rng: random.Random, options: SchedulerOptions
) -> SchedulerProcess:
    """A scheduler for the pods of an embedded cluster, without a socket between them."""
    process = scheduler_process(KubeClient(cluster.transport()), clock, rng, options)
    add_pages(cluster.server, process)
    return process


def _announce_kubeconfig(cluster: EmbeddedCluster, _console: str) -> None:
    show(str(cluster.kubeconfig))
    sys.stdout.flush()


def _announce(cluster: EmbeddedCluster, console: str) -> None:
    counts = f"{cluster.api.store.count('nodes')} nodes, {cluster.api.store.count('pods')} pods"
    show(f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")
    show(f"# {cluster.url} ({counts})")
    if console:
        show(f"# console: {console}")
    sys.stdout.flush()
    if sys.stdout.isatty():
        show("Paste the export line into another shell and try: kubectl get nodes. Ctrl-C ends it.", err=True)
