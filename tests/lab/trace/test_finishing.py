"""Recordings become traces with lifetimes, whatever they are interrupted by."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.lab.trace.content import OBSERVED_BOUND_AT, OBSERVED_NODE
from pilotage.lab.trace.finishing import finish, open_trace
from pilotage.lab.trace.format import TraceError, TraceRecord, read

from .making import gap, gone, node, observed, pod, put, read_all, told, write

CAME = [put(0, node("a")), put(10, pod("p")), put(12, pod("p", on="a")), gone(552, "p")]


def recording(path: Path, *records: TraceRecord) -> Path:
    return write(path / "r.jsonl.gz", records, recording=True)


def test_binding_and_end_become_a_lifetime(tmp_path: Path) -> None:
    found = read_all(recording(tmp_path, *CAME))
    assert told(found) == [(0, "a", None), (10, "p", 540)]
    annotations = found[1].put_object()["metadata"]["annotations"]
    assert annotations == {OBSERVED_NODE: "a", OBSERVED_BOUND_AT: "12.000"}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([put(0, pod("p", on="a")), gone(30, "p")], [(0, "p@a", 30)]),
        ([put(0, pod("p", on="a"))], [(0, "p@a", None)]),
        ([put(5, pod("p")), gone(9, "p")], [(5, "p", None), (9, "gone", "p")]),
        ([put(5, pod("p")), put(6, pod("p", on="a"))], [(5, "p", None)]),
        ([gone(5, "p")], [(5, "gone", "p")]),
        (
            [put(5, pod("p")), put(6, pod("p", on="a")), put(7, pod("p", on="a", labels={"x": "y"})), gone(9, "p")],
            [(5, "p", 3), (7, "p", None)],
        ),
        (
            [put(1, pod("p", on="a", uid="1")), gone(5, "p"), put(6, pod("p", uid="2")), gone(8, "p")],
            [(1, "p@a", 4), (6, "p", None), (8, "gone", "p")],
        ),
    ],
    ids=[
        "bound from the start",
        "never ends",
        "never bound",
        "still runs",
        "unknown",
        "changed",
        "the same name again",
    ],
)
def test_what_becomes_of_a_pod(tmp_path: Path, records: list[TraceRecord], expected: list[tuple[object, ...]]) -> None:
    assert told(read_all(recording(tmp_path, *records))) == expected


def test_a_trace_that_was_continued_keeps_its_lifetimes(tmp_path: Path) -> None:
    """Finished pods stand beside those whose end came after the interruption."""
    path = recording(
        tmp_path,
        put(1, observed("done", "a", 2.0), runs=3),
        put(1, observed("late", "a", 2.0)),
        put(3, pod("done", labels={"x": "y"})),
        gap(20, 10),
        gone(30, "late"),
        put(31, pod("done", uid="another")),
    )
    assert told(read_all(path)) == [
        (1, "done", 3),
        (1, "late", 28),
        (3, "done", None),
        (20, "gap", 10),
        (31, "done", None),
    ]


def test_finishing_replaces_the_file_and_is_done_once(tmp_path: Path) -> None:
    path = recording(tmp_path, *CAME)
    finish(path)
    header, records = read(path)
    assert not header.recording and told(records) == [(0, "a", None), (10, "p", 540)]
    before = path.read_bytes()
    finish(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["r.jsonl.gz"]


def test_how_much_was_read_is_known(tmp_path: Path) -> None:
    _, records = open_trace(recording(tmp_path, *CAME))
    assert [records.fraction_read for _ in records][-1] == records.fraction_read == 1.0


def test_a_recording_that_is_cut_off_ends_there(tmp_path: Path) -> None:
    path = recording(tmp_path, *CAME)
    path.write_bytes(path.read_bytes()[:-20])
    assert isinstance(list(open_trace(path)[1]), list)
    finished = write(tmp_path / "f.jsonl.gz", CAME)
    finished.write_bytes(finished.read_bytes()[:-20])
    with pytest.raises(TraceError, match=r"cut off.*--allow-cut"):
        list(open_trace(finished)[1])


_LIVES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20), st.integers(1, 30)), max_size=12)


@given(_LIVES)
def test_every_life_has_the_length_that_it_had(
    tmp_path_factory: pytest.TempPathFactory, lives: list[tuple[int, int, int]]
) -> None:
    records = []
    for number, (came, waited, ran) in enumerate(lives):
        name = f"p{number}"
        bound = came + waited
        records += [put(came, pod(name)), put(bound, pod(name, on="a")), gone(bound + ran, name)]
    records.sort(key=lambda record: record.at)
    path = recording(tmp_path_factory.mktemp("lives"), *records)
    found = {record.put_object()["metadata"]["name"]: (record.at, record.runs) for record in read_all(path)}
    assert found == {f"p{number}": (came, float(ran)) for number, (came, _, ran) in enumerate(lives)}


def test_a_workload_runs_from_the_first_binding_of_its_job_to_the_last_end(tmp_path: Path) -> None:
    owner = [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}]
    metadata = {"name": "w", "namespace": "default", "ownerReferences": owner}
    workload = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata}

    def member(name: str, on: str = "") -> dict[str, object]:
        one = pod(name, on=on)
        one["metadata"] = {**one["metadata"], "namespace": "default", "ownerReferences": owner}
        return one

    began = [put(1, workload), put(10, member("p")), put(12, member("p", on="a")), put(13, member("q", on="a"))]
    ended = [gone(50, "p"), gone(112, "q")]
    assert read_all(recording(tmp_path, *began, *ended))[0].runs == 100
    assert read_all(recording(tmp_path, *began, ended[0]))[0].runs is None, "one of them still runs"
    assert read_all(recording(tmp_path, began[0]))[0].runs is None
