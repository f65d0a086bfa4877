"""What a service asks of its elector: `LeaderElector` itself, or a process that runs one."""

from __future__ import annotations

from typing import Protocol

from pilotage.kube.election import ElectionTiming, LeaseName


class ElectionFacts(Protocol):
    """What pages and metrics show of an election."""

    @property
    def lease(self) -> LeaseName: ...

    @property
    def timing(self) -> ElectionTiming: ...

    @property
    def renewed_at(self) -> float | None:
        """When the bid was made that makes us the leader; None if none does."""


class Elector(Protocol):
    """One candidate."""

    @property
    def is_leading(self) -> bool:
        """May be asked at any time; turns false by itself when the deadline passes."""

    @property
    def slow_paths(self) -> int:
        """Renewals that had to read the lease again."""

    @property
    def election(self) -> ElectionFacts: ...

    async def acquire(self) -> None:
        """Return when we lead."""

    async def hold(self) -> str:
        """Return when leadership is lost, and why."""

    async def release(self) -> None:
        """Lead no more."""
