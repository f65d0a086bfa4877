"""The first half of the seeds that are always run; the rest is in a file of its own, for another core to take."""

from __future__ import annotations

import pytest

from tests.simulation.seeds import ALWAYS, KEPT
from tests.simulation.simulation import simulate

CHUNK = 10


@pytest.mark.parametrize("first", [first for first in ALWAYS[::CHUNK] if first < 50])
def test_nothing_is_violated(first: int) -> None:
    for seed in range(first, first + CHUNK):
        outcome = simulate(seed)
        assert not outcome.violations, outcome.report()


@pytest.mark.parametrize("seed", KEPT)
def test_what_was_found_once_stays_mended(seed: int) -> None:
    outcome = simulate(seed)
    assert not outcome.violations, f"{KEPT[seed]}\n{outcome.report()}"
