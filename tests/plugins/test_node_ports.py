"""NodePorts: a host port can be taken once per node, protocol and address."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.api import Action, Hint, Resource
from pilotage.api.results import SKIP
from pilotage.plugins import NodePorts
from pilotage.testing import PodBuilder, node, pod
from tests.plugins.handle import with_handle
from tests.plugins.one_plugin import hint


def ported(name: str, *ports: dict[str, Any], init: bool = False, sidecar: bool = False) -> PodBuilder:
    container: dict[str, Any] = {"name": "c", "image": "i", "ports": [{"containerPort": 80, **p} for p in ports]}
    if not init:
        return pod(name).spec(containers=[container])
    if sidecar:
        container["restartPolicy"] = "Always"
    return pod(name).spec(containers=[{"name": "main", "image": "i"}], initContainers=[container])


TCP_80 = {"hostPort": 80}


@pytest.mark.parametrize(
    ("used", "wanted", "is_rejected"),
    [
        (TCP_80, TCP_80, True),
        (TCP_80, {"hostPort": 81}, False),
        (TCP_80, {"hostPort": 80, "protocol": "UDP"}, False),
        (TCP_80, {"hostPort": 80, "hostIP": "10.0.0.1"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, TCP_80, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.1"}, True),
        ({}, TCP_80, False),
    ],
    ids=[
        "same",
        "other port",
        "other protocol",
        "any meets one",
        "one meets any",
        "two",
        "same address",
        "no host port",
    ],
)
def test_which_ports_meet(used: dict[str, Any], wanted: dict[str, Any], is_rejected: bool) -> None:
    world = with_handle(NodePorts, node("n"), node("free"), pods=[ported("u", used).node("n")])
    assert world.rejected(ported("p", wanted)) == (["n"] if is_rejected else [])


def test_rejection_can_be_helped_by_evicting_pods() -> None:
    world = with_handle(NodePorts, node("n"), pods=[ported("u", TCP_80).node("n")])
    (reason,) = world.reasons(ported("p", TCP_80))["n"]
    assert reason.message == "node(s) didn't have free ports for the requested pod ports"
    assert not reason.unresolvable


def test_pod_without_host_ports_skips_the_filter() -> None:
    world = with_handle(NodePorts, node("n"))
    assert world.pre_filter(pod("p")) is SKIP
    assert world.pre_filter(ported("p", TCP_80)) is None


def test_sidecars_take_ports_and_init_containers_do_not() -> None:
    users = [ported("s", TCP_80, init=True, sidecar=True).node("a"), ported("i", TCP_80, init=True).node("b")]
    world = with_handle(NodePorts, node("a"), node("b"), pods=users)
    assert world.rejected(ported("p", TCP_80)) == ["a"]


def test_port_is_free_when_the_last_pod_that_uses_it_is_gone() -> None:
    first, second = ported("u", TCP_80).node("n"), ported("v", TCP_80).node("n")
    world = with_handle(NodePorts, node("n"), pods=[first, second])
    assert world.rejected(ported("p", TCP_80)) == ["n"]
    world.cluster.remove_pod(first.build().uid)
    assert world.rejected(ported("p", TCP_80)) == ["n"]
    world.cluster.remove_pod(second.build().uid)
    assert world.rejected(ported("p", TCP_80)) == []


@pytest.mark.parametrize(
    ("gone", "answer"),
    [
        (ported("u", TCP_80).node("n"), Hint.QUEUE),
        (ported("u", TCP_80).nominated("n"), Hint.QUEUE),
        (ported("u", TCP_80), Hint.SKIP),
        (ported("u", {"hostPort": 81}).node("n"), Hint.SKIP),
    ],
    ids=["assigned", "nominated", "neither", "other port"],
)
def test_departure_of_a_pod_helps_if_it_held_the_port(gone: PodBuilder, answer: Hint) -> None:
    plugin = with_handle(NodePorts, node("n")).plugin
    assert hint(plugin, Resource.ASSIGNED_POD, Action.DELETE, ported("p", TCP_80), gone, None) is answer


def test_every_new_node_helps() -> None:
    plugin = with_handle(NodePorts, node("n")).plugin
    assert hint(plugin, Resource.NODE, Action.ADD, ported("p", TCP_80), None, node("new")) is Hint.QUEUE
