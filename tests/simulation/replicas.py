"""Scheduler processes with leader election, as `pilotage run` puts them together, and who restarts them."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.calls.fenced_writer import FencedWriter
from pilotage.cycle.observer import SchedulerObserver
from pilotage.kube.client import KubeClient
from pilotage.kube.election import Election, ElectionTiming, LeaseName
from pilotage.kube.leader_election import LeaderElector
from pilotage.model import Pod
from pilotage.queue.scheduling_queue import UNSCHEDULABLE_FLUSH
from pilotage.queue.sub_queues import QueuedPodInfo
from pilotage.sandbox.http.exchange import Request
from pilotage.serve.service import LeadershipLost, SchedulerService
from tests.simulation.fault_plan import Call
from tests.simulation.gangs import GangWatch
from tests.simulation.monitor import Monitor
from tests.simulation.network import Network, Wire
from tests.simulation.process_clock import ProcessClock


class Replica(SchedulerObserver):
    """One process from its start to its end."""

    def __init__(self, slot: Slot, identity: str) -> None:
        self._slot = slot
        self.identity = identity
        self.clock = slot.clock
        self.wire = Wire(slot.network, slot.name, self.clock, self._sent, self._answered)
        client = KubeClient(self.wire)
        rng = random.Random(f"{slot.seed}/{identity}")
        election = Election(identity, LeaseName(), slot.timing)
        elector = LeaderElector(client, election, self.clock, rng)
        writer = FencedWriter(client, lambda: elector.is_leading)
        self.process = SchedulerProcess(client, self.clock, rng, replace(slot.options, observer=self), writer)
        self.service = SchedulerService(self.process, elector)
        self._gangs = GangWatch(self.process.scheduler.cluster)
        self.is_crashed = False

    @property
    def is_leading(self) -> bool:
        return self.service.elector is not None and self.service.elector.is_leading

    async def run(self) -> None:
        """Only losing the lease and being told to stop end a process."""
        try:
            await self.service.run()
            self._slot.history.note(self.identity, "ended")
        except LeadershipLost as error:
            self._slot.history.note(self.identity, f"lost the lease: {error}")
        except Exception as error:
            if not self.is_crashed:
                self._slot.history.violated("process ended", f"{self.identity}: {_leaves(error)}")

    def searched(self, pod: Pod) -> None:
        self._slot.monitor.tried(self.identity, pod)

    def idle(self) -> None:
        for details in self._gangs.look():
            self._slot.history.violated("no partial gang", f"{self.identity}: {details}")

    def pod_moved(self, entry: QueuedPodInfo, why: str) -> None:
        if why == UNSCHEDULABLE_FLUSH.label:
            self._slot.history.violated("rescued by the sweep", f"{self.identity}: {entry.pod.key}")

    def _sent(self, call: Call, request: Request) -> None:
        self._slot.monitor.sent(self.identity, call, request)
        if call.is_write and call.resource != "leases":
            self._slot.history.note(self.identity, f"{call.verb} {request.path} ...")

    def _answered(self, call: Call, request: Request, outcome: str) -> None:
        self._slot.monitor.answered(call, request, outcome)
        if not outcome.isdigit() or (call.is_write and call.resource != "leases"):
            self._slot.history.note(self.identity, f"{call.verb} {request.path} -> {outcome}")


class Slot:
    """Where a replica runs: when its process ends, a new one is started after a moment."""

    def __init__(self, name: str, network: Network, monitor: Monitor, options: SchedulerOptions, seed: int) -> None:
        self.name = name
        self.network = network
        self.monitor = monitor
        self.history = monitor.history
        self.options = options
        self.seed = seed
        self.timing = ElectionTiming()
        self.clock = ProcessClock(network.clock)
        self._rng = random.Random(f"{seed}/slot {name}")
        self._starts = 0
        self._running: asyncio.Task[None] | None = None
        self.replica: Replica | None = None

    async def run(self) -> None:
        while True:
            self._starts += 1
            self.replica = replica = Replica(self, f"{self.name}-{self._starts}")
            replica.wire.on_death = self.crash
            self.history.note(replica.identity, "starts")
            async with asyncio.TaskGroup() as tasks:
                self._running = tasks.create_task(replica.run(), name=replica.identity)
            self.replica = None
            await self.network.clock.sleep(self._rng.uniform(0.2, 6.0))

    def crash(self) -> None:
        """Gone, in the middle of whatever it was doing; nothing that it still tries reaches anybody."""
        if self.replica is not None and self._running is not None and not self.replica.is_crashed:
            self.history.note(self.replica.identity, "crashes")
            self.monitor.figures["crashes"] += 1
            self.replica.is_crashed = True
            self.replica.wire.is_dead = True
            self.clock.go_on()
            self._running.cancel()

    def crash_in(self, turns: int) -> None:
        """After so many turns of the event loop: between two steps of any task."""
        if turns > 0:
            asyncio.get_running_loop().call_soon(self.crash_in, turns - 1)
        else:
            self.crash()


def _leaves(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_leaves(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}"
