"""Which numbers of nodes of which shapes are enough, the cheapest first: asked of somebody who tries them out.

One shape alone is searched by doubling and bisection. Of several, a mix that is enough is thinned shape by shape, in
different orders, and then improved by taking nodes of one shape away and adding as few as possible of another. All that
is bounded by the number of trials; a mix that is reported was tried, but a cheaper one may exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, permutations
from typing import Final, Generic, TypeVar

import msgspec

Counts = tuple[int, ...]
"""How many nodes of each shape."""
Outcome = TypeVar("Outcome")
_MOST_ORDERS: Final = 6


class _Spent(Exception):
    """No more trials."""


class Mix(msgspec.Struct, Generic[Outcome], frozen=True):
    """Enough."""

    counts: Counts
    cost: float
    outcome: Outcome


class NodeSearch(Generic[Outcome]):
    """One search. `attempt` says what comes of a mix, None if it is not enough."""

    def __init__(
        self, attempt: Callable[[Counts], Outcome | None], prices: Sequence[float], most_nodes: int, most_trials: int
    ) -> None:
        self._attempt = attempt
        self._prices = prices
        self._most = most_nodes
        self._left = most_trials
        self._known: dict[Counts, Outcome | None] = {}
        self.is_exhausted = False
        """Were there too few trials to look everywhere?"""

    @property
    def trials(self) -> int:
        return len(self._known)

    def run(self) -> list[Mix[Outcome]]:
        """All that were found to be enough, none of them larger than another one in every shape; cheapest first."""
        try:
            singles = [self._least(at, self._nothing) for at in range(len(self._prices))]
            if len(self._prices) > 1:
                self._mix([one for one in singles if one is not None])
        except _Spent:
            self.is_exhausted = True
        enough = [Mix(counts, self._cost(counts), got) for counts, got in self._known.items() if got is not None]
        least = [one for one in enough if not any(_is_below(other.counts, one.counts) for other in enough)]
        return sorted(least, key=lambda one: (one.cost, sum(one.counts), one.counts))

    def _mix(self, found: list[Counts]) -> None:
        start = self._some_of_all()
        if start is not None:
            for order in islice(permutations(range(len(self._prices))), _MOST_ORDERS):
                found.append(self._thinned(start, order))
        best = min(found, key=self._cost, default=None)
        while best is not None:
            best = next((counts for counts in self._variations(best) if self._cost(counts) < self._cost(best)), None)

    def _variations(self, counts: Counts) -> Iterator[Counts]:
        """Fewer of one shape, and as few more of another as are needed; only where that could be cheaper."""
        shapes = range(len(counts))
        for fewer, more in ((a, b) for a in shapes for b in shapes if a != b and counts[a]):
            for step in sorted({1, 2, (counts[fewer] + 3) // 4, (counts[fewer] + 1) // 2, counts[fewer]}):
                if step > counts[fewer]:
                    continue
                base = _with(counts, fewer, counts[fewer] - step)
                saved = step * self._prices[fewer]
                room = int(saved / self._prices[more]) if self._prices[more] else self._most
                found = self._least(more, base, counts[more] + room)
                if found is not None:
                    yield found

    def _least(self, at: int, base: Counts, most: int | None = None) -> Counts | None:
        """`base` with as few of one shape as are enough; None if even the most are not."""
        most = self._most if most is None else min(most, self._most)
        low, high = base[at] - 1, max(1, base[at])
        while not self._is_enough(_with(base, at, min(high, most))):
            if high >= most:
                return None
            low, high = high, 2 * high
        return _with(base, at, self._bisected(at, base, low, min(high, most)))

    def _thinned(self, counts: Counts, order: Sequence[int]) -> Counts:
        for at in order:
            counts = _with(counts, at, self._bisected(at, counts, -1, counts[at]))
        return counts

    def _bisected(self, at: int, base: Counts, low: int, high: int) -> int:
        """The least number above `low` that is enough, if `high` is and more never hurt."""
        while high - low > 1:
            middle = (low + high) // 2
            if self._is_enough(_with(base, at, middle)):
                high = middle
            else:
                low = middle
        return high

    def _some_of_all(self) -> Counts | None:
        count = 1
        while True:
            counts = tuple(min(count, self._most) for _ in self._prices)
            if self._is_enough(counts):
                return counts
            if count >= self._most:
                return None
            count *= 2

    def _is_enough(self, counts: Counts) -> bool:
        if counts not in self._known:
            if not self._left:
                raise _Spent
            self._left -= 1
            self._known[counts] = self._attempt(counts) if any(counts) else None
        return self._known[counts] is not None

    @property
    def _nothing(self) -> Counts:
        return (0,) * len(self._prices)

    def _cost(self, counts: Counts) -> float:
        return sum(count * price for count, price in zip(counts, self._prices, strict=True))


def _with(counts: Counts, at: int, count: int) -> Counts:
    return (*counts[:at], count, *counts[at + 1 :])


def _is_below(one: Counts, other: Counts) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
