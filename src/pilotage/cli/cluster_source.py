"""`-f`, `--kubeconfig`: which cluster a command is about, read as a whole."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from pilotage.api.kinds import WatchedKinds
from pilotage.cli.errors import bad_input, unreachable
from pilotage.cli.event_loop import run as run_loop
from pilotage.clock import SystemClock
from pilotage.cluster.state import Cluster
from pilotage.explain.engine import cluster_of_manifests, cluster_of_server
from pilotage.kube.client import KubeClient
from pilotage.kube.errors import ApiStatusError, KubeconfigError
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.transport import TransportError
from pilotage.model import DecodeError
from pilotage.sandbox.manifests import ManifestError, read_manifests

_STDIN = Path("/dev/stdin")


class ClusterSource(Struct, frozen=True):
    """Where the cluster is."""

    files: tuple[Path, ...] = ()
    kubeconfig: str | None = None
    context: str | None = None

    def cluster(self, kinds: WatchedKinds) -> Cluster:
        """CommandError if there is no way to it."""
        if not self.files:
            return self._of_server(kinds)
        try:
            return cluster_of_manifests(objects_of(self.files), kinds)
        except DecodeError as error:
            raise bad_input(str(error)) from error

    def _of_server(self, kinds: WatchedKinds) -> Cluster:
        try:
            connection = load_connection(self.kubeconfig, self.context, clock=SystemClock())
        except KubeconfigError as error:
            raise bad_input(str(error)) from error

        async def load() -> Cluster:
            transport = HttpTransport(connection)
            try:
                return await cluster_of_server(KubeClient(transport), kinds)
            finally:
                await transport.close()

        try:
            return run_loop(load())
        except (TransportError, ApiStatusError) as error:
            raise unreachable(f"{error} ({connection.origin})") from error


def objects_of(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The objects of files, "-" for standard input; CommandError if they cannot be used."""
    try:
        return [one.obj for one in read_manifests([_STDIN if str(path) == "-" else path for path in paths])]
    except ManifestError as error:
        raise bad_input(error.problems) from error


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets them as one `source`."""

    @click.option(
        "-f", "files", multiple=True, type=click.Path(path_type=Path), help="Manifests of the cluster; - for stdin."
    )
    @click.option("--kubeconfig", metavar="F", help="Ask the cluster of this kubeconfig (without -f).")
    @click.option("--context", metavar="C", help="Context in it.")
    @functools.wraps(command)
    def with_source(files: tuple[Path, ...], kubeconfig: str | None, context: str | None, **others: Any) -> Any:
        return command(source=ClusterSource(files, kubeconfig, context), **others)

    return with_source
