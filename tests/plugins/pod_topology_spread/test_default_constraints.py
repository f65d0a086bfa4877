"""Pods without constraints get the defaults, for the pods that their services and controllers select."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.api import Hint, Resource
from pilotage.model import KINDS
from pilotage.model.pod_spec import TopologySpreadConstraint
from pilotage.plugins.args import PodTopologySpreadArgs
from pilotage.testing import PodBuilder, node, pod
from tests.plugins.pod_topology_spread.spread_world import HARD, HOSTNAME, SOFT, ZONE, SpreadWorld, blues, rule, spread

NODES = [node("a").zone("a"), node("b").zone("b")]
Q, S = Hint.QUEUE, Hint.SKIP
PLAIN = pod("new").label("color", "blue").label("app", "web")


def listed(*constraints: TopologySpreadConstraint) -> PodTopologySpreadArgs:
    return PodTopologySpreadArgs(default_constraints=constraints, defaulting_type="List")


def constraint(key: str = ZONE, when: str = HARD, skew: int = 1, **more: Any) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(topology_key=key, when_unsatisfiable=when, max_skew=skew, **more)


def owned(
    builder: PodBuilder, kind: str, name: str, version: str = "apps/v1", *, controller: bool = True
) -> PodBuilder:
    owner = {"apiVersion": version, "kind": kind, "name": name, "uid": "u", "controller": controller}
    return builder._put("metadata", ownerReferences=[owner])


@pytest.fixture
def world() -> SpreadWorld:
    """Zone a has two blue pods; a hard default constraint."""
    return SpreadWorld(NODES, blues(a=2), listed(constraint()))


def test_pods_of_no_service_have_no_constraints(world: SpreadWorld) -> None:
    assert world.skips_filter(PLAIN) and world.scores(PLAIN) is None
    world.put("Service", "other", selector={"color": "red"})
    world.put("Service", "headless")
    assert world.skips_filter(PLAIN)


def test_a_service_makes_its_pods_spread(world: SpreadWorld) -> None:
    world.put("Service", "web", selector={"color": "blue"})
    assert sorted(world.rejections(PLAIN)) == ["a"]


def test_services_that_come_change_and_go_are_followed(world: SpreadWorld) -> None:
    assert world.skips_filter(PLAIN)
    world.put("Service", "web", selector={"color": "blue"})
    assert not world.skips_filter(PLAIN)
    world.put("Service", "web", selector={"color": "green"})
    assert world.skips_filter(PLAIN)
    world.put("Service", "web", selector={"color": "blue"})
    world.cluster.remove_object("Service", "default/web")
    assert world.skips_filter(PLAIN)


def test_services_of_other_namespaces_do_not_matter(world: SpreadWorld) -> None:
    world.put("Service", "web", selector={"color": "blue"})
    assert world.skips_filter(PLAIN.namespace("other"))


def test_several_services_select_together(world: SpreadWorld) -> None:
    """The pods in zone a are blue but not of the app: together the services select none of them."""
    world.put("Service", "blue", selector={"color": "blue"})
    world.put("Service", "web", selector={"app": "web"})
    assert world.rejections(PLAIN) == {}
    assert sorted(world.rejections(pod("new").label("color", "blue"))) == ["a"]


SELECTING = {"matchLabels": {"color": "blue"}}


@pytest.mark.parametrize(
    ("kind", "version", "selector"),
    [
        ("ReplicaSet", "apps/v1", SELECTING),
        ("StatefulSet", "apps/v1", SELECTING),
        ("ReplicaSet", "apps/v1", {"matchExpressions": [{"key": "color", "operator": "In", "values": ["blue"]}]}),
        ("ReplicationController", "v1", {"color": "blue"}),
    ],
    ids=["ReplicaSet", "StatefulSet", "by expression", "ReplicationController"],
)
def test_a_controller_makes_its_pods_spread(
    world: SpreadWorld, kind: str, version: str, selector: dict[str, Any]
) -> None:
    waiting = owned(PLAIN, kind, "mine", version)
    assert world.skips_filter(waiting)
    world.put(kind, "mine", selector=selector)
    assert sorted(world.rejections(waiting)) == ["a"]
    assert world.skips_filter(owned(PLAIN, kind, "other", version))
    assert world.skips_filter(owned(PLAIN, kind, "mine", "apps/v9"))
    assert world.skips_filter(owned(PLAIN, kind, "mine", version, controller=False))


def test_a_controller_that_changes_is_followed(world: SpreadWorld) -> None:
    waiting = owned(PLAIN, "ReplicaSet", "mine")
    world.put("ReplicaSet", "mine", selector=SELECTING)
    assert sorted(world.rejections(waiting)) == ["a"]
    world.put("ReplicaSet", "mine", selector={"matchLabels": {"app": "web"}})
    assert world.rejections(waiting) == {}


def test_service_and_controller_select_together(world: SpreadWorld) -> None:
    world.put("Service", "blue", selector={"color": "blue"})
    world.put("ReplicaSet", "mine", selector={"matchLabels": {"app": "web"}})
    assert world.rejections(owned(PLAIN, "ReplicaSet", "mine")) == {}
    assert sorted(world.rejections(PLAIN)) == ["a"]


@pytest.mark.parametrize(
    "selector",
    [None, {}, {"matchExpressions": [{"key": "color", "operator": "In"}]}],
    ids=["missing", "empty", "malformed"],
)
def test_a_controller_without_a_usable_selector_adds_nothing(
    world: SpreadWorld, selector: dict[str, Any] | None
) -> None:
    waiting = owned(PLAIN, "ReplicaSet", "mine")
    world.put("ReplicaSet", "mine", selector=selector)
    assert world.skips_filter(waiting)
    world.put("Service", "web", selector={"color": "blue"})
    assert sorted(world.rejections(waiting)) == ["a"]


def test_jobs_are_not_spread(world: SpreadWorld) -> None:
    world.put("Job", "mine", selector=SELECTING)
    assert world.skips_filter(owned(PLAIN, "Job", "mine", "batch/v1"))


def test_own_constraints_of_any_kind_replace_all_defaults(world: SpreadWorld) -> None:
    world.put("Service", "web", selector={"color": "blue"})
    assert world.skips_filter(spread(rule(when=SOFT, selector=None)).label("app", "web"))


def test_the_systems_defaults_prefer_empty_hosts_and_zones() -> None:
    """Hosts: 1 pod * ln(4) + 2; zones: 1 pod * ln(4) + 4."""
    world = SpreadWorld(NODES, blues(a=1))
    world.put("Service", "web", selector={"color": "blue"})
    assert world.skips_filter(PLAIN)
    assert world.scores(PLAIN) == {"a": (9, 66), "b": (6, 100)}


def test_the_systems_defaults_rate_nodes_without_a_zone_by_their_host() -> None:
    """A node without the label is in a zone of its own, whose pods count for nobody's score: ln(3 + 2) for zones."""
    world = SpreadWorld([*NODES, node("x")], blues(a=1, x=1))
    world.put("Service", "web", selector={"color": "blue"})
    assert world.scores(PLAIN) == {"a": (9, 44), "b": (6, 77), "x": (4, 100)}


