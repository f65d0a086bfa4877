"""What one pod or node may say is long: work grows with it, not with its square, and asks for time on its way."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from itertools import count
from time import process_time
from typing import Any

import pytest

from pilotage.api import Budget, BudgetExceeded, CycleState, Filter, NodeView, Plugin, Rejection, Score
from pilotage.cluster.state import Cluster
from pilotage.framework.node_questions import NodeQuestions
from pilotage.library import Framework
from pilotage.model import Pod
from pilotage.plugins.args import NodeResourcesFitArgs
from pilotage.plugins.image_locality import ImageLocality
from pilotage.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from pilotage.plugins.node_ports import NodePorts, UsedPorts
from pilotage.plugins.node_resources_fit import NodeResourcesFit
from pilotage.plugins.taint_toleration import TaintToleration
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.framework.scripted_plugins import profile_of
from tests.plugins.handle import with_handle
from tests.plugins.one_plugin import OnePlugin

HOST = "kubernetes.io/hostname"


def amounts(number: int) -> dict[str, str]:
    return {f"r{at}.io/a": "1" for at in range(number)}


def rich_node(number: int, name: str = "a") -> NodeBuilder:
    """One that offers that many resources."""
    offered = {"cpu": "4", "memory": "16Gi", "pods": "110", **amounts(number)}
    return node(name).status(allocatable=offered, capacity=offered)


def by_host(number: int) -> list[dict[str, Any]]:
    return [{"key": HOST, "operator": "In", "values": [f"n{at}"]} for at in range(number)]


def with_terms(number: int) -> PodBuilder:
    return pod("p").node_affinity_terms(*({"matchExpressions": [term]} for term in by_host(number)))


def with_preferred(number: int) -> PodBuilder:
    preferred = [{"weight": 1, "preference": {"matchExpressions": [term]}} for term in by_host(number)]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    return pod("p").spec(affinity=affinity)


def with_ports(number: int, address: Callable[[int], str] = lambda at: "") -> PodBuilder:
    ports = [{"containerPort": 1, "hostPort": 1 + at % 60_000, "hostIP": address(at)} for at in range(number)]
    return pod("p").spec(containers=[{"name": "c", "image": "i", "ports": ports}])


def with_images(number: int) -> PodBuilder:
    return pod("p").spec(containers=[{"name": f"c{at}", "image": f"i{at}:v"} for at in range(number)])


def with_sidecars(number: int) -> PodBuilder:
    sidecars = [
        {"name": f"s{at}", "image": "i", "restartPolicy": "Always", "resources": {"requests": {f"r{at}.io/a": "1"}}}
        for at in range(number)
    ]
    return pod("p").spec(initContainers=sidecars)


# --- budgets ----------------------------------------------------------------------------------------------------------


def impatient() -> Budget:
    """Exceeded as soon as somebody looks at the clock."""
    ticks = count()
    return Budget(0.0, lambda: float(next(ticks)))


def asked(plugin: str, ask: str, number: int) -> Callable[[CycleState], object]:
    """One question to one plugin about a node and a pod that have `number` of what the plugin looks at."""
    worlds: dict[str, Callable[[], tuple[OnePlugin, PodBuilder]]] = {
        "NodeResourcesFit": lambda: (
            with_handle(lambda handle: NodeResourcesFit(handle, NodeResourcesFitArgs()), rich_node(number)),
            pod("p").requests(amounts(number)),
        ),
        "NodeAffinity": lambda: (OnePlugin(NodeAffinity(NodeAffinityArgs()), node("a")), with_terms(number)),
        "preferred": lambda: (OnePlugin(NodeAffinity(NodeAffinityArgs()), node("a")), with_preferred(number)),
        "NodePorts": lambda: (with_handle(NodePorts, node("a")), with_ports(number)),
        "ImageLocality": lambda: (with_handle(ImageLocality, node("a")), with_images(number)),
        "TaintToleration": lambda: (
            OnePlugin(TaintToleration(), node("a").spec(taints=list(tolerated_taints(number)))),
            pod("p").tolerate(),
        ),
    }
    world, built = worlds[plugin]()
    made = built.build()

    def question(state: CycleState) -> object:
        answer = getattr(world.plugin, ask)(state, made, world.cluster.nodes)
        return list(answer) if isinstance(answer, Iterator) else answer

    return question


def tolerated_taints(number: int) -> Iterator[dict[str, str]]:
    for at in range(number):
        yield {"key": f"t{at}", "effect": "NoSchedule" if at % 2 else "PreferNoSchedule"}


@pytest.mark.parametrize(
    ("plugin", "ask"),
    [
        ("NodeResourcesFit", "filter_all"),
        ("NodeAffinity", "filter_all"),
        ("preferred", "score_all"),
        ("NodePorts", "filter_all"),
        ("ImageLocality", "score_all"),
        ("TaintToleration", "filter_all"),
        ("TaintToleration", "score_all"),
    ],
)
def test_a_plugin_asks_for_time_while_it_looks_at_many(plugin: str, ask: str) -> None:
    asked(plugin, ask, 20)(CycleState(impatient()))
    with pytest.raises(BudgetExceeded):
        asked(plugin, ask, 3000)(CycleState(impatient()))


class Slow(Plugin, Filter, Score):
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 0


@pytest.mark.parametrize("ask", ["filter", "score"])
def test_a_plugin_that_is_asked_node_by_node_ends_with_the_budget(ask: str) -> None:
    cluster, plugin = Cluster(), Slow()
    for number in range(1100):
        cluster.put_node(node(f"n{number}").build())
    questions = NodeQuestions(profile_of(plugin), cluster.nodes)
    rows, state, built = cluster.nodes.order, CycleState(impatient()), pod("p").build()
    with pytest.raises(BudgetExceeded):
        if ask == "filter":
            questions.passing(state, built, (("Slow", plugin),), cluster.nodes, rows)
        else:
            questions.raw_scores(state, built, plugin, cluster.nodes, rows)


# --- growth -----------------------------------------------------------------------------------------------------------


def growth(prepare: Callable[[int], Callable[[], object]], number: int) -> float:
    """How much more CPU time four times as much takes; what is quadratic takes sixteen times as much.

    The machine, and the garbage of other tests, can only make one of the two look slower: the least of several tries.
    """

    def seconds(size: int) -> float:
        run = prepare(size)
        gc.disable()
        try:
            began = process_time()
            run()
            return process_time() - began
        finally:
            gc.enable()

    def best_of_three(size: int) -> float:
        return min(seconds(size) for _ in range(3))

    return min(best_of_three(4 * number) / max(best_of_three(number), 1e-4) for _ in range(3))


def rejected_by_all(size: int) -> Callable[[], object]:
    framework, built = Framework(*(node(f"n{at}").json() for at in range(20))), pod("p").requests(amounts(size)).json()
    return lambda: framework.fits(built)


def tolerations_and_taints(size: int) -> Callable[[], object]:
    taints = [{"key": f"t{at}", "effect": "NoSchedule"} for at in range(size)]
    tolerations = [{"key": f"t{at}", "operator": "Exists"} for at in range(size)]
    world = OnePlugin(TaintToleration(), node("a").spec(taints=taints))
    built = pod("p").spec(tolerations=tolerations)
    return lambda: world.rejected(built) == []


def ports_that_others_use(size: int) -> Callable[[], object]:
    used = with_ports(size, lambda at: f"10.0.{at // 256}.{at % 256}").node("a")
    wanted = with_ports(size, lambda at: f"10.1.{at // 256}.{at % 256}")
    world = with_handle(NodePorts, node("a"), pods=[used])
    return lambda: world.rejected(wanted)


def selector_by_host(size: int) -> Callable[[], object]:
    world, built = OnePlugin(NodeAffinity(NodeAffinityArgs()), *(node(f"n{at}") for at in range(50))), with_terms(size)
    return lambda: world.rejected(built)


def sums_of_sidecars(size: int) -> Callable[[], object]:
    framework, built = Framework(node("a").json()), with_sidecars(size).json()
    return lambda: framework.fits(built)


@pytest.mark.parametrize(
    ("prepare", "number"),
    [
        (rejected_by_all, 1000),
        (tolerations_and_taints, 500),
        (ports_that_others_use, 500),
        (selector_by_host, 1000),
        (sums_of_sidecars, 500),
    ],
)
def test_work_grows_with_what_is_there_and_not_with_its_square(
    prepare: Callable[[int], Callable[[], object]], number: int
) -> None:
    assert growth(prepare, number) < 10


# --- what is said and what is left ------------------------------------------------------------------------------------


def test_a_pod_with_thousands_of_resources_is_rejected_with_a_few_names_and_a_number() -> None:
    framework = Framework(node("a").json(), node("b").json())
    reasons = framework.fits(pod("p").requests(cpu="100").requests(amounts(3000)).json()).reasons["a"]
    assert reasons[0] == "Insufficient cpu" or "Insufficient cpu" in reasons
    assert len(reasons) == 65
    assert reasons[-1] == "Insufficient amounts of 2937 more resources"


def test_up_to_64_resources_are_all_named() -> None:
    reasons = Framework(node("a").json()).fits(pod("p").requests(amounts(64)).json()).reasons["a"]
    assert reasons == [f"Insufficient r{number}.io/a" for number in range(64)]


def test_resources_beyond_the_first_count_too() -> None:
    """Asked in columns and node by node, which must agree."""
    world = with_handle(
        lambda handle: NodeResourcesFit(handle, NodeResourcesFitArgs()), rich_node(200), rich_node(199, "b"), node("c")
    )
    reasons = world.reasons(pod("p").requests(amounts(200)))
    assert reasons["a"] == []
    assert [reason.message for reason in reasons["b"]] == ["Insufficient amounts of 136 more resources"]
    assert len(reasons["c"]) == 65 and all(reason.unresolvable for reason in reasons["c"])


def test_what_others_have_taken_of_the_rest_may_be_given_back() -> None:
    world = with_handle(
        lambda handle: NodeResourcesFit(handle, NodeResourcesFitArgs()),
        rich_node(200),
        pods=[pod("q").requests({"r150.io/a": "1"}).node("a")],
    )
    (reason,) = world.reasons(pod("p").requests(amounts(200)))["a"]
    assert not reason.unresolvable


def test_host_ports_are_forgotten_with_the_pods_that_used_them() -> None:
    world = with_handle(NodePorts, node("a"))
    index = world.cluster.index(UsedPorts)
    users = [with_ports(50, lambda at: f"10.0.0.{at}"), with_ports(50)]
    for number, user in enumerate(users):
        world.cluster.put_pod(user.uid(f"u{number}").node("a").build())
    assert world.rejected(with_ports(1)) == ["a"]
    for number in range(len(users)):
        world.cluster.remove_pod(f"u{number}")
    assert not index._users and world.rejected(with_ports(1)) == []


def test_signatures_stay_small_whatever_a_pod_says() -> None:
    plugins = [
        with_handle(lambda handle: NodeResourcesFit(handle, NodeResourcesFitArgs()), node("a")).plugin,
        NodeAffinity(NodeAffinityArgs()),
        with_handle(NodePorts, node("a")).plugin,
        with_handle(ImageLocality, node("a")).plugin,
        TaintToleration(),
    ]
    tolerations = [{"key": f"t{at}", "operator": "Exists"} for at in range(500)]
    selector = {f"k{at}": "v" for at in range(500)}
    pods = [pod("p").requests(amounts(500)), with_terms(500), with_ports(500), with_images(500)]
    pods += [pod("p").node_selector(selector), pod("p").spec(tolerations=tolerations)]
    for plugin in plugins:
        signed = [plugin.sign(built.build()) for built in pods]
        assert max(len(repr(one)) for one in signed) < 2000
        assert [plugin.sign(built.build()) for built in pods] == signed
        assert len(set(signed)) > 1, "what the plugin looks at makes a difference"
