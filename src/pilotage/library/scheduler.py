"""A scheduler for a `main` of your own: the whole of `pilotage run`, with your plugins handed over as classes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pilotage.api.plugin import Plugin
from pilotage.assembly import SchedulerProcess, options_from_configuration
from pilotage.clock import Clock, SystemClock
from pilotage.config.load import default_configuration, load_configuration
from pilotage.kube.client import KubeClient
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.transport import Transport
from pilotage.rng import fresh_seed, seeded


class Scheduler:
    """Schedules the pods of a cluster with the default plugins and your own.

        Scheduler(plugins=[BlinkingLights], config="scheduler.yaml").run()

    Everything is checked when it is made: ConfigError or PluginFileError name the file, the line and the way out,
    ProfileError the plugin that cannot be made, KubeconfigError the connection.
    """

    def __init__(
        self,
        *,
        plugins: Sequence[type[Plugin]] = (),
        config: Path | str | None = None,
        kubeconfig: str | None = None,
        context: str | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """Without `kubeconfig` the cluster is found as kubectl finds it, or in-cluster; a `transport` replaces both."""
        configuration = default_configuration() if config is None else load_configuration(config)
        options = options_from_configuration(configuration, plugins)
        clock = clock or SystemClock()
        if transport is None:
            path = kubeconfig or configuration.scheduler.client_connection.kubeconfig or None
            transport = HttpTransport(load_connection(path, context, clock=clock))
        self._client = KubeClient(transport)
        self._process = SchedulerProcess(self._client, clock, rng or seeded(fresh_seed()), options)

    async def serve(self) -> None:
        """Schedule until cancelled; for programs that have an event loop."""
        try:
            await self._process.run()
        finally:
            await self._client.close()

    def run(self) -> None:
        """Schedule until Ctrl-C; for programs that have none."""
        with suppress(KeyboardInterrupt):
            asyncio.run(self.serve())
