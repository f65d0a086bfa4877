"""Preemptors wait while what we know of pods is known to be old.

A victim is chosen by what the watch of pods has shown. While that watch is interrupted, or its list is fetched anew,
pods may have left that we still see: whoever preempts then evicts pods in vain. So a preemptor waits until the watch is
back, but never for longer than `LONGEST_HOLD_SECONDS` after the interruption began: then the view is used as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from pilotage.clock import Clock

log = logging.getLogger(__name__)

LONGEST_HOLD_SECONDS = 30.0

Activate = Callable[[Iterable[str]], None]


class StaleView:
    """Since when the watch of pods is interrupted, and who waits for it."""

    def __init__(self, clock: Clock, activate: Activate) -> None:
        self._clock = clock
        self._activate = activate
        self._since: float | None = None
        self._waiting: dict[str, None] = {}

    def interrupted(self) -> None:
        if self._since is None:
            self._since = self._clock.monotonic()

    def resumed(self) -> None:
        self._since = None
        self._release()

    def holds(self, uid: str) -> bool:
        """Is the view stale? Then this pod is activated when it is current again, or when the time is up."""
        if self._since is None or self._is_overdue(self._since):
            return False
        self._waiting[uid] = None
        return True

    def tick(self) -> None:
        """To be called every second or so."""
        if self._waiting and self._since is not None and self._is_overdue(self._since):
            log.warning(
                "the watch of pods is interrupted for more than %g s: %d preemptors go by what is known",
                LONGEST_HOLD_SECONDS,
                len(self._waiting),
            )
            self._release()

    def _is_overdue(self, since: float) -> bool:
        return self._clock.monotonic() - since >= LONGEST_HOLD_SECONDS

    def _release(self) -> None:
        waiting, self._waiting = self._waiting, {}
        if waiting:
            self._activate(waiting)
