"""Leader election over the API server: keeps asking for a Lease, keeps renewing it, gives it back.

    acquire --> hold --> returns why leadership was lost     (renew deadline passed, or another one holds the lease)
                  \\--> cancelled: release() lets a standby in at once

What is true when is decided by `election.Election`; here are the requests, their time-outs and the pauses. A renewal is
one conditional PUT; after a conflict the lease is read again. No answer within half of the renew deadline counts as
none, so that one stuck connection does not cost the lease.

A candidate watches the lease. It counts the lease's duration from when it has seen a renewal, so one that looks only
every retry period takes over up to that much later than it could. Without the permission to watch it looks that often.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import msgspec

from pilotage.clock import Clock
from pilotage.kube.client import KubeClient, ListOptions
from pilotage.kube.election import Election
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.permissions import way_out
from pilotage.kube.transport import TransportError
from pilotage.model.kinds import KINDS

_JITTER: Final = 0.2
_WATCH_SECONDS: Final = 300
_LEASES: Final = KINDS["leases"]
_EVENTS: Final = KINDS["events"]

_T = TypeVar("_T")

log = logging.getLogger(__name__)


class LeaderElector:
    """One candidate. `is_leading` may be asked at any time; it turns false by itself when the deadline passes."""

    def __init__(
        self,
        client: KubeClient,
        election: Election,
        clock: Clock,
        rng: random.Random,
        reporter: str = "default-scheduler",
    ) -> None:
        """`reporter` is the source of its Events."""
        self._client = client
        self._reporter = reporter
        self._election = election
        self._clock = clock
        self._rng = rng
        self._last_problem = ""
        self._is_bid_unanswered = False
        """Whether a bid was sent of which nobody knows what became of it: its connection broke, or it was cancelled."""
        self.slow_paths = 0
        """Renewals that had to read the lease again: another client has written to it."""

    @property
    def is_leading(self) -> bool:
        return self._election.is_leading(self._clock.monotonic())

    @property
    def election(self) -> Election:
        return self._election

    async def acquire(self) -> None:
        """Return when we lead."""
        if not await self._attempt():
            await self._stand_by()
        log.info("became leader: lease=%s identity=%s", self._lease_text(), self._election.identity)

    async def hold(self) -> str:
        """Renew until leadership is lost; returns why, in words."""
        async with asyncio.TaskGroup() as tasks:
            renewing = tasks.create_task(self._renew(), name="lease renewal")
            deadline = tasks.create_task(self._deadline(), name="lease deadline")
            # Beside the rest: pods wait for a new leader, and nothing waits for its Event.
            event = tasks.create_task(self._record("became leader"), name="lease event")
            done, _ = await asyncio.wait([renewing, deadline], return_when=asyncio.FIRST_COMPLETED)
            for task in (renewing, deadline, event):
                task.cancel()
        return (deadline if deadline in done else renewing).result()

    async def release(self) -> None:
        """Lead no more, and let a standby know if there is time for that."""
        self._election.step_down()
        try:
            if not await self._timely(self._give_back()):
                return
            log.info("released the lease: lease=%s", self._lease_text())
            await self._record("stopped leading")
        except (ApiStatusError, TransportError, TimeoutError, msgspec.DecodeError) as error:
            log.warning("the lease could not be released, it runs out by itself: %s", error)

    async def _give_back(self) -> bool:
        """Write that no one holds the lease; False if it is not ours to give away."""
        lease, election = self._election.lease, self._election
        if self._is_bid_unanswered:
            await self._look()
        for is_last in (False, True):
            given_back = election.given_back(self._clock.time())
            if given_back is None:
                return False
            try:
                answer = await self._client.update(
                    _LEASES, lease.namespace, lease.name, msgspec.json.encode(given_back)
                )
            except ApiStatusError as error:
                if is_last or error.code not in (404, 409):
                    raise
                await self._look()
            else:
                election.observe(msgspec.json.decode(answer), self._clock.monotonic())
                return True
        return False

    async def _stand_by(self) -> None:
        """Return when the holder's lease has run out, or was given back, and is ours."""
        renewed = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(self._watch(renewed), name="lease watch")
            is_ours = False
            while not is_ours:
                await self._first_of(renewed.wait(), self._clock.sleep(self._pause()))
                renewed.clear()
                is_ours = await self._attempt()
            watching.cancel()

    async def _watch(self, renewed: asyncio.Event) -> None:
        """Wake `run` when the lease has changed, as long as we may watch it; what changed is read again."""
        lease = self._election.lease
        only_it = ListOptions(namespace=lease.namespace, field_selector=f"metadata.name={lease.name}")
        while True:
            if version := self._election.resource_version:
                try:
                    async with self._client.watch(
                        _LEASES, only_it, resource_version=version, timeout_seconds=_WATCH_SECONDS
                    ) as chunks:
                        async for _ in chunks:
                            renewed.set()
                except (ApiStatusError, TransportError) as error:
                    if isinstance(error, ApiStatusError) and error.code == 403:
                        log.info("the lease cannot be watched, so it is looked at now and then: %s", error.message)
                        return
            await self._clock.sleep(self._election.timing.retry_seconds)

    async def _renew(self) -> str:
        while True:
            await self._clock.sleep(self._election.timing.retry_seconds)
            await self._attempt()
            if self._election.holder != self._election.identity:
                return f"{self._election.holder or 'no one'} holds the lease {self._lease_text()} now"

    async def _deadline(self) -> str:
        while (left := self._election.seconds_to_deadline(self._clock.monotonic())) > 0:
            await self._clock.sleep(left)
        seconds = self._election.timing.renew_deadline_seconds
        return f"the lease {self._lease_text()} could not be renewed for {seconds:g} s"

    async def _attempt(self) -> bool:
        """Try to get or keep the lease; True if that worked."""
        try:
            granted = await self._timely(self._bid())
        except (ApiStatusError, TransportError, TimeoutError, msgspec.DecodeError) as error:
            self._report(error)
            return False
        self._last_problem = ""
        return granted

    async def _bid(self) -> bool:
        lease, election = self._election.lease, self._election
        if not self.is_leading:
            await self._look()
        for is_last in (False, True):
            asked_at = self._clock.monotonic()
            bid = election.bid(asked_at, self._clock.time())
            if bid is None:
                return False
            self._is_bid_unanswered = True
            try:
                body = msgspec.json.encode(bid)
                if "resourceVersion" in bid["metadata"]:
                    answer = await self._client.update(_LEASES, lease.namespace, lease.name, body)
                else:
                    answer = await self._client.create(_LEASES, lease.namespace, body)
            except ApiStatusError as error:
                self._is_bid_unanswered = False
                if is_last or error.code not in (404, 409):
                    raise
                self.slow_paths += 1
                await self._look()
            else:
                self._is_bid_unanswered = False
                election.granted(msgspec.json.decode(answer), asked_at)
                return True
        return False

    async def _look(self) -> None:
        lease = self._election.lease
        try:
            document = msgspec.json.decode(await self._client.get(_LEASES, lease.namespace, lease.name))
        except ApiStatusError as error:
            if error.code != 404:
                raise
            document = None
        self._election.observe(document, self._clock.monotonic())

    def _pause(self) -> float:
        """Until the next attempt: the retry period, or less if the lease of the holder runs out before."""
        timing = self._election.timing
        pause = timing.retry_seconds * (1 + _JITTER * self._rng.random())
        expiry = self._election.seconds_to_expiry(self._clock.monotonic())
        return min(pause, expiry + 0.01) if expiry > 0 else pause

    async def _timely(self, work: Coroutine[Any, Any, _T]) -> _T:
        """The outcome of `work`; TimeoutError if it takes longer than half of the renew deadline."""
        seconds = self._election.timing.renew_deadline_seconds / 2
        outcome = await self._first_of(_outcome(work), self._clock.sleep(seconds))
        if outcome is None:
            raise TimeoutError(f"the API server did not answer about the lease within {seconds:g} s")
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    @staticmethod
    async def _first_of(work: Coroutine[Any, Any, _T], pause: Coroutine[Any, Any, None]) -> _T | None:
        """The outcome of `work`; None if the pause was over before it."""
        async with asyncio.TaskGroup() as tasks:
            working = tasks.create_task(work, name="lease work")
            pausing = tasks.create_task(pause, name="lease pause")
            done, _ = await asyncio.wait([working, pausing], return_when=asyncio.FIRST_COMPLETED)
            working.cancel()
            pausing.cancel()
        return working.result() if working in done else None

    async def _record(self, what: str) -> None:
        """Record an Event about the lease; a failure is only logged."""
        body = self._election.event(what, self._reporter, self._clock.time())
        try:
            await self._timely(self._client.create(_EVENTS, self._election.lease.namespace, msgspec.json.encode(body)))
        except (ApiStatusError, TransportError, TimeoutError) as error:
            log.info("no event about the lease was recorded: %s", error)

    def _report(self, error: Exception) -> None:
        problem = f"lease {self._lease_text()}: {error}"
        if isinstance(error, ApiStatusError) and error.code == 403:
            rule = way_out(_LEASES, ("get", "create", "update"))
            problem = f"lease {self._lease_text()}: {error.message}; {rule}"
        if problem != self._last_problem:
            log.warning("%s", problem)
            self._last_problem = problem

    def _lease_text(self) -> str:
        return f"{self._election.lease.namespace}/{self._election.lease.name}"


async def _outcome(work: Coroutine[Any, Any, _T]) -> _T | Exception:
    """An error as a value: in a task group it would take the other tasks with it."""
    try:
        return await work
    except Exception as error:
        return error
