"""Nodes as columns: what is in them after nodes and pods come, change and go."""

from __future__ import annotations

import numpy as np
import pytest

from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.model.pod import Pod
from pilotage.testing import node, pod

MI = 2**20


def table_of(*names: str) -> ClusterNodeTable:
    table = ClusterNodeTable()
    for name in names:
        table.put_node(node(name).build())
    return table


def on(table: ClusterNodeTable, node_name: str, name: str, **requests: str) -> Pod:
    built = pod(name).requests(**requests).node(node_name).build()
    assert table.add_pod(node_name, built)
    return built


def test_amounts_are_integers_in_the_units_of_scheduling() -> None:
    table = ClusterNodeTable()
    table.put_node(node("a").cpu("1500m").memory("1Ki").pods(7).allocatable("example.com/gpu", "2").build())
    table.put_node(node("b").cpu("0.0001").without("memory").build())
    assert table.allocatable("cpu").tolist() == [1500, 1]
    assert table.allocatable("memory").tolist() == [1024, 0]
    assert table.allocatable("pods").tolist() == [7, 110]
    assert table.allocatable("example.com/gpu").tolist() == [2, 0]
    assert table.allocatable("example.com/unheard-of").tolist() == [0, 0]


def test_a_resource_that_a_node_stops_offering_is_gone() -> None:
    table = ClusterNodeTable()
    table.put_node(node("a").allocatable("example.com/gpu", "2").build())
    table.put_node(node("a").build())
    assert table.allocatable("example.com/gpu").tolist() == [0]


def test_pods_count_on_their_node_and_stop_counting() -> None:
    table = table_of("a", "b")
    first = on(table, "b", "p", cpu="500m", memory="1Gi")
    on(table, "b", "q", cpu="250m")
    assert table.requested("cpu").tolist() == [0, 750]
    assert table.free("cpu").tolist() == [4000, 3250]
    assert table.requested("memory").tolist() == [0, 2**30]
    assert table.pod_count.tolist() == [0, 2]
    table.remove_pod("b", first)
    assert table.requested("cpu").tolist() == [0, 250]
    assert table.requested("memory").tolist() == [0, 0]
    assert table.pod_count.tolist() == [0, 1]
    assert [p.name for p in table.pods_on(1).values()] == ["q"]


def test_removing_a_pod_twice_or_from_a_strange_node_changes_nothing() -> None:
    table = table_of("a")
    there = on(table, "a", "p", cpu="1")
    table.remove_pod("nowhere", there)
    table.remove_pod("a", there)
    table.remove_pod("a", there)
    assert table.requested("cpu").tolist() == [0] and table.pod_count.tolist() == [0]


def test_a_pod_is_not_counted_on_a_node_that_does_not_exist() -> None:
    assert not table_of("a").add_pod("b", pod("p").build())


def test_scoring_counts_defaults_for_containers_that_request_nothing() -> None:
    table = table_of("a")
    table.add_pod("a", pod("p").container("second", cpu="1").build())
    assert table.non_zero_requested("cpu").tolist() == [1100]
    assert table.non_zero_requested("memory").tolist() == [400 * MI]
    assert table.requested("cpu").tolist() == [1000]
    assert table.requested("memory").tolist() == [0]


def test_scoring_of_other_resources_counts_what_was_requested() -> None:
    table = table_of("a")
    table.add_pod("a", pod("p").requests({"example.com/gpu": 3}).build())
    assert table.non_zero_requested("example.com/gpu").tolist() == [3]


def test_replacing_a_pod_by_an_equal_one_touches_nothing() -> None:
    table = table_of("a")
    old = on(table, "a", "p", cpu="1")
    mark = table.mark
    newer = pod("p").requests(cpu="1").node("a").phase("Running").build()
    table.replace_pod("a", old, newer)
    assert table.changed_since(mark) == []
    assert table.pods_on(0)[newer.uid] is newer


def test_replacing_a_pod_by_a_smaller_one_frees_the_difference() -> None:
    table = table_of("a")
    old = on(table, "a", "p", cpu="3")
    table.replace_pod("a", old, pod("p").requests(cpu="1").node("a").build())
    assert table.requested("cpu").tolist() == [1000] and table.pod_count.tolist() == [1]
    table.check()


def test_columns_cannot_be_written() -> None:
    table = table_of("a")
    columns = [table.allocatable("cpu"), table.requested("cpu"), table.pod_count, table.unschedulable]
    on(table, "a", "p", cpu="1")
    for column in [*columns, table.requested("cpu"), table.labels("x")[0], table.taint_sets()[0]]:
        if column.flags.owndata:
            continue  # a fresh array: writing to it reaches nobody
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
    table.check()


def test_labels_are_codes_and_values() -> None:
    table = ClusterNodeTable()
    for name, disk in [("a", "ssd"), ("b", None), ("c", "hdd"), ("d", "ssd")]:
        table.put_node((node(name).label("disk", disk) if disk else node(name)).build())
    codes, values = table.labels("disk")
    assert [values[code] if code >= 0 else None for code in codes] == ["ssd", None, "hdd", "ssd"]
    assert codes[0] == codes[3]


def test_a_label_column_in_use_follows_the_nodes() -> None:
    table = ClusterNodeTable()
    table.put_node(node("a").label("disk", "ssd").build())
    table.labels("disk")
    table.put_node(node("b").label("disk", "nvme").build())
    table.put_node(node("a").build())
    codes, values = table.labels("disk")
    assert codes[0] == -1 and values[codes[1]] == "nvme"


