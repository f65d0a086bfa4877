"""NodeResourcesFit: what must fit, what is told if it does not, and how nodes with more left are preferred."""

from __future__ import annotations

import pytest

from pilotage.api import Action, Hint, Resource
from pilotage.plugins import NodeResourcesFit
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.default_plugins import default
from tests.plugins.one_plugin import OnePlugin, hint

PLUGIN = default(NodeResourcesFit)
N = node("n").cpu("4").memory("8Gi")


def messages(waiting: PodBuilder, *running: PodBuilder, on: NodeBuilder = N) -> list[str]:
    """Why the pod does not fit on one node beside the running pods."""
    world = OnePlugin(PLUGIN, on, pods=[p.node("n") for p in running])
    return sorted(reason.message for reason in world.reasons(waiting)["n"])


# --- filter -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("waiting", "expected"),
    [
        (pod("p"), []),
        (pod("p").requests(cpu="4", memory="8Gi"), []),
        (pod("p").requests(cpu="4001m"), ["Insufficient cpu"]),
        (pod("p").requests(memory=str(8 * 2**30 + 1)), ["Insufficient memory"]),
        (pod("p").requests(cpu="5", memory="9Gi"), ["Insufficient cpu", "Insufficient memory"]),
        (pod("p").requests({"example.com/gpu": 1}), ["Insufficient example.com/gpu"]),
        (pod("p").requests({"ephemeral-storage": "1Gi"}), ["Insufficient ephemeral-storage"]),
        (pod("p").requests({"example.com/gpu": 0, "hugepages-2Mi": 0}), []),
        (pod("p").requests(cpu="3").container("b", cpu="2"), ["Insufficient cpu"]),
        (pod("p").requests(cpu="1").init_container("i", cpu="5"), ["Insufficient cpu"]),
        (pod("p").requests(cpu="4").overhead(cpu="1m"), ["Insufficient cpu"]),
    ],
    ids=[
        "nothing requested", "exactly", "cpu", "memory", "both", "extended", "storage", "requests of nothing",
        "containers add up", "init container", "overhead",
    ],
)  # fmt: skip
def test_what_must_fit_into_an_empty_node(waiting: PodBuilder, expected: list[str]) -> None:
    assert messages(waiting) == expected


def test_what_others_requested_is_not_free() -> None:
    running = [pod("a").requests(cpu="2"), pod("b").requests(cpu="1500m", memory="8Gi")]
    assert messages(pod("p").requests(cpu="500m"), *running) == []
    assert messages(pod("p").requests(cpu="501m"), *running) == ["Insufficient cpu"]
    assert messages(pod("p").requests(memory="1"), *running) == ["Insufficient memory"]


def test_the_number_of_pods_is_limited_even_for_pods_that_request_nothing() -> None:
    full = N.pods(2)
    running = [pod("a"), pod("b")]
    assert messages(pod("p"), running[0], on=full) == []
    assert messages(pod("p"), *running, on=full) == ["Too many pods"]
    assert messages(pod("p").requests(cpu="9"), *running, on=full) == ["Insufficient cpu", "Too many pods"]
    assert messages(pod("p"), on=N.without("pods")) == ["Too many pods"]


@pytest.mark.parametrize(
    ("waiting", "unresolvable"),
    [
        (pod("p").requests(cpu="4"), {"Insufficient cpu": False}),
        (pod("p").requests(cpu="5"), {"Insufficient cpu": True}),
        (pod("p").requests(cpu="4", memory="9Gi"), {"Insufficient cpu": False, "Insufficient memory": True}),
    ],
    ids=["evicting helps", "larger than the node", "each on its own"],
)
def test_preemption_cannot_help_where_the_node_itself_is_too_small(
    waiting: PodBuilder, unresolvable: dict[str, bool]
) -> None:
    world = OnePlugin(PLUGIN, N, pods=[pod("a").requests(cpu="1", memory="1Gi").node("n")])
    assert {reason.message: reason.unresolvable for reason in world.reasons(waiting)["n"]} == unresolvable


def test_too_many_pods_is_not_beyond_preemption() -> None:
    (reason,) = OnePlugin(PLUGIN, N.pods(0)).reasons(pod("p"))["n"]
    assert reason.message == "Too many pods" and not reason.unresolvable


def test_a_reason_carries_its_numbers() -> None:
    (reason,) = OnePlugin(PLUGIN, N).reasons(pod("p").requests(cpu="5"))["n"]
    assert (reason.code, reason.need) == ("Insufficient", 5000)


# --- score ------------------------------------------------------------------------------------------------------------


def score(waiting: PodBuilder, *running: PodBuilder, on: NodeBuilder = N) -> int:
    return OnePlugin(PLUGIN, on, pods=[p.node("n") for p in running]).raw_scores(waiting)["n"]


def test_the_score_is_the_share_that_stays_free() -> None:
    assert score(pod("p").requests(cpu="1", memory="2Gi")) == 75
    assert score(pod("p").requests(cpu="1", memory="4Gi")) == 62
    assert score(pod("p").requests(cpu="4", memory="8Gi")) == 0


