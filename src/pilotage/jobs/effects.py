"""What the engine wants done: typed effects, which the shell turns into API calls, events and metrics.

The engine never waits for an effect. It goes on as if a status were written; if a write is refused for good the shell
says so (`JobQueueing.write_rejected`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pilotage.model.kueue import Workload

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """Write this status. All changes of a workload since the effects were last taken are one effect.

    The job's adapter reads from it what to do: start when Admitted is True, stop when Evicted is True or Admitted is
    not; and tell the engine (`pods_gone`) when the last pod of an evicted workload is gone.
    """

    key: str
    now: Callable[[], Workload]

    @property
    def workload(self) -> Workload:
        """As it is when asked for: many changes are joined to one write before anybody looks."""
        return self.now()


@dataclass(frozen=True, slots=True)
class Deactivate:
    """Set `spec.active` to false. The engine goes on when it sees the change."""

    key: str
    uid: str


@dataclass(frozen=True, slots=True)
class Event:
    """Record an event on a workload."""

    key: str
    uid: str
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Counted:
    """Add to a counter; names are without the prefix `kueue_`.

    What has the labels `name` and `namespace` is about a LocalQueue too and is counted for that as well.
    """

    metric: str
    labels: Labels
    amount: float = 1.0


@dataclass(frozen=True, slots=True)
class Observed:
    """Observe a value in a histogram."""

    metric: str
    labels: Labels
    value: float


Effect = StatusChanged | Deactivate | Event | Counted | Observed
