"""Which failures are worth another try, and when.

never sent, 429                    it has certainly not happened: try again
cut off, timed out, 5xx, and 409   unknown (or, for a 409, the reason is): look first, then try again
  of calls that are right for
  any version of the object
everything else                    an answer: the caller's
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

from pilotage.api.calls import ApiCall, Lane, ObjectChanged, is_conflict

_FIRST_SECONDS: Final = 0.01
_FACTOR: Final = 5.0
_TOO_MANY_REQUESTS: Final = 429


class Verdict(Enum):
    FINAL = "final"
    AGAIN = "again"
    UNCLEAR = "unclear"


class NotDone(Exception):
    """A try whose answer was lost did not take effect: the object was read."""


def judge(error: Exception, call: ApiCall) -> Verdict:
    """What a failed try means for the next one."""
    if isinstance(error, NotDone):
        return Verdict.AGAIN
    if isinstance(error, ObjectChanged):
        # The object was read: another object has its name, and will have it whenever one looks again.
        return Verdict.FINAL
    sent = getattr(error, "sent", None)
    if sent is not None:
        return Verdict.UNCLEAR if sent else Verdict.AGAIN
    code = getattr(error, "code", None)
    if code == _TOO_MANY_REQUESTS:
        return Verdict.AGAIN
    if isinstance(error, TimeoutError) or (isinstance(code, int) and code >= 500):
        return Verdict.UNCLEAR
    if is_conflict(error) and call.retries_conflicts:
        return Verdict.UNCLEAR
    return Verdict.FINAL


def is_throttled(error: Exception) -> bool:
    return getattr(error, "code", None) == _TOO_MANY_REQUESTS


def is_lost(error: Exception) -> bool:
    """Whether there was no connection at all."""
    return getattr(error, "sent", None) is False


def retry_after(error: Exception) -> float | None:
    """How long the server asked us to wait."""
    seconds: float | None = getattr(error, "retry_after", None)
    return seconds


class LanePolicy(Struct, frozen=True):
    """What a lane may do. The waits between tries are 10, 50, 250 ms and so on up to `longest_pause`, and spread."""

    workers: int
    """Calls in flight at once, at most."""
    tries: int
    """0: until `queue_seconds` are over."""
    longest_pause: float
    queue_seconds: float
    """A call that has not succeeded so long after it was submitted has failed."""
    try_seconds: float = 30.0
    """A try without an answer for so long is given up; whether it took effect is then looked up."""
    makes_way: bool = False
    """One call at a time is sent while a binding or an eviction waits for a worker."""
    together: int = 1
    """So many calls that only create something are sent in one piece, at most."""

    def pause(self, tries: int, error: Exception, rng: random.Random) -> float | None:
        """Seconds until the next try; None if there shall be none."""
        if self.tries and tries >= self.tries:
            return None
        # Large powers would overflow; the pause has long reached its maximum then.
        step = min(_FIRST_SECONDS * _FACTOR ** min(tries - 1, 12), self.longest_pause)
        return max(step * (0.75 + 0.5 * rng.random()), retry_after(error) or 0.0)


# A binding that fails soon is decided anew, with fresher knowledge; a status is not decided anew.
DEFAULT_POLICIES: Final[Mapping[Lane, LanePolicy]] = {
    Lane.BIND: LanePolicy(workers=64, tries=4, longest_pause=1.0, queue_seconds=60.0),
    Lane.EVICT: LanePolicy(workers=64, tries=8, longest_pause=2.0, queue_seconds=60.0),
    Lane.VOLUME: LanePolicy(workers=16, tries=5, longest_pause=1.0, queue_seconds=60.0),
    Lane.STATUS: LanePolicy(workers=32, tries=0, longest_pause=10.0, queue_seconds=600.0),
    Lane.EVENT: LanePolicy(16, tries=4, longest_pause=5.0, queue_seconds=60.0, makes_way=True, together=16),
}
# The loop waits for a status that is awaited in place: not for ever.
SYNCHRONOUS_POLICIES: Final[Mapping[Lane, LanePolicy]] = {
    **DEFAULT_POLICIES,
    Lane.STATUS: LanePolicy(workers=32, tries=4, longest_pause=1.0, queue_seconds=60.0),
}
