"""One seed, one run: a world is made, lives in trouble for a while, and must come to rest afterwards."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import replace

from pilotage.assembly import options_from_configuration
from pilotage.config.feature_gates import FeatureGates
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.jobs.configuration.load import queueing_of
from pilotage.kube.election import ElectionTiming
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.testing import VirtualClock
from tests.simulation.at_rest import unrest
from tests.simulation.fault_plan import LEADER, Event, FaultPlan, Incident, draw_plan
from tests.simulation.history import History, Outcome
from tests.simulation.monitor import LEASES, Monitor
from tests.simulation.network import Network
from tests.simulation.numbered_tasks import NumberedTask
from tests.simulation.process_clock import ProcessClock
from tests.simulation.replicas import Slot
from tests.simulation.script import Script
from tests.simulation.store_invariants import StoreInvariants

REST_SECONDS = 120.0
"""Longer than any pause between two tries, shorter than what the sweep of forgotten pods waits for."""
_STEP_SECONDS = 0.5
GROUPED = 0.5
"""The share of the worlds in which there are groups of pods."""


def simulate(seed: int) -> Outcome:
    """The outcome of a seed; the same one every time."""
    logger = logging.getLogger("pilotage")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with asyncio.Runner() as runner:
            runner.get_loop().set_task_factory(NumberedTask.factory())
            return runner.run(_Simulation(seed).run())
    finally:
        logger.setLevel(before)


def summary(seed: int) -> tuple[int, str, dict[str, int]]:
    """The outcome in what another process can be told: the seed, what was violated ("": nothing), and figures."""
    outcome = simulate(seed)
    return seed, outcome.report() if outcome.violations else "", outcome.figures


class _Simulation:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._rng = random.Random(f"{seed}/world")
        self._clock = VirtualClock()
        self._server_clock = ProcessClock(self._clock)
        self._history = History(self._clock)
        self._monitor = Monitor(self._clock, self._history, ElectionTiming())
        self._seconds = self._rng.uniform(35.0, 70.0)
        self._plan = draw_plan(random.Random(f"{seed}/faults"), self._seconds)
        self._slots: list[Slot] = []
        self._monitor.on_livelock = self._crash_all

    async def run(self) -> Outcome:
        options = EmbeddedOptions(nodes=0, port=None, token="simulation")
        entering = EmbeddedCluster.running(options, self._server_clock, random.Random(f"{self._seed}/cluster"))
        async with asyncio.TaskGroup() as tasks, entering as cluster:
            invariants = StoreInvariants(cluster.api.store, self._history)
            cluster.api.store.subscribe(LEASES, self._monitor.on_lease)
            network = Network(cluster.server, self._clock, self._plan, random.Random(f"{self._seed}/network"), tasks)
            running = await self._live(cluster, network, tasks)
            self._monitor.figures["bindings"] = invariants.bindings
            for task in running:
                task.cancel()
            self._crash_all()
            network.close()
        return Outcome(self._seed, tuple(self._history.violations), self._history, dict(self._monitor.figures))

    async def _live(
        self, cluster: EmbeddedCluster, network: Network, tasks: asyncio.TaskGroup
    ) -> list[asyncio.Task[None]]:
        self._note_plan(self._plan)
        running: list[asyncio.Task[None]] = []

        def later(seconds: float, act: Callable[[], None]) -> None:
            running.append(tasks.create_task(self._after(seconds, act)))

        # Not drawn from the world's own source: worlds without groups are what they would be if there were none.
        has_groups = random.Random(f"{self._seed}/groups").random() < GROUPED
        script = Script(cluster.api, self._rng, self._history, later, has_groups=has_groups)
        script.begin()
        await self._clock.settle()
        gates = FeatureGates({"GenericWorkload": has_groups})
        options = options_from_configuration(SchedulerConfiguration(), gates=gates)
        options = replace(options, queueing=queueing_of({}) if script.has_queues else None)
        for name in "ab":
            slot = Slot(name, network, self._monitor, options, self._seed)
            self._slots.append(slot)
            running.append(tasks.create_task(slot.run(), name=f"slot {name}"))
        running += [tasks.create_task(self._strike(event)) for event in self._plan.events]
        running.append(tasks.create_task(self._play(script)))
        if await self._advance(self._seconds):
            self._history.note("faults", "are over")
            if await self._advance(REST_SECONDS):
                for invariant, details in await unrest(cluster, self._clock, self._slots, options):
                    self._history.violated(invariant, details)
        return running

    def _crash_all(self) -> None:
        for slot in self._slots:
            slot.crash()

    async def _advance(self, seconds: float) -> bool:
        """Let time pass; False if something was violated."""
        end = self._clock.monotonic() + seconds
        while (left := end - self._clock.monotonic()) > 0 and not self._history.violations:
            await self._clock.advance(min(_STEP_SECONDS, left))
        return not self._history.violations

    async def _play(self, script: Script) -> None:
        while self._clock.monotonic() < self._seconds:
            await self._clock.sleep(self._rng.expovariate(0.5))
            for _ in range(self._rng.choice([1, 1, 1, 2, 4])):
                script.step()

    async def _after(self, seconds: float, act: Callable[[], None]) -> None:
        await self._clock.sleep(seconds)
        act()

    # --- incidents ---------------------------------------------------------------------------------------------

    async def _strike(self, event: Event) -> None:
        await self._clock.sleep(event.at)
        slot = self._slot(event.replica)
        replica = slot.replica
        self._history.note("incident", f"{event.incident} {event.replica} {event.amount:g}")
        match event.incident:
            case Incident.CRASH:
                slot.crash_in(int(event.amount))
            case Incident.CRASH_AT_REQUEST if replica is not None:
                replica.wire.dies_after = (int(event.amount) // 2, event.amount % 2 == 1)
            case Incident.STOP if replica is not None:
                replica.service.stop()
            case Incident.PAUSE:
                await self._pause(slot, event.amount)
            case Incident.PAUSE_AT_WRITE if replica is not None:
                written = asyncio.Event()
                replica.wire.on_next_write = lambda: (slot.clock.pause(), written.set())
                await written.wait()
                await self._pause(slot, min(event.amount, max(0.0, self._seconds - self._clock.monotonic())))
            case Incident.CLOCK:
                slot.clock.set_by += event.amount
            case Incident.SERVER_CLOCK:
                self._server_clock.set_by += event.amount
            case Incident.OUTAGE:
                for each in self._slots:
                    if each.replica is not None:
                        each.replica.wire.cut_watches()

    def _slot(self, replica: str) -> Slot:
        if replica == LEADER:
            return next(
                (one for one in self._slots if one.replica is not None and one.replica.is_leading), self._slots[0]
            )
        return self._slots["ab".index(replica)]

    async def _pause(self, slot: Slot, seconds: float) -> None:
        slot.clock.pause()
        await self._clock.sleep(seconds)
        slot.clock.go_on()

    def _note_plan(self, plan: FaultPlan) -> None:
        for window in plan.windows:
            about = f"{window.replica or 'a, b'} {window.verb or 'any'} {window.resource or 'anything'}"
            text = f"{window.begin:.1f}..{window.end:.1f} {about}: {window.fault} ({window.chance:g})"
            self._history.note("plan", text)
        for event in plan.events:
            self._history.note("plan", f"{event.at:.1f} {event.incident} {event.replica} {event.amount:g}")
