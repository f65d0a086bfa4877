"""Conditions keep the time of their last transition."""

from __future__ import annotations

from typing import Any

from pilotage.sandbox.life.controllers.conditions import drop_condition, find_condition, has_condition, set_condition


def test_transition_time_moves_only_when_the_truth_changes() -> None:
    status: dict[str, Any] = {}
    assert set_condition(status, "Ready", "False", "t1", reason="Starting")
    assert set_condition(status, "Ready", "False", "t2", reason="Failing", message="no")
    assert find_condition(status, "Ready") == {
        "type": "Ready",
        "status": "False",
        "reason": "Failing",
        "message": "no",
        "lastTransitionTime": "t1",
    }
    assert set_condition(status, "Ready", "True", "t3")
    assert find_condition(status, "Ready") == {"type": "Ready", "status": "True", "lastTransitionTime": "t3"}


def test_saying_the_same_again_changes_nothing() -> None:
    status: dict[str, Any] = {"conditions": None}
    set_condition(status, "Ready", "True", "t1", reason="R", message="m")
    assert not set_condition(status, "Ready", "True", "t2", reason="R", message="m")
    assert status["conditions"][0]["lastTransitionTime"] == "t1"


def test_conditions_are_distinguished_by_type() -> None:
    status: dict[str, Any] = {}
    set_condition(status, "A", "True", "t1")
    set_condition(status, "B", "Unknown", "t1")
    assert has_condition(status, "A") and not has_condition(status, "B") and not has_condition(status, "C")
    drop_condition(status, "A")
    assert [c["type"] for c in status["conditions"]] == ["B"]