def test_each_resource_is_rounded_down_before_the_mean() -> None:
    """(4000-1)*100//4000 = 99 and 8 GiB less a byte is 99: the mean is 99, not 99.98."""
    assert score(pod("p").requests(cpu="1m", memory="1")) == 99


def test_containers_that_request_nothing_count_with_defaults() -> None:
    assert score(pod("p"), on=node("n").cpu("1").memory("1000Mi")) == (90 + 80) // 2
    assert score(pod("p"), pod("a"), on=node("n").cpu("1").memory("1000Mi")) == (80 + 60) // 2


def test_a_request_of_zero_is_no_missing_request() -> None:
    assert score(pod("p").requests(cpu="0", memory="0")) == 100


def test_more_than_the_node_has_scores_nothing() -> None:
    assert score(pod("p").requests(cpu="9", memory="4Gi")) == 25


def test_a_resource_that_the_node_does_not_offer_is_left_out() -> None:
    assert score(pod("p").requests(cpu="1"), on=N.without("memory")) == 75
    assert score(pod("p"), on=N.without("memory").without("cpu")) == 0


# --- hints ------------------------------------------------------------------------------------------------------------

WAITING = pod("p").requests(cpu="2")


@pytest.mark.parametrize(
    ("gone", "answer"),
    [(pod("a").node("n"), Hint.QUEUE), (pod("a").nominated("n"), Hint.QUEUE), (pod("a"), Hint.SKIP)],
    ids=["assigned", "nominated", "neither"],
)
def test_a_pod_that_left_helps_if_it_had_a_place(gone: PodBuilder, answer: Hint) -> None:
    assert hint(PLUGIN, Resource.ASSIGNED_POD, Action.DELETE, WAITING, gone, None) is answer


@pytest.mark.parametrize(
    ("requests", "answer"),
    [({"cpu": "1", "memory": "2Gi"}, Hint.QUEUE), ({"cpu": "2", "memory": "1Gi"}, Hint.SKIP)],
    ids=["what we need", "something else"],
)
def test_a_pod_that_shrank_helps_if_it_gave_back_what_we_need(requests: dict[str, str], answer: Hint) -> None:
    old = pod("a").node("n").requests(cpu="2", memory="2Gi")
    new = pod("a").node("n").requests(requests)
    assert hint(PLUGIN, Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN, WAITING, old, new) is answer


def test_shrinking_ourselves_helps() -> None:
    smaller = pod("p").requests(cpu="1")
    assert hint(PLUGIN, Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN, smaller, WAITING, smaller) is Hint.QUEUE


def test_what_we_ask_none_of_does_not_help_when_it_is_given_back() -> None:
    waiting = pod("waiting").requests(cpu="1", memory="0")
    old, new = (pod("other").node("n").requests(cpu="1", memory=size) for size in ("2Gi", "1Gi"))
    assert hint(PLUGIN, Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN, waiting, old, new) is Hint.SKIP


@pytest.mark.parametrize(
    ("action", "old", "new", "answer"),
    [
        (Action.ADD, None, node("n").cpu("2"), Hint.QUEUE),
        (Action.ADD, None, node("n").cpu("1"), Hint.SKIP),
        (Action.ADD, None, node("n").cpu("2").pods(0), Hint.SKIP),
        (Action.UPDATE_NODE_ALLOCATABLE, node("n").cpu("1"), node("n").cpu("2"), Hint.QUEUE),
        (Action.UPDATE_NODE_ALLOCATABLE, node("n").cpu("3"), node("n").cpu("2"), Hint.SKIP),
        (Action.UPDATE_NODE_ALLOCATABLE, node("n").pods(5), node("n").pods(6), Hint.QUEUE),
        (Action.UPDATE_NODE_ALLOCATABLE, node("n"), node("n").memory("99Gi"), Hint.SKIP),
        (Action.UPDATE_NODE_ALLOCATABLE, node("n").cpu("0"), node("n").cpu("1"), Hint.SKIP),
        (Action.UPDATE_NODE_LABEL, node("n").cpu("1"), node("n").cpu("2"), None),
    ],
    ids=[
        "new and large enough", "new but too small", "new but takes no pods", "grew", "shrank", "takes more pods",
        "grew in what we do not need", "grew but is still too small", "other event",
    ],
)  # fmt: skip
def test_a_node_helps_if_the_pod_fits_into_it_empty_and_it_grew_where_needed(
    action: Action, old: NodeBuilder | None, new: NodeBuilder, answer: Hint | None
) -> None:
    assert hint(PLUGIN, Resource.NODE, action, WAITING, old, new) is answer


def test_the_signature_is_what_is_requested_and_what_is_scored() -> None:
    assert PLUGIN.sign(pod("p").label("a", "b").build()) == PLUGIN.sign(pod("q").build())
    variants = [pod("p"), pod("p").requests(cpu="1"), pod("p").requests(memory="1"), pod("p").container("second")]
    assert len({PLUGIN.sign(variant.build()) for variant in variants}) == len(variants)
