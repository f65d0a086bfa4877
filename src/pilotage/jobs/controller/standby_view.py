"""What a replica that does not lead tells about the queues.

Everything that counts is in the objects, which a standby has at hand: an engine is made from them when somebody asks,
and looks through the queues once, so that it knows what everybody lacks. It is never obeyed, and kept for some seconds,
because making it costs about as much as taking over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pilotage.clock import Clock
from pilotage.jobs.controller.objects import Objects
from pilotage.jobs.engine import JobQueueing
from pilotage.jobs.filling import LeftOut, filled

_KEPT_SECONDS: Final = 5.0
_MOST_CYCLES: Final = 1000


class StandbyView:
    def __init__(self, make_engine: Callable[[], JobQueueing], objects: Objects, clock: Clock) -> None:
        self._make_engine = make_engine
        self._objects = objects
        self._clock = clock
        self._kept: tuple[float, JobQueueing] | None = None

    def engine(self) -> JobQueueing:
        now = self._clock.monotonic()
        if self._kept is None or self._kept[0] + _KEPT_SECONDS < now:
            self._kept = (now, self._made())
        return self._kept[1]

    def _made(self) -> JobQueueing:
        engine = filled(self._make_engine, lambda kind: self._objects.of(kind).values(), LeftOut())
        for _ in range(_MOST_CYCLES):
            if not engine.cycle():
                break
        return engine
