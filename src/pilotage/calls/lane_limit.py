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
        self.is_troubled = False
        """Less than the maximum is allowed, or nothing for a while: only then need the limit be asked."""

    @property
    def allowed(self) -> int:
        return int(self._limit)

    def answered(self, seconds: float, now: float) -> None:
        """A call got a proper answer after so long."""
        self._usual += (_SMOOTHING if self._usual else 1.0) * (seconds - self._usual)
        quickest = self._quickest * _FORGETTING
        self._quickest = quickest if 0.0 < quickest < seconds else seconds
        if self._usual > _SLOW_SECONDS and self._usual > _SLOW_FACTOR * self._quickest:
            self._cut(0.9, now)
        elif self.is_troubled:
            self._recover(now)

    def _recover(self, now: float) -> None:
        self._pause = _FIRST_PAUSE
        self._limit = min(self._limit + 1.0 / self._limit, float(self.most))
        self.is_troubled = self._limit < self.most or self.paused_until > now

    def throttled(self, retry_after: float | None, now: float) -> None:
        """The server said 429."""
        self._cut(0.5, now)
        self.is_troubled = True
        self.paused_until = max(self.paused_until, now + (_DEFAULT_RETRY_AFTER if retry_after is None else retry_after))

    def lost(self, now: float) -> None:
        """There is no connection."""
        self._limit = 1.0
        self.is_troubled = True
        if now >= self.paused_until:
            self.paused_until = now + self._pause
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def _cut(self, factor: float, now: float) -> None:
        # The calls that were in flight together get the same bad news: it counts once.
        if now - self._cut_at > self._usual:
            self._cut_at = now
            self.is_troubled = True
            self._limit = max(1.0, self._limit * factor)
