"""How the commands about workload queueing get to see the queues: from an API server or from manifests."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from pilotage.cli.errors import bad_input, unreachable
from pilotage.cli.event_loop import run as run_loop
from pilotage.cli.queueing_flags import queueing_configuration
from pilotage.clock import Clock, SystemClock
from pilotage.explain.queueing import NoQueueing, QueueingView, view_of_manifests, view_of_server
from pilotage.kube.client import KubeClient
from pilotage.kube.errors import ApiStatusError, KubeconfigError
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.transport import TransportError
from pilotage.model import DecodeError
from pilotage.sandbox.manifests import ManifestError, read_manifests

_FILE = click.Path(path_type=Path)


@dataclass(frozen=True, slots=True)
class QueueingSource:
    """Where to look."""

    kubeconfig: str | None = None
    context: str | None = None
    files: tuple[Path, ...] = ()
    configuration: Path | None = None

    def view(self, clock: Clock | None = None) -> QueueingView:
        """The queues; CommandError if there is no way to them."""
        clock = clock or SystemClock()
        configuration = queueing_configuration(self.configuration)
        if self.files:
            try:
                objects = [manifest.obj for manifest in read_manifests(self.files)]
                return view_of_manifests(objects, clock, configuration)
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
                return await view_of_server(KubeClient(transport), clock, configuration)
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


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets them as one `source`."""

    @click.option(
        "--kubeconfig", metavar="F", help="Kubeconfig file.  [default: as kubectl: $KUBECONFIG, ~/.kube/config]"
    )
    @click.option("--context", metavar="C", help="Context in it.  [default: its current context]")
    @click.option("-f", "files", multiple=True, type=_FILE, metavar="F", help="Look at manifests instead of a cluster.")
    @click.option(
        "--queueing-config", "configuration", type=_FILE, metavar="F", help="Kueue's Configuration that applies there."
    )
    @functools.wraps(command)
    def with_source(
        kubeconfig: str | None, context: str | None, files: tuple[Path, ...], configuration: Path | None, **others: Any
    ) -> Any:
        return command(source=QueueingSource(kubeconfig, context, files, configuration), **others)

    return with_source
