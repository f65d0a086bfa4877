"""Keeps workload queueing supplied with an engine that can be relied on.

An engine that raised in the middle of something is not used on. Another one is made and gets everything that is known,
without what the first one was looking at: that object is left out until it changes, and says so in an Event. If nothing
is known to be the cause, the next try comes later and later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from pilotage.clock import Clock
from pilotage.jobs.controller.events import QueueingEvents
from pilotage.jobs.controller.intake import QueueingIntake
from pilotage.jobs.controller.objects import Objects
from pilotage.jobs.controller.status_writes import StatusWrites
from pilotage.jobs.controller.steps import RecordEvent
from pilotage.jobs.engine import JobQueueing
from pilotage.jobs.filling import EngineSpoiled, Identity, LeftOut, filled
from pilotage.model.kueue import AdmissionCheck, ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload
from pilotage.observe.metrics import Metrics

_FIRST_WAIT_SECONDS: Final = 0.5
_LONGEST_WAIT_SECONDS: Final = 60.0
"""After an exception that no object is known to be the cause of."""


class EngineKeeper:
    def __init__(
        self,
        make_engine: Callable[[], JobQueueing],
        objects: Objects,
        intake: QueueingIntake,
        events: QueueingEvents,
        faults: Metrics,
    ) -> None:
        self._make_engine = make_engine
        self._objects = objects
        self._intake = intake
        self._left_out = intake.left_out
        self._left_out.on_added = self._record_left_out
        self._events = events
        self._faults = faults
        self._failures_in_a_row = 0

    def renew(self, statuses: StatusWrites) -> None:
        """Go on with a new engine. What was decided and is on its way to the API server stays decided."""
        decided = {key: workload for key in statuses.pending_keys() if (workload := self._decided(key)) is not None}

        def objects_of(kind: str) -> Iterable[Any]:
            known = self._objects.of(kind).values()
            return (decided.get(obj.key, obj) for obj in known) if kind == "Workload" else known

        statuses.engine = filled(self._make_engine, objects_of, self._left_out)
        self._intake.begin(statuses.engine)

    def _decided(self, key: str) -> Workload | None:
        """As the engine before had it; None if it cannot even say that."""
        with suppress(Exception):
            return None if self._intake.engine is None else self._intake.engine.workload(key)
        return None

    def succeeded(self) -> None:
        self._failures_in_a_row = 0

    def failed(self, error: Exception) -> float:
        """A turn ended in an exception; returns the seconds to wait before the next try with another engine."""
        self._intake.is_spoiled = True
        culprit = None if self._intake.engine is None else self._intake.engine.culprit
        if culprit is not None and not isinstance(error, EngineSpoiled):
            self._left_out.add(culprit, error)
            return 0.0
        self._faults.task_errors.failed("workload queueing", error)
        self._failures_in_a_row += 1
        return min(_FIRST_WAIT_SECONDS * 2.0 ** min(self._failures_in_a_row, 10), _LONGEST_WAIT_SECONDS)

    def write_failed(self, key: str, error: Exception) -> None:
        """What has to do with the status of a workload ended in an exception of our own."""
        culprit = None if self._intake.engine is None else self._intake.engine.culprit
        if culprit is not None:
            self._left_out.add(culprit, error)
            self._intake.is_spoiled = True
        else:
            self._faults.skipped.skip("Workload", key, "status", error)

    def _record_left_out(self, identity: Identity, error: str) -> None:
        """People find out at the object itself."""
        kind, key = identity
        obj = self._objects.of(kind).get(key)
        if isinstance(obj, Workload | ClusterQueue | LocalQueue | Cohort | ResourceFlavor | AdmissionCheck):
            text = f"Workload queueing goes on without this {kind} until it changes: {error}"
            self._events.record(RecordEvent(obj, "Skipped", text, "Warning"))


_KEPT_SECONDS: Final = 5.0
_MOST_CYCLES: Final = 1000


class StandbyView:
    """What a replica that does not lead says about the queues.

    Everything that counts is in the objects, which a standby has at hand: an engine is made from them on
    request, and looks through the queues once, so that it knows what they lack. It is never obeyed, and kept for
    some seconds, because making it costs about as much as taking over.
    """

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
