"""What was decided about pods, kept in memory for those who ask later: bounded, and cheap while no one does.

A pod's own steps (moves, attempts, answers to its own changes) are few and kept with the pod. Answers of hints to
events of the cluster are many: one event may be about 50,000 waiting pods. They are kept as rounds, one per plugin and
event, whatever the number of pods: a pod that was waiting then, rejected by that plugin, and not moved, got the answer
"skip". Rounds of the same second that differ only in the object are one round.

Everything that a plugin said is only put together on request (`queue/timeline.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, TypeAlias

from msgspec import Struct

_MOST_STEPS: Final = 64
_MOST_ROUNDS: Final = 2048
_SAME_ROUND_SECONDS: Final = 1.0


Step: TypeAlias = tuple[float, str, str | int, str]
"""Something that happened to one pod: when, what, the place, plugin or number that belongs to it, and why.

    moved    home               event that moved it
    tried    number             -
    rejected rejectors          message
    failed   -                  message
    asked    plugin and answer  event

A plain tuple, because one is made for every move of every pod.
"""


class Round(Struct):
    """One plugin was asked about one event for all pods that it had rejected, and did not wake all of them."""

    scheduler: str
    plugin: str
    event: str
    subject: str
    """The object that changed; of several, the last one."""
    first: float
    last: float
    named: frozenset[str] | None
    """The keys of the pods that the plugin was asked about; None: all."""
    times: int = 1


def shorten(history: list[Step]) -> None:
    """Of a long story the beginning and the end are kept."""
    if len(history) >= _MOST_STEPS:
        del history[_MOST_STEPS // 4 : _MOST_STEPS // 2]


class DecisionLog:
    """Rounds of questions, the last few thousand of them."""

    def __init__(self) -> None:
        self._rounds: deque[Round] = deque()
        self._newest: dict[tuple[str, str, str], Round] = {}

    def note_round(
        self, scheduler: str, plugin: str, event: str, subject: str, named: frozenset[str] | None, now: float
    ) -> None:
        key = (scheduler, plugin, event)
        newest = self._newest.get(key)
        if newest is not None and named is None is newest.named and now - newest.first < _SAME_ROUND_SECONDS:
            newest.subject, newest.last = subject, now
            newest.times += 1
            return
        if len(self._rounds) >= _MOST_ROUNDS:
            oldest = self._rounds.popleft()
            self._newest.pop((oldest.scheduler, oldest.plugin, oldest.event), None)
        self._newest[key] = newest = Round(scheduler, plugin, event, subject, now, now, named)
        self._rounds.append(newest)

    def rounds(self) -> Iterator[Round]:
        """Oldest first."""
        return iter(self._rounds)