def test_equal_taints_have_one_code_whenever_they_were_added() -> None:
    table = ClusterNodeTable()
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    table.put_node(node("a").spec(taints=[taint | {"timeAdded": "2026-01-01T00:00:00Z"}]).build())
    table.put_node(node("b").spec(taints=[taint]).build())
    table.put_node(node("c").build())
    codes, sets = table.taint_sets()
    assert codes[0] == codes[1] != codes[2]
    assert [t.key for t in sets[codes[0]]] == ["k"] and sets[codes[2]] == ()


def test_cordoned_nodes_are_marked() -> None:
    table = table_of("a", "b")
    table.put_node(node("b").unschedulable().build())
    assert table.unschedulable.tolist() == [False, True]


def test_rows_by_name_leave_out_unknown_names() -> None:
    table = table_of("a", "b", "c")
    assert table.rows_of(frozenset(["c", "a", "nobody"])).tolist() == [True, False, True]
    assert table.rows_of(frozenset()).tolist() == [False, False, False]
    assert table.row("b") == 1 and table.row("nobody") is None


def test_removing_a_node_moves_the_last_row_into_its_place() -> None:
    table = table_of("a", "b", "c")
    table.put_node(node("c").cpu("9").label("disk", "ssd").taint("t", "NoSchedule").unschedulable().build())
    table.labels("disk")
    gone = on(table, "a", "p", cpu="1")
    on(table, "c", "q", cpu="2")
    assert table.remove_node("a") == [gone]
    assert list(table.names) == ["c", "b"] and table.row("c") == 0 and table.row("a") is None
    assert table.allocatable("cpu").tolist() == [9000, 4000]
    assert table.requested("cpu").tolist() == [2000, 0]
    assert table.unschedulable.tolist() == [True, False]
    codes, values = table.labels("disk")
    assert values[codes[0]] == "ssd" and codes[1] == -1
    assert table.taint_sets()[1][table.taint_sets()[0][0]][0].key == "t"
    table.check()


def test_a_row_that_is_used_again_starts_empty() -> None:
    table = table_of("a", "b")
    on(table, "b", "p", cpu="2")
    table.labels("disk")
    table.remove_node("b")
    table.put_node(node("c").build())
    assert table.requested("cpu").tolist() == [0, 0] and table.pod_count.tolist() == [0, 0]
    table.check()


def test_the_table_grows_with_all_its_columns() -> None:
    table = ClusterNodeTable()
    table.labels("parity")
    for number in range(200):
        table.put_node(node(f"n{number}").cpu(number + 1).label("parity", str(number % 2)).build())
        on(table, f"n{number}", f"p{number}", cpu=f"{number + 1}m")
    assert table.allocatable("cpu").tolist() == [1000 * (number + 1) for number in range(200)]
    assert table.requested("cpu").tolist() == [number + 1 for number in range(200)]
    codes, values = table.labels("parity")
    assert [values[code] for code in codes] == [str(number % 2) for number in range(200)]
    table.check()


def test_the_change_log_names_each_touched_row_once() -> None:
    table = table_of("a", "b", "c")
    mark = table.mark
    assert table.changed_since(mark) == []
    on(table, "c", "p", cpu="1")
    table.put_node(node("a").cpu("1").build())
    on(table, "c", "q", cpu="1")
    assert table.changed_since(mark) == [2, 0]
    assert table.changed_since(table.mark) == []


def test_only_coming_and_going_nodes_change_the_structure() -> None:
    table = table_of("a")
    before = table.structure
    table.put_node(node("a").cpu("1").build())
    on(table, "a", "p")
    assert table.structure == before
    table.put_node(node("b").build())
    added = table.structure
    assert added != before
    table.remove_node("b")
    assert table.structure not in (before, added)


def test_an_empty_table_has_empty_columns() -> None:
    table = ClusterNodeTable()
    assert len(table) == 0 and table.order.tolist() == [] and table.everywhere(True).tolist() == []
    assert table.free("cpu").dtype == np.int64 and len(table.free("cpu")) == 0


def test_a_pod_counts_with_its_resize_and_stops_counting_all_of_it() -> None:
    """What a pod counts with follows from its status too, not only from its spec and container statuses."""
    granted = [{"name": "main", "allocatedResources": {"cpu": "1"}}]
    growing = pod("p").requests(cpu="3").node("a").status(containerStatuses=granted)
    rejected = growing.status(conditions=[{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}])
    table = table_of("a")
    old, new = growing.build(), rejected.build()
    table.add_pod("a", old)
    assert table.requested("cpu").tolist() == [3000]
    table.replace_pod("a", old, new)
    assert table.requested("cpu").tolist() == [1000]
    table.check()
    table.remove_pod("a", new)
    assert table.requested("cpu").tolist() == [0] and table.non_zero_requested("cpu").tolist() == [0]


def test_a_large_set_of_names_follows_the_rows() -> None:
    """Large sets are remembered; what is remembered must not outlive the order of the rows, nor be written to."""
    names = [f"n{number:03}" for number in range(100)]
    table, wanted = table_of(*names), frozenset(names[50:])
    first = table.rows_of(wanted)
    first[:] = False
    assert table.rows_of(wanted).tolist() == [False] * 50 + [True] * 50
    table.remove_node("n000")
    by_name = dict(zip(table.names, table.rows_of(wanted).tolist(), strict=True))
    assert by_name == {name: name in wanted for name in names[1:]}
