"""What a result says of nodes, and of what pods belong to and request."""

from __future__ import annotations

from pathlib import Path

from tests.lab.worlds import delete, node, played, pod, put


def test_from_when_to_when_a_node_was_there(tmp_path: Path) -> None:
    bigger = node("a").cpu("8").label("pool", "new")
    changes = [put(1, node("a").cpu("2").label("pool", "old")), put(2, bigger), delete(5, "Node", "a")]
    result = played(tmp_path, *changes, put(7, node("a").cpu("500m")), put(8, node("b")))
    assert [(one.node, one.since, one.until) for one in result.nodes] == [("a", 1, 5), ("a", 7, None), ("b", 8, None)]
    first, second, _ = result.nodes
    assert (first.labels["pool"], first.allocatable["cpu"], second.allocatable["cpu"]) == ("new", 8000, 500)


def test_nodes_instead_of_those_of_the_trace(tmp_path: Path) -> None:
    result = played(tmp_path, put(0, node("a")), delete(5, "Node", "a"), put(6, pod("p"), 1.0), nodes=[node("x")])
    assert [(one.node, one.since, one.until) for one in result.nodes] == [("x", 0, None)]


def test_owner_group_and_requests(tmp_path: Path) -> None:
    one = pod("p").owner("Job", "train").requests(cpu="500m", memory="1Ki")
    grouped = pod("q").spec(schedulingGroup={"podGroupName": "g"})
    pods = played(tmp_path, put(0, node("n")), put(1, one, 5.0), put(2, grouped), until=4.0).pods
    rows = {name: row for row, name in enumerate(pods["pod"].tolist())}
    p, q = rows["default/p"], rows["default/q"]
    assert (pods["owner"][p], pods["owner"][q], pods["group"][q]) == ("Job/train", "", "g")
    assert (pods["requests_cpu"][p], pods["requests_memory"][p], pods["requests_cpu"][q]) == (500, 1024, 0)
