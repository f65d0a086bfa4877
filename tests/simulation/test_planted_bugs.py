"""The simulation finds bugs: each of these was put in on purpose."""

from __future__ import annotations

import pytest

from tests.simulation.planted import BUGS, Bug


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.what)
def test_planted_bug_is_found(bug: Bug) -> None:
    outcome = bug.outcome(bug.found_by)
    assert outcome.violations, f"seed {bug.found_by} does not find it any more: python -m tests.simulation.planted"
