"""What a plugin costs: two profiles of one scheduler, without and with it, take turns on the same cluster.

Machines are rarely quiet, and two runs one after the other may differ by more than a plugin costs. So the profiles take
turns of a fraction of a second in one process: what slows the machine down slows both, and the median of the ratios of
neighbouring turns says what the plugin adds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

from pilotage.assembly import SchedulerOptions
from pilotage.bench.measure import BindingTimeline
from pilotage.bench.stage import BenchStage
from pilotage.bench.workloads import BenchWorkload, Object
from pilotage.clock import Clock, cpu_seconds
from pilotage.framework.profile_spec import ProfileRecipe

DEFAULT_TURNS: Final = 24
_WITHOUT, _WITH = "without-plugin", "with-plugin"


@dataclass(frozen=True, slots=True)
class Turn:
    """What one profile needed for its share of the pods."""

    pods: int
    seconds: float
    cpu_seconds: float
    own_cpu_seconds: float

    @property
    def pods_per_second(self) -> float:
        return self.pods / self.seconds

    @property
    def cpu_micros(self) -> float:
        """CPU per pod of everything in the process."""
        return self.cpu_seconds / self.pods * 1e6

    @property
    def own_micros(self) -> float:
        """CPU per pod of the scheduler alone."""
        return self.own_cpu_seconds / self.pods * 1e6


@dataclass(frozen=True, slots=True)
class Contrast:
    """One figure of both profiles: medians, and the median of the ratios within pairs of turns."""

    without: float
    having: float
    ratio: float

    def as_json(self) -> dict[str, float]:
        return {"without": round(self.without, 1), "with": round(self.having, 1), "ratio": round(self.ratio, 4)}


@dataclass(frozen=True, slots=True)
class PluginCost:
    """Turns in pairs: without and with the plugin."""

    workload: str
    nodes: int
    pairs: list[tuple[Turn, Turn]]

    def contrast(self, figure: str) -> Contrast:
        values = [(getattr(without, figure), getattr(having, figure)) for without, having in self.pairs]
        return Contrast(
            median(without for without, _ in values),
            median(having for _, having in values),
            median(having / without for without, having in values),
        )

    def turns_in_words(self) -> str:
        return f"{len(self.pairs)} turns of {self.pairs[0][0].pods:,} pods each"

    def as_json(self) -> dict[str, Any]:
        figures = {"podsPerSecond": "pods_per_second", "cpuMicros": "cpu_micros", "schedulerMicros": "own_micros"}
        return {
            "workload": self.workload,
            "nodes": self.nodes,
            "turns": len(self.pairs),
            "podsPerTurn": self.pairs[0][0].pods,
            **{name: self.contrast(figure).as_json() for name, figure in figures.items()},
        }


class PluginCostBench:
    """One comparison. The workload's pods are shared out evenly among the turns."""

    def __init__(
        self,
        workload: BenchWorkload,
        clock: Clock,
        rng: random.Random,
        options: SchedulerOptions,
        without: ProfileRecipe,
        having: ProfileRecipe,
        turns: int = DEFAULT_TURNS,
    ) -> None:
        """`turns` for each of the two."""
        self._workload = replace(workload, make_init_pod=_made_for(_WITHOUT, workload.make_init_pod))
        self._turns = turns
        self._per_turn = max(1, workload.pods // (2 * turns))
        profiles = {_WITHOUT: without, _WITH: having}
        self._stage = BenchStage(self._workload, clock, rng, replace(options, profiles=profiles), latency_seconds=0.0)
        self._made = 0

    async def run(self) -> PluginCost:
        pairs = []
        async with self._stage.running():
            for profile in (_WITHOUT, _WITH):  # both know the nodes before anything counts
                await self._turn(profile)
            for number in range(self._turns):
                order = (_WITHOUT, _WITH) if number % 2 == 0 else (_WITH, _WITHOUT)
                turns = {profile: await self._turn(profile) for profile in order}
                pairs.append((turns[_WITHOUT], turns[_WITH]))
                self._stage.progress.show("turns of each profile", number + 1, self._turns)
        return PluginCost(self._workload.name, self._workload.nodes, pairs)

    async def _turn(self, profile: str) -> Turn:
        stage = self._stage
        timeline = stage.timeline = BindingTimeline()
        own, cpu = stage.own_cpu_seconds(), cpu_seconds()
        await stage.schedule(profile, self._pods(profile))
        cpu, own = cpu_seconds() - cpu, stage.own_cpu_seconds() - own
        return Turn(len(timeline.bound), timeline.seconds(), cpu, own)

    def _pods(self, profile: str) -> Iterator[Object]:
        make = _made_for(profile, self._workload.make_pod)
        for _ in range(self._per_turn):
            yield make(self._made)
            self._made += 1


def _made_for(profile: str, make: Callable[[int], Object]) -> Callable[[int], Object]:
    def pod(number: int) -> Object:
        made = make(number)
        made["spec"]["schedulerName"] = profile
        return made

    return pod
