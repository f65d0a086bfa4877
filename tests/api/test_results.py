"""Results of plugins say at once what is wrong with them, where the mistake was made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pilotage.api.results import Nominate, Pending, Reason, Reject

REASON = Reason("NotSunny", "node(s) were not sunny")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: Reject("cloudy"), "Reject takes Reasons", id="a sentence as rejection"),
        pytest.param(lambda: Pending(REASON, "cloudy"), "Pending takes Reasons", id="a sentence among reasons"),
        pytest.param(lambda: Nominate(7), "the name of a node", id="a number as node"),
        pytest.param(lambda: Nominate("a", None), "and a message", id="no message"),
        pytest.param(lambda: Nominate("a", "", ["Fit"]), "frozenset of names", id="a list of rejectors"),
    ],
)
def test_wrong_types_are_named(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize("kind", [Reject, Pending])
def test_a_rejection_is_unresolvable_if_one_of_its_reasons_is(kind: type[Reject | Pending]) -> None:
    never = Reason("NoSuchNode", "no such node", unresolvable=True)
    assert kind(REASON, never).unresolvable and not kind(REASON).unresolvable
