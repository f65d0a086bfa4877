"""Wide random histories of workload queueing: quota is kept in whole trees, and everybody is in one place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.queueing_history import WideHistory

STEPS = 60
FOUND = (94, 181, 402, 521, 557, 3836, 4558, 4750, 4852, 6514, 3080, 3559)
"""Seeds that once failed."""


def play(seed: int) -> None:
    history = WideHistory(seed)
    before = history.excess()
    for _ in range(STEPS):
        changes = history.changes
        history.step()
        after = history.excess()
        if history.changes == changes:
            assert all(amount <= before[name] for name, amount in after.items()), (seed, before, after)
        before = after


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 2**32))
def test_quota_is_kept_in_every_node_of_the_tree(seed: int) -> None:
    play(seed)


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found_once(seed: int) -> None:
    play(seed)


@pytest.mark.parametrize(("seed", "steps"), [(854, 50), (1266, 31), (1764, 30)])
def test_no_one_who_could_have_quota_is_put_aside(seed: int, steps: int) -> None:
    """Workloads had lost their flavors to others, or were held back, and went on with the next ones: later they could
    have had the first ones, or were of another size, but their search counted as over."""
    history = WideHistory(seed)
    for _ in range(steps):
        history.step()
    history.stage.reserved.clear()
    for name in history.queues:
        history.wake(name)
    history.stage.settle()
    assert history.stage.reserved == []


def test_the_same_seed_gives_the_same_pictures() -> None:
    pictures = []
    for _ in range(2):
        history = WideHistory(20261)
        for _ in range(STEPS):
            history.step()
        pictures.append(history.picture())
    assert pictures[0] == pictures[1]
