"""The connection of a pod to its own cluster: service account token, authority and address from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pilotage.clock import Clock
from pilotage.kube.connection import Connection
from pilotage.kube.credentials import StaticCredentials
from pilotage.kube.errors import CredentialsError, KubeconfigError
from pilotage.kube.proxy import Proxies
from pilotage.kube.source import WatchedFile
from pilotage.kube.tls import TlsSettings

SERVICE_ACCOUNT_DIRECTORY = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def is_in_cluster(environ: Mapping[str, str]) -> bool:
    return bool(environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT"))


def in_cluster_connection(
    environ: Mapping[str, str], clock: Clock, directory: Path = SERVICE_ACCOUNT_DIRECTORY
) -> Connection:
    """Uses what the kubelet mounts into every pod; the token is read again when the kubelet renews it."""
    token = WatchedFile(directory / "token", "in-cluster configuration: token", clock)
    authority = WatchedFile(directory / "ca.crt", "in-cluster configuration: ca.crt", clock)
    try:
        token.read()
        authority.read()
    except CredentialsError as error:
        raise KubeconfigError(f"{error}; does the pod mount its service account token?") from error
    return Connection(
        server=f"https://{_bracketed(environ['KUBERNETES_SERVICE_HOST'])}:{environ['KUBERNETES_SERVICE_PORT']}",
        tls=TlsSettings(authority=authority),
        credentials=StaticCredentials(token_file=token),
        origin="in-cluster configuration",
        namespace=_namespace(directory),
        proxies=Proxies(environ=environ),
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _namespace(directory: Path) -> str:
    try:
        return (directory / "namespace").read_text().strip() or "default"
    except OSError:
        return "default"
