"""Everything that `pilotage run` runs, put together: client, scheduler, election, pages and ports."""

from __future__ import annotations

import asyncio
import logging
import platform
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pilotage.assembly import WATCHED, SchedulerOptions, metrics_for
from pilotage.calls.fenced_writer import FencedWriter
from pilotage.calls.retry import DEFAULT_POLICIES
from pilotage.cli.event_loop import until_stopped
from pilotage.cli.flag_table import FlagValues
from pilotage.cli.logs import say
from pilotage.cli.run_flags import RunSettings
from pilotage.cli.scheduler_flags import scheduler_process
from pilotage.clock import Clock
from pilotage.kube.client import KubeClient
from pilotage.kube.connection import Connection
from pilotage.kube.election import Election
from pilotage.kube.http_transport import HttpSettings, HttpTransport
from pilotage.kube.leader_election import LeaderElector
from pilotage.kube.measured_transport import MeasuredTransport
from pilotage.kube.preflight import (
    Refused,
    await_server,
    has_kind,
    missing,
    missing_permissions,
    version_warning,
)
from pilotage.kube.transport import Transport
from pilotage.model import KINDS
from pilotage.rng import fresh_seed, random_uid, seeded
from pilotage.serve.authorities import LookupFailed, PublishedAuthorities
from pilotage.serve.client_certificates import ClientCertificates
from pilotage.serve.component_pages import About
from pilotage.serve.endpoints import EndpointOptions, Reviewers, endpoints
from pilotage.serve.front_proxy import FrontProxy
from pilotage.serve.needs import BINDING, QUEUEING_WRITES, WRITES, lease_permissions
from pilotage.serve.pages import SiteFacts, build_site
from pilotage.serve.service import SchedulerService
from pilotage.serve.tls import CertificateError, ServerTls, TlsOptions
from pilotage.tasks import sole_error
from pilotage.workload_queueing import WATCHED_FOR_QUEUEING

log = logging.getLogger(__name__)

SCHEDULER_HTTP: Final = HttpSettings(connections=sum(policy.workers for policy in DEFAULT_POLICIES.values()))
"""A connection for every call that may be in flight: bindings must not wait for connections that Events hold."""

_FOLLOWED_VERSION = "1.37"


@dataclass(frozen=True, slots=True)
class Connections:
    """Where the scheduler works, and whom the endpoints ask about their visitors."""

    scheduler: Connection
    authentication: Connection
    authorization: Connection


