"""All that is wrong with a trace is told, line by line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.lab.trace.format import MAX_LINE, TraceError
from pilotage.lab.trace.validation import problems

from .making import START, gap, gone, node, observed, pod, put, write

HEADER = f'{{"pilotageTrace": 1, "start": "{START}"}}'


def found(path: Path) -> list[tuple[int, str, str]]:
    return [(one.line, one.severity, one.text) for one in problems(path)]


def lines(path: Path, *records: Any) -> Path:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in records]
    path.write_text("\n".join((HEADER, *texts)) + "\n")
    return path


def test_nothing_is_wrong(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl.gz",
        [put(0, node("a")), put(1, observed("p", "a", 2.0), 3), put(2, pod("q")), gone(5, "q"), gap(9, 1)],
    )
    assert found(path) == []


def test_every_wrong_line_is_told_and_reading_goes_on(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "t.jsonl",
        {"at": 5, "put": node("a")},
        "not json",
        {"at": 3, "put": node("b")},
        {"at": -1, "put": node("b")},
        {"at": 6},
        {"at": 6, "put": {"kind": "Node"}},
        {"at": 6, "put": node("b"), "runs": 5},
        {"at": 6, "put": {**pod("p"), "spec": {"containers": 7}}},
        {"at": 7, "put": node("c")},
    )
    told = found(path)
    assert [line for line, _, _ in told] == [3, 4, 5, 6, 7, 8, 9]
    assert all(severity == "error" for _, severity, _ in told)
    for (_, _, text), part in zip(
        told,
        (
            "is no record",
            "records are in order of time (pilotage trace sort",
            "at: -1",
            "one of put",
            "metadata",
            "runs",
            "containers",
        ),
        strict=True,
    ):
        assert part in text


@pytest.mark.parametrize(
    ("record", "severity", "part"),
    [
        ({"at": 1, "put": pod("p", on="nowhere")}, "warning", "its node nowhere is not there"),
        ({"at": 1, "delete": {"apiVersion": "v1", "kind": "Node", "name": "x"}}, "warning", "Node x is not there"),
        (
            {"at": 1, "put": {"apiVersion": "acme.com/v1", "kind": "Odd", "metadata": {"name": "o"}}},
            "warning",
            "not known",
        ),
        (
            {"at": 1, "put": {**node("a"), "metadata": {"name": "a", "namespace": "n"}}},
            "error",
            "has no metadata.namespace",
        ),
        ({"at": 1, "put": {**pod("p"), "metadata": {"name": "p"}}}, "error", "needs a metadata.namespace"),
        ({"at": 5, "gap": {"seconds": 9}}, "warning", "gap: seconds: 9"),
    ],
)
def test_what_makes_no_sense(tmp_path: Path, record: dict[str, Any], severity: str, part: str) -> None:
    ((line, how, text),) = found(lines(tmp_path / "t.jsonl", record))
    assert (line, how) == (2, severity) and part in text


def test_a_long_silence_is_worth_a_word(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", [put(1, node("a")), put(40 * 86_400, node("b"))])
    ((line, severity, text),) = found(path)
    assert (line, severity) == (3, "warning") and "40 days after" in text


def test_a_file_that_is_cut_off_ends_the_list(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl.gz", [put(number, node(f"n{number}")) for number in range(5000)])
    path.write_bytes(path.read_bytes()[:2000])
    told = found(path)
    assert len(told) == 1 and "the file is cut off" in told[0][2] and "--allow-cut" in told[0][2]


def test_a_huge_line_is_told_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    with gzip.open(path, "wb") as out:
        out.write(HEADER.encode() + b"\n")
        for _ in range(MAX_LINE // 2**20 + 2):
            out.write(b"x" * 2**20)
    assert [text.partition(":")[0] for _, _, text in found(path)] == ["the line is longer than 16 MiB"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is empty"),
        (b"\x00\x01\x02\n", "is no trace"),
        (b"\x1f\x8b\x08\x00garbage", "is no trace|compress"),
        (
            b'{"pilotageTrace": 2, "start": "2026-11-16T00:00:00Z"}\n',
            "version 2; this program reads version 1: use a newer",
        ),
        (b'{"pilotageTrace": 1, "start": "monday"}\n', "is no time such as"),
        (b"name,cpu_milli\n", "is no trace"),
    ],
)
def test_what_is_no_trace_at_all(tmp_path: Path, data: bytes, problem: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(data)
    with pytest.raises(TraceError, match=problem):
        found(path)


@given(st.binary(max_size=300), st.booleans(), st.booleans())
def test_whatever_stands_in_a_file_is_told(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, has_header: bool, is_packed: bool
) -> None:
    path = tmp_path_factory.mktemp("any") / ("t.jsonl.gz" if is_packed else "t.jsonl")
    content = HEADER.encode() * has_header + b"\n" + data
    path.write_bytes(gzip.compress(content)[: len(data) + 60] if is_packed else content)
    try:
        told = found(path)
    except TraceError as error:
        assert str(path) in str(error)
    else:
        assert has_header and all(line >= 2 for line, _, _ in told)
