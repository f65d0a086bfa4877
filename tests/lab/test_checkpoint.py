"""A simulation that was interrupted goes on, and is the same in the end as one that never stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pilotage.assembly import SchedulerOptions
from pilotage.config.feature_gates import FeatureGates
from pilotage.lab import replay as module
from pilotage.lab import simulation
from pilotage.lab.checkpoint import CHECKPOINT, read_checkpoint
from pilotage.lab.replay import ReplaySettings
from pilotage.lab.results import Result, ResultError
from pilotage.lab.simulation import Progress, TraceInput, simulate
from tests.lab.test_simulation import busy_day
from tests.lab.worlds import Change, node, pod, put, write


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_EVENTS_PER_OBJECT", 0)
    monkeypatch.setattr(simulation, "_EVENTS_PER_LOOK", 16)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def interrupted(trace: Path, settings: ReplaySettings, directory: Path, after: int) -> None:
    """Ctrl-C when so many looks at the progress were taken, of one every 16 records."""
    looks = 0

    def look(progress: Progress) -> None:
        nonlocal looks
        looks += 1
        if looks > after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(TraceInput(trace), SchedulerOptions(), settings, directory, on_progress=look)


@pytest.mark.parametrize("ties", ["scheduler", "random", "first"])
def test_one_that_was_interrupted_goes_on_with_the_same_bytes(tmp_path: Path, ties: str) -> None:
    trace = write(tmp_path / "t.jsonl.gz", busy_day(120))
    settings = ReplaySettings(seed=3, ties=ties, leg=40)
    simulate(TraceInput(trace), SchedulerOptions(), settings, tmp_path / "whole")
    interrupted(trace, settings, tmp_path / "again", after=5)
    assert not Result(tmp_path / "again").totals["complete"]
    assert (tmp_path / "again" / CHECKPOINT).exists() and not (tmp_path / "whole" / CHECKPOINT).exists()
    seen: list[Progress] = []
    simulate(TraceInput(trace), SchedulerOptions(), settings, tmp_path / "again", on_progress=seen.append, resume=True)
    assert contents(tmp_path / "again") == contents(tmp_path / "whole")
    assert Result(tmp_path / "again").totals["pods"]["evicted"], "something happened in it"


def test_what_was_computed_is_not_computed_again(tmp_path: Path) -> None:
    trace = write(tmp_path / "t.jsonl", busy_day(160))
    settings = ReplaySettings(leg=40)
    interrupted(trace, settings, tmp_path / "r", after=8)
    seen: list[Progress] = []
    simulate(TraceInput(trace), SchedulerOptions(), settings, tmp_path / "r", on_progress=seen.append, resume=True)
    assert seen and seen[0].pods > 60, "its first record is one of the later ones"


def restless_day() -> list[Change]:
    """Pods that wait for room and for nodes with a label, and one that is gated; nobody is evicted."""
    changes = [put(0, node(f"n{number}").cpu("4")) for number in range(3)]
    changes += [put(number, pod(f"p{number}").requests(cpu="2"), 37.0) for number in range(1, 120, 4)]
    changes += [
        put(9.5, pod("picky").node_selector({"disk": "ssd"})),
        put(10.5, pod("gated").gate("g")),
    ]
    changes += [put(70.5, node("ssd").cpu("1").label("disk", "ssd")), put(90.25, pod("gated"))]
    return sorted(changes, key=lambda change: change[0])


def gangs_day() -> list[Change]:
    """Gangs that wait for room, one that is not complete for long, and pods of a group that comes late."""

    def group(name: str, count: int) -> dict[str, object]:
        gang = {"gang": {"minCount": count}}
        metadata, version = {"name": name, "namespace": "default"}, "scheduling.k8s.io/v1beta1"
        return {"apiVersion": version, "kind": "PodGroup", "metadata": metadata, "spec": {"schedulingPolicy": gang}}

    def members(name: str, times: list[float]) -> list[Change]:
        return [
            put(at, pod(f"{name}-{number}").requests(cpu="2").spec(schedulingGroup={"podGroupName": name}), 25.0)
            for number, at in enumerate(times)
        ]

    changes = [put(0, node(f"n{number}").cpu("4")) for number in range(2)]
    for number in range(12):
        changes += [put(number * 5, group(f"g{number}", 3)), *members(f"g{number}", [number * 5.0 + 0.5] * 3)]
    changes += [put(1, group("slow", 2)), *members("slow", [1.5, 333.0])]
    changes += [*members("late", [2.5, 2.75]), put(301, group("late", 2))]
    return sorted(changes, key=lambda change: change[0])


@pytest.mark.parametrize("day", [restless_day, gangs_day])
def test_pods_and_groups_that_wait_do_not_notice(tmp_path: Path, day: Callable[[], list[Change]]) -> None:
    trace = write(tmp_path / "t.jsonl", day())
    options = replace(SchedulerOptions(), feature_gates=FeatureGates({"GenericWorkload": True}))
    never = simulate(TraceInput(trace), options, ReplaySettings(leg=0, every=5), tmp_path / "never")
    often = simulate(TraceInput(trace), options, ReplaySettings(leg=1, every=5), tmp_path / "often")
    assert contents(often.directory) == contents(never.directory)
    assert never.totals["pods"]["attempts"] > never.totals["pods"]["bound"] and never.totals["waited"]["max"] > 20
    assert not never.totals["pods"]["waiting"] or day is restless_day


def test_other_inputs_do_not_go_on_with_it(tmp_path: Path) -> None:
    trace = write(tmp_path / "t.jsonl", busy_day(120))
    interrupted(trace, ReplaySettings(leg=40), tmp_path / "r", after=5)
    with pytest.raises(ResultError, match="was computed with another seed; choose another with -o"):
        simulate(TraceInput(trace), SchedulerOptions(), ReplaySettings(leg=40, seed=1), tmp_path / "r", resume=True)
    simulate(TraceInput(trace), SchedulerOptions(), ReplaySettings(leg=40, seed=1), tmp_path / "r")
    assert Result(tmp_path / "r").totals["seed"] == 1, "without --resume it begins anew"


@pytest.mark.parametrize("content", [b"", b"\x01what", b"\xff"])
def test_one_without_a_usable_checkpoint_begins_anew(tmp_path: Path, content: bytes) -> None:
    trace = write(tmp_path / "t.jsonl", busy_day(60))
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / CHECKPOINT).write_bytes(content)
    assert read_checkpoint(tmp_path / "r", {}) is None
    result = simulate(TraceInput(trace), SchedulerOptions(), ReplaySettings(), tmp_path / "r", resume=True)
    assert result.totals["complete"] and not (tmp_path / "r" / CHECKPOINT).exists()
