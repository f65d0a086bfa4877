"""`pilotage sandbox`: the embedded cluster in the foreground, for kubectl and any other client."""

from __future__ import annotations

import asyncio
import random
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import click

from pilotage.assembly import SchedulerOptions
from pilotage.cli.embedding import started
from pilotage.cli.event_loop import run, until_interrupted
from pilotage.cli.options import common_options
from pilotage.cli.output import show
from pilotage.cli.queueing_flags import queueing_flags
from pilotage.cli.sandbox_pages import add_pages
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags, scheduler_process
from pilotage.clock import Clock, SystemClock
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.kube.client import KubeClient
from pilotage.rng import fresh_seed, seeded
from pilotage.sandbox.embedded import DEFAULT_NODES, EmbeddedCluster, EmbeddedOptions
from pilotage.sandbox.faults import FaultError, FaultRule, parse_fault
from pilotage.sandbox.life.controllers.controller import MOST_PODS

_EPILOG = """\b
Examples:
  pilotage sandbox --nodes 10
  pilotage sandbox --kubeconfig sandbox.yaml -f manifests/ & export KUBECONFIG=sandbox.yaml
  pilotage sandbox --data-dir ~/.pilotage --port 7443 --tls
  pilotage sandbox --fault latency=20ms --fault 500,resource=pods/binding,p=0.1
"""
_FILE = click.Path(path_type=Path)


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
@click.option("--tls", is_flag=True, help="Serve HTTPS with a certificate made for this run.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="F",
    help="Let requests fail or be slow, e.g. 429=1s,every=10 or latency=20ms; may be repeated (see the docs).",
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
    tls: bool,
    faults: tuple[str, ...],
    fault_seed: int | None,
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
        kubeconfig=None if kubeconfig is None else kubeconfig.absolute(),
        faults=_fault_rules(faults),
        fault_seed=fault_seed,
        most_pods=max_pods,
    )
    scheduler = None if no_scheduler else replace(flags.options(), queueing=queueing)
    run(until_interrupted(_live(options, scheduler)))


def _fault_rules(texts: tuple[str, ...]) -> list[FaultRule]:
    try:
        return [parse_fault(text) for text in texts]
    except FaultError as error:
        raise click.UsageError(f"--fault {error}") from error


async def _live(options: EmbeddedOptions, scheduler: SchedulerOptions | None) -> None:
    clock, rng = SystemClock(), seeded(fresh_seed())
    async with started(options, clock, rng) as cluster:
        _announce(cluster)
        if scheduler is not None:
            await schedule(cluster, clock, rng, scheduler)
        else:
            await asyncio.get_running_loop().create_future()


async def schedule(cluster: EmbeddedCluster, clock: Clock, rng: random.Random, options: SchedulerOptions) -> None:
    """Schedule the pods of an embedded cluster without a socket, until cancelled."""
    process = scheduler_process(KubeClient(cluster.transport()), clock, rng, options)
    add_pages(cluster.server, process)
    await process.run()


def _announce(cluster: EmbeddedCluster) -> None:
    counts = f"{cluster.api.store.count('nodes')} nodes, {cluster.api.store.count('pods')} pods"
    show(f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")
    show(f"# {cluster.url} ({counts})")
    sys.stdout.flush()
    if sys.stdout.isatty():
        show("Paste the export line into another shell and try: kubectl get nodes. Ctrl-C ends it.", err=True)
