"""Plugins that keep the scheduler from going on.

Cycles are synchronous: while a plugin computes, nothing else happens, and Python cannot take the thread away from it
without risking a half-changed cluster. What can be done is to say so while it lasts, even if it never ends. The loop
notes when it starts something (`begin`) and when it is done (`end`); a thread looks every quarter of a second. If one
thing has taken longer than the limit, the stack of the loop tells which plugin is at work on which pod and in which
line. That costs the loop one look at the clock per cycle, whatever number of plugins there is.

In virtual time nothing takes long, so that nothing is reported there.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from pilotage.api.plugin import Plugin
from pilotage.clock import Clock
from pilotage.model import Pod
from pilotage.observe.metrics import Metrics

log = logging.getLogger(__name__)

LIMIT_SECONDS: Final = 1.0
_LOOKS_PER_LIMIT: Final = 4


class SlowPlugins:
    """Counts and logs plugins that take longer than the limit."""

    def __init__(self, clock: Clock, metrics: Metrics, limit_seconds: float = LIMIT_SECONDS) -> None:
        self._clock = clock
        self._slow = metrics.slow_plugin_total
        self._limit = limit_seconds
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
        """Watch the calling thread until the block ends."""
        ended, watched = threading.Event(), threading.get_ident()

        def watch() -> None:
            while not ended.wait(self._limit / _LOOKS_PER_LIMIT):
                self.look(sys._current_frames().get(watched))

        thread = threading.Thread(target=watch, name="slow plugins", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

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


def _pod_in(frame: FrameType) -> str:
    """The pod that the method was called for; "-" if it was called for none."""
    arguments = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    pods = [value for name in arguments if isinstance(value := frame.f_locals.get(name), Pod)]
    return pods[0].key if pods else "-"
