"""How many calls of a lane are in flight at once: as many as the API server can take.

    every success              a little more, up to the lane's maximum
    429                        half, and a pause for as long as the server asks
    no connection              one at a time, after a pause that doubles until something succeeds
    answers much slower        a tenth less: a server that answers three times as slowly as it can, and takes more than
    than they can be           a second, has a queue, and more calls would only make it longer

Answers are as slow as the network and the server make them; only what is far above the quickest of late counts, so that
a server far away is no server under load. Pure: latencies and times come from the caller.
"""

from __future__ import annotations

from typing import Final

_SLOW_SECONDS: Final = 1.0
_SLOW_FACTOR: Final = 3.0
_SMOOTHING: Final = 0.1
_FORGETTING: Final = 1.001
"""The quickest answer is forgotten slowly, in case the server has become slower for good."""
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 5.0
_DEFAULT_RETRY_AFTER: Final = 1.0


class LaneLimit:
    """Additive increase, multiplicative decrease; starts at the maximum."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._limit = float(most)
        self._quickest = 0.0
        self._usual = 0.0
        self._cut_at = float("-inf")
        self._pause = _FIRST_PAUSE
        self.paused_until = float("-inf")

    @property
    def allowed(self) -> int:
        return int(self._limit)

    def answered(self, seconds: float, now: float) -> None:
        """A call got a proper answer after so long."""
        self._pause = _FIRST_PAUSE
        self._usual = seconds if not self._usual else self._usual + _SMOOTHING * (seconds - self._usual)
        self._quickest = min(seconds, self._quickest * _FORGETTING) if self._quickest else seconds
        if self._usual > max(_SLOW_SECONDS, _SLOW_FACTOR * self._quickest):
            self._cut(0.9, now)
        elif self._limit < self.most:
            self._limit = min(self._limit + 1.0 / self._limit, float(self.most))

    def throttled(self, retry_after: float | None, now: float) -> None:
        """The server said 429."""
        self._cut(0.5, now)
        self.paused_until = max(self.paused_until, now + (_DEFAULT_RETRY_AFTER if retry_after is None else retry_after))

    def lost(self, now: float) -> None:
        """There is no connection."""
        self._limit = 1.0
        if now >= self.paused_until:
            self.paused_until = now + self._pause
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def _cut(self, factor: float, now: float) -> None:
        # The calls that were in flight together get the same bad news: it counts once.
        if now - self._cut_at > self._usual:
            self._cut_at = now
            self._limit = max(1.0, self._limit * factor)
