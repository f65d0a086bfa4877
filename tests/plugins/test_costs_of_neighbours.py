"""What pods with very many constraints, terms or volumes cost: themselves, others, and when they are gone.

Costs are counted in calls of functions, which are the same in every run, at a size and at four times that size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from pilotage.api import Budget, BudgetExceeded
from pilotage.api.budget import UNLIMITED
from pilotage.api.state import CycleState
from pilotage.assembly import build_scheduler, options_from_configuration
from pilotage.calls.no_api import NoApi
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.cycle.placement import Placed, Unplaced, place
from pilotage.cycle.scheduling_loop import SchedulingLoop
from pilotage.model import Pod
from pilotage.plugins.inter_pod_affinity.existing_terms import ExistingTerms
from pilotage.queue.sub_queues import SubQueue
from pilotage.rng import seeded
from pilotage.testing import PodBuilder, VirtualClock, node, pod

Json = dict[str, Any]
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_REQUIRED, _PREFERRED = (
    f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred")
)  # fmt: skip
EVERYBODY = {"namespaceSelector": {}}


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called by it."""
    calls = 0

    def note(frame: object, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def growth(cost: Callable[[int], int], size: int = 150) -> float:
    """How many times as much four times the size costs."""
    return cost(4 * size) / cost(size)


def scheduler(nodes: int = 24) -> SchedulingLoop:
    api: Any = NoApi()
    made = build_scheduler(api, VirtualClock(), seeded(1), options_from_configuration(SchedulerConfiguration()))
    for number in range(nodes):
        name = f"n{number}"
        built = node(name).label(HOSTNAME, name).label(ZONE, f"z{number % 3}").build()
        made.cluster.put_object("Node", built)
        made.cluster.put_node(built)
    return made


def attempt(made: SchedulingLoop, waiting: Pod, budget: Budget = UNLIMITED) -> Placed | Unplaced:
    made.cluster.put_object("Pod", waiting)
    engine = made.cycle.engines["default-scheduler"]
    return place(engine, CycleState(budget), waiting)


def run_on(made: SchedulingLoop, builder: PodBuilder, node_name: str) -> Pod:
    running = builder.node(node_name).build()
    made.cluster.put_pod(running)
    return running


def constraints(size: int, when: str = "DoNotSchedule") -> PodBuilder:
    listed = [
        {"maxSkew": 1, "topologyKey": f"k{i}", "whenUnsatisfiable": when, "labelSelector": {"matchLabels": {"a": "b"}}}
        for i in range(size)
    ]
    return pod("hostile").spec(topologySpreadConstraints=listed)


def term(key: str, selector: Json, **more: Any) -> Json:
    return {"topologyKey": key, "labelSelector": selector, **more}


def not_in(number: int) -> Json:
    return {"matchExpressions": [{"key": "x", "operator": "NotIn", "values": [f"v{number}"]}]}


def affine(kind: str, terms: list[Json], *, preferred: bool = False, name: str = "hostile") -> PodBuilder:
    listed = [{"weight": 1, "podAffinityTerm": each} for each in terms] if preferred else terms
    return pod(name).label("app", "hostile").spec(affinity={kind: {_PREFERRED if preferred else _REQUIRED: listed}})


def by_key(size: int) -> list[Json]:
    return [term(f"k{i}", {"matchLabels": {"app": "hostile"}}) for i in range(size)]


def by_selector(size: int) -> list[Json]:
    return [term(HOSTNAME, {"matchLabels": {"app": f"v{i}"}}) for i in range(size)]


def against_everybody(size: int) -> list[Json]:
    return [term(HOSTNAME, not_in(i), **EVERYBODY) for i in range(size)]


def disks(size: int) -> PodBuilder:
    volumes = [{"name": f"v{i}", "gcePersistentDisk": {"pdName": f"d{i}", "readOnly": True}} for i in range(size)]
    return pod("hostile").spec(volumes=volumes)


HOSTILE: dict[str, Callable[[int], PodBuilder]] = {
    "hard constraints": constraints,
    "soft constraints": lambda size: constraints(size, "ScheduleAnyway"),
    "affinity by key": lambda size: affine("podAffinity", by_key(size)),
    "anti-affinity by key": lambda size: affine("podAntiAffinity", by_key(size)),
    "preferences by key": lambda size: affine("podAffinity", by_key(size), preferred=True),
    "affinity by selector": lambda size: affine("podAffinity", by_selector(size)),
    "anti-affinity by selector": lambda size: affine("podAntiAffinity", by_selector(size)),
    "preferences by selector": lambda size: affine("podAntiAffinity", by_selector(size), preferred=True),
    "disks": disks,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_cycle_of_a_pod_is_linear_in_what_the_pod_asks_for(kind: str) -> None:
    def cost(size: int) -> int:
        made = scheduler()
        for number in range(20):
            run_on(made, pod(f"p{number}").label("app", f"v{number}"), f"n{number}")
        run_on(made, disks(size), "n1")
        waiting = HOSTILE[kind](size).build()
        return calls_of(lambda: attempt(made, waiting))

    assert growth(cost) < 5


RUNNING: dict[str, Callable[[int], PodBuilder]] = {
    "many that mean it": lambda size: affine("podAntiAffinity", against_everybody(size)),
    "many that do not mean it": lambda size: affine("podAntiAffinity", by_selector(size)),
    "many of keys that no node has": lambda size: affine("podAntiAffinity", [
        term(f"k{i}", not_in(i), **EVERYBODY) for i in range(size)
    ]),
}  # fmt: skip


@pytest.mark.parametrize("kind", RUNNING)
def test_pod_pays_nothing_for_the_number_of_terms_of_running_pods(kind: str) -> None:
    def cost(size: int) -> int:
        made = scheduler()
        run_on(made, RUNNING[kind](size), "n1")
        attempt(made, pod("first").label("number", "1").build())
        return calls_of(lambda: attempt(made, pod("second").label("number", "2").build()))

    assert growth(cost) < 1.2


def test_pod_kept_out_by_one_of_many_terms_goes_elsewhere() -> None:
    made = scheduler(nodes=2)
    run_on(made, affine("podAntiAffinity", against_everybody(50)), "n0")
    found = attempt(made, pod("canary").build())
    assert isinstance(found, Placed) and found.node_name == "n1"


def test_terms_of_a_key_begin_to_count_when_a_node_gets_the_key() -> None:
    made = scheduler(nodes=2)
    run_on(made, affine("podAntiAffinity", [term("rack", {}, **EVERYBODY)]), "n0")
    assert isinstance(attempt(made, pod("early").build()), Placed)
    for name in ("n0", "n1"):
        made.cluster.put_node(node(name).label(HOSTNAME, name).label("rack", "r").build())
    assert isinstance(attempt(made, pod("late").build()), Unplaced)
    made.cluster.put_node(node("n0").label(HOSTNAME, "n0").build())
    assert isinstance(attempt(made, pod("later").build()), Placed)


def test_namespaces_and_values_of_a_term_are_not_multiplied() -> None:
    made = scheduler()
    names, values = [f"ns{i}" for i in range(2_000)], [f"v{i}" for i in range(2_000)]
    wide = term(ZONE, {"matchExpressions": [{"key": "app", "operator": "In", "values": values}]}, namespaces=names)
    index = made.cluster.index(ExistingTerms)
    run_on(made, affine("podAntiAffinity", [wide]), "n1")
    assert len(index._repelling._filed) < 10
    rejected = attempt(made, pod("meant").namespace("ns7").label("app", "v1999").node_selector(**{ZONE: "z1"}).build())
    assert isinstance(rejected, Unplaced)


def test_nothing_is_left_of_terms_when_their_pods_are_gone() -> None:
    made = scheduler()
    index = made.cluster.index(ExistingTerms)
    kept = run_on(made, affine("podAntiAffinity", [term(ZONE, {"matchLabels": {"a": "b"}})], name="kept"), "n2")
    gone = run_on(made, affine("podAntiAffinity", [*against_everybody(300), *by_key(300)]), "n1")
    attempt(made, pod("canary").build())
    made.cluster.remove_pod(gone.uid)
    attempt(made, pod("canary").build())
    books = (index._repelling, index._attracting)
    assert sum(len(entry.group.members) for book in books for entry in (*book.entries(), *book._in_order)) <= 2
    index.check()
    made.cluster.remove_pod(kept.uid)
    assert index.is_empty and not index._repelling._filed


@pytest.mark.parametrize("kind", ["anti-affinity by selector", "preferences by selector", "affinity by selector"])
def test_wide_questions_are_not_kept_up_to_date_for_everyone(kind: str) -> None:
    made = scheduler()
    attempt(made, HOSTILE[kind](1_000).build())
    assert not made.cluster.counts._answers


def ticking(seconds_per_look: float = 0.01) -> Callable[[], float]:
    """A CPU clock that goes on whenever somebody looks at it."""
    ticks = count()
    return lambda: next(ticks) * seconds_per_look


def modules_of(error: BaseException) -> Iterator[str]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_globals["__name__"]
        trace = trace.tb_next


@pytest.mark.parametrize(
    ("kind", "plugin"),
    [
        ("hard constraints", "pod_topology_spread"),
        ("affinity by key", "inter_pod_affinity"),
        ("anti-affinity by key", "inter_pod_affinity"),
        ("preferences by key", "inter_pod_affinity"),
        ("anti-affinity by selector", "inter_pod_affinity"),
        ("disks", "disk_conflicts"),
    ],
)
def test_long_loops_notice_that_the_time_is_over(kind: str, plugin: str) -> None:
    made = scheduler()
    waiting = HOSTILE[kind](6_000).build()
    with pytest.raises(BudgetExceeded) as exceeded:
        attempt(made, waiting, Budget(0.005, cpu_seconds=ticking()))
    assert any(plugin in name for name in modules_of(exceeded.value))
    undisturbed = attempt(scheduler(), HOSTILE[kind](6_000).build())
    assert type(attempt(made, waiting)) is type(undisturbed), "what was begun has left nothing half-done behind"


def test_search_for_victims_notices_that_the_time_is_over() -> None:
    made = scheduler(nodes=60)
    for number in range(60):
        run_on(made, pod(f"p{number}").requests(cpu="3"), f"n{number}")
    waiting = pod("preemptor").requests(cpu="3").spec(priority=10).build()
    with pytest.raises(BudgetExceeded) as exceeded:
        attempt(made, waiting, Budget(0.5, cpu_seconds=ticking()))
    assert any("framework.preemption" in name for name in modules_of(exceeded.value))
    found = attempt(made, waiting)
    assert isinstance(found, Unplaced) and found.nomination.node_name


@pytest.mark.parametrize("kind", ["hard constraints", "affinity by key", "affinity by selector"])
def test_event_costs_the_same_however_much_a_waiting_pod_asks_for(kind: str) -> None:
    def cost(size: int) -> int:
        made = scheduler()
        made.cluster.put_object("Pod", waiting := HOSTILE[kind](size).build())
        made.queue.add(waiting)
        ticket = made.queue.pop()
        assert ticket is not None
        made.cycle.decide(ticket)
        made.cycle.end()
        assert made.queue.size(SubQueue.UNSCHEDULABLE) == 1
        changed = [pod(f"p{i}").label("app", "other").node("n1").build() for i in range(3)]

        def events() -> None:
            for other in changed:
                made.intake._put_pod(other)
                made.intake._remove_pod(other)
            made.intake._put_node(node("n3").label(HOSTNAME, "n3").label("new", "label").build())

        events()
        changed = [pod(f"q{i}").label("app", "other").node("n1").build() for i in range(3)]
        return calls_of(events)

    assert growth(cost) < 1.3
