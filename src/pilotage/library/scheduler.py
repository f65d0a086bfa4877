"""A scheduler for a `main` of your own: what `pilotage run` is, with your plugins handed over as classes.

Lease, pages and scheduling share one process and one event loop here; `pilotage run` keeps lease and pages in a process
of their own, so that a plugin that blocks everything costs it neither.
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import uvloop

from pilotage.api.plugin import Plugin
from pilotage.assembly import SchedulerProcess, metrics_for
from pilotage.calls.fenced_writer import FencedWriter, fence
from pilotage.clock import Clock, SystemClock
from pilotage.extenders.http_transport import HttpExtender
from pilotage.kube.client import KubeClient
from pilotage.kube.election import Election, ElectionTiming, LeaseName
from pilotage.kube.http_transport import Fence, HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.leader_election import LeaderElector
from pilotage.kube.measured_transport import MeasuredTransport
from pilotage.kube.transport import Transport
from pilotage.library.configured import configured
from pilotage.rng import fresh_seed, random_uid, seeded
from pilotage.serve.authorities import LookupFailed, PublishedAuthorities
from pilotage.serve.client_certificates import ClientCertificates
from pilotage.serve.endpoints import EndpointOptions, Guard, endpoints
from pilotage.serve.listening import Doors
from pilotage.serve.pages import build_site, site_facts
from pilotage.serve.service import SchedulerService
from pilotage.serve.start_checks import check_server
from pilotage.serve.tls import CertificateError, ServerTls, TlsOptions
from pilotage.tasks import sole_error

log = logging.getLogger(__name__)


class Scheduler:
    """Schedules the pods of a cluster with the default plugins and your own.

        Scheduler(plugins=[BlinkingLights], config="scheduler.yaml").run()

    Everything is checked when it is made: ConfigError or PluginFileError name the file, the line and the way out,
    ProfileError the plugin that cannot be made, KubeconfigError the connection. It runs once.
    """

    def __init__(
        self,
        *,
        plugins: Sequence[type[Plugin]] = (),
        config: Path | str | None = None,
        kubeconfig: str | None = None,
        context: str | None = None,
        pages: EndpointOptions | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """Without `kubeconfig` the cluster is found as kubectl finds it, or in-cluster; a `transport` replaces both.

        Whether a lease is held, and which, says `leaderElection` of the configuration (by default it is). `pages` says
        on which ports health, metrics and debug pages are served; by default HTTPS on 10259, if that is free.
        """
        self._configuration, self._options = configured(config, plugins)
        self._clock = clock or SystemClock()
        self._rng = rng or seeded(fresh_seed())
        self._pages = pages or EndpointOptions()
        self._metrics = metrics_for(self._options)
        self._transports: list[Transport] = []
        path = kubeconfig or self._configuration.scheduler.client_connection.kubeconfig or None
        self._connection = None if transport is not None else load_connection(path, context, clock=self._clock)
        self._given = transport
        self._client = KubeClient(self._transport())
        elector = self._elector()
        writer = None if elector is None else self._writer(elector)
        # Only a leader asks extenders: they may act upon what they hear.
        connect = partial(HttpExtender, fence=None if elector is None else fence(lambda: elector.is_leading))
        process = SchedulerProcess(self._client, self._clock, self._rng, self._options, writer, self._metrics, connect)
        delays_cache = self._configuration.scheduler.delay_cache_until_active
        self._service = SchedulerService(process, elector, prepare=self._check_server, delays_cache=delays_cache)

    async def serve(self) -> None:
        """Schedule until `stop` is called or it is cancelled; for programs that have an event loop.

        LeadershipLost if the lease is lost: another scheduler may be at work, so the program should end. Refused if the
        API server does not let us schedule; CannotListen if a port that is required is taken.
        """
        guard, authorities = self._guard() if self._pages.secure_port else (None, None)
        async with AsyncExitStack() as stack:
            for transport in self._transports:
                stack.push_async_callback(transport.close)
            service, clock = self._service, self._clock
            facts = site_facts(service, clock, self._configuration, self._options, {}, self._metrics)
            site = build_site(service, clock, facts)
            doors = Doors(clock, closed=self._metrics.connections_closed_total)
            for url in await stack.enter_async_context(endpoints(site, self._pages, guard, doors)):
                log.info("serving health, metrics and debug pages at %s", url)
            with sole_error():
                async with asyncio.TaskGroup() as tasks:
                    if authorities is not None:
                        following = tasks.create_task(self._follow(authorities), name="client authorities")
                    await service.run()
                    if authorities is not None:
                        following.cancel()

    def stop(self) -> None:
        """Come to an orderly end: pods that have a node are bound, statuses and Events are written, plugins close, the
        lease is given back; `serve` or `run` returns then."""
        self._service.stop()

    def run(self) -> None:
        """Schedule until SIGINT (Ctrl-C) or SIGTERM, then end in order; for programs that have no event loop.

        A second signal ends it at once. Raises what `serve` raises.
        """
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._until_signal())

    async def _until_signal(self) -> None:
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)

        def forget_signals() -> None:
            for number in numbers:
                loop.remove_signal_handler(number)

        def interrupt() -> None:
            forget_signals()
            self.stop()

        for number in numbers:
            loop.add_signal_handler(number, interrupt)
        try:
            await self.serve()
        finally:
            forget_signals()

    # --- parts -------------------------------------------------------------------------------------------------

    def _transport(self, may_write: Fence | None = None) -> Transport:
        """Connections of their own for each purpose, so that a lease never waits for anything else."""
        if self._connection is None:
            assert self._given is not None
            transport, server = self._given, "http://given"
        else:
            transport, server = HttpTransport(self._connection, fence=may_write), self._connection.server
        if transport not in self._transports:
            self._transports.append(transport)
        return MeasuredTransport(transport, server, self._metrics, self._clock)

    def _writer(self, elector: LeaderElector) -> FencedWriter:
        """Nothing is written by who does not lead."""

        def is_leading() -> bool:
            return elector.is_leading

        return FencedWriter(KubeClient(self._transport(fence(is_leading))), is_leading)

    def _elector(self) -> LeaderElector | None:
        scheduler = self._configuration.scheduler
        election = scheduler.leader_election
        if not election.leader_elect:
            return None
        timing = ElectionTiming(election.lease_duration, election.renew_deadline, election.retry_period)
        lease = LeaseName(election.resource_namespace, election.resource_name)
        identity = f"{socket.gethostname()}_{random_uid(self._rng)}"
        client = KubeClient(self._transport())
        reporter = scheduler.profiles[0].scheduler_name
        return LeaderElector(client, Election(identity, lease, timing), self._clock, self._rng, reporter)

    def _guard(self) -> tuple[Guard, PublishedAuthorities]:
        tls, reviews = ServerTls(TlsOptions()), self._transport()
        certificates = ClientCertificates(tls)
        return Guard(tls, reviews, reviews, certificates), PublishedAuthorities(reviews, certificates)

    async def _follow(self, authorities: PublishedAuthorities) -> None:
        try:
            await authorities.look_up()
        except (LookupFailed, CertificateError) as error:
            log.info("client certificates are not accepted: the cluster's client CA cannot be read: %s", error)
        await authorities.follow(self._clock)

    async def _check_server(self) -> None:
        elector = self._service.elector
        lease = None if elector is None else elector.election.lease
        server = await check_server(self._client, self._clock, self._options, lease, self._log_waiting)
        log.info("scheduling: server=%s", server.git_version)

    @staticmethod
    def _log_waiting(problem: str, pause: float) -> None:
        log.warning("waiting for the API server: %s; trying again in %g s", problem, pause)
