"""How an extender is reached over HTTP: TLS as its configuration says, proxies as the environment says.

Calls share connections that are kept alive. Redirects are not followed: an answer other than 200 is an error. What is
answered is bounded: the nodes that were sent may come back, with a word about each.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
from pathlib import Path
from urllib.parse import urlsplit

from pilotage.clock import Clock
from pilotage.config.kinds import ExtenderConfiguration, ExtenderTLSConfig
from pilotage.extenders.extender import ExtenderError, ExtenderTimeout, shown_name
from pilotage.kube.connection import Connection
from pilotage.kube.credentials import Identity, StaticCredentials
from pilotage.kube.http_transport import Fence, HttpSettings, HttpTransport
from pilotage.kube.proxy import Proxies
from pilotage.kube.source import Inline, Source, WatchedFile
from pilotage.kube.tls import TlsContexts, TlsSettings
from pilotage.kube.transport import TransportError

log = logging.getLogger(__name__)

_IDLE_SECONDS = 90.0
_MOST_BYTES = 4 << 20
"""What an answer may be longer than twice the question."""


class HttpExtender:
    """One extender at its address. KubeconfigError or CredentialsError if its TLS settings cannot be used."""

    def __init__(self, configuration: ExtenderConfiguration, clock: Clock, fence: Fence | None = None) -> None:
        """`fence` is asked before each call: an extender may reserve and bind, so only a leader asks it."""
        self._seconds = configuration.timeout_seconds
        self._name = shown_name(configuration.url_prefix).rstrip("/")
        given = configuration.tls_config or ExtenderTLSConfig()
        origin = f"extender {self._name}"
        authority = _source(given.ca_data, given.ca_file, f"{origin}: tlsConfig.caFile", clock)
        is_unverified = configuration.enable_https and authority is None
        if is_unverified and not given.insecure and urlsplit(configuration.url_prefix).scheme == "https":
            log.warning(
                "the certificate of an extender is not verified, give tlsConfig a caFile: extender=%s", self._name
            )
        tls = TlsSettings(authority, given.insecure or is_unverified, given.server_name or None)
        certificate = _source(given.cert_data, given.cert_file, f"{origin}: tlsConfig.certFile", clock)
        key = _source(given.key_data, given.key_file, f"{origin}: tlsConfig.keyFile", clock)
        # What cannot be read is reported at the start, and not for the first pod.
        pair = (certificate.read(), key.read()) if certificate is not None and key is not None else (None, None)
        TlsContexts(tls, origin).context_for(Identity(None, *pair))
        connection = Connection(
            configuration.url_prefix.rstrip("/"),
            tls,
            StaticCredentials(certificate=certificate, key=key),
            origin,
            proxies=Proxies(environ=os.environ),
        )
        settings = HttpSettings(idle_seconds=_IDLE_SECONDS, connect_seconds=self._seconds, peer="extender")
        self._transport = HttpTransport(connection, settings, fence=None if fence is None else _checked(fence))

    async def post(self, verb: str, body: bytes) -> tuple[int, bytes]:
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._transport.request(
                    "POST",
                    f"/{verb}",
                    body=body,
                    timeout_seconds=2 * self._seconds,
                    most_bytes=_MOST_BYTES + 2 * len(body),
                )
        except TimeoutError as error:
            raise ExtenderTimeout(f"POST {self._name}/{verb}: timeout: no answer within {self._seconds:g} s") from error
        except TransportError as error:
            raise ExtenderError(f"POST {self._name}/{verb}: {error}") from error
        return answer.status, answer.body

    async def close(self) -> None:
        await self._transport.close()


def _source(data: str, file: str, field: str, clock: Clock) -> Source | None:
    if data:
        return Inline(base64.b64decode(data))
    return WatchedFile(Path(file), field, clock) if file else None


def _checked(fence: Fence) -> Fence:
    """A call that is not made has failed like any other."""

    def check() -> None:
        try:
            fence()
        except Exception as error:
            raise ExtenderError(str(error)) from error

    return check
