"""When workloads that wait are expected to start, as somebody looks at a line: worked out in a process of its own.

Playing queues forward takes seconds of CPU, which the scheduler does not have. So a child at low priority does it, with
what is known of the queues on its standard input, and only for as long as somebody asks: each answer is kept until it
is old, and the longer it took, the older it may get.

    python -m pilotage.console.starts < what is known > expected starts by key
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import Struct

from pilotage.assembly import SchedulerProcess
from pilotage.clock import Clock
from pilotage.explain.expected_start import ExpectedStart
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.filling import FOR_THE_ENGINE, NAMESPACE

_FRESH_SECONDS: Final = 30.0
_TIMES_OLDER: Final = 30
"""An answer that took a second is good for so many."""
_LONGEST_SECONDS: Final = 30.0
_OLDEST_SECONDS: Final = 3600.0
_MOST_WORKLOADS: Final = 5_000
_NICE: Final = 10
_TOO_MANY: Final = "there are too many workloads to work it out here: pilotage queues --when"

log = logging.getLogger(__name__)


class KnownQueues(Struct, frozen=True):
    """What the child gets."""

    objects: Mapping[str, Sequence[Any]]
    configuration: QueueingConfiguration
    now: float


class StartsEstimate(Struct, frozen=True):
    """What was worked out."""

    time: float
    """When; the starts are in seconds from then."""
    starts: Mapping[str, ExpectedStart] = {}
    problem: str = ""
    """Why there are none."""


class ExpectedStarts:
    """Kept while somebody looks."""

    def __init__(self, process: SchedulerProcess, configuration: QueueingConfiguration | None, clock: Clock) -> None:
        self._process = process
        self._configuration = configuration
        self._clock = clock
        self._wanted = asyncio.Event()
        self.estimate: StartsEstimate | None = None

    def look(self) -> StartsEstimate | None:
        """The newest answer, and that somebody wants to know; None if it is still being worked out."""
        self._wanted.set()
        if self.estimate is None or self._clock.time() - self.estimate.time > _OLDEST_SECONDS:
            return None
        return self.estimate

    async def keep(self) -> None:
        """Work it out again and again, as long as somebody wants to know; until cancelled."""
        while True:
            await self._wanted.wait()
            begin = self._clock.monotonic()
            self.estimate = await self.work_out()
            took = self._clock.monotonic() - begin
            await self._clock.sleep(max(_FRESH_SECONDS, _TIMES_OLDER * took))
            self._wanted.clear()

    async def work_out(self) -> StartsEstimate:
        """As of now."""
        now, queueing = self._clock.time(), self._process.queueing
        if queueing is None or self._configuration is None:
            return StartsEstimate(now, problem="workload queueing is off")
        objects = {kind: [*queueing.controller.objects_of(kind).values()] for kind in (NAMESPACE, *FOR_THE_ENGINE)}
        if len(objects["Workload"]) > _MOST_WORKLOADS:
            return StartsEstimate(now, problem=_TOO_MANY)
        try:
            return StartsEstimate(now, await _asked(KnownQueues(objects, self._configuration, now)))
        except Exception as error:
            # Whatever is wrong with it: nobody needs an estimate so much that a scheduler should end.
            log.warning("expected starts cannot be worked out: %s", error)
            return StartsEstimate(now, problem=f"it could not be worked out: {error or type(error).__name__}")


async def _asked(known: KnownQueues) -> dict[str, ExpectedStart]:
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(sys.executable, "-m", __name__, stdin=pipe, stdout=pipe)
    try:
        async with asyncio.timeout(_LONGEST_SECONDS):
            answer, _ = await child.communicate(pickle.dumps(known))
    finally:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    if child.returncode != 0:
        raise OSError(f"its process ended with {child.returncode}")
    return msgspec.json.decode(answer, type=dict[str, ExpectedStart])


def main() -> None:
    """What the child does."""
    from pilotage.lab.starts.queue_copies import workload_starts

    os.nice(_NICE)
    known: KnownQueues = pickle.load(sys.stdin.buffer)
    found = workload_starts(known.objects, known.configuration, known.now)
    sys.stdout.buffer.write(msgspec.json.encode(found))


if __name__ == "__main__":
    main()
