"""Decisions that were observed, held against this scheduler's: the same, tied, or another one and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.assembly import SchedulerOptions
from pilotage.cli.main import call
from pilotage.lab.agreement import judged
from pilotage.lab.starts.pod_history import history_of_trace
from pilotage.lab.trace.finishing import open_trace
from pilotage.testing import VirtualClock
from pilotage.testing.builders import PodBuilder
from tests.lab.worlds import Change, delete, node, pod, put, write


def seen(one: PodBuilder, on: str, at: float) -> PodBuilder:
    """A pod as a recording shows it."""
    one = one.annotation("trace.pilotage.dev/observed-node", on)
    return one.annotation("trace.pilotage.dev/observed-bound-at", f"{at:.3f}")


CHANGES: list[Change] = [
    put(0, node("a").cpu("4")),
    put(0, node("b").cpu("4")),
    put(0, pod("there").requests(cpu="3").node("a")),
    put(1, seen(pod("emptier").requests(cpu="500m"), "b", 1.5), runs=10),
    put(2, seen(pod("fuller").requests(cpu="500m"), "a", 2.5), runs=4),
    put(3, seen(pod("nowhere").requests(cpu="3"), "a", 3.5), runs=4),
    put(20, node("c").cpu("4")),
    put(21, seen(pod("tied1").requests(cpu="1"), "b", 21.5), runs=1),
    put(23, seen(pod("tied2").requests(cpu="1"), "c", 23.5), runs=1),
    delete(25, "Node", "c"),
    put(26, seen(pod("gone").requests(cpu="1"), "c", 26.5), runs=1),
]


def test_each_decision_is_judged_in_the_state_that_it_met(tmp_path: Path) -> None:
    header, records = open_trace(write(tmp_path / "t.jsonl", CHANGES))
    found = {
        one.pod: one for one in judged(history_of_trace(header.start_time, records), SchedulerOptions(), VirtualClock())
    }
    verdicts = {pod.removeprefix("default/"): one.verdict for pod, one in found.items()}
    tied = [verdicts.pop("tied1"), verdicts.pop("tied2")]
    assert sorted(tied) == ["same", "tied"]
    assert verdicts == {"emptier": "same", "fuller": "other", "nowhere": "other", "gone": "other"}
    assert "NodeResourcesFit" in found["default/fuller"].why and found["default/fuller"].ours == "b"
    assert "Insufficient cpu" in found["default/nowhere"].why
    assert 'there is no node "c"' in found["default/gone"].why


def test_the_command_shows_differences_and_says_by_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = str(write(tmp_path / "t.jsonl", CHANGES))
    assert call(["trace", "agree", trace, "--most", "1"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("6 decisions: 2 the same, 1 tied, 3 others")
    assert len(lines) == 3 and "default/fuller" in lines[2]
    assert call(["trace", "agree", str(write(tmp_path / "same.jsonl", CHANGES[:4]))]) == 0
    assert call(["trace", "agree", str(write(tmp_path / "none.jsonl", [put(0, node("a")), put(1, pod("p"))]))]) == 0
    assert "no decision was observed" in capsys.readouterr().out
