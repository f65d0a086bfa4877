"""`pilotage compare` as its user calls it."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path

import pytest

from pilotage.cli.comparison_view import csv_text
from pilotage.cli.main import call
from pilotage.lab.comparison import Group, compare
from pilotage.lab.results import Result
from tests.lab.test_simulation import busy_day
from tests.lab.worlds import node, pod, put, write

PACKING = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write(tmp_path / "monday.jsonl.gz", busy_day(40))


@pytest.fixture
def packing(tmp_path: Path) -> Path:
    file = tmp_path / "packing.yaml"
    file.write_text(PACKING)
    return file


def simulated(trace: Path, name: str, *options: str) -> str:
    out = str(trace.with_name(name))
    assert call(["simulate", str(trace), "-o", out, "--every", "10s", "--json", *options]) == 0
    return out


def test_results_with_a_table_and_pods_that_went_elsewhere(
    trace: Path, packing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [simulated(trace, f"a-{seed}.result", "--ties", "random", "--seed", str(seed)) for seed in range(2)]
    runs.append(simulated(trace, "b.result", "--config", str(packing)))
    capsys.readouterr()
    assert call(["compare", *runs, "--diff", "--most", "3"]) == 0
    shown = capsys.readouterr().out
    heading = shown.splitlines()[0].split("   ")
    assert heading[0] == "MEASURE" and "a (n=2)" in shown and "b (n=1)" in shown
    assert "another node" in shown and "the runs part at " in shown and "(--most shows more)" in shown
    assert "one run of a group says nothing about chance" in shown and "█" in shown


def test_configurations_that_are_run_now(
    trace: Path, packing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prices, page, kept = tmp_path / "prices.yaml", tmp_path / "out.html", tmp_path / "kept"
    prices.write_text("perHour: {}\ndefault: 2\n")
    command = ["compare", "--trace", str(trace), "--config", "default", "--config", str(packing), "--seeds", "2"]
    assert call([*command, "--prices", str(prices), "--report", str(page), "--keep", str(kept), "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [group["name"] for group in found["groups"]] == ["default", "packing"]
    costs = found["measures"]["cost of nodes used"]["packing"]
    assert len(costs["values"]) == 2 and costs["p"] is not None and "permutation" in found["test"]
    assert sorted(path.name for path in kept.iterdir()) == [
        "default-0.result", "default-1.result", "packing-0.result", "packing-1.result"
    ]  # fmt: skip
    assert page.read_text().startswith("<!doctype html>")
    assert call(["compare", *map(str, sorted(kept.iterdir())), "-o", "json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["measures"]["wait p99"] == found["measures"]["wait p99"], "what is kept can be compared again"


def test_rows_for_a_spreadsheet(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [simulated(trace, "a.result"), simulated(trace, "b.result", "--ties", "first")]
    capsys.readouterr()
    assert call(["compare", *runs, "-o", "csv"]) == 0
    rows = list(csv.DictReader(StringIO(capsys.readouterr().out)))
    placed = {row["group"]: row for row in rows if row["measure"] == "placed"}
    assert placed["a"]["difference"] == "" and float(placed["b"]["difference"]) == float(placed["b"]["mean"]) - float(
        placed["a"]["mean"]
    )
    formula = csv_text(compare([Group("=1+1", [Result(runs[0])])]))
    assert ",'=1+1," in formula and ",=1+1," not in formula


def test_a_page_of_one_simulation(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulated(trace, "a.result", "--report", str(tmp_path / "out.html"))
    assert "<h1>a</h1>" in (tmp_path / "out.html").read_text()
    capsys.readouterr()
    arguments = ["simulate", str(trace), "-o", str(tmp_path / "b"), "--report", str(tmp_path / "none" / "out.html")]
    assert call(arguments) == 2
    assert "out.html: cannot be written" in capsys.readouterr().err


def test_names_that_a_terminal_would_obey(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "p\x1b[2J\u202e"
    pods = [put(1, pod(f"{evil}{n}").requests(cpu="1"), 9.0) for n in range(4)]
    trace = write(tmp_path / "t.jsonl", [*(put(0, node(f"n{n}\x1b[31m").cpu("2")) for n in range(4)), *pods])
    runs = [simulated(trace, f"{ties}.result", "--ties", ties) for ties in ("random", "first")]
    capsys.readouterr()
    assert call(["compare", *runs, "--diff"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "\u202e" not in shown and r"p\x1b[2J\u202e" in shown


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "give two results or more"),
        (["{trace}.none", "{trace}.none"], "no result of a simulation"),
        (["--config", "default"], "--config and --keep go with --trace"),
        (["--trace", "{trace}", "--config", "default"], "give two configurations or more"),
        (["--trace", "{trace}", "--config", "default", "--config", "default"], "given twice"),
        (["--trace", "{trace}", "x", "--config", "default"], "not both"),
        (["--trace", "{trace}", "--config", "default", "--config", "none.yaml"], "none.yaml"),
        (["--trace", "none", "--config", "default", "--config", "{packing}"], "cannot be read"),
        (["--trace", "{trace}", "--config", "default", "--config", "{packing}", "--until", "soon"], "--until"),
        (["a", "b", "--prices", "{trace}"], "monday.jsonl.gz: "),
    ],
)
def test_what_cannot_be_compared(
    trace: Path, packing: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str
) -> None:
    assert call(["compare", *(one.format(trace=trace, packing=packing) for one in arguments)]) == 2
    assert problem in capsys.readouterr().err
