"""Two profiles take turns, and what the plugin does costs only one of them."""

from __future__ import annotations

import dataclasses

from pilotage.api import CycleState, NodeTable, Plugin, Scores, VectorScore
from pilotage.assembly import SchedulerOptions, options_from_configuration
from pilotage.bench.plugin_cost import PluginCost, PluginCostBench, Turn
from pilotage.bench.workloads import SCHEDULING_BASIC
from pilotage.clock import SystemClock
from pilotage.config.load import default_configuration
from pilotage.framework.profile_spec import ProfileRecipe
from pilotage.model import Pod
from pilotage.rng import seeded

_asked: list[str] = []


class Busy(Plugin, VectorScore):
    """Notes for whom it is asked, and takes its time."""

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        _asked.append(pod.name)
        sum(range(50_000))
        return nodes.pod_count * 0


def _recipe(*plugins: type[Plugin]) -> ProfileRecipe:
    (recipe,) = options_from_configuration(default_configuration(), plugins).profiles.values()
    return recipe


async def test_only_the_profile_with_the_plugin_asks_it_and_pays_for_it() -> None:
    workload = dataclasses.replace(SCHEDULING_BASIC, nodes=5, init_pods=3, pods=60)
    options = SchedulerOptions(extra_plugins=(Busy,))
    _asked.clear()
    bench = PluginCostBench(workload, SystemClock(), seeded(1), options, _recipe(), _recipe(Busy), turns=3)
    cost = await bench.run()
    assert len(cost.pairs) == 3 and all(turn.pods == 10 for pair in cost.pairs for turn in pair)
    assert len(set(_asked)) == 40, "ten pods in each of its three turns and in the one that does not count"
    assert cost.contrast("own_micros").ratio > 1


def test_the_ratio_is_the_median_of_neighbouring_turns() -> None:
    def turn(cpu: float) -> Turn:
        return Turn(pods=100, seconds=1.0, cpu_seconds=cpu, own_cpu_seconds=cpu / 2)

    # The machine became slower in the middle: medians of all turns would say 2.0.
    pairs = [(turn(1.0), turn(1.1)), (turn(1.0), turn(2.2)), (turn(2.0), turn(2.2))]
    cost = PluginCost("SchedulingBasic", 5, pairs)
    assert round(cost.contrast("cpu_micros").ratio, 3) == 1.1
    assert cost.as_json()["schedulerMicros"] == {"without": 5000.0, "with": 11000.0, "ratio": 1.1}
    assert cost.turns_in_words() == "3 turns of 100 pods each"
