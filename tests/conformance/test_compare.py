"""Where two answers differ."""

from __future__ import annotations

from pilotage.conformance.compare import answer_differences


def test_answers_that_both_end_in_an_error_are_equal_whatever_the_text() -> None:
    assert answer_differences({"error": "a", "best": ["x"]}, {"error": "b", "best": []}) == []


def test_an_error_on_one_side_only_is_a_difference() -> None:
    assert [path for path, _, _ in answer_differences({"error": "a"}, {})] == ["error"]


def test_whether_a_hint_failed_does_not_hide_what_it_says() -> None:
    expected = {"hint": "Queue", "error": False}
    assert answer_differences(expected, {"hint": "QueueSkip", "error": False}) == [("hint", "Queue", "QueueSkip")]
