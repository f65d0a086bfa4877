"""What queueing knows about a job of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class JobEnding:
    """How a job ended."""

    succeeded: bool
    message: str

    @property
    def reason(self) -> str:
        return "Succeeded" if self.succeeded else "Failed"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the job reports about its pods."""

    is_suspended: bool
    """Its pods are not started, or are on their way out."""
    has_active_pods: bool
    are_pods_ready: bool
    ending: JobEnding | None = None
    reclaimable: Mapping[str, int] = field(default_factory=dict)
    """By pod set: pods whose quota is not needed any more."""
