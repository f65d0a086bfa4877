"""Why a pod fits nowhere: the numbers, the sentence, and which nodes preemption may look at."""

from __future__ import annotations

import numpy as np
import pytest

from pilotage.api import Pending, Reason, Reject
from pilotage.framework.diagnosis import Diagnosis, RejectedRows, single_node_diagnosis

CPU = Reason("Insufficient", "Insufficient cpu")
MEMORY = Reason("Insufficient", "Insufficient memory", unresolvable=True)
TAINT = Reason("UntoleratedTaint", "node(s) had untolerated taint(s)", unresolvable=True)


def diagnosis_of(size: int, *rejections: tuple[str, Reason, list[int]]) -> Diagnosis:
    """Nodes n0, n1, ...; a rejection is (plugin, reason, rows)."""
    diagnosis = Diagnosis(node_names=[f"n{row}" for row in range(size)])
    for plugin, reason, rows in rejections:
        mask = np.zeros(size, dtype=np.bool_)
        mask[rows] = True
        diagnosis.add(RejectedRows(plugin, reason, mask))
    return diagnosis


def test_the_sentence_counts_nodes_per_reason() -> None:
    diagnosis = diagnosis_of(5, ("Fit", CPU, [0, 1, 2]), ("Fit", MEMORY, [2]), ("Taint", TAINT, [3, 4]))
    assert diagnosis.message() == (
        "0/5 nodes are available: 1 Insufficient memory, 2 node(s) had untolerated taint(s), 3 Insufficient cpu."
    )


def test_the_reasons_are_sorted_as_text() -> None:
    """Ten comes before two: that is how kube-scheduler's sentence reads, and people search for it."""
    diagnosis = diagnosis_of(12, ("A", TAINT, list(range(2))), ("B", CPU, list(range(2, 12))))
    assert diagnosis.message() == ("0/12 nodes are available: 10 Insufficient cpu, 2 node(s) had untolerated taint(s).")


def test_equal_messages_of_one_plugin_are_one_reason() -> None:
    resolvable = Reason("Insufficient", "Insufficient memory")
    diagnosis = diagnosis_of(3, ("Fit", MEMORY, [0]), ("Fit", resolvable, [1, 2]))
    assert diagnosis.message() == "0/3 nodes are available: 3 Insufficient memory."


def test_of_some_of_the_nodes_only_what_was_said_there_counts() -> None:
    diagnosis = diagnosis_of(4, ("Fit", CPU, [0, 1]), ("Taint", TAINT, [2, 3]))
    diagnosis.limit_to(np.array([True, True, False, False]))
    assert diagnosis.message() == "0/2 nodes are available: 2 Insufficient cpu."
    assert diagnosis.rejectors == {"Fit"}


def test_without_any_reason_the_sentence_ends_early() -> None:
    assert diagnosis_of(2, ("A", Reason("Rejected", ""), [0, 1])).message() == "0/2 nodes are available:"


def test_a_rejection_in_pre_filter_is_reported_instead_of_counts() -> None:
    diagnosis = diagnosis_of(2, ("Volumes", CPU, [0, 1]))
    claim, other = Reason("Claim", 'persistentvolumeclaim "x" not found'), Reason("Other", "other")
    diagnosis.pre_filter = ("Volumes", Reject(claim, other))
    assert diagnosis.message() == '0/2 nodes are available: persistentvolumeclaim "x" not found, other.'


@pytest.mark.parametrize("with_pre_filter", [False, True])
def test_what_post_filter_says_comes_last_without_a_dot_of_ours(with_pre_filter: bool) -> None:
    diagnosis = diagnosis_of(1, ("Fit", CPU, [0]))
    diagnosis.post_filter_message = "preemption: not eligible due to preemptionPolicy=Never."
    if with_pre_filter:
        diagnosis.pre_filter = ("Fit", Reject(CPU))
    head = (
        "0/1 nodes are available: Insufficient cpu."
        if with_pre_filter
        else "0/1 nodes are available: 1 Insufficient cpu."
    )
    assert diagnosis.message() == f"{head} preemption: not eligible due to preemptionPolicy=Never."


def test_preemption_may_help_where_no_reason_is_beyond_it() -> None:
    diagnosis = diagnosis_of(4, ("Fit", CPU, [0, 1]), ("Fit", MEMORY, [1]), ("Taint", TAINT, [2]))
    assert diagnosis.resolvable() == ["n0"]
    diagnosis.add(RejectedRows("Claims", CPU, np.array([True, False, False, False]), is_pending=True))
    assert diagnosis.resolvable() == []


def test_a_node_shows_its_plugin_and_reasons() -> None:
    diagnosis = diagnosis_of(3, ("Fit", CPU, [0, 1]), ("Fit", MEMORY, [1]))
    assert diagnosis.rejection("n1") == Reject(CPU, MEMORY) and diagnosis.rejection("n1").unresolvable
    assert (diagnosis.plugin_of("n0"), diagnosis.rejection("n0")) == ("Fit", Reject(CPU))
    assert (diagnosis.plugin_of("n2"), diagnosis.rejection("n2")) == ("", Reject())


@pytest.mark.parametrize("kind", [Reject, Pending])
def test_a_rejection_after_the_choice_is_about_that_node_alone(kind: type[Reject] | type[Pending]) -> None:
    diagnosis = single_node_diagnosis("Volumes", kind(CPU), "n7")
    assert diagnosis.message() == "0/1 nodes are available: 1 Insufficient cpu."
    assert diagnosis.rejectors == {"Volumes"} and diagnosis.rejection("n7") == kind(CPU)
    assert diagnosis.pending == ({"Volumes"} if kind is Pending else set())
