"""Where something has changed lately: so that what was worked out before can be kept for all other places."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from pilotage.plugins.volume_binding.topology import Place

_KEPT: Final = 4096


class ChangeLog:
    """The places of the latest changes, oldest first."""

    def __init__(self) -> None:
        self.mark = 0
        """How many changes there have been."""
        self._places: deque[Place] = deque(maxlen=_KEPT)

    def note(self, places: Iterable[Place]) -> None:
        for place in places:
            self._places.append(place)
            self.mark += 1

    def reaches(self, mark: int) -> bool:
        """Are all changes since then still known?"""
        return self.mark - mark <= len(self._places)

    def since(self, mark: int) -> Iterator[Place]:
        return islice(reversed(self._places), self.mark - mark)
