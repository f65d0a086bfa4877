"""NodeName: a pod that names its node goes there or nowhere."""

from __future__ import annotations

from pilotage.api import Action, Hint, NodeNames, Resource
from pilotage.plugins import NodeName
from pilotage.testing import node, pod
from tests.plugins.one_plugin import OnePlugin, hint, registered

WORLD = OnePlugin(NodeName(), node("a"), node("b"))


def test_a_pod_that_names_no_node_may_go_anywhere() -> None:
    assert WORLD.pre_filter(pod("p")) is None
    assert WORLD.rejected(pod("p")) == []


def test_a_pod_that_names_a_node_may_go_only_there() -> None:
    assert WORLD.pre_filter(pod("p").node("b")) == NodeNames(frozenset(["b"]))
    (reason,) = WORLD.reasons(pod("p").node("b"))["a"]
    assert reason.message == "node(s) didn't match the requested node name" and reason.unresolvable
    assert WORLD.rejected(pod("p").node("b")) == ["a"]


def test_a_pod_that_names_a_node_that_does_not_exist_fits_nowhere() -> None:
    assert WORLD.rejected(pod("p").node("c")) == ["a", "b"]


def test_every_new_node_may_help() -> None:
    assert registered(NodeName()) == [(Resource.NODE, Action.ADD)]
    assert hint(NodeName(), Resource.NODE, Action.ADD, pod("p").node("c"), None, node("x")) is Hint.QUEUE


def test_the_named_node_is_the_signature() -> None:
    plugin = NodeName()
    assert plugin.sign(pod("p").node("a").build()) == plugin.sign(pod("q").node("a").build())
    assert plugin.sign(pod("p").node("a").build()) != plugin.sign(pod("p").build())
