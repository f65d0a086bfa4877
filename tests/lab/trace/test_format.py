"""Traces are written and read line by line, and what is wrong with one is said with its line and a way out."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pilotage.lab.trace.format import MAX_LINE, ObjectName, TraceError, TraceHeader, TraceRecord, Writer, read, read_on

HEADER = '{"pilotageTrace": 1, "start": "2026-11-16T00:00:00Z"}'
NODE = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}'
POD = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}'


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def write_some(path: Path) -> None:
    with Writer(path, TraceHeader(pilotage_trace=1, start="2026-11-16T00:00:00Z", source="test")) as trace:
        trace.put(0, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}})
        trace.put(1.5, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}, runs=60)
        trace.gap(2, 0.5, "no answer")
        trace.delete(3, ObjectName("v1", "Pod", "p", "n"))


@pytest.mark.parametrize("name", ["some.jsonl", "some.jsonl.gz"])
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    write_some(tmp_path / name)
    header, records = read(tmp_path / name)
    assert (header.source, header.start_time) == ("test", 1_794_787_200.0)
    node, pod, gap, gone = records
    assert node.name == ObjectName("v1", "Node", "a") and node.runs is None
    assert (pod.at, pod.runs, pod.name) == (1.5, 60.0, ObjectName("v1", "Pod", "p", "n"))
    assert pod.put_object()["metadata"] == {"name": "p", "namespace": "n"}
    assert gap.gap is not None and (gap.gap.seconds, gap.gap.reason, gap.name) == (0.5, "no answer", None)
    assert gone == TraceRecord(3.0, delete=ObjectName("v1", "Pod", "p", "n"))


def test_equal_records_give_equal_bytes(tmp_path: Path) -> None:
    write_some(tmp_path / "one.jsonl.gz")
    write_some(tmp_path / "two.jsonl.gz")
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()


def test_the_writer_keeps_the_order_of_time(tmp_path: Path) -> None:
    with Writer(tmp_path / "t.jsonl", TraceHeader(pilotage_trace=1, start="2026-11-16T00:00:00Z")) as trace:
        trace.gap(5, 1)
        with pytest.raises(TraceError, match=r"t.jsonl:3: at: 4 comes after 5"):
            trace.gap(4, 1)


def test_an_object_can_be_of_a_kind_that_a_plugin_watches(tmp_path: Path) -> None:
    own = '{"apiVersion": "example.com/v1", "kind": "Rack", "metadata": {"name": "r"}}'
    path = written(tmp_path / "t.jsonl", HEADER, f'{{"at": 0, "put": {own}}}')
    _, records = read(path, known=lambda api_version, kind: kind == "Rack")
    assert next(records).name == ObjectName("example.com/v1", "Rack", "r")


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "is empty; a trace begins with"),
        (["hello"], ":1: is no trace"),
        (['{"kind": "List"}'], ":1: is no trace"),
        (
            ['{"pilotageTrace": 2, "start": "2026-11-16T00:00:00Z"}'],
            ":1: .*version 2.*reads version 1: use a newer one",
        ),
        (['{"pilotageTrace": 1, "start": "Monday"}'], ":1: start: 'Monday' is no time"),
        ([HEADER, "what"], ":2: is no record"),
        ([HEADER, '{"at": 1}'], ":2: a record has one of put, delete and gap"),
        ([HEADER, f'{{"at": 1, "put": {NODE}, "gap": {{"seconds": 1}}}}'], ":2: a record has one of"),
        ([HEADER, f'{{"at": -1, "put": {NODE}}}'], ":2: at: -1 is no number of seconds"),
        ([HEADER, f'{{"at": 2, "put": {NODE}}}', f'{{"at": 1, "put": {NODE}}}'], ":3: at: 1 is before the 2 .*sort"),
        ([HEADER, f'{{"at": 1, "put": {NODE}, "runs": 3}}'], ":2: runs: only pods"),
        ([HEADER, f'{{"at": 1, "put": {POD}, "runs": -3}}'], ":2: runs: -3 is no number"),
        ([HEADER, '{"at": 1, "put": {"kind": "Pod"}}'], ":2: put: an object has apiVersion, kind and metadata.name"),
        (
            [HEADER, f'{{"at": 1, "put": {NODE.replace("Node", "Rack")}}}'],
            ':2: unknown kind "Rack" of v1: give the plugin that watches it with --plugin',
        ),
        ([HEADER, '{"at": 1, "delete": {"apiVersion": "v1", "kind": "Pot", "name": "p"}}'], ':2: unknown kind "Pot"'),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, lines: list[str], problem: str) -> None:
    path = written(tmp_path / "t.jsonl", *lines)
    with pytest.raises(TraceError, match=problem):
        list(read(path)[1])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"none\.jsonl: cannot be read: No such file"):
        read(tmp_path / "none.jsonl")


def test_a_name_that_ends_in_gz_over_plain_text(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be unpacked: it is damaged, or no gzip file at all"):
        read(written(tmp_path / "t.jsonl.gz", HEADER))


def test_a_line_of_any_length_is_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    with gzip.open(path, "wb") as file:
        file.write(f"{HEADER}\n".encode())
        file.write(b" " * (MAX_LINE + 2))
    with pytest.raises(TraceError, match=":2: the line is longer than 16 MiB"):
        list(read(path)[1])


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_a_file_that_is_cut_off_gives_what_it_has_if_that_is_allowed(tmp_path: Path, name: str) -> None:
    write_some(tmp_path / "whole.jsonl")
    data = (tmp_path / "whole.jsonl").read_bytes()
    path = tmp_path / name
    path.write_bytes(data[:-20] if name == "t.jsonl" else gzip.compress(data)[:-20])
    with pytest.raises(TraceError, match=r"the file is cut off.*--allow-cut takes the lines before it"):
        list(read(path)[1])
    names = [record.name for record in read(path, allow_cut=True)[1]]
    assert names[0] == ObjectName("v1", "Node", "a") and len(names) < 4


def test_what_was_flushed_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    with Writer(path, TraceHeader(pilotage_trace=1, start="2026-11-16T00:00:00Z")) as trace:
        trace.put(1, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}})
        assert path.stat().st_size == 0
        trace.flush()
        _, records = read(path, allow_cut=True)
        assert [record.at for record in records] == [1.0]
        assert trace.size == path.stat().st_size > 0


def test_a_full_disk_is_said_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    path.symlink_to("/dev/full")
    trace = Writer(path, TraceHeader(pilotage_trace=1, start="2026-11-16T00:00:00Z"))
    with pytest.raises(TraceError, match="cannot be written: No space left on device; make room and try again"):
        trace.flush()
    with pytest.raises(TraceError):
        trace.close()


def test_a_trace_in_any_order_is_read_if_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", HEADER, f'{{"at": 5, "put": {NODE}}}', f'{{"at": 3, "put": {NODE}}}')
    assert [record.at for record in read(path, in_any_order=True)[1]] == [5, 3]


def test_reading_on_after_what_is_wrong(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", HEADER, "garbage", f'{{"at": 3, "put": {NODE}}}')
    (first, problem), (second, record) = read_on(path)
    assert (first, second) == (2, 3)
    assert isinstance(problem, TraceError) and isinstance(record, TraceRecord) and record.at == 3
