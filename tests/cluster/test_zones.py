"""The order in which nodes are walked: round robin over zones, in the order in which they were first seen."""

from __future__ import annotations

import pytest

from pilotage.cluster.node_table import ClusterNodeTable, zone_of
from pilotage.testing import NodeBuilder, node

BETA = "failure-domain.beta.kubernetes.io"
STABLE = "topology.kubernetes.io"


def walk(*nodes: NodeBuilder) -> list[str]:
    return order_of(table_of(*nodes))


def table_of(*nodes: NodeBuilder) -> ClusterNodeTable:
    table = ClusterNodeTable()
    for built in nodes:
        table.put_node(built.build())
    return table


def order_of(table: ClusterNodeTable) -> list[str]:
    return [table.names[row] for row in table.order]


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        ({}, ("", "")),
        ({f"{STABLE}/zone": "z"}, ("", "z")),
        ({f"{STABLE}/zone": "z", f"{STABLE}/region": "r"}, ("r", "z")),
        ({f"{STABLE}/zone": "new", f"{BETA}/zone": "old"}, ("", "old")),
        ({f"{STABLE}/zone": "new", f"{BETA}/zone": ""}, ("", "new")),
        ({f"{STABLE}/region": "new", f"{BETA}/region": "old", f"{STABLE}/zone": "z"}, ("old", "z")),
    ],
    ids=["none", "zone", "zone and region", "beta first", "an empty label counts as none", "mixed"],
)
def test_zone_of_a_node(labels: dict[str, str], zone: tuple[str, str]) -> None:
    built = node("a")
    for key, value in labels.items():
        built = built.label(key, value)
    assert zone_of(built.build()) == zone


def test_without_zones_nodes_are_walked_as_they_came() -> None:
    assert walk(node("c"), node("a"), node("b")) == ["c", "a", "b"]


def test_zones_take_turns() -> None:
    nodes = [node("a1").zone("a"), node("a2").zone("a"), node("a3").zone("a"), node("b1").zone("b"), node("c1")]
    assert walk(*nodes) == ["a1", "b1", "c1", "a2", "a3"]


def test_equal_zone_names_in_different_regions_are_different_zones() -> None:
    nodes = [node("r1").region("r").zone("z"), node("r2").region("r").zone("z"), node("s1").region("s").zone("z")]
    assert walk(*nodes) == ["r1", "s1", "r2"]


def test_an_updated_node_keeps_its_place() -> None:
    table = table_of(node("a"), node("b"))
    table.put_node(node("a").label("x", "y").build())
    assert order_of(table) == ["a", "b"]


def test_a_node_that_moves_to_another_zone_goes_to_the_end_of_it() -> None:
    table = table_of(node("a1").zone("a"), node("a2").zone("a"), node("b1").zone("b"), node("b2").zone("b"))
    assert order_of(table) == ["a1", "b1", "a2", "b2"]
    table.put_node(node("a1").zone("b").build())
    assert order_of(table) == ["a2", "b1", "b2", "a1"]


def test_a_zone_keeps_its_turn_when_its_first_node_leaves() -> None:
    table = table_of(node("a1").zone("a"), node("b1").zone("b"), node("a2").zone("a"))
    table.remove_node("a1")
    assert order_of(table) == ["a2", "b1"]


def test_a_zone_that_was_empty_comes_back_last() -> None:
    table = table_of(node("a1").zone("a"), node("b1").zone("b"))
    table.remove_node("a1")
    table.put_node(node("a2").zone("a").build())
    assert order_of(table) == ["b1", "a2"]


def test_positions_are_the_inverse_of_the_order() -> None:
    table = table_of(node("a1").zone("a"), node("a2").zone("a"), node("b1").zone("b"))
    assert table.order.tolist() == [0, 2, 1]
    assert table.positions[table.order].tolist() == [0, 1, 2]