def test_an_empty_zone_is_the_zone_of_nodes_without_one() -> None:
    """Both nodes are in the zone "", which has two pods; there is one zone: ln(1 + 2)."""
    world = SpreadWorld([node("a").zone(""), node("x")], blues(a=1, x=1))
    world.put("Service", "web", selector={"color": "blue"})
    assert world.scores(PLAIN) == {"a": (10, 30), "x": (3, 100)}


def test_listed_defaults_ignore_nodes_without_a_key() -> None:
    world = SpreadWorld([*NODES, node("x")], blues(a=1), listed(constraint(when=SOFT), constraint(HOSTNAME, SOFT)))
    world.put("Service", "web", selector={"color": "blue"})
    assert world.scores(PLAIN) == {"a": (3, 0), "b": (0, 100), "x": (0, 0)}


def test_an_empty_list_switches_the_defaults_off() -> None:
    world = SpreadWorld(NODES, blues(a=2), listed())
    world.put("Service", "web", selector={"color": "blue"})
    assert world.skips_filter(PLAIN) and world.scores(PLAIN) is None


def test_a_deduced_selector_replaces_match_label_keys() -> None:
    world = SpreadWorld(NODES, blues(a=2), listed(constraint(match_label_keys=("app",))))
    world.put("Service", "web", selector={"color": "blue"})
    assert sorted(world.rejections(PLAIN)) == ["a"]


def test_answers_are_shared_only_where_no_constraint_can_ever_apply() -> None:
    assert SpreadWorld(NODES).plugin.sign(PLAIN.build()) is None
    without = SpreadWorld(NODES, args=listed()).plugin
    assert without.sign(PLAIN.build()) is not None
    assert without.sign(spread(rule()).build()) is None


# --- what helps -------------------------------------------------------------------------------------------------------


def selecting(kind: str, name: str = "web", namespace: str = "default", **selector: str) -> Any:
    metadata = {"name": name, "namespace": namespace}
    wrapped = {"matchLabels": selector} if kind in ("replicasets", "statefulsets") else selector
    return KINDS[kind].decode(msgspec.json.encode({"metadata": metadata, "spec": {"selector": wrapped}}))


@pytest.mark.parametrize("kind", ["services", "replicationcontrollers", "replicasets", "statefulsets"])
def test_other_selectors_may_help_pods_that_get_theirs_from_them(kind: str) -> None:
    hint = SpreadWorld(NODES, blues(a=2), listed(constraint())).plugin.after_selector_change
    blue, red, elsewhere = selecting(kind, color="blue"), selecting(kind, color="red"), selecting(kind, "x", "other")
    changes = [(None, blue), (blue, red), (blue, None), (blue, blue), (None, elsewhere)]
    assert [hint(PLAIN.build(), *change) for change in changes] == [Q, Q, Q, S, S]
    assert hint(spread(rule()).build(), blue, None) is S, "it has constraints of its own"


@pytest.mark.parametrize(("args", "hears"), [(listed(constraint()), True), (listed(constraint(when=SOFT)), False)])
def test_only_hard_defaults_listen_to_services_and_controllers(args: PodTopologySpreadArgs, hears: bool) -> None:
    heard = {registration.event.resource for registration in SpreadWorld(NODES, [], args).plugin.registrations()}
    wanted = {Resource.SERVICE, Resource.REPLICATION_CONTROLLER, Resource.REPLICA_SET, Resource.STATEFUL_SET}
    assert heard & wanted == (wanted if hears else set())
