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
    scheduled_after_flush: int = 0
    """Pods that nothing but the sweep of leftovers had woken: each is a hint that missed something."""
    hint_errors: Counter[str] = field(default_factory=Counter)
    narrowings: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Evaluations of pre-queueing hints by (plugin, `narrowed` or `all_pods`)."""
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Pods that came into a part of the queue, by (part, event)."""
    plugin_errors: Counter[str] = field(default_factory=Counter)
    slow_plugins: Counter[str] = field(default_factory=Counter)
    """How often a plugin kept everything else waiting for too long."""
    cycle_cpu_seconds: float = 0.0
    """CPU spent in scheduling cycles: from pop to the binding being submitted."""
    intake_cpu_seconds: float = 0.0
    """CPU spent in taking in watch events."""

    def count_hint_error(self, plugin: str) -> None:
        self.hint_errors[plugin] += 1

    def count_narrowing(self, plugin: str, result: str) -> None:
        self.narrowings[plugin, result] += 1

    def count_move(self, part: str, event: str) -> None:
        self.moves[part, event] += 1
