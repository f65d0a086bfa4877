"""Filter and score in columns: mixing of plugins, shared columns, and what becomes of plugins that misbehave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pilotage.api import CycleState, NodeTable, NodeView, Pending, Plugin, Reason, Reject, Skip
from pilotage.cluster.state import Cluster
from pilotage.framework.diagnosis import Diagnosis
from pilotage.framework.errors import PluginError
from pilotage.framework.evaluation import Evaluator
from pilotage.framework.shared_columns import INFEASIBLE
from pilotage.model import Pod
from pilotage.plugins import NodeName
from pilotage.testing import node, pod
from tests.framework.scripted_plugins import FIT, cluster_of, profile_of, scripted

POD = pod("p").build()
SMALL = Reason("Small", "too small")
NO = Reject(SMALL)


class World:
    """A cluster, a profile of the plugins under test, and what they make of a pod."""

    def __init__(self, *plugins: Plugin, nodes: int = 3, **weights: int) -> None:
        self.cluster = cluster_of(*(node(f"n{number}").label("number", str(number)) for number in range(nodes)))
        self.profile = profile_of(*plugins, **weights)
        self.evaluator = Evaluator(self.profile, self.cluster.nodes, self.cluster.nominations)

    def totals(
        self, pod: Pod = POD, *, state: CycleState | None = None, allowed: list[bool] | None = None
    ) -> list[int]:
        state = state or CycleState()
        mask = None if allowed is None else np.array(allowed)
        return self.evaluator.totals(state, pod, mask).tolist()

    def diagnosis(self, pod: Pod = POD) -> Diagnosis:
        diagnosis = Diagnosis(node_names=tuple(self.cluster.nodes.names))
        self.evaluator.diagnose(CycleState(), pod, diagnosis, None)
        return diagnosis


def number_of(view: NodeView) -> int:
    return int(view.labels["number"])


def numbers(table: NodeTable) -> np.ndarray[Any, Any]:
    codes, values = table.labels("number")
    return np.array([int(values[code]) for code in codes], dtype=np.int64)


# --- what the totals are made of --------------------------------------------------------------------------------------


def test_without_plugins_every_node_is_as_good_as_any() -> None:
    assert len(set(World().totals())) == 1


def test_a_per_node_filter_is_asked_node_by_node() -> None:
    world = World(scripted("F", filter=lambda state, pod, view: NO if view.name == "n1" else None))
    assert [total == INFEASIBLE for total in world.totals()] == [False, True, False]


def test_a_vector_filter_rejects_where_any_mask_is_true() -> None:
    def reject(state: CycleState, pod: Pod, nodes: NodeTable) -> Any:
        yield numbers(nodes) == 0, SMALL
        yield numbers(nodes) == 2, Reason("Other", "other")

    assert [total == INFEASIBLE for total in World(scripted("F", filter_all=reject)).totals()] == [True, False, True]


def test_filters_of_both_kinds_are_joined_and_per_node_ones_see_only_what_is_left() -> None:
    asked: list[str] = []

    def note(state: CycleState, pod: Pod, view: NodeView) -> None:
        asked.append(view.name)

    world = World(
        scripted("V", filter_all=lambda state, pod, nodes: [(numbers(nodes) == 1, SMALL)]), scripted("F", filter=note)
    )
    assert world.totals()[1] == INFEASIBLE and asked == ["n0", "n2"]


def test_of_a_node_that_one_filter_rejected_the_next_is_not_asked() -> None:
    """As node by node: what the second notes or where it fails must not depend on nodes that it never sees."""
    seen: list[list[int]] = []

    def note(state: CycleState, pod: Pod, nodes: NodeTable) -> list[Any]:
        seen.append(numbers(nodes).tolist())
        return [(numbers(nodes) == 2, SMALL)]

    first = scripted("A", filter_all=lambda state, pod, nodes: [(numbers(nodes) == 1, SMALL)])
    world = World(first, scripted("B", filter_all=note), nodes=4)
    assert [total == INFEASIBLE for total in world.totals()] == [False, True, True, False]
    assert seen == [[0, 2, 3]]


def test_scores_are_weighted_and_added() -> None:
    world = World(
        scripted("A", score=lambda state, pod, view: number_of(view)),
        scripted("B", score_all=lambda state, pod, nodes: numbers(nodes) * 10),
        A=2,
        B=3,
    )
    assert world.totals() == [0, 32, 64]


def test_a_plugin_of_both_kinds_is_asked_for_columns() -> None:
    world = World(scripted("A", score=lambda *_: 1, score_all=lambda state, pod, nodes: numbers(nodes)))
    assert world.totals() == [0, 1, 2]


def test_normalising_sees_the_feasible_nodes_only() -> None:
    seen: list[list[int]] = []

    def halve(state: CycleState, pod: Pod, scores: Any) -> Any:
        seen.append(scores.tolist())
        return scores // 2

    world = World(
        scripted("F", filter_all=lambda state, pod, nodes: [(numbers(nodes) == 2, SMALL)]),
        scripted("N", score_all=lambda state, pod, nodes: numbers(nodes) * 100, normalize=halve),
        N=4,
    )
    assert world.totals() == [0, 200, INFEASIBLE]
    assert seen == [[0, 100]]


def test_rows_that_are_not_allowed_are_rejected() -> None:
    world = World(scripted("A", score_all=lambda state, pod, nodes: numbers(nodes)))
    assert world.totals(allowed=[True, False, True]) == [0, INFEASIBLE, 2]
    assert world.totals(allowed=[False, False, False]) == [INFEASIBLE, INFEASIBLE, INFEASIBLE]


def test_a_plugin_that_pre_filter_skipped_does_not_filter() -> None:
    world = World(scripted("F", filter=NO))
    state = CycleState()
    state.skip_filter.add("F")
    assert INFEASIBLE not in world.totals(state=state)


def test_a_plugin_that_skips_in_pre_score_does_not_score(calls: list[str]) -> None:
    world = World(scripted("A", pre_score=Skip(), score=lambda *_: 50), scripted("B", score=lambda *_: 1))
    assert world.totals() == [1, 1, 1] and "A.score" not in calls


# --- columns shared by equal pods -------------------------------------------------------------------------------------


class Counting:
    """A signed plugin of one kind that remembers about which nodes it was asked."""

    def __init__(self, kind: str) -> None:
        self.asked: list[str] = []
        sign: Callable[[Pod], Any] = lambda pod: pod.priority  # noqa: E731
        if kind == "per node":
            self.plugin = scripted("C", filter=self._filter, score=lambda *_: 5, sign=sign)
        else:
            self.plugin = scripted("C", filter_all=self._filter_all, score_all=self._score_all, sign=sign)

    def _filter(self, state: CycleState, pod: Pod, view: NodeView) -> Reject | None:
        self.asked.append(view.name)
        return NO if view.requested("cpu") >= 1000 else None

    def _filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Any:
        self.asked += nodes.names
        yield nodes.requested("cpu") >= 1000, SMALL

    def _score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Any:
        return np.full(len(nodes), 5)

    def take(self) -> list[str]:
        asked, self.asked = self.asked, []
        return sorted(asked)


@pytest.mark.parametrize("kind", ["per node", "vector"])
def test_an_equal_pod_asks_about_changed_nodes_only(kind: str) -> None:
    counting = Counting(kind)
    world = World(counting.plugin, nodes=40)
    world.totals()
    assert len(counting.take()) == 40
    world.totals(pod("q").build())
    assert counting.take() == []
    world.cluster.put_pod(pod("x").requests(cpu="1").node("n7").build())
    world.cluster.put_node(node("n3").label("number", "3").build())
    totals = world.totals(pod("r").build())
    assert counting.take() == ["n3", "n7"]
    assert [row for row, total in enumerate(totals) if total == INFEASIBLE] == [7]


@pytest.mark.parametrize("kind", ["per node", "vector"])
def test_a_pod_of_another_signature_is_asked_for_separately(kind: str) -> None:
    counting = Counting(kind)
    world = World(counting.plugin, nodes=5)
    world.totals()
    counting.take()
    world.totals(pod("q").priority(3).build())
    assert len(counting.take()) == 5


def test_columns_are_void_after_nodes_came_or_went() -> None:
    counting = Counting("vector")
    world = World(counting.plugin, nodes=5)
    world.totals()
    world.cluster.remove_node("n0")
    counting.take()
    world.totals()
    assert counting.take() == ["n1", "n2", "n3", "n4"]


def test_a_plugin_that_does_not_sign_is_asked_every_time(calls: list[str]) -> None:
    world = World(scripted("A", filter=None), nodes=2)
    world.totals()
    world.totals()
    assert calls.count("A.filter") == 4


def test_pods_that_name_a_node_do_not_share_columns_with_pods_that_do_not() -> None:
    """Asking where a running pod could go must not nail its pending siblings to its node."""
    world = World(NodeName(), FIT)
    running, waiting = pod("p").node("n1").build(), pod("q").build()
    assert running.spec is waiting.spec
    assert [total == INFEASIBLE for total in world.totals(running)] == [True, False, True]
    assert INFEASIBLE not in world.totals(waiting)


def test_unequal_pods_of_one_signature_share_columns_only_where_signed() -> None:
    """A plugin without signature sees its own pod each time, whatever the others share."""
    own = scripted("Own", filter=lambda state, pod, view: NO if pod.name == "q" else None)
    world = World(FIT, own)
    assert INFEASIBLE not in world.totals(pod("p").build())
    assert world.totals(pod("q").build()) == [INFEASIBLE] * 3
    assert INFEASIBLE not in world.totals(pod("p").build())


# --- plugins that misbehave -------------------------------------------------------------------------------------------


def test_a_score_out_of_range_is_an_error_that_names_plugin_and_score() -> None:
    for wrong in (101, -1):
        with pytest.raises(PluginError) as caught:
            World(scripted("A", score=lambda state, pod, view, wrong=wrong: wrong)).totals()
        assert str(caught.value) == (
            f'applying score defaultWeights on Score plugins: plugin "A" returns an invalid score {wrong}, '
            "it should in the range of [0, 100] after normalizing"
        )
        assert (caught.value.plugin, caught.value.point) == ("A", "Score")


def test_the_range_is_checked_after_normalising() -> None:
    fine = scripted("A", score=lambda *_: 1000, normalize=lambda state, pod, scores: scores // 10)
    assert World(fine).totals() == [100, 100, 100]
    with pytest.raises(PluginError, match="returns an invalid score 2000"):
        World(scripted("A", score=lambda *_: 1000, normalize=lambda state, pod, scores: scores * 2)).totals()


BROKEN = RuntimeError("it broke")


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ({"filter": BROKEN}, 'running "A" filter plugin: RuntimeError: it broke'),
        ({"filter_all": BROKEN}, 'running "A" filter plugin: RuntimeError: it broke'),
        ({"filter": "no"}, 'running "A" filter plugin: '),
        ({"filter_all": lambda *_: [(np.zeros(2, dtype=bool), SMALL)]}, 'running "A" filter plugin: '),
        ({"filter_all": lambda *_: [True]}, 'running "A" filter plugin: '),
        ({"score": BROKEN}, 'running Score plugins: plugin "A" failed with: RuntimeError: it broke'),
        ({"score": None}, 'running Score plugins: plugin "A" failed with: '),
        ({"score_all": BROKEN}, 'running Score plugins: plugin "A" failed with: RuntimeError: it broke'),
        ({"score_all": lambda *_: np.zeros(2)}, 'running Score plugins: plugin "A" failed with: '),
        (
            {"score": lambda *_: 1, "normalize": BROKEN},
            'running Normalize on Score plugins: plugin "A" failed with: RuntimeError: it broke',
        ),
        (
            {"score": lambda *_: 1, "normalize": lambda *_: np.zeros(7)},
            'running Normalize on Score plugins: plugin "A" failed with: ',
        ),
        ({"score": lambda *_: 1, "pre_score": BROKEN}, 'running PreScore plugin "A": RuntimeError: it broke'),
        ({"score": lambda *_: 1, "pre_score": NO}, 'running PreScore plugin "A": unexpected '),
        ({"filter": None, "sign": BROKEN}, 'running Sign plugin "A": RuntimeError: it broke'),
        ({"filter": None, "sign": lambda pod: []}, 'running Sign plugin "A": '),
    ],
    ids=[
        "filter raises", "vector filter raises", "filter answers nonsense", "mask of wrong length", "no pairs",
        "score raises", "no score", "vector score raises", "scores of wrong length", "normalize raises",
        "normalised to wrong length", "PreScore raises", "PreScore answers nonsense", "sign raises", "unhashable sign",
    ],
)  # fmt: skip
@pytest.mark.parametrize("signed", [False, True], ids=["fresh", "shared"])
def test_whatever_a_plugin_does_wrong_is_an_error_of_that_plugin(
    answers: dict[str, Any], text: str, signed: bool
) -> None:
    sign = {"sign": "all alike"} if signed else {}
    with pytest.raises(PluginError) as caught:
        World(scripted("A", **{**sign, **answers})).totals()
    assert caught.value.plugin == "A" and str(caught.value).startswith(text)


@pytest.mark.parametrize("wrong", [None, BROKEN, 101], ids=["nothing", "exception", "out of range"])
def test_an_error_in_the_refresh_of_one_row_is_an_error_too_and_spoils_nothing(wrong: object) -> None:
    answers: list[object] = []

    def score(state: CycleState, pod: Pod, view: NodeView) -> Any:
        answer = answers.pop() if answers else 5
        if isinstance(answer, Exception):
            raise answer
        return answer

    world = World(scripted("A", score=score, sign="all alike"), nodes=8)
    assert world.totals() == [5] * 8
    world.cluster.put_node(node("n1").cpu("1").label("number", "1").build())
    answers.append(wrong)
    with pytest.raises(PluginError):
        world.totals()
    assert world.totals() == [5] * 8


# --- why not ----------------------------------------------------------------------------------------------------------


def test_a_node_belongs_to_the_first_plugin_that_rejected_it_with_all_its_reasons() -> None:
    other = Reason("Other", "other")
    world = World(
        scripted(
            "V",
            filter_all=lambda state, pod, nodes: [(numbers(nodes) < 2, SMALL), (numbers(nodes) == 0, other)],
        ),
        scripted("F", filter=lambda state, pod, view: Reject(other, SMALL)),
    )
    diagnosis = world.diagnosis()
    assert [diagnosis.plugin_of(name) for name in ("n0", "n1", "n2")] == ["V", "V", "F"]
    assert diagnosis.rejection("n0") == Reject(SMALL, other)
    assert diagnosis.rejection("n1") == Reject(SMALL)
    assert diagnosis.rejection("n2") == Reject(other, SMALL)
    assert diagnosis.rejectors == {"V", "F"} and diagnosis.pending == set()


def test_a_rejection_without_reasons_still_rejects_the_node() -> None:
    diagnosis = World(scripted("F", filter=lambda *_: Reject())).diagnosis()
    assert diagnosis.plugin_of("n0") == "F" and diagnosis.rejectors == {"F"}
    assert diagnosis.reason_counts() == {}


def test_a_pending_rejection_is_kept_as_such() -> None:
    later = Pending(Reason("Later", "later"))
    diagnosis = World(scripted("F", filter=later)).diagnosis()
    assert diagnosis.rejection("n1") == later
    assert diagnosis.rejectors == diagnosis.pending == {"F"} and diagnosis.resolvable() == []


def test_a_plugin_that_rejected_only_nodes_that_others_rejected_before_is_no_rejector() -> None:
    world = World(scripted("A", filter=NO), scripted("B", filter=NO))
    assert world.diagnosis().rejectors == {"A"}


# --- nominated pods ---------------------------------------------------------------------------------------------------


def contested(priority: int) -> Cluster:
    cluster = cluster_of(node("n0").cpu("1"))
    rival = pod("rival").priority(priority).requests(cpu="1").build()
    cluster.nominations.nominate(rival, "n0")
    return cluster


@pytest.mark.parametrize(("priority", "is_rejected"), [(4, False), (5, True), (6, True)])
def test_a_node_nominated_for_a_pod_of_the_same_or_higher_priority_is_not_free(
    priority: int, is_rejected: bool
) -> None:
    cluster = contested(priority)
    evaluator = Evaluator(profile_of(FIT), cluster.nodes, cluster.nominations)
    mine = pod("p").priority(5).requests(cpu="1").build()
    assert (evaluator.totals(CycleState(), mine, None).tolist() == [INFEASIBLE]) is is_rejected
    diagnosis = Diagnosis(node_names=["n0"])
    evaluator.diagnose(CycleState(), mine, diagnosis, None)
    assert diagnosis.rejectors == ({"NodeResourcesFit"} if is_rejected else set())


def test_a_pod_is_not_in_its_own_way() -> None:
    cluster = contested(9)
    evaluator = Evaluator(profile_of(FIT), cluster.nodes, cluster.nominations)
    assert INFEASIBLE not in evaluator.totals(CycleState(), pod("rival").requests(cpu="1").build(), None).tolist()


def test_a_pending_rejection_beside_a_nominated_pod_is_pending_too() -> None:
    cluster = contested(9)
    later = Pending(Reason("Later", "later"))
    crowded = scripted("F", filter=lambda state, pod, view: later if view.pod_count else None)
    evaluator = Evaluator(profile_of(crowded), cluster.nodes, cluster.nominations)
    diagnosis = Diagnosis(node_names=["n0"])
    evaluator.diagnose(CycleState(), POD, diagnosis, None)
    assert diagnosis.rejection("n0") == later and diagnosis.pending == {"F"}
