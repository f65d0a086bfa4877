"""Amounts are exact, and cost what is there: columns come with many nodes and go again."""

from __future__ import annotations

import pytest

from pilotage.cluster.columns import Amounts
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.model.quantity import MAX_INT64
from pilotage.testing import node, pod

GPU = "example.com/gpu"


def test_a_resource_of_a_few_rows_needs_no_column() -> None:
    amounts = Amounts(1024)
    always = amounts.column_count
    amounts.set(7, GPU, 2)
    amounts.add(9, GPU, 3)
    assert amounts.column_count == always
    assert amounts.column(GPU, 10).tolist() == [0, 0, 0, 0, 0, 0, 0, 2, 0, 3]
    assert (amounts.at(9, GPU), amounts.at(8, GPU)) == (3, 0)


def test_a_resource_of_many_rows_is_a_column_until_few_have_it() -> None:
    amounts = Amounts(1024)
    always = amounts.column_count
    for row in range(200):
        amounts.add(row, GPU, row + 1)
    assert amounts.column_count == always + 1
    assert amounts.column(GPU, 200).tolist() == list(range(1, 201))
    for row in range(199):
        amounts.add(row, GPU, -(row + 1))
    assert amounts.column_count == always
    assert GPU in amounts and amounts.at(199, GPU) == 200
    amounts.set(199, GPU, 0)
    assert GPU not in amounts


@pytest.mark.parametrize("resource", ["memory", GPU])
def test_sums_beyond_64_bits_are_shown_as_the_largest_number_and_stay_exact(resource: str) -> None:
    amounts = Amounts(8)
    for _ in range(3):
        amounts.add(1, resource, MAX_INT64)
    assert amounts.column(resource, 2).tolist() == [0, MAX_INT64]
    for _ in range(2):
        amounts.add(1, resource, -MAX_INT64)
    amounts.add(1, resource, -5)
    assert amounts.at(1, resource) == MAX_INT64 - 5
    amounts.move(1, 0)
    assert amounts.column(resource, 2).tolist() == [MAX_INT64 - 5, 0]


def test_pods_that_want_more_than_there_can_be_do_not_make_room_for_others() -> None:
    table = ClusterNodeTable()
    table.put_node(node("a").build())
    pods = [pod(f"p{number}").requests(memory="8Ei", cpu="9" * 400).node("a").build() for number in range(3)]
    for one in pods:
        table.add_pod("a", one)
    assert table.free("memory")[0] < 0 and table.free("cpu")[0] < 0
    table.check()
    for one in pods:
        table.remove_pod("a", one)
    assert table.requested("memory").tolist() == [0] == table.non_zero_requested("cpu").tolist()


def test_names_of_resources_are_forgotten_with_the_pods_and_nodes_that_brought_them() -> None:
    table = ClusterNodeTable()
    many = {f"r{number}.io/a": "1" for number in range(500)}
    greedy, plain = node("a"), node("a")
    for name in many:
        greedy = greedy.allocatable(name, "1")
    table.put_node(greedy.build())
    table.put_node(node("b").build())
    table.below(100)
    there = pod("p").requests(many).node("b").build()
    table.add_pod("b", there)
    assert table.is_offered("r7.io/a") and table.free("r7.io/a").tolist() == [1, -1]
    table.remove_pod("b", there)
    table.put_node(plain.build())
    assert not table.is_offered("r7.io/a")
    kept = [set(family.names()) for family in (table._allocatable, table._requested, table.below(100)._requested)]
    assert not set().union(*kept) & set(many)
