"""Who comes back to the queue, when, and who stays: all requeue scenarios on the real engine, with gates on and off."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pilotage.simulate.scenario_file import Scenario, load_scenarios
from pilotage.simulate.scenario_run import play

FILE = Path(__file__).parents[1] / "data" / "requeue" / "scenarios.yaml"
SCENARIOS = load_scenarios(FILE)
"""All gates of requeueing are on unless a scenario says otherwise."""


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
async def test_requeueing(scenario: Scenario) -> None:
    assert (await play(scenario)).difference == ""


def test_nothing_was_left_out() -> None:
    assert len(SCENARIOS) == 98


# --- with one gate off ------------------------------------------------------------------------------------------------


def _comes_back_too(difference: str) -> bool:
    """More pods come back than hints would have let, never fewer."""
    found = re.search(r"requeued: expected (\[.*\]), were (\[.*\])$", difference)
    return found is not None and set(ast.literal_eval(found[1])) < set(ast.literal_eval(found[2]))


def _comes_later(difference: str) -> bool:
    """A pod is still in backoff where it would have been taken out early."""
    late = r"(node: expected \S+, is null|queue: expected \S+, is backoff|popped: expected .*, were \[\])$"
    counted = r"(PopFromBackoffQ,queue=active}: expected 1, is 0|errorBackoff: expected True, is False)$"
    return re.search(f"{late}|{counted}", difference) is not None


def _never(difference: str) -> bool:
    return False


GATES: dict[str, tuple[int, Callable[[str], bool]]] = {
    "SchedulerQueueingHints": (33, _comes_back_too),
    "SchedulerPreQueueingHints": (0, _never),
    "SchedulerPopFromBackoffQ": (43, _comes_later),
    "SchedulerAsyncAPICalls": (0, _never),
    "SchedulerAsyncPreemption": (0, _never),
}
"""Without the gate, in how many scenarios something else is found than with it, and what that may be."""


@pytest.mark.parametrize("gate", GATES)
async def test_without_the_gate_nothing_changes_but_what_the_gate_is_for(gate: str) -> None:
    count, is_meant = GATES[gate]
    differences = {}
    for scenario in SCENARIOS:
        if gate not in scenario.gates:
            differences[scenario.id] = (await play(replace(scenario, gates={**scenario.gates, gate: False}))).difference
    others = {name: text for name, text in differences.items() if text}
    assert {name: text for name, text in others.items() if not is_meant(text)} == {}
    assert len(others) == count, "the gate does more or less than it did"
