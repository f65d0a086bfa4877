"""The second half of the seeds that are always run, and that a seed says everything."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation.seeds import ALWAYS
from tests.simulation.simulation import simulate
from tests.simulation.test_seeds import CHUNK


@pytest.mark.parametrize("first", [first for first in ALWAYS[::CHUNK] if first >= 50])
def test_nothing_is_violated(first: int) -> None:
    for seed in range(first, first + CHUNK):
        outcome = simulate(seed)
        assert not outcome.violations, outcome.report()


def test_same_seed_same_log_whatever_the_hashes_are() -> None:
    """Sets of text come in another order in every process: none of them may reach a decision."""
    told = []
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-m", "tests.simulation", "--seed", "3", "--log"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        told.append(subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout)
    assert len(told[0].splitlines()) > 200
    assert told[0] == told[1]
