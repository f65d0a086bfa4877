"""From kubeconfig files to a `Connection`, with the same precedence as kubectl.

Where to look: the file that was asked for; else the files of $KUBECONFIG; else ~/.kube/config; else, inside a pod,
the pod's service account. What is not supported (impersonation, legacy auth providers) is rejected with a
message instead of being ignored: a connection under another identity than the one written down is worse than none.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from pilotage.clock import Clock
from pilotage.kube.connection import Connection
from pilotage.kube.credentials import Credentials, StaticCredentials
from pilotage.kube.errors import CredentialsError, KubeconfigError
from pilotage.kube.exec_credentials import EXEC_API_VERSIONS, ExecCluster, ExecCredentials, ExecPlugin, command_path
from pilotage.kube.kubeconfig_file import (
    ClusterEntry,
    ContextFields,
    ExecFields,
    Kubeconfig,
    UserEntry,
    UserFields,
    read_kubeconfigs,
)
from pilotage.kube.proxy import Proxies, Proxy
from pilotage.kube.secrets import without_user_part
from pilotage.kube.source import Inline, Source, WatchedFile
from pilotage.kube.tls import TlsSettings

EXEC_CONFIG_EXTENSION = "client.authentication.k8s.io/exec"
NEVER_ASK = ("Never", "IfAvailable")
SERVICE_ACCOUNT_DIRECTORY = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_log = logging.getLogger(__name__)

__all__ = ["KubeconfigError", "load_connection"]


def load_connection(
    path: str | None = None,
    context: str | None = None,
    *,
    clock: Clock,
    environ: Mapping[str, str] = os.environ,
) -> Connection:
    """The connection that kubectl would use with `--kubeconfig path --context context`."""
    files = _files(path, environ)
    if not files:
        if context is None and is_in_cluster(environ):
            return in_cluster_connection(environ, clock)
        raise KubeconfigError(_nothing_found(environ))
    return _ContextResolver(read_kubeconfigs(files), clock, environ).connection(context)


def _files(path: str | None, environ: Mapping[str, str]) -> list[Path]:
    if path is not None:
        chosen = Path(path).expanduser()
        if not chosen.exists():
            raise KubeconfigError(f"kubeconfig {chosen}: no such file; check --kubeconfig")
        return [chosen]
    listed = [Path(part).expanduser() for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    candidates = listed or [_default_file(environ)]
    return [candidate for candidate in candidates if candidate.exists()]


def _default_file(environ: Mapping[str, str]) -> Path:
    # In a container the user may have neither a HOME nor an entry in /etc/passwd.
    return Path(environ.get("HOME") or os.path.expanduser("~")) / ".kube" / "config"


def _nothing_found(environ: Mapping[str, str]) -> str:
    listed = environ.get("KUBECONFIG")
    looked = f"$KUBECONFIG ({listed})" if listed else str(_default_file(environ))
    return f"no kubeconfig found: {looked} does not exist; pass --kubeconfig FILE or set KUBECONFIG"


@dataclass(frozen=True, slots=True)
class _ContextResolver:
    """Follows the names from a context to its cluster and user."""

    config: Kubeconfig
    clock: Clock
    environ: Mapping[str, str] = field(repr=False)

    def connection(self, context: str | None) -> Connection:
        name, fields = self._context(context)
        cluster_name, user_name = fields.cluster, fields.user
        cluster = self._cluster(name, cluster_name)
        user = self._user(name, user_name)
        cluster_reader = _FieldReader(cluster.file, f"cluster {cluster_name!r}", self.clock)
        user_reader = _FieldReader(user.file, f"user {user_name!r}", self.clock)
        tls = _tls_settings(cluster, cluster_reader)
        found = Connection(
            server=_server(cluster, cluster_reader),
            tls=tls,
            credentials=_credentials(user, user_reader, cluster, tls),
            origin=f"kubeconfig {cluster.file}, context {name!r}",
            namespace=fields.namespace or "default",
            proxies=_proxies(cluster, cluster_reader, self.environ),
        )
        _warn(found, user)
        return found

    def _context(self, wanted: str | None) -> tuple[str, ContextFields]:
        name = wanted or self.config.current_context
        if not name:
            raise KubeconfigError(
                f"{self._where()}: current-context is not set; pass --context, {self._choices(self.config.contexts)}"
            )
        entry = self.config.contexts.get(name)
        if entry is None:
            field = "--context" if wanted else "current-context"
            raise KubeconfigError(
                f"{self._where()}: {field}: no context named {name!r}, {self._choices(self.config.contexts)}"
            )
        return name, entry.fields

    def _cluster(self, context: str, name: str) -> ClusterEntry:
        entry = self.config.clusters.get(name)
        if entry is None:
            choices = self._choices(self.config.clusters)
            raise KubeconfigError(f"{self._where()}: context {context!r}: no cluster named {name!r}, {choices}")
        return entry

    def _user(self, context: str, name: str) -> UserEntry:
        if not name:
            return UserEntry(self.config.contexts[context].file, UserFields())
        entry = self.config.users.get(name)
        if entry is None:
            choices = self._choices(self.config.users)
            raise KubeconfigError(f"{self._where()}: context {context!r}: no user named {name!r}, {choices}")
        return entry

    def _where(self) -> str:
        return "kubeconfig " + os.pathsep.join(map(str, self.config.files))

    @staticmethod
    def _choices(entries: Mapping[str, object]) -> str:
        return f"there is {', '.join(sorted(entries))}" if entries else "the file has none"


class _FieldReader(Struct, frozen=True):
    """Reads the fields of one entry: knows its file for relative paths and its name for messages."""

    file: Path
    entry: str
    clock: Clock

    def name(self, field: str) -> str:
        return f"kubeconfig {self.file}: {self.entry}: {field}"

    def fail(self, field: str, problem: str) -> KubeconfigError:
        return KubeconfigError(f"{self.name(field)}: {problem}")

    def source(self, field: str, data: str, path: str) -> Source | None:
        """Inline data wins over a file, as in kubectl."""
        if data:
            return Inline(self._base64(f"{field}-data", data))
        return self.watched(field, path) if path else None

    def watched(self, field: str, path: str) -> WatchedFile:
        source = WatchedFile(self.file.parent / Path(path).expanduser(), self.name(field), self.clock)
        try:
            source.read()
        except CredentialsError as error:
            raise KubeconfigError(str(error)) from error
        return source

    def _base64(self, field: str, data: str) -> bytes:
        try:
            return base64.b64decode("".join(data.split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise self.fail(field, f"is not base64 ({error})") from error


def _warn(connection: Connection, user: UserEntry) -> None:
    """Of what works and is dangerous."""
    if connection.tls.is_insecure:
        _log.warning(
            "insecure-skip-tls-verify: whoever answers at %s is believed and gets our credentials; set "
            "certificate-authority instead (%s)",
            connection.shown,
            connection.origin,
        )
    holds_secret = user.fields.token or user.fields.password or user.fields.client_key_data
    if holds_secret and user.file.stat().st_mode & stat.S_IROTH:
        _log.warning(
            "kubeconfig %s holds credentials and every user of this machine can read it: chmod 600 it", user.file
        )


def _server(entry: ClusterEntry, reader: _FieldReader) -> str:
    server = entry.fields.server
    if not server:
        raise reader.fail("server", "is not set; write the URL of the API server")
    try:
        url = urlsplit(server)
        is_usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise reader.fail(
            "server", f"{without_user_part(server)!r} is no URL of an API server; write it as https://HOST:PORT"
        )
    return server.rstrip("/")


def _proxies(entry: ClusterEntry, reader: _FieldReader, environ: Mapping[str, str]) -> Proxies:
    url = entry.fields.proxy_url
    return Proxies(Proxy.of(url, reader.name("proxy-url"))) if url else Proxies(environ=environ)


def _tls_settings(entry: ClusterEntry, reader: _FieldReader) -> TlsSettings:
    fields = entry.fields
    authority = reader.source("certificate-authority", fields.certificate_authority_data, fields.certificate_authority)
    if authority and fields.insecure_skip_tls_verify:
        raise reader.fail("insecure-skip-tls-verify", "contradicts certificate-authority; remove one of them")
    return TlsSettings(authority, fields.insecure_skip_tls_verify, fields.tls_server_name or None)


def _credentials(user: UserEntry, reader: _FieldReader, cluster: ClusterEntry, tls: TlsSettings) -> Credentials:
    fields = user.fields
    if fields.auth_provider is not None:
        raise reader.fail("auth-provider", "is no longer part of Kubernetes; use an exec plugin")
    if fields.impersonate or fields.impersonate_uid or fields.impersonate_groups:
        raise reader.fail("as", "impersonation is not supported; use a user that has the rights itself")
    stated = StaticCredentials(
        token=_header_value(fields.token, reader),
        token_file=reader.watched("tokenFile", fields.token_file) if fields.token_file else None,
        username=fields.username,
        password=fields.password,
        certificate=reader.source("client-certificate", fields.client_certificate_data, fields.client_certificate),
        key=reader.source("client-key", fields.client_key_data, fields.client_key),
    )
    if (stated.certificate is None) != (stated.key is None):
        raise reader.fail("client-certificate", "client-certificate and client-key must be given together")
    if fields.exec is None:
        return stated
    plugin = _exec_plugin(fields.exec, reader, cluster, tls)
    return ExecCredentials(plugin, stated, reader.clock)


def _header_value(token: str, reader: _FieldReader) -> str:
    if token and not (token.isascii() and token.isprintable()):
        raise reader.fail("token", "has line breaks or other characters that no token has")
    return token


def _exec_plugin(fields: ExecFields, reader: _FieldReader, cluster: ClusterEntry, tls: TlsSettings) -> ExecPlugin:
    if not fields.command:
        raise reader.fail("exec.command", "is not set")
    if fields.api_version not in EXEC_API_VERSIONS:
        raise reader.fail(
            "exec.apiVersion", f"{fields.api_version!r} is not supported; use {' or '.join(EXEC_API_VERSIONS)}"
        )
    mode = fields.interactive_mode or ("" if fields.api_version == EXEC_API_VERSIONS[0] else "IfAvailable")
    if mode not in NEVER_ASK:
        raise reader.fail(
            "exec.interactiveMode",
            f"{mode or 'not set'}: a scheduler has no terminal to ask at; set it to {' or '.join(NEVER_ASK)}",
        )
    return ExecPlugin(
        command=command_path(fields.command, reader.file.parent.absolute()),
        api_version=fields.api_version,
        field_name=reader.name("exec"),
        args=tuple(fields.args or ()),
        env={item.name: item.value for item in fields.env or ()},
        install_hint=fields.install_hint,
        cluster=_exec_cluster(cluster, tls) if fields.provide_cluster_info else None,
    )


def _exec_cluster(cluster: ClusterEntry, tls: TlsSettings) -> ExecCluster:
    configs = (item.extension for item in cluster.fields.extensions or () if item.name == EXEC_CONFIG_EXTENSION)
    return ExecCluster(
        server=cluster.fields.server,
        proxy_url=cluster.fields.proxy_url,
        tls_server_name=tls.server_name or "",
        is_insecure=tls.is_insecure,
        authority=tls.authority.read() if tls.authority else b"",
        config=next(configs, None),
    )


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
