"""Credentials from an exec plugin: a program that prints an ExecCredential (client.authentication.k8s.io).

Clouds hand out short-lived tokens or certificates this way. The plugin runs without a terminal and with a time
limit, once for all requests that wait for it, and its answer is kept until shortly before it expires or until the
server refuses it. A plugin whose answers are expired on arrival is still not run more than once a second.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from pilotage.clock import Clock, parse_rfc3339
from pilotage.kube.credentials import Credentials, Identity, header_safe
from pilotage.kube.errors import CredentialsError
from pilotage.kube.secrets import Unshown, redacted

EXEC_API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
PLUGIN_TIMEOUT_SECONDS = 60.0
RENEW_BEFORE_EXPIRY_SECONDS = 10.0
SHORTEST_LIFE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ExecCluster:
    """What a plugin with `provideClusterInfo` gets to know about the cluster."""

    server: str = field(repr=False)
    proxy_url: str = field(default="", repr=False)
    tls_server_name: str = ""
    is_insecure: bool = False
    authority: bytes = b""
    config: Any = field(default=None, repr=False)

    def wire(self) -> dict[str, Any]:
        known = {
            "server": self.server,
            "proxy-url": self.proxy_url,
            "tls-server-name": self.tls_server_name,
            "insecure-skip-tls-verify": self.is_insecure,
            "certificate-authority-data": base64.b64encode(self.authority).decode(),
            "config": self.config,
        }
        return {name: value for name, value in known.items() if value}


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """How to run the plugin. `field_name` says in messages which user of which file asks for it."""

    command: str
    api_version: str
    field_name: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    install_hint: str = ""
    cluster: ExecCluster | None = None


class _ExecStatus(Unshown, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: str | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _ExecStatus | None = None


class _Grant(Struct, frozen=True):
    identity: Identity
    renew_at: float


class ExecCredentials:
    """Identities from the plugin, on top of what the user entry states itself (which wins, as in kubectl)."""

    def __init__(self, plugin: ExecPlugin, stated: Credentials, clock: Clock) -> None:
        self._plugin = plugin
        self._stated = stated
        self._clock = clock
        self._grant: _Grant | None = None
        # Requests that find the grant expired wait for one run of the plugin instead of starting one each.
        self._running = asyncio.Lock()

    @property
    def are_secret(self) -> bool:
        # Whether it gives tokens or certificates is known when it has run; most give tokens.
        return True

    async def identity(self) -> Identity:
        stated = await self._stated.identity()
        if stated.authorization:
            return stated
        granted = await self._granted()
        if granted.certificate is None:
            return replace(stated, authorization=granted.authorization)
        return granted

    def refused(self) -> None:
        self._stated.refused()
        self._grant = None

    async def _granted(self) -> Identity:
        if self._grant is None or self._clock.time() >= self._grant.renew_at:
            async with self._running:
                if self._grant is None or self._clock.time() >= self._grant.renew_at:
                    self._grant = self._read(await run_plugin(self._plugin))
        return self._grant.identity

    def _read(self, output: bytes) -> _Grant:
        name = self._plugin.field_name
        status = _decode(output, self._plugin)
        has_certificate = bool(status.client_certificate_data)
        if has_certificate != bool(status.client_key_data):
            raise CredentialsError(f"{name}: the plugin gave a certificate without its key or a key alone")
        if not status.token and not has_certificate:
            raise CredentialsError(f"{name}: the plugin gave neither a token nor a certificate; sign in and try again")
        identity = Identity(
            f"Bearer {header_safe(status.token, name)}" if status.token else None,
            (status.client_certificate_data or "").encode() if has_certificate else None,
            (status.client_key_data or "").encode() if has_certificate else None,
        )
        return _Grant(identity, self._renewal(status.expiration_timestamp))

    def _renewal(self, expiration: str | None) -> float:
        if not expiration:
            return float("inf")
        try:
            expires_at = parse_rfc3339(expiration)
        except ValueError as error:
            raise CredentialsError(
                f"{self._plugin.field_name}: the plugin's expirationTimestamp {expiration!r} is no RFC 3339 time"
            ) from error
        now = self._clock.time()
        # Short-lived grants must not be thrown away by the margin.
        margin = min(RENEW_BEFORE_EXPIRY_SECONDS, (expires_at - now) * 0.1)
        return max(expires_at - margin, now + SHORTEST_LIFE_SECONDS)


async def run_plugin(plugin: ExecPlugin) -> bytes:
    """Standard output of one run; CredentialsError if it fails, hangs or is not there."""
    process = await _start(plugin)
    try:
        async with asyncio.timeout(PLUGIN_TIMEOUT_SECONDS):
            output, complaint = await process.communicate()
    except TimeoutError as error:
        raise CredentialsError(
            f"{plugin.field_name}: {plugin.command} did not finish in {PLUGIN_TIMEOUT_SECONDS:g} s"
            " (it runs without a terminal; sign in first)"
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        last = complaint.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no message"]
        said = redacted(last[0], (*plugin.env.values(), *plugin.args))
        raise CredentialsError(f"{plugin.field_name}: {plugin.command} ended with code {process.returncode}: {said}")
    return output


async def _start(plugin: ExecPlugin) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": _exec_info(plugin)},
        )
    except OSError as error:
        hint = f" ({' '.join(plugin.install_hint.split())})" if plugin.install_hint else ""
        raise CredentialsError(
            f"{plugin.field_name}: cannot run {plugin.command}: {error.strerror or error}; install it{hint}"
        ) from error


def command_path(command: str, directory: Path) -> str:
    """A bare name is looked up in PATH; a relative path starts at the directory of the kubeconfig."""
    if os.sep in command and not os.path.isabs(command):
        return str(directory / command)
    return command


def _exec_info(plugin: ExecPlugin) -> str:
    spec: dict[str, Any] = {"interactive": False}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster.wire()
    return msgspec.json.encode({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}).decode()


def _decode(output: bytes, plugin: ExecPlugin) -> _ExecStatus:
    try:
        credential = msgspec.json.decode(output, type=_ExecCredential)
    except msgspec.DecodeError as error:
        raise CredentialsError(f"{plugin.field_name}: {plugin.command} printed no ExecCredential: {error}") from error
    if credential.kind != "ExecCredential" or credential.status is None:
        raise CredentialsError(f"{plugin.field_name}: {plugin.command} printed no ExecCredential with a status")
    if credential.api_version != plugin.api_version:
        raise CredentialsError(
            f"{plugin.field_name}: {plugin.command} answered in {credential.api_version!r}, but the kubeconfig asks for"
            f" {plugin.api_version!r}; set exec.apiVersion to what the plugin speaks"
        )
    return credential.status
