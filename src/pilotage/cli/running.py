"""What the scheduling process of `pilotage run` is made of: client, scheduler, and the link to its supervisor."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from msgspec import Struct

from pilotage.assembly import SchedulerOptions, metrics_for
from pilotage.calls.fenced_writer import FencedWriter, fence
from pilotage.calls.retry import DEFAULT_POLICIES
from pilotage.cli.event_loop import until_stopped
from pilotage.cli.logs import say
from pilotage.cli.run_flags import RunSettings
from pilotage.cli.scheduler_flags import scheduler_process
from pilotage.clock import Clock
from pilotage.cycle.observer import SchedulerObserver
from pilotage.kube.client import KubeClient
from pilotage.kube.connection import Connection
from pilotage.kube.http_transport import Fence, HttpSettings, HttpTransport
from pilotage.kube.measured_transport import MeasuredTransport
from pilotage.rng import fresh_seed, seeded
from pilotage.serve.elector import Elector
from pilotage.serve.pages import build_site, site_facts
from pilotage.serve.service import SchedulerService
from pilotage.serve.start_checks import check_server
from pilotage.serve.state_dump import dump_state
from pilotage.supervise.link import SupervisorLink
from pilotage.supervise.messages import Channel, ToScheduler
from pilotage.supervise.scheduler_process import DUMP_SIGNAL, OwnEnd
from pilotage.supervise.shared_lease import SharedElection
from pilotage.supervise.shared_state import CurrentWork
from pilotage.tasks import sole_error

if TYPE_CHECKING:
    from pilotage.console.site import ConsolePages

log = logging.getLogger(__name__)

SCHEDULER_HTTP: Final = HttpSettings(
    connections=sum(policy.workers for policy in DEFAULT_POLICIES.values()), gather_seconds=0.01
)
"""A connection for every call that may be in flight: bindings must not wait for connections that Events hold."""

EVENTS_GATHER_SECONDS: Final = 0.05
"""A scheduler that keeps up records one Event at a time; those of a moment go in one piece."""


class Connections(Struct, frozen=True):
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
        connection: Connection,
        clock: Clock,
        flags: Mapping[str, str],
    ) -> None:
        self._settings = settings
        self._options = options
        self._connection = connection
        self._clock = clock
        self._flags = flags
        self._rng = seeded(fresh_seed())
        self._metrics = metrics_for(options)
        self._last_problem = ""

    async def run_alone(self) -> None:
        """Without lease and pages, until SIGINT or SIGTERM. Raises Refused."""
        async with AsyncExitStack() as stack:
            service = self._service(stack, None, SchedulerObserver())
            _dump_when_asked(service)
            await until_stopped(service.run(), service.stop)

    async def run_supervised(self, end: OwnEnd) -> None:
        """Until the supervisor says so (SIGTERM). Raises Refused, LeadershipLost."""
        async with AsyncExitStack() as stack:
            channel: Channel[ToScheduler] = await Channel.over(end.socket, ToScheduler)
            stack.callback(channel.close)
            has_lease = self._settings.configuration.scheduler.leader_election.leader_elect
            shared = SharedElection(self._settings.lease, self._settings.timing, end.state)
            link = SupervisorLink(channel, end.state, shared if has_lease else None, self._clock)
            service = self._service(stack, link, CurrentWork(end.state, self._clock))
            facts = site_facts(
                service, self._clock, self._settings.configuration, self._options, self._flags, self._metrics
            )
            console = self._console(service) if self._settings.values.boolean("console") else None
            site = build_site(service, self._clock, facts, {} if console is None else console.pages())
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, service.stop)
            _dump_when_asked(service)
            with sole_error():
                async with asyncio.TaskGroup() as tasks:
                    beside = None if console is None else tasks.create_task(console.source.run(), name="console")
                    await link.serve(service, site, self._metrics)
                    if beside is not None:
                        beside.cancel()

    def _console(self, service: SchedulerService) -> ConsolePages:
        # Only for those who want it: templates and pages are a tenth of what a scheduler imports.
        from pilotage.console.site import ConsolePages
        from pilotage.console.source import ConsoleSource
        from pilotage.serve.console_door import LOGOUT

        def is_standby() -> bool:
            return service.elector is not None and not service.elector.is_leading

        source = ConsoleSource(service.process, self._clock, self._options, decides=True, is_standby=is_standby)
        return ConsolePages(source, self._connection.shown, LOGOUT)

    # --- parts -------------------------------------------------------------------------------------------------

    def _client(self, stack: AsyncExitStack, may_write: Fence | None = None) -> KubeClient:
        transport = HttpTransport(self._connection, SCHEDULER_HTTP, fence=may_write)
        stack.push_async_callback(transport.close)
        return KubeClient(MeasuredTransport(transport, self._connection.server, self._metrics, self._clock))

    def _service(
        self, stack: AsyncExitStack, link: SupervisorLink | None, observer: SchedulerObserver
    ) -> SchedulerService:
        elector: Elector | None = None if link is None else link.elector
        client, writer, may_write = self._client(stack), None, None
        if elector is not None:
            may_write = fence(lambda: elector.is_leading)
            writer = FencedWriter(self._client(stack, may_write), lambda: elector.is_leading)
        options = replace(self._options, observer=observer, gather_seconds=EVENTS_GATHER_SECONDS)
        process = scheduler_process(client, self._clock, self._rng, options, writer, self._metrics, may_write)
        delays_cache = self._settings.configuration.scheduler.delay_cache_until_active

        async def prepare() -> None:
            await self._check_server(client)
            if link is not None:
                link.server_checked()

        return SchedulerService(process, elector, prepare=prepare, delays_cache=delays_cache)

    # --- before anything is scheduled --------------------------------------------------------------------------

    async def _check_server(self, client: KubeClient) -> None:
        lease = self._settings.lease if self._settings.configuration.scheduler.leader_election.leader_elect else None
        server = await check_server(client, self._clock, self._options, lease, self._show_waiting)
        address = urlsplit(self._connection.shown)
        say(f"scheduling at {address.netloc} ({server.git_version}); Ctrl-C ends it")

    def _show_waiting(self, problem: str, pause: float) -> None:
        if problem != self._last_problem:
            say(f"waiting for the API server: {problem}")
            self._last_problem = problem
        log.debug("trying again in %g s", pause)


def _dump_when_asked(service: SchedulerService) -> None:
    asyncio.get_running_loop().add_signal_handler(DUMP_SIGNAL, dump_state, service.process.scheduler)
