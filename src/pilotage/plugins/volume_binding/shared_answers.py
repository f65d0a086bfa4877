"""What equal claims can get, remembered from pod to pod.

Most pods have claims like those of the pod before: same class, same size. If a single label decides what they can get
(the zone, or the host name where volumes are local), the answers are kept by the value of that label, and only those
are worked out anew whose volumes or capacities have changed since: typically the one that the last pod took.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pilotage.api import Mask, NodeTable, Reason, Scores
from pilotage.change_log import ChangeLog
from pilotage.plugins.volume_binding.finding import BIND_CONFLICT, NO_SPACE, Found, VolumeFinder
from pilotage.plugins.volume_binding.topology import ELSEWHERE, Place

_KEPT_SHAPES: Final = 64
_REJECTIONS: Final = (None, BIND_CONFLICT, NO_SPACE)


class _Answers:
    """By value of one label: an entry for each value, and a last one for nodes without the label."""

    __slots__ = ("_place_of", "facts", "key", "marks", "rejections", "scores", "stale", "values")

    def __init__(self, key: str, facts: tuple[object, ...]) -> None:
        self.key = key
        self.facts = facts
        self.values: Sequence[str] = ()
        self.marks: tuple[int, ...] = ()
        self.rejections = np.zeros(1, dtype=np.int8)
        self.scores = np.zeros(1, dtype=np.int64)
        self.stale: set[int] = set()
        self._place_of: dict[str, int] = {}

    def follow(self, values: Sequence[str]) -> None:
        """Make room for values that are new; everything is new in another table."""
        known = len(self._place_of) if values is self.values else 0
        if values is self.values and known == len(values):
            return
        if values is not self.values:
            self.stale.clear()
        self._place_of = {value: place for place, value in enumerate(values)}
        self.rejections = _grown(self.rejections, known, len(values))
        self.scores = _grown(self.scores, known, len(values))
        self.stale.update(range(known, len(values) + 1))
        self.values = values

    def note(self, logs: Sequence[ChangeLog[Place]]) -> bool:
        """Take note of what has changed where nodes can reach it; False if that is not known any more."""
        if len(logs) != len(self.marks):
            return False
        for log, mark in zip(logs, self.marks, strict=True):
            changed = log.changed_since(mark)
            if changed is None:
                return False
            for key, value in changed:
                if (key, value) == ELSEWHERE:
                    self.stale.update(range(len(self.values) + 1))
                elif key == self.key and value in self._place_of:
                    self.stale.add(self._place_of[value])
        return True

    def labels_at(self, place: int) -> dict[str, str]:
        return {} if place == len(self.values) else {self.key: self.values[place]}


class SharedAnswers:
    """Answers by the shape of claims, for pods of one profile."""

    def __init__(self, score_of: Callable[[Found], int] | None) -> None:
        self._score_of = score_of
        self._known: OrderedDict[Hashable, _Answers] = OrderedDict()

    def rejections(self, finder: VolumeFinder, nodes: NodeTable) -> list[tuple[Mask, Reason]] | None:
        """Where unbound claims are rejected, and why; None if these claims have nothing in common with others."""
        answers = self._answers(finder, nodes)
        if answers is None:
            return None
        found: list[tuple[Mask, Reason]] = []
        if answers.rejections.any():
            column = answers.rejections[nodes.labels(answers.key)[0]]
            for code, reason in enumerate(_REJECTIONS):
                if reason is not None and (answers.rejections == code).any():
                    found.append((column == code, reason))
        return found

    def scores(self, finder: VolumeFinder, nodes: NodeTable) -> Scores | None:
        """The score of every node; None as above."""
        answers = self._answers(finder, nodes)
        return None if answers is None else answers.scores[nodes.labels(answers.key)[0]]

    def _answers(self, finder: VolumeFinder, nodes: NodeTable) -> _Answers | None:
        shape = finder.shape
        if shape is None:
            return None
        key, facts, logs = finder.keys[0], finder.facts, finder.logs
        answers = self._known.get(shape)
        if answers is None or answers.key != key or not _same(answers.facts, facts) or not answers.note(logs):
            answers = self._known[shape] = _Answers(key, facts)
            if len(self._known) > _KEPT_SHAPES:
                self._known.popitem(last=False)
        answers.marks = tuple(log.mark for log in logs)
        answers.follow(nodes.labels(key)[1])
        self._work_out(answers, finder)
        return answers

    def _work_out(self, answers: _Answers, finder: VolumeFinder) -> None:
        for place in answers.stale:
            found = finder.found(answers.labels_at(place))
            answers.rejections[place] = _REJECTIONS.index(found.rejection)
            answers.scores[place] = 0 if self._score_of is None else self._score_of(found)
        answers.stale.clear()


def _grown(column: NDArray[Any], known: int, size: int) -> NDArray[Any]:
    grown = np.zeros(size + 1, dtype=column.dtype)
    grown[:known] = column[:known]
    return grown


def _same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
