"""What helps a pod that was rejected for its affinity or that of others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.api import Action, Hint, Resource
from pilotage.model import KINDS
from pilotage.plugins.inter_pod_affinity.hints import MalformedTerms
from pilotage.testing import PodBuilder, node
from tests.plugins.inter_pod_affinity.affinity_world import HOSTNAME, ZONE, AffinityWorld, apart, app, near, term
from tests.plugins.one_plugin import hint, registered

Q, S = Hint.QUEUE, Hint.SKIP
PLUGIN = AffinityWorld([]).plugin
WEB = app("web", "new")
NEAR_DB = near(WEB, term("app=db"), term("tier=gold", HOSTNAME))
APART_FROM_DB = apart(WEB, term("app=db"), term("app=cache", HOSTNAME))
DB = app("db").node("n")
GOLD_DB = DB.label("tier", "gold")
OTHER = app("other").node("n")

ADD, DELETE, RELABEL = Action.ADD, Action.DELETE, Action.UPDATE_POD_LABEL


@pytest.mark.parametrize(
    ("action", "waiting", "old", "new", "expected"),
    [
        pytest.param(ADD, NEAR_DB, None, GOLD_DB, Q, id="what it wants to be near to comes"),
        pytest.param(ADD, NEAR_DB, None, DB, S, id="only one term means the pod that comes"),
        pytest.param(ADD, APART_FROM_DB, None, OTHER, S, id="more pods never help anti-affinity"),
        pytest.param(ADD, NEAR_DB, None, app("db").label("tier", "gold"), S, id="it comes without a node"),
        pytest.param(ADD, NEAR_DB, None, GOLD_DB.namespace("x"), S, id="it comes in another namespace"),
        pytest.param(DELETE, APART_FROM_DB, DB, None, Q, id="one anti-affinity term meant the pod that went"),
        pytest.param(DELETE, APART_FROM_DB, OTHER, None, S, id="nobody minded the pod that went"),
        pytest.param(DELETE, APART_FROM_DB, app("db").nominated("n"), None, Q, id="it was only nominated to a node"),
        pytest.param(DELETE, APART_FROM_DB, app("db"), None, S, id="it had no node"),
        pytest.param(DELETE, WEB, apart(OTHER, term("app=x"), term("app=web")), None, Q, id="it minded the pod"),
        pytest.param(DELETE, WEB, apart(OTHER, term("app=x")), None, S, id="it minded somebody else"),
        pytest.param(DELETE, NEAR_DB, GOLD_DB, None, S, id="what it wants to be near to goes"),
        pytest.param(RELABEL, NEAR_DB, DB, GOLD_DB, Q, id="becomes what it wants to be near to"),
        pytest.param(RELABEL, NEAR_DB, GOLD_DB, GOLD_DB.label("x", "y"), S, id="stays what it wants to be near to"),
        pytest.param(RELABEL, NEAR_DB, GOLD_DB, DB, S, id="is not what it wants to be near to any more"),
        pytest.param(RELABEL, APART_FROM_DB, DB, OTHER, Q, id="is not minded any more"),
        pytest.param(RELABEL, APART_FROM_DB, DB, app("cache").node("n"), S, id="is minded for another reason"),
        pytest.param(RELABEL, APART_FROM_DB, OTHER, DB, S, id="is minded now"),
        pytest.param(Action.UPDATE_POD_SCALE_DOWN, NEAR_DB, DB, GOLD_DB, None, id="shrinks"),
    ],
)
def test_pods_on_nodes(action: Action, waiting: PodBuilder, old: Any, new: Any, expected: Hint | None) -> None:
    assert hint(PLUGIN, Resource.ASSIGNED_POD, action, waiting, old, new) is expected


BARE = node("n")
IN_A = BARE.zone("a")
NEAR = near(WEB, term("app=db"))
APART = apart(WEB, term("app=db"))
MOVED = Action.UPDATE_NODE_LABEL


@pytest.mark.parametrize(
    ("action", "waiting", "old", "new", "expected"),
    [
        pytest.param(ADD, NEAR, None, IN_A, Q, id="near: a node with the key comes"),
        pytest.param(ADD, NEAR, None, BARE, S, id="near: a node without the key comes"),
        pytest.param(MOVED, NEAR, BARE, IN_A, Q, id="near: gains the key"),
        pytest.param(MOVED, NEAR, IN_A, BARE, S, id="near: loses the key"),
        pytest.param(MOVED, NEAR, IN_A, BARE.zone("b"), Q, id="near: moves"),
        pytest.param(MOVED, NEAR, IN_A, IN_A.label("x", "y"), S, id="near: other label"),
        pytest.param(ADD, APART, None, BARE, Q, id="apart: any node comes"),
        pytest.param(MOVED, APART, BARE, IN_A, S, id="apart: gains the key"),
        pytest.param(MOVED, APART, IN_A, BARE, Q, id="apart: loses the key"),
        pytest.param(MOVED, APART, IN_A, BARE.zone("b"), Q, id="apart: moves"),
        pytest.param(MOVED, APART, IN_A, IN_A.label("x", "y"), S, id="apart: other label"),
        pytest.param(ADD, WEB, None, IN_A, S, id="pod without terms"),
        pytest.param(Action.UPDATE_NODE_TAINT, APART, IN_A, IN_A, None, id="taints"),
    ],
)
def test_nodes(action: Action, waiting: PodBuilder, old: Any, new: Any, expected: Hint | None) -> None:
    assert hint(PLUGIN, Resource.NODE, action, waiting, old, new) is expected


def test_other_labels_of_its_own_may_always_help() -> None:
    assert hint(PLUGIN, Resource.TARGET_POD, Action.UPDATE_POD_LABEL, WEB, WEB, WEB.label("x", "y")) is Q
    assert hint(PLUGIN, Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION, WEB, WEB, WEB) is None


IN_LIVE = term("app=db", ZONE, namespaceSelector={"matchLabels": {"stage": "live"}})


@pytest.mark.parametrize(
    ("selector", "namespace", "expected"),
    [({"stage": "live"}, "x", Q), ({"stage": "live"}, "y", S), ({"stage": "test"}, "y", Q), ({}, "y", Q), ({}, "z", Q)],
)
def test_pods_are_meant_by_the_labels_of_their_namespaces(
    selector: dict[str, str], namespace: str, expected: Hint
) -> None:
    world = AffinityWorld([])
    world.put_namespace("x", {"stage": "live"})
    world.put_namespace("y", {"stage": "test"})
    waiting = apart(WEB, term("app=db", ZONE, namespaceSelector={"matchLabels": selector} if selector else {}))
    assert hint(world.plugin, Resource.ASSIGNED_POD, DELETE, waiting, DB.namespace(namespace), None) is expected


def _namespace(name: str, **labels: str) -> Any:
    return KINDS["namespaces"].decode(msgspec.json.encode({"metadata": {"name": name, "labels": labels}}))


LIVE, TEST = _namespace("x", stage="live"), _namespace("x", stage="test")


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        pytest.param(near(WEB, IN_LIVE), TEST, LIVE, Q, id="near: pods of the namespace are meant now"),
        pytest.param(near(WEB, IN_LIVE), None, LIVE, Q, id="near: it comes later than its pods"),
        pytest.param(near(WEB, IN_LIVE), TEST, _namespace("x", stage="test", other="label"), S, id="another label"),
        pytest.param(near(WEB, IN_LIVE), LIVE, LIVE, S, id="no other labels"),
        pytest.param(apart(WEB, IN_LIVE), LIVE, TEST, Q, id="apart: pods of the namespace are not meant any more"),
        pytest.param(apart(WEB, IN_LIVE), LIVE, None, Q, id="apart: it goes"),
        pytest.param(apart(WEB, term("app=db")), LIVE, TEST, S, id="selects no namespaces"),
        pytest.param(WEB, LIVE, TEST, S, id="no terms, in another namespace"),
        pytest.param(WEB.namespace("x"), LIVE, TEST, Q, id="those that keep it out may not mean it any more"),
    ],
)
def test_namespaces(waiting: PodBuilder, old: Any, new: Any, expected: Hint) -> None:
    assert PLUGIN.after_namespace_change(waiting.build(), old, new) is expected


def test_malformed_terms_are_an_error_so_that_the_pod_is_retried() -> None:
    bad = term({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]})
    with pytest.raises(MalformedTerms, match='"Gt" is not a valid label selector operator'):
        PLUGIN.after_pod_change(near(WEB, bad).build(), None, DB.build())
    with pytest.raises(MalformedTerms):
        PLUGIN.after_pod_change(WEB.build(), apart(DB, bad).build(), None)


def test_registered_events() -> None:
    assert registered(PLUGIN) == [
        (Resource.ASSIGNED_POD, ADD | RELABEL | DELETE),
        (Resource.TARGET_POD, RELABEL),
        (Resource.NODE, ADD | MOVED),
        (Resource.NAMESPACE, ADD | Action.UPDATE | DELETE),
    ]
