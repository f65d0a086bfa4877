from __future__ import annotations

import pytest

from pilotage.api import Budget, BudgetExceeded, CycleState


class Cpu:
    def __init__(self) -> None:
        self.seconds = 5.0
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return self.seconds


def test_a_cycle_within_its_budget_is_left_alone() -> None:
    cpu = Cpu()
    budget = Budget(0.5, cpu)
    cpu.seconds += 0.5
    budget.check()
    for _ in range(5000):
        budget.spend()


def test_a_long_loop_ends_when_the_time_is_over() -> None:
    cpu = Cpu()
    budget = Budget(0.5, cpu)
    with pytest.raises(BudgetExceeded, match=r"used 0\.6\d s of CPU time, a scheduling cycle may use 0\.5 s") as error:
        for _ in range(100_000):
            cpu.seconds += 0.6 / 1024
            budget.spend()
    assert error.value.limit_seconds == 0.5
    assert error.value.spent_seconds > 0.5


def test_who_swallows_the_error_meets_it_at_the_next_step() -> None:
    cpu = Cpu()
    budget = Budget(0.5, cpu)
    cpu.seconds += 1
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            budget.check()
    with pytest.raises(BudgetExceeded):
        budget.spend()


def test_the_next_cycle_has_a_budget_of_its_own() -> None:
    cpu = Cpu()
    budget = Budget(0.5, cpu)
    cpu.seconds += 1
    with pytest.raises(BudgetExceeded):
        budget.check()
    budget.begin(0.5)
    budget.spend(2000)
    assert budget.spent_seconds == 0


def test_steps_rarely_look_at_the_clock() -> None:
    cpu = Cpu()
    budget = Budget(0.5, cpu)
    before = cpu.looks
    for _ in range(10_240):
        budget.spend()
    assert cpu.looks - before == 10


def test_a_dry_run_spends_the_budget_of_its_cycle() -> None:
    state = CycleState(Budget(0.5, Cpu()))
    assert state.clone().budget is state.budget
