"""How the commands about workload queueing get to see the queues: from an API server or from manifests."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from pilotage.assembly import SchedulerOptions
from pilotage.cli.errors import bad_input, unreachable
from pilotage.cli.event_loop import run as run_loop
from pilotage.cli.queueing_flags import queueing_configuration
from pilotage.clock import Clock, SystemClock
from pilotage.cluster.state import Cluster
from pilotage.config.problems import ConfigError
from pilotage.explain.engine import cluster_of_manifests, cluster_of_server, thinking_engines
from pilotage.explain.queueing import NoQueueing, QueueingView, view_of_manifests, view_of_server
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.configuration.load import queueing_of
from pilotage.jobs.room_on_nodes import NodeRoom
from pilotage.jobs.visibility import RUNNING_CONFIGURATION
from pilotage.kube.client import KubeClient
from pilotage.kube.errors import ApiStatusError, KubeconfigError
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.transport import TransportError
from pilotage.model import DecodeError
from pilotage.sandbox.manifests import ManifestError, read_manifests

log = logging.getLogger(__name__)

_OK = 200
_FORBIDDEN = 403
_FILE = click.Path(path_type=Path)


@dataclass(frozen=True, slots=True)
class QueueingSource:
    """Where to look."""

    kubeconfig: str | None = None
    context: str | None = None
    files: tuple[Path, ...] = ()
    configuration: Path | None = None

    def view(self, clock: Clock | None = None, *, with_nodes: bool = False) -> QueueingView:
        """The queues; CommandError if there is no way to them. `with_nodes`: judged by nodes, too."""
        clock = clock or SystemClock()
        if self.files:
            configuration = queueing_configuration(self.configuration)
            try:
                objects = [manifest.obj for manifest in read_manifests(self.files)]
                room = _room(cluster_of_manifests(objects), clock) if with_nodes else None
                return view_of_manifests(objects, clock, configuration, room)
            except ManifestError as error:
                raise bad_input(error.problems) from error
            except DecodeError as error:
                raise bad_input(str(error)) from error
        try:
            connection = load_connection(self.kubeconfig, self.context, clock=clock)
        except KubeconfigError as error:
            raise bad_input(str(error)) from error

        async def load() -> QueueingView:
            transport = HttpTransport(connection)
            try:
                given = queueing_configuration(self.configuration) if self.configuration is not None else None
                configuration = given or await _running_configuration(transport) or QueueingConfiguration()
                client = KubeClient(transport)
                room = await _room_of_server(client, clock) if with_nodes else None
                return await view_of_server(client, clock, configuration, room)
            finally:
                await transport.close()

        try:
            return run_loop(load())
        except NoQueueing as error:
            raise unreachable(
                "this cluster does not have Kueue's kinds: kubectl apply -f deploy/crds, and run pilotage there with "
                f"--workload-queueing ({connection.origin})"
            ) from error
        except (TransportError, ApiStatusError) as error:
            raise unreachable(f"{error} ({connection.origin})") from error


def _room(cluster: Cluster, clock: Clock) -> NodeRoom:
    return NodeRoom(cluster, lambda mirror: thinking_engines(mirror, clock, SchedulerOptions()))


async def _room_of_server(client: KubeClient, clock: Clock) -> NodeRoom | None:
    """None for users who may not look at nodes: quota is explained to them, too."""
    try:
        return _room(await cluster_of_server(client), clock)
    except ApiStatusError as error:
        if error.code != _FORBIDDEN:
            raise
        log.warning("judged by quota alone: nodes and pods cannot be looked at: %s", error)
        return None


async def _running_configuration(transport: HttpTransport) -> QueueingConfiguration | None:
    """That of the controller itself; None if it cannot be asked."""
    answer = await transport.request("GET", RUNNING_CONFIGURATION)
    if answer.status == _OK:
        try:
            return queueing_of(msgspec.json.decode(answer.body))
        except (msgspec.DecodeError, ConfigError) as error:
            log.warning("the configuration of the running controller cannot be read: %s", error)
    log.info("judged by Kueue's defaults: no visibility API (status %s); --queueing-config says more", answer.status)
    return None


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets them as one `source`."""

    @click.option(
        "--kubeconfig", metavar="F", help="Kubeconfig file.  [default: as kubectl: $KUBECONFIG, ~/.kube/config]"
    )
    @click.option("--context", metavar="C", help="Context in it.  [default: its current context]")
    @click.option("-f", "files", multiple=True, type=_FILE, metavar="F", help="Look at manifests instead of a cluster.")
    @click.option(
        "--queueing-config",
        "configuration",
        type=_FILE,
        metavar="F",
        help="Kueue's Configuration that applies there.  [default: that of the running controller]",
    )
    @functools.wraps(command)
    def with_source(
        kubeconfig: str | None, context: str | None, files: tuple[Path, ...], configuration: Path | None, **others: Any
    ) -> Any:
        return command(source=QueueingSource(kubeconfig, context, files, configuration), **others)

    return with_source
