"""`pilotage run`: the scheduler against any API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import click

from pilotage.assembly import WATCHED, SchedulerOptions
from pilotage.cli.errors import bad_input, unreachable
from pilotage.cli.event_loop import run as run_loop
from pilotage.cli.event_loop import until_interrupted
from pilotage.cli.options import common_options
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags, scheduler_process
from pilotage.clock import Clock, SystemClock
from pilotage.kube.client import KubeClient, ListOptions, ServerVersion
from pilotage.kube.connection import Connection
from pilotage.kube.errors import ApiStatusError, KubeconfigError
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.transport import TransportError
from pilotage.model import KINDS
from pilotage.model.kinds import KindInfo
from pilotage.rng import fresh_seed, seeded

_EPILOG = """\b
Examples:
  pilotage run --kubeconfig ~/.kube/config --context staging
  pilotage sandbox --no-scheduler --kubeconfig k.yaml & pilotage run --kubeconfig k.yaml
"""


@click.command(epilog=_EPILOG)
@click.option("--kubeconfig", metavar="F", help="Kubeconfig file.  [default: as kubectl: $KUBECONFIG, ~/.kube/config]")
@click.option("--context", "context_name", metavar="C", help="Context in it.  [default: its current context]")
@scheduler_flags
@common_options
def run(kubeconfig: str | None, context_name: str | None, flags: SchedulerFlags) -> None:
    """Schedule the pods of a cluster until interrupted.

    Takes the pods whose schedulerName is that of a profile (default-scheduler without a configuration). Whether the
    API server answers and lets us read what is needed is checked first; a connection that is lost later is taken up
    again.
    """
    configuration, options = flags.load()
    clock = SystemClock()
    try:
        kubeconfig = kubeconfig or configuration.scheduler.client_connection.kubeconfig or None
        connection = load_connection(kubeconfig, context_name, clock=clock)
    except KubeconfigError as error:
        raise bad_input(str(error)) from error
    run_loop(until_interrupted(_schedule(connection, clock, options)))


async def _schedule(connection: Connection, clock: Clock, options: SchedulerOptions) -> None:
    async with _client(connection) as client:
        process = scheduler_process(client, clock, seeded(fresh_seed()), options)
        server = await check_server(client, connection)
        address = urlsplit(connection.server)
        click.echo(f"scheduling at {address.netloc} ({server.git_version}); Ctrl-C ends it", err=True)
        await process.run()


@asynccontextmanager
async def _client(connection: Connection) -> AsyncIterator[KubeClient]:
    client = KubeClient(HttpTransport(connection))
    try:
        yield client
    finally:
        await client.close()


async def check_server(client: KubeClient, connection: Connection) -> ServerVersion:
    """Say at the start what would otherwise only show as pods that stay pending."""
    try:
        version = await client.version()
        for resource in WATCHED:
            await _check_list(client, KINDS[resource])
    except TransportError as error:
        raise unreachable(str(error)) from error
    except ApiStatusError as error:
        raise unreachable(f"the API server refuses us: {error} ({connection.origin})") from error
    return version


async def _check_list(client: KubeClient, kind: KindInfo) -> None:
    try:
        await client.list_page(kind, ListOptions(limit=1))
    except ApiStatusError as error:
        # A kind that this server does not have (an older one, say) has no objects; the reflector waits for it.
        if error.code != 404:
            raise
