"""How many requests per second a client may send: `clientConnection.qps` and `burst`."""

from __future__ import annotations


class TokenBucket:
    """Fills with `per_second` tokens up to `burst`; each request takes one. The caller gives the time."""

    def __init__(self, per_second: float, burst: int, now: float) -> None:
        self._per_second = per_second
        self._burst = max(1, burst)
        self._tokens = float(self._burst)
        self._filled_at = now

    def take(self, now: float) -> bool:
        """Take one token; False if there is none."""
        self._fill(now)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def next_at(self, now: float) -> float:
        """When the next token can be taken."""
        self._fill(now)
        return now if self._tokens >= 1.0 else now + (1.0 - self._tokens) / self._per_second

    def _fill(self, now: float) -> None:
        self._tokens = min(self._tokens + (now - self._filled_at) * self._per_second, float(self._burst))
        self._filled_at = now
        # Adding up small fractions must not leave a token at 0.9999999.
        if 0 < 1.0 - self._tokens < 1e-9:
            self._tokens = 1.0
