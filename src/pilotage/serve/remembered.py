"""Answers that hold for a while: so that a scrape every few seconds is not a question to the API server each time."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Generic, TypeVar

from pilotage.clock import Clock

K = TypeVar("K")
V = TypeVar("V")

_MOST: Final = 1024


class Remembered(Generic[K, V]):
    """The newest answers, each for `seconds`."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._answers: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, question: K) -> tuple[bool, V | None]:
        """(True, answer) if it is known."""
        known = self._answers.get(question)
        if known is None or known[0] <= self._clock.monotonic():
            return False, None
        return True, known[1]

    def put(self, question: K, answer: V, seconds: float | None = None) -> None:
        """`seconds` if this answer holds for another time than the others."""
        self._answers.pop(question, None)
        lasts = self._seconds if seconds is None else seconds
        self._answers[question] = (self._clock.monotonic() + lasts, answer)
        while len(self._answers) > _MOST:
            self._answers.popitem(last=False)
