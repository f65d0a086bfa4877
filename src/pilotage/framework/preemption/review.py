"""Review of candidates for preemption by extenders, before one of them is chosen.

A search does not wait. With a `Review` in the cycle state it ends the cycle by `CandidatesFound`; when the answer is
there the pod's cycle runs again, and the search finds what the answer says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from pilotage.api.preemption import Candidate
from pilotage.api.results import Rejection
from pilotage.api.state import StateKey


class CandidatesFound(BaseException):
    """Ends the cycle: no `Exception`, so that no plugin goes on without the answer."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        super().__init__(f"{len(candidates)} candidates are to be reviewed")
        self.candidates = candidates


class Review(Struct, frozen=True):
    """What was said about the candidates; None: no extender was asked yet."""

    answer: tuple[Candidate, ...] | Exception | None = None


REVIEW: Final = StateKey[Review]("framework/review of candidates")


class ReviewedSearch:
    """Implements `pilotage.api.preemption.VictimSearch` with what a review has left."""

    is_reviewed = True

    def __init__(self, answer: tuple[Candidate, ...] | Exception) -> None:
        self.candidates = () if isinstance(answer, Exception) else answer
        self.errors = [answer] if isinstance(answer, Exception) else []

    @property
    def best(self) -> Candidate | None:
        return min(self.candidates, key=lambda candidate: candidate.cost, default=None)

    def rejections(self) -> Mapping[str, tuple[str, Rejection]]:
        return {}

    def rejectors(self) -> frozenset[str]:
        return frozenset()

    def message(self) -> str:
        return "no candidate node for preemption"
