"""Several profiles in one scheduler: one queue and one cluster, other plugins, arguments and ways over the nodes."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from pilotage.api import CycleState, NodeView, Permit, Plugin, Rejection, Score, Wait
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.config.load import configuration_of
from pilotage.model import Pod
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import live


class Counted(Plugin, Score, Permit):
    """Prefers the last node; counts its instances and what they were asked."""

    made: ClassVar[int] = 0
    asked: ClassVar[list[str]] = []

    def __init__(self) -> None:
        type(self).made += 1

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 100 if node.name == "z" else 0

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Wait | Rejection | None:
        self.asked.append(pod.name)
        return None


def configuration(*profiles: dict[str, Any], **fields: Any) -> SchedulerConfiguration:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return configuration_of({**head, "profiles": list(profiles), **fields})


WITH = {"schedulerName": "with", "plugins": {"multiPoint": {"enabled": [{"name": "Counted", "weight": 50}]}}}
WITHOUT = {"schedulerName": "without", "plugins": {"multiPoint": {"disabled": [{"name": "Counted"}]}}}
NO_SCORES = {
    "schedulerName": "no-scores",
    "plugins": {"preScore": {"disabled": [{"name": "*"}]}, "score": {"disabled": [{"name": "*"}]}},
}


async def test_each_pod_is_scheduled_by_the_profile_that_it_names() -> None:
    Counted.made, Counted.asked[:] = 0, []
    async with live(Counted, configuration=configuration(WITH, WITHOUT)) as world:
        await world.put(node("a"), node("z"), pod("p").scheduler("with"))
        await world.put(pod("q").scheduler("without").requests(cpu="1"), pod("stranger"))
        assert (world.node_of("p"), world.node_of("q"), world.node_of("stranger")) == ("z", "a", "")
        assert Counted.asked == ["p"]
    assert Counted.made == 1


async def test_a_plugin_is_made_once_for_each_profile_that_has_it() -> None:
    Counted.made = 0
    async with live(Counted, configuration=configuration(WITH, {**WITH, "schedulerName": "too"}, WITHOUT)):
        assert Counted.made == 2


async def test_profiles_see_the_pods_of_each_other() -> None:
    async with live(Counted, configuration=configuration(WITH, WITHOUT)) as world:
        full = node("a").cpu("1")
        await world.put(full, pod("p").scheduler("with").requests(cpu="1"))
        await world.put(pod("q").scheduler("without").requests(cpu="1"))
        assert world.node_of("p") == "a"
        assert world.condition("q")[2].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        world.api.delete_pod("p")
        await world.after(2)
        assert world.node_of("q") == "a"


async def test_one_queue_serves_all_profiles_by_priority() -> None:
    Counted.asked[:] = []
    profiles = configuration({**WITH, "schedulerName": "one"}, {**WITH, "schedulerName": "two"})
    async with live(Counted, configuration=profiles) as world:
        world.api.put_node(node("a"))
        world.api.create_pod(pod("low").scheduler("one").priority(1), pod("high").scheduler("two").priority(9))
        await world.settle()
        assert Counted.asked == ["high", "low"]


async def test_a_profile_without_scores_takes_the_nodes_in_turn() -> None:
    async with live(configuration=configuration(NO_SCORES)) as world:
        await world.put(*(node(name) for name in "abc"), *(pod(f"p{n}").scheduler("no-scores") for n in range(6)))
        assert [world.node_of(f"p{n}") for n in range(6)] == ["a", "b", "c", "a", "b", "c"]


async def test_a_percentage_of_the_nodes_is_scored_if_the_configuration_asks_for_it() -> None:
    """The node that every plugin likes best is not seen before the walk comes to it."""
    profile = {**WITH, "percentageOfNodesToScore": 50}
    async with live(Counted, configuration=configuration(profile)) as world:
        await world.put(*(node(f"n{number:03}") for number in range(199)), node("z"))
        await world.put(pod("p").scheduler("with"), pod("q").scheduler("with"))
        assert world.node_of("p") == "n000" and world.node_of("q") == "z"


async def test_all_nodes_are_scored_if_nothing_is_said() -> None:
    async with live(Counted, configuration=configuration(WITH)) as world:
        await world.put(*(node(f"n{number:03}") for number in range(199)), node("z"))
        await world.put(*(pod(f"p{number}").scheduler("with") for number in range(5)))
        assert Counter(world.node_of(f"p{number}") for number in range(5)) == {"z": 5}
