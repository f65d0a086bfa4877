"""Which events may help a pod that was rejected for its spread."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.api import Action, Hint, Resource
from pilotage.testing import NodeBuilder, PodBuilder, node, pod
from tests.plugins.one_plugin import hint
from tests.plugins.pod_topology_spread.spread_world import SOFT, SpreadWorld, rule, spread

WAITING = spread(rule(), rule(key="rack"))
BLUE = pod("other").label("color", "blue").node("a")
RED = pod("other").label("color", "red").node("a")
IN = node("n").zone("a").label("rack", "1")
OUT = node("n").zone("a")

Q, S = Hint.QUEUE, Hint.SKIP


def ask(resource: Resource, action: Action, waiting: PodBuilder, old: Any, new: Any) -> Hint | None:
    return hint(SpreadWorld([]).plugin, resource, action, waiting, old, new)


@pytest.mark.parametrize(
    ("action", "old", "new", "expected"),
    [
        (Action.ADD, None, BLUE, Q),
        (Action.ADD, None, RED, S),
        (Action.ADD, None, BLUE.namespace("other"), S),
        (Action.DELETE, BLUE, None, Q),
        (Action.DELETE, RED, None, S),
        (Action.DELETE, pod("other").label("color", "blue").nominated("a"), None, Q),
        (Action.DELETE, pod("other").label("color", "blue"), None, S),
        (Action.UPDATE_POD_LABEL, RED, BLUE, Q),
        (Action.UPDATE_POD_LABEL, BLUE, RED, Q),
        (Action.UPDATE_POD_LABEL, BLUE, BLUE.label("x", "y"), S),
        (Action.UPDATE_POD_SCALE_DOWN, BLUE, BLUE, None),
    ],
    ids=[
        "like pod comes", "other pod comes", "other namespace", "like pod goes", "other pod goes", "nominated pod goes",
        "was never there", "becomes alike", "is not alike any more", "stays alike", "shrinks",
    ],
)  # fmt: skip
def test_pods_on_nodes(action: Action, old: Any, new: Any, expected: Hint | None) -> None:
    assert ask(Resource.ASSIGNED_POD, action, WAITING, old, new) is expected


HONEST = spread(rule(nodeTaintsPolicy="Honor"))


@pytest.mark.parametrize(
    ("action", "old", "new", "expected"),
    [
        (Action.UPDATE_POD_TOLERATION, HONEST, HONEST.tolerate("gpu"), Q),
        (Action.UPDATE_POD_TOLERATION, WAITING, WAITING.tolerate("gpu"), S),
        (Action.UPDATE_POD_LABEL, WAITING, WAITING.label("color", "red"), Q),
        (Action.UPDATE_POD_LABEL, WAITING, WAITING.label("x", "y"), S),
    ],
    ids=["taints matter", "taints do not matter", "selects itself no more", "other label"],
)
def test_the_pod_itself(action: Action, old: PodBuilder, new: PodBuilder, expected: Hint) -> None:
    assert ask(Resource.TARGET_POD, action, new, old, new) is expected


@pytest.mark.parametrize(
    ("action", "old", "new", "expected"),
    [
        (Action.ADD, None, IN, Q),
        (Action.ADD, None, OUT, S),
        (Action.DELETE, IN, None, Q),
        (Action.DELETE, OUT, None, S),
        (Action.UPDATE_NODE_LABEL, OUT, IN, Q),
        (Action.UPDATE_NODE_LABEL, IN, OUT, Q),
        (Action.UPDATE_NODE_LABEL, IN, IN.zone("b"), Q),
        (Action.UPDATE_NODE_LABEL, IN, IN.label("x", "y"), S),
        (Action.UPDATE_NODE_LABEL, OUT, OUT.zone("b"), S),
        (Action.UPDATE_NODE_TAINT, IN.taint("gpu", "NoSchedule"), IN, Q),
        (Action.UPDATE_NODE_TAINT, OUT.taint("gpu", "NoSchedule"), OUT, S),
        (Action.UPDATE_NODE_ALLOCATABLE, IN, IN.cpu(9), None),
    ],
    ids=[
        "domain comes", "keyless node comes", "domain goes", "keyless node goes", "gains a key", "loses a key", "moves",
        "other label", "keyless node moves", "taints change", "keyless node's taints", "grows",
    ],
)  # fmt: skip
def test_nodes(action: Action, old: NodeBuilder | None, new: NodeBuilder | None, expected: Hint | None) -> None:
    assert ask(Resource.NODE, action, WAITING, old, new) is expected


def test_soft_constraints_reject_no_one_so_nothing_helps() -> None:
    waiting = spread(rule(when=SOFT))
    assert ask(Resource.ASSIGNED_POD, Action.DELETE, waiting, BLUE, None) is Hint.SKIP
