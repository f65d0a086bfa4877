"""Rejections as small numbers, so that verdicts about thousands of nodes are one column."""

from __future__ import annotations

from pilotage.framework.diagnosis import Rejected


class RejectionCodes:
    """Distinct rejections, each with the number under which columns mention it."""

    __slots__ = ("_number_of", "rejections")

    def __init__(self) -> None:
        self.rejections: list[Rejected] = []
        self._number_of: dict[Rejected, int] = {}

    def number(self, rejected: Rejected) -> int:
        """The number that stands for this rejection, 0 or more."""
        known = self._number_of.get(rejected)
        if known is None:
            known = self._number_of[rejected] = len(self.rejections)
            self.rejections.append(rejected)
        return known

    def __getitem__(self, number: int) -> Rejected:
        return self.rejections[number]
