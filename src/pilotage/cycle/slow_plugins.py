"""Detection and interruption of plugins that take too long.

Cycles are synchronous: while a plugin computes, nothing else happens. The loop notes when it starts something (`begin`)
and when it is done (`end`); a thread looks every quarter of a second. If one thing has taken longer than the limit, the
stack of the loop shows which plugin is at work on which pod and in which line. That costs the loop one look at the
clock per cycle, whatever number of plugins there is.

Default plugins look at the budget of their cycle themselves. Any other plugin that uses it up is interrupted: the
thread sends the loop's thread a signal, whose handler raises `BudgetExceeded`, but only while the plugin's own code is
running in a cycle. That is as if the plugin had raised, which may happen at any time; our own code is never cut short.
What does not return to Python at all is ended by the process that keeps the lease.

In virtual time nothing takes long, so that nothing is reported there.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from pilotage.api.budget import Budget, BudgetExceeded
from pilotage.api.plugin import Plugin
from pilotage.clock import Clock
from pilotage.model import Pod
from pilotage.observe.metrics import Metrics

log = logging.getLogger(__name__)

LIMIT_SECONDS: Final = 1.0
_LOOKS_PER_LIMIT: Final = 4
_WAITING_COUNTS: Final = 0.1
"""A plugin that waits (for a lock, a disk, a network) uses no CPU time but delays all others: so much counts."""
_SIGNAL: Final[int] = getattr(signal, "SIGVTALRM", 0)


class SlowPlugins:
    """Counts and logs plugins that take longer than the limit."""

    def __init__(self, clock: Clock, metrics: Metrics, budget: Budget, limit_seconds: float = LIMIT_SECONDS) -> None:
        """`budget` is that of the present cycle."""
        self._clock = clock
        self._slow = metrics.slow_plugin_total
        self._budget = budget
        self._limit = limit_seconds
        self.may_interrupt = False
        """Whether a plugin is asked in a cycle, where it may raise. Set by the loop."""
        self._since: float | None = None
        self._reported: tuple[float, float] = (-1.0, 0.0)
        """The start of what was reported last, and how long it had taken."""

    def begin(self) -> float:
        """The loop starts something that should be short: a cycle, or taking in what has arrived; returns the time."""
        self._since = now = self._clock.monotonic()
        return now

    def end(self) -> None:
        self._since = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the calling thread until the block ends; only the main thread can be interrupted."""
        ended, watched = threading.Event(), threading.get_ident()
        can_interrupt = _SIGNAL != 0 and threading.current_thread() is threading.main_thread()
        before = signal.signal(_SIGNAL, self._interrupt) if can_interrupt else None

        def watch() -> None:
            while not ended.wait(self._limit / _LOOKS_PER_LIMIT):
                self.look(sys._current_frames().get(watched))
                if can_interrupt and self.may_interrupt and self._is_over_budget():
                    signal.pthread_kill(watched, _SIGNAL)

        thread = threading.Thread(target=watch, name="slow plugins", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            if can_interrupt:
                signal.signal(_SIGNAL, before)

    def _is_over_budget(self) -> bool:
        """Whether so much time has passed that the budget may be used up."""
        since = self._since
        return since is not None and self._clock.monotonic() - since > self._budget.limit_seconds

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Raise in the plugin that is at work, if it is not one of ours and has used up the budget of its cycle."""
        since = self._since
        if since is None or not self.may_interrupt or not is_foreign(frame):
            return
        waited = (self._clock.monotonic() - since) * _WAITING_COUNTS
        spent = max(self._budget.spent_seconds, waited)
        if spent > self._budget.limit_seconds:
            raise BudgetExceeded(spent, self._budget.limit_seconds)

    def look(self, frame: FrameType | None) -> None:
        """Report the plugin that `frame` is in, if it has taken too long; again whenever it has taken twice as long."""
        since = self._since
        if since is None:
            return
        seconds = self._clock.monotonic() - since
        is_known = self._reported[0] == since
        if seconds < self._limit or (is_known and seconds < 2 * self._reported[1]):
            return
        place = _plugin_frame(frame)
        if place is None:
            return
        plugin: Plugin = place.f_locals["self"]
        self._reported = (since, seconds)
        if not is_known:
            self._slow.add(plugin.plugin_name())
        log.warning(
            "plugin takes too long, and everything waits: pod=%s plugin=%s method=%s seconds=%.1f at=%s:%d",
            _pod_in(place),
            plugin.plugin_name(),
            place.f_code.co_name,
            seconds,
            place.f_code.co_filename,
            place.f_lineno,
        )


def _plugin_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost method of a plugin on the stack: one plugin's work may include asking others."""
    while frame is not None and not isinstance(frame.f_locals.get("self"), Plugin):
        frame = frame.f_back
    return frame


def is_foreign(frame: FrameType | None) -> bool:
    """Whether the code that is running belongs to a plugin that is not ours, or to something that it called."""
    while frame is not None and not isinstance(frame.f_locals.get("self"), Plugin):
        if _is_ours(frame):
            return False
        frame = frame.f_back
    return frame is not None and not _is_ours(frame)


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("pilotage.")


def _pod_in(frame: FrameType) -> str:
    """The pod that the method was called for; "-" if it was called for none."""
    arguments = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    pods = [value for name in arguments if isinstance(value := frame.f_locals.get(name), Pod)]
    return pods[0].key if pods else "-"
