"""A benchmark over HTTP: the sandbox and the scheduler are processes of their own, this one creates and watches."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from pilotage.bench.child_process import Child
from pilotage.bench.contenders import ALONE
from pilotage.bench.measure import Figures
from pilotage.bench.stage import Stalled
from pilotage.bench.workload_run import WorkloadRun
from pilotage.bench.workloads import BenchWorkload
from pilotage.clock import Clock
from pilotage.kube.client import KubeClient
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection

_POLL_SECONDS = 0.05
_START_SECONDS = 60.0


class OverHttpBench:
    """One run of one workload against a sandbox in a process of its own."""

    def __init__(self, workload: BenchWorkload, clock: Clock, rng: random.Random, run_arguments: Sequence[str]) -> None:
        self._run = WorkloadRun(workload, clock, rng, server="http")
        self._clock = clock
        self._run_arguments = run_arguments

    async def run(self) -> Figures:
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pilotage-bench-"))
            kubeconfig = Path(folder) / "kubeconfig"
            sandbox = await Child.start("sandbox", "--no-scheduler", "--nodes", "0", "--kubeconfig", str(kubeconfig))
            stack.push_async_callback(sandbox.stop)
            await self._appearance(kubeconfig, sandbox)
            client = KubeClient(HttpTransport(load_connection(str(kubeconfig), clock=self._clock)))
            stack.push_async_callback(client.close)
            await self._run.make_cluster(client)
            scheduler = await Child.start("run", "--kubeconfig", str(kubeconfig), *ALONE, *self._run_arguments)
            stack.push_async_callback(scheduler.stop)
            return await self._run.measure(client, scheduler)

    async def _appearance(self, path: Path, sandbox: Child) -> None:
        """The sandbox writes its kubeconfig when it is ready to serve."""
        deadline = self._clock.monotonic() + _START_SECONDS
        while not _is_there(path):
            sandbox.check()
            if self._clock.monotonic() > deadline:
                raise Stalled(f"the sandbox did not start within {_START_SECONDS:.0f} s")
            await self._clock.sleep(_POLL_SECONDS)


def _is_there(path: Path) -> bool:
    return path.exists()
