"""Which pods make no group, and what is said of them."""

from __future__ import annotations

import msgspec
import pytest

from pilotage.cycle.group_attempt import problem_of
from pilotage.model import KINDS
from pilotage.testing import PodBuilder, pod

PAIR = pod("a").priority(5), pod("b").priority(5)
NEVER = PAIR[1].spec(preemptionPolicy="Never")
SAME = "all pods in a single pod group should have the same"


def problem(pods: tuple[PodBuilder, ...], policy: str | None = None, *, has_own_policy: bool = True) -> str:
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "priority": 5, "preemptionPolicy": policy}
    group = KINDS["podgroups"].decode(msgspec.json.encode({"metadata": {"name": "g"}, "spec": spec}))
    return problem_of(group, [one.build() for one in pods], has_own_policy=has_own_policy)


@pytest.mark.parametrize(
    ("pods", "policy", "text"),
    [
        (PAIR, None, ""),
        (PAIR, "PreemptLowerPriority", ""),
        ((PAIR[0], PAIR[1].scheduler("other")), None, '.spec.schedulerName set, got: "default-scheduler" and "other"'),
        ((PAIR[0], pod("b").priority(4)), None, "priority as the pod group's priority, got 4 and 5"),
        (
            (PAIR[0], PAIR[1].spec(preemptionPolicy="Never")),
            None,
            "preemption policy, got PreemptLowerPriority and Never",
        ),
        (PAIR, "Never", "preemption policy as the pod group's preemption policy, got PreemptLowerPriority and Never"),
    ],
)
def test_what_is_wrong_is_said(pods: tuple[PodBuilder, ...], policy: str | None, text: str) -> None:
    assert problem(pods, policy) == (f"{SAME} {text}" if text else "")


def test_the_policy_of_the_group_counts_only_where_the_server_knows_it() -> None:
    never = tuple(one.spec(preemptionPolicy="Never") for one in PAIR)
    assert problem(never, None) == "" and problem(never, "Never") == ""
    assert problem(PAIR, "Never", has_own_policy=False) == ""
