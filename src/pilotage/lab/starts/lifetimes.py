"""How much longer something runs: from what is known of others like it, or from its deadline.

What still runs counts, too: it has lasted so long at least. So the part that lasts longer than a time is estimated as
Kaplan and Meier do, and what is left is drawn from it, given the age. Who is asked about is known under several keys,
the most specific first: the first one of which enough have ended decides.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Final, NamedTuple

_ENOUGH: Final = 3
"""So many must have ended for a key to count."""
_MOST: Final = 2000
"""So many are remembered of each key, the latest."""


class Spell(NamedTuple):
    """How long one ran, or has run so far."""

    seconds: float
    is_over: bool


class _Curve:
    """The part that lasts longer than each time at which one ended."""

    def __init__(self, spells: Sequence[Spell]) -> None:
        self.ends: list[float] = []
        self.lasting: list[float] = []
        ordered = sorted(spells)
        left, part = len(ordered), 1.0
        for spell in ordered:
            if spell.is_over:
                part *= 1 - 1 / left
                self.ends.append(spell.seconds)
                self.lasting.append(part)
            left -= 1
        self._mean = max(1.0, sum(spell.seconds for spell in ordered) / max(1, len(self.ends)))
        """Time that was run through for each end."""

    def draw(self, age: float, rng: random.Random) -> float:
        """Seconds that are left at this age."""
        reached = bisect_right(self.ends, age)
        wanted = rng.random() * (self.lasting[reached - 1] if reached else 1.0)
        for number in range(reached, len(self.ends)):
            if self.lasting[number] <= wanted:
                return self.ends[number] - age
        # Longer than any that ended: as if it ended by chance, as often as those ended on average.
        last = max(age, self.ends[-1])
        return last - age + rng.expovariate(1 / self._mean)


class Lifetimes:
    """What was learned."""

    def __init__(self) -> None:
        self._spells: defaultdict[str, deque[Spell]] = defaultdict(lambda: deque(maxlen=_MOST))
        self._ended: defaultdict[str, int] = defaultdict(int)
        self._curves: dict[str, _Curve] = {}

    def learn(self, keys: Sequence[str], seconds: float, *, is_over: bool) -> None:
        """One that is known under these keys ran so long, or has so far."""
        for key in keys:
            self._spells[key].append(Spell(max(0.0, seconds), is_over))
            self._ended[key] += is_over
            self._curves.pop(key, None)

    def knows(self, keys: Sequence[str]) -> bool:
        return self._key(keys) is not None

    def remaining(self, keys: Sequence[str], age: float, deadline: float | None, rng: random.Random) -> float | None:
        """Seconds that are left, drawn; `deadline`: seconds of its whole life. None: nothing is known."""
        left = None if deadline is None else max(0.0, deadline - age)
        key = self._key(keys)
        if key is None:
            return left
        drawn = self._curve(key).draw(age, rng)
        return drawn if left is None else min(drawn, left)

    def _key(self, keys: Sequence[str]) -> str | None:
        return next((key for key in keys if self._ended.get(key, 0) >= _ENOUGH), None)

    def _curve(self, key: str) -> _Curve:
        curve = self._curves.get(key)
        if curve is None:
            curve = self._curves[key] = _Curve(self._spells[key])
        return curve
