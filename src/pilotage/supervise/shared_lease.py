"""The lease as the scheduler sees it: another process renews it, and both look at the same time of renewal.

`is_leading` reads that time and the clock and asks no one: it turns false by itself when renewals stop, whatever has
become of the process that makes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from pilotage.clock import Clock
from pilotage.kube.election import ElectionTiming, LeaseName
from pilotage.supervise.messages import AcquireLease, ReleaseLease, ToSupervisor
from pilotage.supervise.shared_state import SharedState


class SharedElection(Struct, frozen=True):
    """Which lease it is, and when it was last renewed."""

    lease: LeaseName
    timing: ElectionTiming
    state: SharedState

    @property
    def renewed_at(self) -> float | None:
        return self.state.renewed_at

    def seconds_to_deadline(self, now: float) -> float:
        """How long we may act without another renewal."""
        renewed_at = self.state.renewed_at
        return 0.0 if renewed_at is None else renewed_at + self.timing.renew_deadline_seconds - now


class SharedLease:
    """A candidate whose requests another process makes."""

    def __init__(self, election: SharedElection, clock: Clock, send: Callable[[ToSupervisor], None]) -> None:
        """`send` sends to the supervisor."""
        self.election = election
        self._clock = clock
        self._send = send
        self._is_ours = asyncio.Event()
        self._is_over = asyncio.Event()
        self._why = ""

    @property
    def is_leading(self) -> bool:
        return self.election.seconds_to_deadline(self._clock.monotonic()) > 0

    @property
    def slow_paths(self) -> int:
        return self.election.state.slow_paths

    async def acquire(self) -> None:
        """Return when we lead."""
        self._send(AcquireLease())
        await self._is_ours.wait()

    async def hold(self) -> str:
        """Return when leadership is lost, and why."""
        async with asyncio.TaskGroup() as tasks:
            losing = tasks.create_task(self._is_over.wait(), name="lease lost")
            deadline = tasks.create_task(self._deadline(), name="lease deadline")
            await asyncio.wait([losing, deadline], return_when=asyncio.FIRST_COMPLETED)
            losing.cancel()
            deadline.cancel()
        seconds, lease = self.election.timing.renew_deadline_seconds, self.election.lease
        return self._why or f"the lease {lease.namespace}/{lease.name} could not be renewed for {seconds:g} s"

    async def release(self) -> None:
        """Lead no more; returns when that is so, or when it would be anyway."""
        self._send(ReleaseLease())
        async with asyncio.TaskGroup() as tasks:
            losing = tasks.create_task(self._is_over.wait(), name="lease released")
            deadline = tasks.create_task(
                self._clock.sleep(self.election.timing.renew_deadline_seconds), name="lease release deadline"
            )
            await asyncio.wait([losing, deadline], return_when=asyncio.FIRST_COMPLETED)
            losing.cancel()
            deadline.cancel()

    # --- what the supervisor says ------------------------------------------------------------------------------

    def granted(self) -> None:
        self._is_ours.set()

    def ended(self, why: str) -> None:
        """Lost, given back, or no process is left that renews it."""
        self._why = self._why or why
        self._is_over.set()

    async def _deadline(self) -> None:
        while (left := self.election.seconds_to_deadline(self._clock.monotonic())) > 0:
            await self._clock.sleep(left)
