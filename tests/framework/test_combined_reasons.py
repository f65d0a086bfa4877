"""Reasons against many nodes, put together node by node."""

from __future__ import annotations

import random

import numpy as np

from pilotage.api import Pending, Reason, Reject
from pilotage.framework.combined_reasons import MOST_REASONS, CombinedReasons, capped
from pilotage.framework.diagnosis import Diagnosis, RejectedRows, unavailable_text


def test_each_node_has_its_reasons_in_the_order_in_which_they_were_said() -> None:
    rng = random.Random(3)
    reasons = [Reason(f"R{number}", f"reason {number}") for number in range(20)]
    expected: list[list[Reason]] = [[] for _ in range(50)]
    combined = CombinedReasons(50)
    for reason in reasons:
        found = np.array([rng.random() < 0.4 for _ in range(50)])
        combined.add(found, reason, False)
        for row in np.flatnonzero(found).tolist():
            expected[row].append(reason)
    told: list[list[Reason]] = [[] for _ in range(50)]
    for rejection, rows in combined.rejections():
        assert isinstance(rejection, Reject)
        for row in np.flatnonzero(rows).tolist():
            assert not told[row], "a node has one verdict"
            told[row] = list(rejection.reasons)
    assert told == expected


def test_the_last_word_says_whether_someone_else_must_answer() -> None:
    combined = CombinedReasons(2)
    combined.add(np.array([True, True]), Reason("A", "a"), False)
    combined.add(np.array([False, True]), Reason("B", "b"), True)
    kinds = {tuple(rows.tolist()): type(rejection) for rejection, rows in combined.rejections()}
    assert kinds == {(True, False): Reject, (False, True): Pending}


def test_the_first_of_very_many_reasons_are_reported_and_the_others_counted() -> None:
    reasons = [Reason("R", f"reason {number}") for number in range(14_999)]
    reasons.append(Reason("R", "the last", unresolvable=True))
    combined = CombinedReasons(3)
    for reason in reasons:
        combined.add(np.array([True, False, True]), reason, False)
    ((rejection, rows),) = combined.rejections()
    assert rows.tolist() == [True, False, True]
    assert list(rejection.reasons[:MOST_REASONS]) == reasons[:MOST_REASONS]
    assert [reason.message for reason in rejection.reasons[MOST_REASONS:]] == ["14900 more reasons"]
    assert rejection.unresolvable, "preemption cannot help where one of the others says so"
    assert capped(reasons[:MOST_REASONS]) == reasons[:MOST_REASONS]


def test_a_message_is_as_long_as_a_condition_may_be_and_says_how_much_is_missing() -> None:
    diagnosis = Diagnosis(node_names=["a"])
    for number in range(5000):
        diagnosis.add(RejectedRows("P", Reason("R", f"node(s) lacked part {number:04}"), np.ones(1, dtype=np.bool_)))
    diagnosis.post_filter_message = unavailable_text(1, diagnosis.reason_counts())
    message = diagnosis.message()
    assert len(message.encode()) < 32 * 1024
    first, _, rest = message.removeprefix("0/1 nodes are available: ").partition(", ")
    assert first == "1 node(s) lacked part 0000"
    told = rest.partition(". ")[0].split(", ")
    assert told[-1] == f"and {5000 - len(told)} more reasons"
