"""Columns of labels: none for what no node has, a bounded number of the others, codes that do not pile up."""

from __future__ import annotations

import random

import pytest

from pilotage.cluster import label_columns
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.testing import NodeBuilder, node


def table_of(count: int) -> ClusterNodeTable:
    table = ClusterNodeTable()
    for number in range(count):
        table.put_node(node(f"n{number}").label("zone", f"z{number % 3}").build())
    return table


def found(table: ClusterNodeTable, key: str) -> list[str | None]:
    codes, values = table.labels(key)
    return [None if code < 0 else values[code] for code in codes.tolist()]


def test_a_label_that_no_node_has_is_missing_everywhere_and_needs_no_column() -> None:
    table = table_of(4)
    for number in range(1000):
        assert found(table, f"absent-{number}") == [None] * 4
        assert not table.has_label(f"absent-{number}")
    assert table._labels.column_count == 0


def test_a_column_appears_with_the_first_node_that_has_the_label_and_goes_with_the_last() -> None:
    table = table_of(3)
    assert found(table, "disk") == [None] * 3
    table.put_node(node("n1").label("disk", "ssd").build())
    assert table.has_label("disk") and found(table, "disk") == [None, "ssd", None]
    table.put_node(node("n1").build())
    assert not table.has_label("disk") and found(table, "disk") == [None] * 3


def test_a_label_of_few_nodes_needs_no_column_and_one_of_many_has_it_until_the_last_is_gone() -> None:
    table = table_of(100)
    for number in range(100):
        assert found(table, "disk") == [f"d{at}" if at < number else None for at in range(100)]
        table.put_node(node(f"n{number}").label("disk", f"d{number}").build())
        assert table._labels.column_count == 0 or number > 10
    assert found(table, "disk") == [f"d{at}" for at in range(100)]
    assert table._labels.column_count == 1
    for number in range(100):
        table.put_node(node(f"n{number}").build())
    assert found(table, "disk") == [None] * 100 and table._labels.column_count == 0


def test_the_columns_that_were_asked_for_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_columns, "_KEPT_BYTES", 0)
    table = ClusterNodeTable()
    for number in range(20):
        body = node(f"n{number}").json()
        body["metadata"]["labels"] = {f"l{at}": str(at) for at in range(500)}
        table.put_node(NodeBuilder(body).build())
    codes = {f"l{number}": table.labels(f"l{number}")[0].tolist() for number in range(500)}
    assert list(table._labels.keys()) == [f"l{number}" for number in range(436, 500)]
    assert {key: table.labels(key)[0].tolist() for key in codes} == codes, "a value keeps its code"
    assert found(table, "l3") == ["3"] * 20


def test_codes_of_values_that_nodes_had_once_are_given_anew() -> None:
    """Names of nodes are label values: a cluster that grows and shrinks has had millions."""
    table = table_of(10)
    _, before = table.labels("host")
    for number in range(5000):
        table.put_node(node(f"n{number % 10}").label("host", f"h{number}").build())
        assert table.labels("host")[1][table.labels("host")[0][number % 10]] == f"h{number}"
    _, values = table.labels("host")
    assert len(values) < 200 and values is not before
    assert found(table, "host") == [f"h{number}" for number in range(4990, 5000)]


def test_sets_of_taints_that_nodes_had_once_are_forgotten() -> None:
    table = table_of(3)
    for number in range(2000):
        table.put_node(node("n1").taint(f"t{number}", "NoSchedule").build())
    codes, sets = table.taint_sets()
    assert len(sets) < 200
    assert [[taint.key for taint in sets[code]] for code in codes.tolist()] == [[], ["t1999"], []]


def test_nodes_that_come_change_and_go_leave_the_columns_right() -> None:
    rng = random.Random(5)
    table, labels = ClusterNodeTable(), dict[str, dict[str, str]]()
    for _ in range(2000):
        name = f"n{rng.randrange(12)}"
        if rng.random() < 0.3 and name in labels:
            table.remove_node(name)
            del labels[name]
        else:
            labels[name] = {key: f"{rng.randrange(50)}" for key in "abc" if rng.random() < 0.6}
            built = node(name)
            for key, value in labels[name].items():
                built = built.label(key, value)
            table.put_node(built.build())
        key = rng.choice("abcd")
        expected = {name: own.get(key) for name, own in labels.items()}
        assert dict(zip(table.names, found(table, key), strict=True)) == expected
        assert table.has_label(key) == any(key in own for own in labels.values())


def test_the_code_of_a_value_is_found_without_a_search() -> None:
    _, values = table_of(5).labels("zone")
    assert [values.index(value) for value in ("z0", "z1", "z2")] == [0, 1, 2]
    with pytest.raises(ValueError, match="z3"):
        values.index("z3")
