"""DefaultPreemption: who preempts, how many candidates are enough, the message and what becomes of the nomination."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pilotage.api import Action, Candidate, CycleState, Hint, Nominate, Reason, Reject, Resource
from pilotage.conformance.cases import load_cases
from pilotage.conformance.replay import replay
from pilotage.model import Pod
from pilotage.plugins.args import DefaultPreemptionArgs
from pilotage.plugins.default_preemption import DefaultPreemption
from pilotage.rng import seeded
from pilotage.testing import NodeBuilder, PodBuilder, VirtualClock, node, node_view, pod
from tests.plugins.one_plugin import hint, registered

RECORDED = Path(__file__).parents[2] / "data" / "parity"
POD = pod("p").priority(10)
FULL = Reject(Reason("Full", "full"))
HOPELESS = Reject(Reason("Hopeless", "hopeless", unresolvable=True))
PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


class Found:
    """The outcome of a search, as a test wants it."""

    def __init__(self, *candidates: Candidate, errors: tuple[Exception, ...] = ()) -> None:
        self.candidates = candidates
        self.best = min(candidates, key=lambda c: c.cost) if candidates else None
        self.errors = errors
        self.is_reviewed = False

    def rejectors(self) -> frozenset[str]:
        return frozenset(["Volumes"])

    def message(self) -> str:
        return "0/9 nodes are available: 9 of no use."


class Handle:
    """A cluster of one node, and a search that finds what it is told."""

    def __init__(self, pending: PodBuilder, found: Found, nominated: str = "", at: Any = None) -> None:
        self.rng = seeded(1)
        self.clock = VirtualClock()
        self.searched: list[tuple[list[int], int]] = []
        self.evicted: list[str] = []
        self._pods = {"default/p": pending.build()}
        self._found = found
        self._nominated = nominated
        self._at = at
        self.is_view_stale = False

    def watches(self, kind: str) -> bool:
        return False

    def awaits_view(self, pod: Pod) -> bool:
        return self.is_view_stale

    def count(self, name: str, *labels: str) -> None: ...

    def observe(self, name: str, value: float, *labels: str) -> None: ...

    def objects(self, kind: str) -> dict[str, Pod]:
        return self._pods

    def node(self, name: str) -> Any:
        if name == self._nominated and name:
            return self._at
        victims = {candidate.node_name: candidate.victims for candidate in self._found.candidates}
        return SimpleNamespace(pods=victims[name]) if name in victims else None

    def nominated_node(self, pod: Pod) -> str:
        return self._nominated

    def nominated_pods(self, node_name: str) -> list[Pod]:
        return []

    def withdraw_nominations(self, pods: list[Pod]) -> None:
        assert pods == []

    def search_victims(self, state: CycleState, pod: Pod, rows: Any, wanted: int) -> Found:
        self.searched.append((rows.tolist(), wanted))
        return self._found

    def evict(self, eviction: Any, on_evicted: Any) -> None:
        self.evicted.append(eviction.victim.name)


class Rejected:
    """Why the nodes were rejected: rows 0 to `resolvable` for a reason that evictions may remove."""

    def __init__(self, resolvable: int = 3, rejection: Reject = FULL) -> None:
        self._resolvable = resolvable
        self._rejection = rejection

    def resolvable_rows(self) -> Any:
        return np.arange(self._resolvable)

    def rejection(self, node_name: str) -> Reject:
        return self._rejection


def preempt(handle: Any, rejected: Any = None, **args: int) -> Any:
    plugin = DefaultPreemption(handle, DefaultPreemptionArgs(**args))
    rejected: Any = rejected or Rejected()
    return plugin.post_filter(CycleState(), POD.build(), rejected)


def candidate(name: str, *victims: str, cost: float = 0.0) -> Candidate:
    return Candidate(name, tuple(pod(victim).build() for victim in victims), 0, (cost,))


# --- the decision -----------------------------------------------------------------------------------------------------


def test_the_cheapest_candidate_is_nominated_and_its_victims_go() -> None:
    handle = Handle(POD, Found(candidate("a", "x", "y", cost=2), candidate("b", "z", cost=1)))
    message = "preemption: found a potential placement for pod on node b, preempting 1 victims"
    assert preempt(handle) == Nominate("b", message)
    assert handle.evicted == ["z"]


def test_without_a_candidate_the_nomination_is_cleared() -> None:
    handle = Handle(POD, Found())
    message = "preemption: 0/9 nodes are available: 9 of no use."
    assert preempt(handle) == Nominate("", message, frozenset(["Volumes"]))
    assert handle.evicted == []


def test_where_no_eviction_could_help_no_one_is_asked_for_chance() -> None:
    handle = Handle(POD, Found())
    assert preempt(handle, Rejected(resolvable=0)).node_name == ""
    assert handle.searched == [([], 0)]


def test_errors_count_only_if_there_is_no_candidate() -> None:
    errors = (RuntimeError("broken"), RuntimeError("torn"), RuntimeError("broken"))
    assert preempt(Handle(POD, Found(candidate("a", "x"), errors=errors))).node_name == "a"
    with pytest.raises(RuntimeError, match=r"^preemption: \[broken, torn\]$"):
        preempt(Handle(POD, Found(errors=errors)))
    with pytest.raises(RuntimeError, match=r"^preemption: broken$"):
        preempt(Handle(POD, Found(errors=errors[:1])))


def test_a_pod_that_is_gone_or_another_one_is_an_error() -> None:
    with pytest.raises(LookupError, match='preemption: pod "p" not found'):
        preempt(Handle(POD.uid("another"), Found(candidate("a", "x"))))


@pytest.mark.parametrize(
    ("potential", "args", "wanted"),
    [
        (50, {}, 50),
        (500, {}, 100),
        (5000, {}, 500),
        (5000, {"min_candidate_nodes_percentage": 100}, 5000),
        (5000, {"min_candidate_nodes_percentage": 0, "min_candidate_nodes_absolute": 7}, 7),
        (19, {"min_candidate_nodes_absolute": 0}, 1),
    ],
)
def test_a_part_of_the_nodes_is_enough(potential: int, args: dict[str, int], wanted: int) -> None:
    handle = Handle(POD, Found(candidate("a", "x")))
    preempt(handle, Rejected(resolvable=potential), **args)
    ((rows, asked),) = handle.searched
    assert asked == wanted
    assert sorted(rows) == list(range(potential))


def test_the_search_begins_anywhere_and_goes_round() -> None:
    handle = Handle(POD, Found(candidate("a", "x")))
    for _ in range(20):
        preempt(handle, Rejected(resolvable=5))
    orders = {tuple(rows) for rows, _ in handle.searched}
    assert len(orders) > 1
    assert all([(row - rows[0]) % 5 for row in rows] == [0, 1, 2, 3, 4] for rows in orders)


# --- who may ----------------------------------------------------------------------------------------------------------


def test_a_pod_whose_policy_is_never_does_not_preempt() -> None:
    handle = Handle(POD.spec(preemptionPolicy="Never"), Found(candidate("a", "x")))
    answer = preempt(handle)
    assert [reason.message for reason in answer.reasons] == ["preemption: not eligible due to preemptionPolicy=Never."]
    assert not answer.unresolvable and handle.searched == []


def leaving(name: str, priority: int = 1, **condition: str) -> PodBuilder:
    return pod(name).priority(priority).terminating().status(conditions=[{**PREEMPTED, **condition}])


@pytest.mark.parametrize(
    ("other", "rejection", "may"),
    [
        (leaving("v"), FULL, False),
        (leaving("v"), HOPELESS, True),
        (leaving("v", priority=10), FULL, True),
        (leaving("v", status="False"), FULL, True),
        (leaving("v", reason="TaintManager"), FULL, True),
        (pod("v").priority(1).terminating(), FULL, True),
        (pod("v").priority(1).status(conditions=[PREEMPTED]), FULL, True),
    ],
)
def test_who_waits_for_victims_that_are_leaving_takes_no_others(
    other: PodBuilder, rejection: Reject, may: bool
) -> None:
    nodes: NodeBuilder = node("n")
    handle = Handle(POD, Found(candidate("a", "x")), nominated="n", at=node_view(nodes, other))
    answer = preempt(handle, Rejected(rejection=rejection))
    assert isinstance(answer, Nominate) is may
    if not may:
        text = "preemption: not eligible due to a terminating pod on the nominated node."
        assert [reason.message for reason in answer.reasons] == [text]


def test_a_nominated_node_that_is_gone_is_no_hindrance() -> None:
    handle = Handle(POD, Found(candidate("a", "x")), nominated="gone")
    assert preempt(handle).node_name == "a"


# --- the gate ---------------------------------------------------------------------------------------------------------


def test_while_victims_are_being_evicted_the_preemptor_is_gated() -> None:
    handle: Any = Handle(POD, Found(candidate("a", "x")))
    plugin = DefaultPreemption(handle, DefaultPreemptionArgs())
    rejected: Any = Rejected()
    assert plugin.pre_enqueue(POD.build()) is None
    plugin.post_filter(CycleState(), POD.build(), rejected)
    handle.objects("Pod")["default/x"] = pod("x").build()
    rejection = plugin.pre_enqueue(POD.build())
    assert rejection is not None and rejection.unresolvable
    assert rejection.reasons[0].message == "waiting for the preemption for this pod to be finished"
    assert plugin.pre_enqueue(pod("other").build()) is None
    assert plugin.whom_it_lets_in(pod("x").build(), None).keys == frozenset({"default/p"})
    assert plugin.whom_it_lets_in(pod("y").build(), None).keys == frozenset()


def plugin() -> DefaultPreemption:
    handle: Any = Handle(POD, Found())
    return DefaultPreemption(handle, DefaultPreemptionArgs())


def test_a_leaving_pod_alone_is_no_reason_to_retry() -> None:
    assert registered(plugin()) == [(Resource.ASSIGNED_POD, Action.DELETE)]
    assert hint(plugin(), Resource.ASSIGNED_POD, Action.DELETE, POD, pod("x").node("n"), None) is Hint.SKIP


def test_events_are_registered_as_recorded() -> None:
    recorded = json.loads((RECORDED / "registered-events.json").read_bytes())["DefaultPreemption"]
    assert [(e["resource"], e["actions"], e["hasHint"]) for e in recorded] == [("AssignedPod", ["Delete"], True)]


def test_hints_are_as_recorded() -> None:
    cases = [case for case in load_cases(RECORDED / "hints.jsonl.gz") if case.plugin == "DefaultPreemption"]
    assert len(cases) == 7
    assert {result.case.name: result.differences for result in replay(cases) if not result.is_equal} == {}
