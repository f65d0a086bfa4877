"""The commands about traces as their user types them: what they say, what they write, what they exit with."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from pilotage.cli.main import call
from tests.lab.trace.making import gap, gone, node, observed, pod, put, read_all, told, write


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    records = [
        put(0, node("a")),
        put(10, observed("p", "a", 12.0), 540),
        put(4000, pod("q")),
        gap(4100, 30, "out"),
        gone(4200, "q"),
    ]
    return write(tmp_path / "t.jsonl.gz", records, source="test")


def done(*arguments: str | Path) -> int:
    return call(["trace", *map(str, arguments)])


def test_info_says_what_is_in_it(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert done("info", trace) == 0
    out = capsys.readouterr().out
    assert "1h 10m from 2026-11-16T00:00:00Z of test, 5 records, 2 pods, 1 gaps" in out
    assert "Pod    0          2      0         1" in out
    assert "they run: p50 9m" in out and "they waited when they were observed: p50 2s" in out
    assert "arrivals per hour: 1.0 on average" in out and "|██|" in out
    assert "1h 8m   30s   out" in out


def test_info_for_programs(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert done("info", trace, "-o", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pods"]["byShape"] == [["cpu=1", 2]] and found["isFinished"] is True


def test_a_recording_that_was_not_finished_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "r.jsonl", [put(1, pod("p")), put(2, pod("p", on="a")), gone(9, "p")], recording=True)
    assert done("info", path) == 0
    out = capsys.readouterr().out
    assert "This recording was not finished" in out and "1 with a lifetime" in out


def test_cut_scale_merge_anonymise_and_sort(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert done("cut", trace, "--from", "1m", "--to", "1h8m", "-o", tmp_path / "cut.jsonl") == 0
    assert told(read_all(tmp_path / "cut.jsonl")) == [(0, "a", None), (0, "p@a", 492), (3940, "q", None)]
    assert done("scale", trace, "--pods", "2", "--rate", "2", "--lifetimes", "3", "-o", tmp_path / "two.jsonl") == 0
    assert (5, "p-x1", 1620) in told(read_all(tmp_path / "two.jsonl"))
    assert done("merge", trace, trace, "-o", tmp_path / "both.jsonl.gz") == 0
    assert "2 names were in two traces" in capsys.readouterr().err
    assert done("anonymise", trace, "--seed", "1", "-o", tmp_path / "x.jsonl") == 0
    assert "observed-node" in (tmp_path / "x.jsonl").read_text() and '"q"' not in (tmp_path / "x.jsonl").read_text()
    mixed = write(tmp_path / "mixed.jsonl", [put(1, pod("a"))])
    mixed.write_bytes(mixed.read_bytes() + msgspec.json.encode(put(0.5, pod("b"))) + b"\n")
    assert done("cut", mixed, "-o", tmp_path / "no.jsonl") == 2
    assert ":3: at: 0.5 is before the 1 of an earlier line" in capsys.readouterr().err
    assert not (tmp_path / "no.jsonl").exists()
    assert done("sort", mixed, "-o", tmp_path / "sorted.jsonl") == 0
    assert told(read_all(tmp_path / "sorted.jsonl")) == [(0.5, "b", None), (1, "a", None)]


@pytest.mark.parametrize(
    "command", [("generate", "--pods", "50"), ("scale", "IN", "--pods", "1.5"), ("anonymise", "IN", "--seed", "3")]
)
def test_the_same_seed_gives_the_same_bytes(command: tuple[str, ...], trace: Path, tmp_path: Path) -> None:
    arguments = [str(trace) if word == "IN" else word for word in command]
    assert done(*arguments, "-o", tmp_path / "1.jsonl.gz") == done(*arguments, "-o", tmp_path / "2.jsonl.gz") == 0
    assert (tmp_path / "1.jsonl.gz").read_bytes() == (tmp_path / "2.jsonl.gz").read_bytes()


def test_generate_and_like(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "made.jsonl.gz"
    options = ("--pool", "name=a,count=3,cpu=8", "--shape", "cpu=1,gang=2", "--lifetimes", "fixed:5m", "--until", "2h")
    assert done("generate", *options, "-o", made) == 0
    assert done("validate", made) == 0
    assert "0 errors, 0 warnings" in capsys.readouterr().out
    assert done("generate", "--like", made, "--pool", "count=9", "-o", tmp_path / "like.jsonl") == 0
    kinds = [record.name.kind for record in read_all(tmp_path / "like.jsonl") if record.name is not None]
    assert kinds.count("Node") == 9 and kinds.count("Pod") == 2 * kinds.count("PodGroup") > 0


def test_validate_tells_and_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(
        tmp_path / "t.jsonl", [put(1, {**pod(f"p{number}"), "spec": {"containers": 7}}) for number in range(3)]
    )
    assert done("validate", path, "--limit", "2") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{path}:2: error: put: ") and len(lines) == 3
    assert lines[2] == f"{path}: 3 errors, 0 warnings (1 are not shown: --limit)"


def test_a_file_that_is_cut_off_can_be_taken_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t.jsonl.gz", [put(number, pod(f"p{number}"), 5) for number in range(3000)])
    path.write_bytes(path.read_bytes()[:-500])
    assert done("info", path) == 2
    assert "the file is cut off" in capsys.readouterr().err
    assert done("info", path, "--allow-cut") == 0
    assert done("cut", path, "--allow-cut", "-o", tmp_path / "rest.jsonl.gz") == 0
    assert 1000 < len(read_all(tmp_path / "rest.jsonl.gz")) < 3000


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["info", "no.jsonl"], "no.jsonl: cannot be read: No such file or directory"),
        (["cut", "t.jsonl", "-o", "out.json"], "out.json: a trace is called *.jsonl.gz (compressed) or *.jsonl"),
        (["cut", "t.jsonl", "-o", "t.jsonl"], "is what is being read; choose another name"),
        (["cut", "t.jsonl", "--from", "2h", "--to", "1h", "-o", "o.jsonl"], "--to 3600s is not after --from 7200s"),
        (["cut", "t.jsonl", "--from", "soon", "-o", "o.jsonl"], '"soon" is not a duration'),
        (["scale", "t.jsonl", "--rate", "0", "-o", "o.jsonl"], "0.0 is not in the range x>0"),
        (["cut", "t.jsonl", "-o", "no/o.jsonl"], "cannot be written: No such file or directory"),
        (["generate", "--shape", "cpu", "-o", "o.jsonl"], '--shape: "cpu" is no key=value'),
        (["generate", "--arrivals", "gauss", "-o", "o.jsonl"], "is none of poisson"),
        (["generate", "--pool", "cpu=1", "--pool", "cpu=2", "-o", "o.jsonl"], "several pools need a name each"),
        (["generate", "--like", "t.jsonl", "--shape", "cpu=1", "-o", "o.jsonl"], "--like takes shapes"),
        (["generate", "--like", "t.jsonl", "-o", "o.jsonl"], "t.jsonl: there are no pods in it"),
        (["import", "--format", "openb", "t.jsonl", "-o", "o.jsonl"], "t.jsonl:1: is no openb file"),
        (["import", "--format", "simkube", "t.jsonl", "-o", "o.jsonl"], "is no SimKube trace"),
        (["import", "--format", "simkube", "a", "b", "-o", "o.jsonl"], "one file makes a trace"),
        (["import", "--format", "kube-scheduler-simulator", "t.jsonl", "-o", "o.jsonl"], "is no export"),
        (["import", "--format", "simkube", "--workload", "x", "a", "-o", "o.jsonl"], "--workload needs --format openb"),
        (["frob"], "No such command 'frob'"),
    ],
)
def test_what_is_wrong_is_one_line(
    arguments: list[str],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "t.jsonl", [put(0, node("a"))])
    assert done(*arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1 and problem in err
    assert sorted(one.name for one in tmp_path.iterdir()) == ["t.jsonl"]


def test_import_of_each_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "n.csv").write_text("name,cpu_milli,memory_mib,gpu,model\na,64000,262144,2,P100\n")
    assert done("import", "--format", "openb", tmp_path / "n.csv", "-o", tmp_path / "o.jsonl") == 0
    (tmp_path / "e.json").write_text(json.dumps({"nodes": [{"metadata": {"name": "a"}}], "schedulerConfig": {}}))
    assert done("import", "--format", "kube-scheduler-simulator", tmp_path / "e.json", "-o", tmp_path / "s.jsonl") == 0
    assert "give it to simulate with --config" in capsys.readouterr().err
    (tmp_path / "k").write_bytes(
        msgspec.msgpack.encode({"version": 2, "events": [{"ts": 5, "applied_objs": [pod("p")]}]})
    )
    assert done("import", "--format", "simkube", tmp_path / "k", "-o", tmp_path / "k.jsonl") == 0
    assert "SimKube traces have no nodes" in capsys.readouterr().err
    assert [told(read_all(tmp_path / f"{name}.jsonl")) for name in "osk"] == [
        [(0, "a", None)],
        [(0, "a", None)],
        [(0, "p-00000", None)],
    ]


@pytest.mark.parametrize(
    "hostile",
    [
        {**pod("p"), "metadata": {"name": "p", "namespace": "n", "labels": 7}},
        {**pod("p"), "metadata": {"name": "p", "namespace": "n", "annotations": [1]}},
        {**pod("p"), "spec": {"containers": 7, "tolerations": {}}},
        {**pod("p"), "spec": []},
        {**node("a"), "status": [], "metadata": {"name": "a", "labels": [1]}},
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("info", "IN"),
        ("validate", "IN"),
        ("cut", "IN", "--from", "1", "--every", "2", "-o", "OUT"),
        ("scale", "IN", "--pods", "2", "-o", "OUT"),
        ("merge", "IN", "IN", "-o", "OUT"),
        ("anonymise", "IN", "-o", "OUT"),
        ("generate", "--like", "IN", "-o", "OUT"),
        ("sort", "IN", "-o", "OUT"),
    ],
    ids=lambda command: command[0],
)
def test_objects_that_are_none_are_told_or_passed_on(
    command: tuple[str, ...], hostile: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "t.jsonl", [put(0, node("b")), put(0, pod("q")), put(0, hostile), put(5, pod("r"))])
    files = {"IN": str(path), "OUT": str(tmp_path / "out.jsonl")}
    code = done(*(files.get(word, word) for word in command))
    err = capsys.readouterr().err
    assert code in (0, 1, 2) and "this is a bug" not in err
    assert code != 2 or ("t.jsonl" in err and err.count("\n") == 1 and not (tmp_path / "out.jsonl").exists())
