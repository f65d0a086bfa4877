"""Plain counters of the scheduler loop, cheap enough for the hot path; metrics and benchmarks read them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    attempts: int = 0
    scheduled: int = 0
    unschedulable: int = 0
    errors: int = 0
    hint_errors: Counter[str] = field(default_factory=Counter)
    plugin_errors: Counter[str] = field(default_factory=Counter)
    slow_plugins: Counter[str] = field(default_factory=Counter)
    """How often a plugin kept everything else waiting for too long."""
    cycle_cpu_seconds: float = 0.0
    """CPU spent in scheduling cycles: from pop to the binding being submitted."""
    intake_cpu_seconds: float = 0.0
    """CPU spent in taking in watch events."""
