"""A benchmark against the real API server: each scheduler in turn gets a new control plane and the same workload.

The runs of the schedulers alternate, round by round, so that what else happens on the machine meets all of them.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from pilotage.bench.cluster_assets import ClusterAssets
from pilotage.bench.contenders import Contender
from pilotage.bench.control_plane import ControlPlane
from pilotage.bench.measure import Figures
from pilotage.bench.stage import Stalled
from pilotage.bench.workload_run import WorkloadRun
from pilotage.bench.workloads import BenchWorkload
from pilotage.clock import Clock
from pilotage.kube.client import KubeClient
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection

_POLL_SECONDS = 0.1
_START_SECONDS = 120.0


class OverRealBench:
    """Every contender once per round."""

    def __init__(
        self,
        workload: BenchWorkload,
        clock: Clock,
        make_rng: Callable[[], random.Random],
        assets: ClusterAssets,
        contenders: Sequence[Contender],
        server_flags: Sequence[str] = (),
    ) -> None:
        """`server_flags` are what the API server is started with besides."""
        self._workload = workload
        self._clock = clock
        self._make_rng = make_rng
        self._assets = assets
        self._contenders = contenders
        self._server_flags = server_flags

    async def run(self, rounds: int) -> list[Figures]:
        """In the order in which they were measured. Raises Stalled, ChildFailed or ProgramFailed."""
        return [await self._measure(contender) for contender in in_turn(self._contenders, rounds)]

    async def _measure(self, contender: Contender) -> Figures:
        run = WorkloadRun(self._workload, self._clock, self._make_rng(), server="real", scheduler_name=contender.name)
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pilotage-bench-")))
            plane = ControlPlane(self._assets, folder, self._server_flags)
            stack.callback(plane.stop)
            await self._started(plane)
            client = KubeClient(HttpTransport(load_connection(str(plane.admin), clock=self._clock)))
            stack.push_async_callback(client.close)
            await run.make_cluster(client)
            scheduler = await contender.start(plane, folder)
            stack.push_async_callback(scheduler.stop)
            return await run.measure(client, scheduler, _others(plane))

    async def _started(self, plane: ControlPlane) -> None:
        plane.start()
        deadline = self._clock.monotonic() + _START_SECONDS
        while not plane.is_ready():
            if self._clock.monotonic() > deadline:
                raise Stalled(f"the API server was not ready in {_START_SECONDS:.0f} s")
            await self._clock.sleep(_POLL_SECONDS)


def in_turn(contenders: Sequence[Contender], rounds: int) -> list[Contender]:
    """Each once, then each once more: what changes on the machine meanwhile meets all of them."""
    return [contender for _ in range(rounds) for contender in contenders]


def _others(plane: ControlPlane) -> dict[str, int]:
    """Everything that shares the machine with the scheduler: the benchmark itself creates the pods and watches."""
    return {"kube-apiserver": plane.api_server.pid, "etcd": plane.etcd.pid, "bench": os.getpid()}
