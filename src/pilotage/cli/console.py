"""`pilotage console`: a cluster and what waits in it, in a browser, with the rights of whoever calls it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import click

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.cli.errors import bad_input, unreachable
from pilotage.cli.event_loop import run, until_interrupted
from pilotage.cli.options import common_options
from pilotage.cli.output import show
from pilotage.cli.queueing_flags import queueing_flags
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags, scheduler_process
from pilotage.clock import Clock, SystemClock
from pilotage.console.local import local_console
from pilotage.console.site import ConsolePages
from pilotage.console.source import ConsoleSource
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.kube.client import KubeClient
from pilotage.kube.connection import Connection
from pilotage.kube.errors import KubeconfigError
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.transport import TransportError
from pilotage.rng import fresh_seed, fresh_token, seeded
from pilotage.serve.listening import CannotListen

_EPILOG = """\b
Examples:
  pilotage console
  pilotage console --kubeconfig staging.yaml --port 8080
  pilotage console --reports results/
  pilotage sandbox --kubeconfig k.yaml & pilotage console --kubeconfig k.yaml
"""


@asynccontextmanager
async def console_of(
    process: SchedulerProcess,
    clock: Clock,
    options: SchedulerOptions,
    title: str,
    *,
    decides: bool = True,
    port: int = 0,
    reports: Path | None = None,
) -> AsyncIterator[str]:
    """The console of a process in this one, on loopback; yields the link."""
    source = ConsoleSource(process, clock, options, decides=decides, reports=reports)
    try:
        async with (
            local_console(ConsolePages(source, title), fresh_token(), port, clock) as link,
            asyncio.TaskGroup() as tasks,
        ):
            beside = tasks.create_task(source.run(), name="console")
            yield link
            beside.cancel()
    except CannotListen as error:
        raise unreachable(error.strerror or str(error)) from error


@click.command(epilog=_EPILOG)
@click.option("--kubeconfig", metavar="F", help="Kubeconfig file.  [default: as kubectl: $KUBECONFIG, ~/.kube/config]")
@click.option("--context", "context_name", metavar="C", help="Context in it.  [default: its current context]")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="P", help="Port on loopback.  [default: a free one]"
)
@click.option(
    "--reports",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Show the results of simulations below DIR, too.",
)
@queueing_flags(is_on=True)
@scheduler_flags
@common_options
def console(
    kubeconfig: str | None,
    context_name: str | None,
    port: int,
    reports: Path | None,
    queueing: QueueingConfiguration | None,
    flags: SchedulerFlags,
) -> None:
    """Look at a cluster in a browser: who waits and why, nodes, queues.

    Follows the cluster with the rights of the kubeconfig, works out for itself why pods wait, and never writes. The
    link that it prints works on this machine only. With the same --config and --plugin as the scheduler it judges
    pods as that does.
    """
    clock = SystemClock()
    try:
        connection = load_connection(kubeconfig, context_name, clock=clock)
    except KubeconfigError as error:
        raise bad_input(str(error)) from error
    options = replace(flags.options(), queueing=queueing)
    run(until_interrupted(_follow(connection, clock, options, port, reports)))


async def _follow(
    connection: Connection, clock: Clock, options: SchedulerOptions, port: int, reports: Path | None
) -> None:
    async with (
        followed(connection, clock, options) as (process, title),
        console_of(process, clock, options, title, decides=False, port=port, reports=reports) as link,
    ):
        show(f"console: {link}")
        await asyncio.get_running_loop().create_future()


@asynccontextmanager
async def followed(
    connection: Connection, clock: Clock, options: SchedulerOptions
) -> AsyncIterator[tuple[SchedulerProcess, str]]:
    """A scheduler that keeps up to date with a cluster and decides nothing, and what the cluster is called."""
    transport = HttpTransport(connection)
    try:
        client = KubeClient(transport)
        try:
            version = (await client.version()).git_version
        except TransportError as error:
            raise unreachable(f"{error} ({connection.origin})") from error
        process = scheduler_process(client, clock, seeded(fresh_seed()), options)
        async with asyncio.TaskGroup() as tasks:
            watching = process.watch(tasks)
            following = tasks.create_task(_keep_up(process), name="following")
            yield process, f"{connection.shown} ({version})"
            for task in (*watching, following):
                task.cancel()
    finally:
        await transport.close()


async def _keep_up(process: SchedulerProcess) -> None:
    await process.wait_synced()
    await process.follow()
