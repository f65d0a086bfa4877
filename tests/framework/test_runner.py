"""The rules of each extension point that runs once per pod: who stops, what is returned, what an odd answer becomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pilotage.api import CycleState, NodeNames, Nominate, Pending, Plugin, Reason, Reject, Rejection, Skip, Wait
from pilotage.framework.diagnosis import Diagnosis, Rejected
from pilotage.framework.errors import PluginError
from pilotage.framework.runner import PostFiltered, Runner
from pilotage.testing import node, pod
from tests.framework.scripted_plugins import cluster_of, profile_of, scripted

POD = pod("p").build()
NO = Reject(Reason("No", "no"))
NEVER = Reject(Reason("Never", "never", unresolvable=True))
LATER = Pending(Reason("Later", "later"))
BROKEN = RuntimeError("it broke")


def runner_of(*plugins: Plugin) -> Runner:
    return Runner(profile_of(*plugins), cluster_of(node("a"), node("b"), node("c")).nodes)


def names(*wanted: str) -> NodeNames:
    return NodeNames(frozenset(wanted))


# --- PreEnqueue -------------------------------------------------------------------------------------------------------


def test_pre_enqueue_lets_a_pod_in_if_everyone_does(calls: list[str]) -> None:
    assert runner_of(scripted("A", pre_enqueue=None), scripted("B", pre_enqueue=None)).pre_enqueue(POD) is None
    assert calls == ["A.pre_enqueue", "B.pre_enqueue"]


def test_pre_enqueue_stops_at_the_first_rejection(calls: list[str]) -> None:
    runner = runner_of(scripted("A", pre_enqueue=NO), scripted("B", pre_enqueue=NEVER))
    assert runner.pre_enqueue(POD) == Rejected("A", NO)
    assert calls == ["A.pre_enqueue"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (BROKEN, 'running PreEnqueue plugin "A": RuntimeError: it broke'),
        (True, 'running PreEnqueue plugin "A": unexpected answer True'),
    ],
)
def test_pre_enqueue_names_a_gate_that_is_broken(answer: object, text: str) -> None:
    with pytest.raises(PluginError) as caught:
        runner_of(scripted("A", pre_enqueue=answer)).pre_enqueue(POD)
    assert (caught.value.plugin, caught.value.point, str(caught.value)) == ("A", "PreEnqueue", text)


# --- PreFilter --------------------------------------------------------------------------------------------------------


def test_pre_filter_without_restriction_allows_all_nodes() -> None:
    outcome = runner_of(scripted("A", pre_filter=None)).pre_filter(CycleState(), POD)
    assert outcome.allowed is None and outcome.rejected is None and outcome.restricting == []


def test_pre_filter_skip_switches_the_plugins_filter_off() -> None:
    state = CycleState()
    runner_of(scripted("A", pre_filter=Skip()), scripted("B", pre_filter=None)).pre_filter(state, POD)
    assert state.skip_filter == {"A"}


def test_pre_filter_intersects_the_node_sets() -> None:
    runner = runner_of(scripted("A", pre_filter=names("a", "b")), scripted("B", pre_filter=names("b", "c", "x")))
    outcome = runner.pre_filter(CycleState(), POD)
    assert outcome.allowed is not None and outcome.allowed.tolist() == [False, True, False]
    assert outcome.restricting == ["A", "B"] and outcome.rejected is None


def test_pre_filter_may_leave_only_nodes_that_do_not_exist() -> None:
    outcome = runner_of(scripted("A", pre_filter=names("x"))).pre_filter(CycleState(), POD)
    assert outcome.rejected is None and outcome.allowed.tolist() == [False, False, False]


@pytest.mark.parametrize(
    ("sets", "text"),
    [
        ({"A": names()}, "node(s) didn't satisfy plugin A"),
        ({"B": names("b"), "A": names("a")}, "node(s) didn't satisfy plugin(s) [A B] simultaneously"),
    ],
    ids=["one plugin", "several, sorted"],
)
def test_pre_filter_that_leaves_no_node_rejects_the_pod(sets: dict[str, NodeNames], text: str) -> None:
    plugins = [scripted(name, pre_filter=wanted) for name, wanted in sets.items()]
    outcome = runner_of(*plugins).pre_filter(CycleState(), POD)
    assert outcome.rejected is not None and outcome.rejected.plugin == ""
    assert [reason.message for reason in outcome.rejected.rejection.reasons] == [text]
    assert outcome.rejected.rejection.unresolvable and outcome.restricting == list(sets)


def test_pre_filter_stops_at_an_unresolvable_rejection(calls: list[str]) -> None:
    runner = runner_of(scripted("A", pre_filter=NEVER), scripted("B", pre_filter=NO))
    assert runner.pre_filter(CycleState(), POD).rejected == Rejected("A", NEVER)
    assert calls == ["A.pre_filter"]


def test_pre_filter_goes_on_after_a_resolvable_rejection_and_the_last_one_counts(calls: list[str]) -> None:
    other = Reject(Reason("Other", "other"))
    state = CycleState()
    runner = runner_of(scripted("A", pre_filter=NO), scripted("B", pre_filter=other), scripted("C", pre_filter=Skip()))
    assert runner.pre_filter(state, POD).rejected == Rejected("B", other)
    assert calls == ["A.pre_filter", "B.pre_filter", "C.pre_filter"] and state.skip_filter == {"C"}


@pytest.mark.parametrize(
    ("answer", "text"),
    [(BROKEN, "it broke"), (LATER, "unexpected answer Pending("), (Wait(1), "unexpected answer Wait("), (7, "7")],
    ids=["exception", "pending", "wait", "nonsense"],
)
def test_pre_filter_makes_an_error_of_everything_else(answer: object, text: str) -> None:
    with pytest.raises(PluginError) as caught:
        runner_of(scripted("A", pre_filter=answer)).pre_filter(CycleState(), POD)
    assert (caught.value.plugin, caught.value.point) == ("A", "PreFilter")
    assert str(caught.value).startswith('running PreFilter plugin "A": ') and text in str(caught.value)


# --- PostFilter -------------------------------------------------------------------------------------------------------


def post_filtered(*answers: object) -> tuple[PostFiltered, str]:
    plugins = [scripted(name, post_filter=answer) for name, answer in zip("ABC", answers, strict=False)]
    diagnosis = Diagnosis(node_names=["a"])
    outcome = runner_of(*plugins).post_filter(CycleState(), POD, diagnosis)
    return outcome, diagnosis.post_filter_message


def post_filter(*answers: Nominate | Rejection | Exception) -> tuple[Nominate, str]:
    outcome, message = post_filtered(*answers)
    return outcome.nomination, message


def test_post_filter_stops_at_the_first_that_finds_a_way(calls: list[str]) -> None:
    found = Nominate("a", "found one")
    assert post_filter(NO, found, Nominate("b", "another")) == (found, "found one")
    assert calls == ["A.post_filter", "B.post_filter"]


def test_post_filter_joins_what_all_of_them_say(calls: list[str]) -> None:
    assert post_filter(NO, LATER) == (Nominate(), "no, later")
    assert calls == ["A.post_filter", "B.post_filter"]


def test_post_filter_keeps_the_last_nomination_that_was_made() -> None:
    clear = Nominate("", "nothing helps")
    assert post_filter(Nominate(None, "first"), clear, NO) == (clear, "first, nothing helps, no")


def test_post_filter_stops_at_an_unresolvable_rejection_and_says_only_that(calls: list[str]) -> None:
    assert post_filter(Nominate("", "nothing helps"), NEVER, NO) == (Nominate(), "never")
    assert calls == ["A.post_filter", "B.post_filter"]


@pytest.mark.parametrize(
    ("answers", "rejected_by"),
    [
        ([NO, LATER], "A"),
        ([Nominate("", "nothing helps"), NO], "A"),
        ([NO, NEVER], "B"),
        ([NO, Nominate("a", "found one")], ""),
    ],
)
def test_post_filter_names_the_first_that_could_not_help(answers: list[Any], rejected_by: str) -> None:
    assert post_filtered(*answers)[0].rejected_by == rejected_by


def test_post_filter_that_raises_ends_the_stage_and_leaves_the_nomination_alone(calls: list[str]) -> None:
    outcome, message = post_filtered(Nominate("", "nothing helps"), BROKEN, NO)
    assert (outcome.nomination, outcome.rejected_by, message) == (Nominate(), "B", "it broke")
    assert str(outcome.error) == 'running PostFilter plugin "B": RuntimeError: it broke'
    assert calls == ["A.post_filter", "B.post_filter"]


def test_post_filter_that_answers_nonsense_is_an_error() -> None:
    outcome, message = post_filtered(None)
    assert message == str(outcome.error) == 'running PostFilter plugin "A": unexpected answer None'


# --- Reserve, Unreserve, Permit ---------------------------------------------------------------------------------------


def reserve(runner: Runner) -> Rejected | None:
    return runner.reserve(CycleState(), POD, "a")


def permit(runner: Runner) -> Rejected | dict[str, float]:
    return runner.permit(CycleState(), POD, "a")


def test_reserve_succeeds_if_everyone_does(calls: list[str]) -> None:
    assert reserve(runner_of(scripted("A", reserve=None), scripted("B", reserve=None))) is None
    assert calls == ["A.reserve", "B.reserve"]


@pytest.mark.parametrize("rejection", [NO, NEVER, LATER])
@pytest.mark.parametrize(("point", "run"), [("reserve", reserve), ("permit", permit)])
def test_reserve_and_permit_stop_at_the_first_rejection(
    calls: list[str], rejection: Rejection, point: str, run: Callable[[Runner], Any]
) -> None:
    runner = runner_of(scripted("A", **{point: rejection}), scripted("B", **{point: None}))
    assert run(runner) == Rejected("A", rejection)
    assert calls == [f"A.{point}"]


@pytest.mark.parametrize("answer", [BROKEN, Skip(), "fine"], ids=["exception", "skip", "nonsense"])
@pytest.mark.parametrize(("point", "run"), [("reserve", reserve), ("permit", permit)])
def test_reserve_and_permit_make_an_error_of_everything_else(
    answer: object, point: str, run: Callable[[Runner], Any]
) -> None:
    with pytest.raises(PluginError) as caught:
        run(runner_of(scripted("A", **{point: answer})))
    assert caught.value.plugin == "A"
    assert str(caught.value).startswith(f'running {point.capitalize()} plugin "A": ')


def test_unreserve_runs_all_in_reverse_whatever_they_raise(calls: list[str]) -> None:
    runner = runner_of(scripted("A", unreserve=None), scripted("B", unreserve=BROKEN), scripted("C", unreserve=None))
    errors = runner.unreserve(CycleState(), POD, "a")
    assert calls == ["C.unreserve", "B.unreserve", "A.unreserve"]
    assert [(error.plugin, str(error)) for error in errors] == [
        ("B", 'running Unreserve plugin "B": RuntimeError: it broke')
    ]


def test_permit_collects_who_wants_to_wait_and_cuts_long_waits() -> None:
    runner = runner_of(scripted("A", permit=Wait(5)), scripted("B", permit=None), scripted("C", permit=Wait(9999)))
    assert permit(runner) == {"A": 5, "C": 900}


def test_permit_rejection_beats_a_wish_to_wait() -> None:
    assert permit(runner_of(scripted("A", permit=Wait(5)), scripted("B", permit=NO))) == Rejected("B", NO)


def test_permit_approves_if_no_one_objects() -> None:
    assert permit(runner_of(scripted("A", permit=None))) == {}
