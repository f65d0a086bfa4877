"""Refusals as small numbers, so that verdicts about thousands of nodes are one column."""

from __future__ import annotations

from pilotage.framework.diagnosis import Refused


class RefusalCodes:
    """Distinct refusals, each with the number under which columns mention it."""

    __slots__ = ("_number_of", "refusals")

    def __init__(self) -> None:
        self.refusals: list[Refused] = []
        self._number_of: dict[Refused, int] = {}

    def number(self, refused: Refused) -> int:
        """The number that stands for this refusal, 0 or more."""
        known = self._number_of.get(refused)
        if known is None:
            known = self._number_of[refused] = len(self.refusals)
            self.refusals.append(refused)
        return known

    def __getitem__(self, number: int) -> Refused:
        return self.refusals[number]