class Running:
    """Built once, runs once."""

    def __init__(
        self,
        settings: RunSettings,
        options: SchedulerOptions,
        connections: Connections,
        clock: Clock,
        flags: Mapping[str, str],
    ) -> None:
        self._settings = settings
        self._options = options
        self.connections = connections
        self._clock = clock
        self._flags = flags
        self._rng = seeded(fresh_seed())
        self._metrics = metrics_for(options)
        self._told = ""

    async def run(self) -> None:
        """Until SIGINT or SIGTERM. Raises Refused, LeadershipLost, CannotListen, CertificateError."""
        async with AsyncExitStack() as stack:
            client = KubeClient(self._transport(stack, self.connections.scheduler, SCHEDULER_HTTP))
            # Renewals and reviews have connections of their own: they must not wait for a thousand bindings.
            side = self._transport(stack, self.connections.scheduler)
            tls = self._tls()
            certificates = self._certificates(tls)
            authorities = self._published_authorities(side, certificates)
            service = self._service(client, side, authorities)
            site = build_site(service, self._clock, self._facts(service))
            reviewers = Reviewers(
                self._reviewing(stack, self.connections.authentication, side),
                self._reviewing(stack, self.connections.authorization, side),
                certificates,
            )
            entering = endpoints(site, self._endpoint_options(), tls, reviewers, self._clock)
            for url in await stack.enter_async_context(entering):
                log.info("serving health, metrics and debug pages at %s", url)
            await self._serve(service, authorities)

    async def _serve(self, service: SchedulerService, authorities: PublishedAuthorities | None) -> None:
        with sole_error():
            async with asyncio.TaskGroup() as tasks:
                following = None
                if authorities is not None:
                    following = tasks.create_task(authorities.follow(self._clock), name="client authorities")
                await until_stopped(service.run(), service.stop)
                if following is not None:
                    following.cancel()

    # --- parts -------------------------------------------------------------------------------------------------

    def _transport(
        self, stack: AsyncExitStack, connection: Connection, settings: HttpSettings | None = None
    ) -> Transport:
        transport = HttpTransport(connection, settings)
        stack.push_async_callback(transport.close)
        return MeasuredTransport(transport, connection.server, self._metrics, self._clock)

    def _reviewing(self, stack: AsyncExitStack, connection: Connection, side: Transport) -> Transport:
        return side if connection is self.connections.scheduler else self._transport(stack, connection)

    def _service(
        self, client: KubeClient, side: Transport, authorities: PublishedAuthorities | None
    ) -> SchedulerService:
        elector = self._elector(KubeClient(side))
        writer = None if elector is None else FencedWriter(client, lambda: elector.is_leading)
        process = scheduler_process(client, self._clock, self._rng, self._options, writer, self._metrics)
        delays_cache = self._settings.configuration.scheduler.delay_cache_until_active

        async def prepare() -> None:
            await self._check_server(client, authorities)

        return SchedulerService(process, elector, prepare=prepare, delays_cache=delays_cache)

    def _elector(self, client: KubeClient) -> LeaderElector | None:
        if not self._settings.configuration.scheduler.leader_election.leader_elect:
            return None
        identity = f"{socket.gethostname()}_{random_uid(self._rng)}"
        election = Election(identity, self._settings.lease, self._settings.timing)
        reporter = self._settings.configuration.scheduler.profiles[0].scheduler_name
        return LeaderElector(client, election, self._clock, self._rng, reporter)

    def _facts(self, service: SchedulerService) -> SiteFacts:
        metrics = self._metrics
        elector = service.elector
        if elector is not None:
            name = elector.election.lease.name
            metrics.leader_election_master_status.read_from(lambda: {(name,): float(elector.is_leading)})
            metrics.leader_election_slowpath_total.read_from(lambda: {(name,): float(elector.slow_paths)})
        about = About(version("pilotage"), _FOLLOWED_VERSION, platform.python_version(), self._clock.time())
        queueing = service.process.queueing
        more = () if queueing is None else (queueing.metrics,)
        return SiteFacts(about, self._settings.configuration, self._options, self._flags, metrics, more)

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

    def _published_authorities(self, side: Transport, certificates: ClientCertificates) -> PublishedAuthorities | None:
        values = self._settings.values
        users, proxy = (not values.text(name) for name in ("client-ca-file", "requestheader-client-ca-file"))
        if values.boolean("authentication-skip-lookup") or not (users or proxy):
            return None
        return PublishedAuthorities(side, certificates, with_users=users, with_proxy=proxy)

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

    # --- before anything is scheduled --------------------------------------------------------------------------

    async def _check_server(self, client: KubeClient, authorities: PublishedAuthorities | None) -> None:
        """Say at the start what would otherwise only show as pods that stay pending."""
        queueing = () if self._options.queueing is None else WATCHED_FOR_QUEUEING
        kinds = [KINDS[resource] for resource in dict.fromkeys((*WATCHED, *queueing))]
        server = await await_server(client, kinds, self._clock, self._tell_waiting)
        warning = version_warning(server)
        if warning:
            log.warning("%s", warning)
        await self._check_writing(client)
        if self._options.queueing is not None and not await has_kind(client, KINDS["workloads"]):
            log.warning("nothing can be queued: this cluster lacks Kueue's kinds; kubectl apply -f deploy/crds")
        if authorities is not None:
            await self._look_up(authorities)
        address = urlsplit(self.connections.scheduler.server)
        say(f"scheduling at {address.netloc} ({server.git_version}); Ctrl-C ends it")

    def _tell_waiting(self, problem: str, pause: float) -> None:
        if problem != self._told:
            say(f"waiting for the API server: {problem}")
            self._told = problem
        log.debug("trying again in %g s", pause)

    async def _check_writing(self, client: KubeClient) -> None:
        wanted = [*WRITES]
        if self._options.queueing is not None:
            wanted += QUEUEING_WRITES
        if self._settings.configuration.scheduler.leader_election.leader_elect:
            wanted += lease_permissions(self._settings.lease)
        lacking = await missing_permissions(client, wanted)
        if BINDING in lacking:
            raise Refused(missing(permission) for permission in lacking)
        for permission in lacking:
            log.warning("%s", missing(permission))

    async def _look_up(self, authorities: PublishedAuthorities) -> None:
        try:
            await authorities.look_up()
        except (LookupFailed, CertificateError) as error:
            if not self._settings.values.boolean("authentication-tolerate-lookup-failure"):
                raise Refused([f"the cluster's client CA cannot be read: {error}"]) from error
            log.info("client certificates are not accepted: the cluster's client CA cannot be read: %s", error)
            if self._options.queueing is not None:
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
