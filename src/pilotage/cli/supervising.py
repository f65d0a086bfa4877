"""What the supervising process of `pilotage run` is made of: lease, ports, and the watch over the scheduler."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from pilotage.cli.event_loop import until_stopped
from pilotage.cli.flag_table import FlagValues
from pilotage.cli.run_flags import RunSettings
from pilotage.cli.running import Connections
from pilotage.clock import Clock
from pilotage.kube.client import KubeClient
from pilotage.kube.connection import Connection
from pilotage.kube.election import Election
from pilotage.kube.http_transport import HttpSettings, HttpTransport
from pilotage.kube.leader_election import LeaderElector
from pilotage.kube.measured_transport import MeasuredTransport
from pilotage.kube.preflight import Refused
from pilotage.kube.transport import Transport
from pilotage.observe.metrics import Metrics
from pilotage.rng import fresh_seed, random_uid, seeded
from pilotage.serve.authorities import LookupFailed, PublishedAuthorities
from pilotage.serve.client_certificates import ClientCertificates
from pilotage.serve.endpoints import EndpointOptions, Guard, endpoints
from pilotage.serve.front_proxy import FrontProxy
from pilotage.serve.listening import Doors
from pilotage.serve.tls import CertificateError, ServerTls, TlsOptions
from pilotage.supervise.messages import Channel, ToSupervisor
from pilotage.supervise.scheduler_process import DUMP_SIGNAL, SupervisedScheduler
from pilotage.supervise.supervisor import LeaseCandidate, Supervisor
from pilotage.tasks import sole_error

log = logging.getLogger(__name__)

_LEASE_HTTP: Final = HttpSettings(connections=2)
_REVIEW_HTTP: Final = HttpSettings(connections=8, request_seconds=10.0)


class Supervising:
    """Built once, runs once."""

    def __init__(self, settings: RunSettings, connections: Connections, clock: Clock) -> None:
        self._settings = settings
        self._connections = connections
        self._clock = clock
        self._rng = seeded(fresh_seed())
        self._metrics = Metrics()

    async def run(self, child: SupervisedScheduler) -> int:
        """Until the scheduler has ended; its exit code.

        Raises SchedulerEnded, LeadershipLost, Refused, CannotListen, CertificateError; the scheduler is dead then, too.
        """
        async with AsyncExitStack() as stack:
            stack.callback(child.kill)
            channel: Channel[ToSupervisor] = await Channel.over(child.socket, ToSupervisor)
            supervisor = Supervisor(
                child,
                channel,
                self._candidate(stack, child),
                self._metrics,
                self._clock,
                longest_silence=self._settings.values.seconds("max-silence"),
            )
            asyncio.get_running_loop().add_signal_handler(DUMP_SIGNAL, child.dump_state)
            options = self._endpoint_options()
            guard, authorities = self._guard(stack) if options.secure_port else (None, None)
            code = await supervisor.built()
            if code is not None:
                return code
            doors = Doors(self._clock, closed=self._metrics.connections_closed_total)
            for url in await stack.enter_async_context(endpoints(supervisor.pages, options, guard, doors)):
                log.info("serving health, metrics and debug pages at %s", url)
            return await self._supervise(supervisor, authorities)

    async def _supervise(self, supervisor: Supervisor, authorities: PublishedAuthorities | None) -> int:
        with sole_error():
            async with asyncio.TaskGroup() as tasks:
                following = None
                if authorities is not None:
                    following = tasks.create_task(self._follow(supervisor, authorities), name="client authorities")
                code = await until_stopped(supervisor.run(), supervisor.stop)
                if following is not None:
                    following.cancel()
        return code

    # --- parts -------------------------------------------------------------------------------------------------

    def _transport(self, stack: AsyncExitStack, connection: Connection, settings: HttpSettings) -> Transport:
        transport = HttpTransport(connection, settings)
        stack.push_async_callback(transport.close)
        return MeasuredTransport(transport, connection.server, self._metrics, self._clock)

    def _candidate(self, stack: AsyncExitStack, child: SupervisedScheduler) -> LeaseCandidate | None:
        scheduler = self._settings.configuration.scheduler
        if not scheduler.leader_election.leader_elect:
            return None
        # Connections of its own: a renewal must not wait for anything.
        client = KubeClient(self._transport(stack, self._connections.scheduler, _LEASE_HTTP))
        identity = f"{socket.gethostname()}_{random_uid(self._rng)}"
        election = Election(identity, self._settings.lease, self._settings.timing, child.state.set_renewed_at)
        reporter = scheduler.profiles[0].scheduler_name
        return LeaseCandidate(LeaderElector(client, election, self._clock, self._rng, reporter), client)

    def _guard(self, stack: AsyncExitStack) -> tuple[Guard, PublishedAuthorities | None]:
        connections = self._connections
        tls = self._tls()
        certificates = self._certificates(tls)
        reviews = self._transport(stack, connections.scheduler, _REVIEW_HTTP)
        authentication, authorization = (
            reviews if connection is connections.scheduler else self._transport(stack, connection, _REVIEW_HTTP)
            for connection in (connections.authentication, connections.authorization)
        )
        guard = Guard(tls, authentication, authorization, certificates)
        return guard, self._published_authorities(reviews, certificates)

    def _tls(self) -> ServerTls:
        values = self._settings.values
        return ServerTls(
            TlsOptions(
                certificate_file=values.text("tls-cert-file"),
                key_file=values.text("tls-private-key-file"),
                directory=values.text("cert-dir"),
                min_version=values.text("tls-min-version"),
                cipher_suites=values.words("tls-cipher-suites"),
            )
        )

    def _certificates(self, tls: ServerTls) -> ClientCertificates:
        """Those that the flags name; others are looked up in the cluster."""
        values = self._settings.values
        certificates = ClientCertificates(tls)
        if values.text("client-ca-file"):
            certificates.trust_users(_file_of(values, "client-ca-file"))
        if values.text("requestheader-client-ca-file"):
            certificates.trust_proxy(
                FrontProxy(
                    _file_of(values, "requestheader-client-ca-file"),
                    allowed_names=tuple(values.words("requestheader-allowed-names")),
                    user_headers=_headers_of(values, "requestheader-username-headers"),
                    uid_headers=_headers_of(values, "requestheader-uid-headers"),
                    group_headers=_headers_of(values, "requestheader-group-headers"),
                    extra_prefixes=_headers_of(values, "requestheader-extra-headers-prefix"),
                )
            )
        return certificates

    def _published_authorities(
        self, transport: Transport, certificates: ClientCertificates
    ) -> PublishedAuthorities | None:
        values = self._settings.values
        users, proxy = (not values.text(name) for name in ("client-ca-file", "requestheader-client-ca-file"))
        if values.boolean("authentication-skip-lookup") or not (users or proxy):
            return None
        return PublishedAuthorities(transport, certificates, with_users=users, with_proxy=proxy)

    def _endpoint_options(self) -> EndpointOptions:
        values = self._settings.values
        return EndpointOptions(
            host=values.text("bind-address"),
            secure_port=values.port("secure-port"),
            is_port_required=values.is_given("secure-port"),
            insecure_port=values.port("insecure-port"),
            open_paths=values.words("authorization-always-allow-paths"),
            token_seconds=values.seconds("authentication-token-webhook-cache-ttl"),
            allowed_seconds=values.seconds("authorization-webhook-cache-authorized-ttl"),
            refused_seconds=values.seconds("authorization-webhook-cache-unauthorized-ttl"),
        )

    # --- the authorities of visitors ---------------------------------------------------------------------------

    async def _follow(self, supervisor: Supervisor, authorities: PublishedAuthorities) -> None:
        await supervisor.is_server_checked.wait()
        await self._look_up(authorities)
        await authorities.follow(self._clock)

    async def _look_up(self, authorities: PublishedAuthorities) -> None:
        try:
            await authorities.look_up()
        except (LookupFailed, CertificateError) as error:
            if not self._settings.values.boolean("authentication-tolerate-lookup-failure"):
                raise Refused([f"the cluster's client CA cannot be read: {error}"]) from error
            log.info("client certificates are not accepted: the cluster's client CA cannot be read: %s", error)
            if self._settings.has_queueing:
                log.warning(
                    "the visibility API cannot be asked through the API server, whose certificate is not known (%s); "
                    "bind the role kube-system/extension-apiserver-authentication-reader",
                    error,
                )


def _file_of(values: FlagValues, flag: str) -> bytes:
    try:
        return Path(values.text(flag)).read_bytes()
    except OSError as error:
        raise CertificateError(f"--{flag} {values.text(flag)}: {error.strerror or error}") from error


def _headers_of(values: FlagValues, flag: str) -> tuple[str, ...]:
    return tuple(name.lower() for name in values.words(flag))
