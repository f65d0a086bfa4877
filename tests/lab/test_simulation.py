"""The same bytes for the same seed, memory that is freed, and what is left when a simulation is cut short."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from pilotage.assembly import SchedulerOptions
from pilotage.lab.replay import Replay, ReplaySettings
from pilotage.lab.results import DECISIONS, NODES, SERIES, TOTALS, Result, ResultError, ResultWriter
from pilotage.lab.simulation import Progress, TraceInput, simulate
from pilotage.lab.trace.format import TraceError, TraceHeader, read
from pilotage.rng import seeded
from tests.lab.worlds import START, Change, node, pod, put, write


def busy_day(pods: int = 150) -> list[Change]:
    """More than fits, of several priorities, with owners: it waits, preempts and comes again."""
    rng, time = seeded(11), 0.0
    changes = [put(0, node(f"n{number}").cpu("4").zone(f"z{number % 2}")) for number in range(6)]
    for number in range(pods):
        time += rng.expovariate(1.0)
        one = pod(f"p{number}").label("app", f"a{rng.randrange(5)}").owner("Job", "j").priority(rng.choice([0, 0, 10]))
        changes.append(put(time, one.requests(cpu=f"{rng.choice([500, 1000, 2000])}m"), runs=rng.expovariate(1 / 25)))
    return changes


_CHILD = """
import sys
from pathlib import Path
from pilotage.assembly import SchedulerOptions
from pilotage.lab.replay import ReplaySettings
from pilotage.lab.simulation import TraceInput, simulate
settings = ReplaySettings(seed=3, ties=sys.argv[3], leg=50)
simulate(TraceInput(Path(sys.argv[1])), SchedulerOptions(), settings, Path(sys.argv[2]))
"""


@pytest.mark.parametrize("ties", ["scheduler", "random", "first"])
def test_the_same_seed_gives_the_same_bytes_in_processes_that_hash_differently(tmp_path: Path, ties: str) -> None:
    trace = write(tmp_path / "t.jsonl.gz", busy_day())
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(trace), str(tmp_path / f"hash{seed}"), ties],
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    assert [process.wait() for process in running] == [0, 0]
    for name in (DECISIONS, NODES, SERIES, TOTALS):
        assert (tmp_path / "hash1" / name).read_bytes() == (tmp_path / "hash2" / name).read_bytes(), name
    totals = Result(tmp_path / "hash1").totals
    assert totals["pods"]["evicted"] and totals["waited"]["max"] > 0, "something happened in it"


def test_a_simulation_that_is_thrown_away_frees_its_memory(tmp_path: Path) -> None:
    trace = write(tmp_path / "t.jsonl", busy_day(60))
    kept_specs = pod("p0").label("app", "a0").requests(cpu="500m").build()  # shares its spec with pods of the trace

    def run() -> list[weakref.ref[object]]:
        header, records = read(trace)
        writer = ResultWriter(tmp_path / "result")
        replay = Replay(header, SchedulerOptions(), ReplaySettings(), writer)
        asyncio.run(replay.run(records))
        writer.close({}, complete=True)
        scheduler = replay.scheduler
        engine = scheduler.cycle.engines["default-scheduler"]
        parts = [replay, scheduler, scheduler.cluster, scheduler.queue, engine.profile, replay.api]
        return [weakref.ref(part) for part in parts]

    left = run()
    gc.collect()
    assert [ref() for ref in left] == [None] * len(left)
    assert kept_specs.spec is not None


def test_what_was_computed_is_left_when_the_trace_turns_out_to_be_broken(tmp_path: Path) -> None:
    trace = write(tmp_path / "t.jsonl", [put(0, node("n")), put(1, pod("p"), runs=2), put(20, pod("q"))])
    with trace.open("a") as file:
        file.write("what\n")
    with pytest.raises(TraceError, match=":5: is no record"):
        simulate(TraceInput(trace), SchedulerOptions(), ReplaySettings(), tmp_path / "result")
    result = Result(tmp_path / "result")
    assert not result.totals["complete"] and result.pods["pod"][0] == "default/p"


def test_an_object_that_is_none_of_its_kind_is_said_with_its_line(tmp_path: Path) -> None:
    broken = pod("q").spec(containers="x").json()
    trace = write(tmp_path / "t.jsonl", [put(0, node("n")), put(1, pod("p")), put(2, broken), put(3, pod("r"))])
    with pytest.raises(TraceError, match=r"t.jsonl:4: put: Pod default/q: spec.containers: expected array"):
        simulate(TraceInput(trace), SchedulerOptions(), ReplaySettings(), tmp_path / "result")


def test_it_says_how_far_it_is(tmp_path: Path) -> None:
    trace = write(tmp_path / "t.jsonl", busy_day(600))
    seen: list[Progress] = []
    simulate(TraceInput(trace), SchedulerOptions(), ReplaySettings(), tmp_path / "result", on_progress=seen.append)
    assert len(seen) > 1 and seen[-1].pods > 0
    assert [one.seconds for one in seen] == sorted(one.seconds for one in seen)
    assert all(0 <= one.fraction <= 1 for one in seen)


def test_a_trace_that_is_not_there_leaves_no_result(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        simulate(TraceInput(tmp_path / "none"), SchedulerOptions(), ReplaySettings(), tmp_path / "result")
    with pytest.raises(ResultError, match="no result of a simulation"):
        Result(tmp_path / "result")


def test_a_result_of_another_version_is_not_read(tmp_path: Path) -> None:
    (tmp_path / TOTALS).write_text('{"pilotageResult": 2}')
    with pytest.raises(ResultError, match="is of version 2"):
        Result(tmp_path)


def test_the_start_of_the_trace_is_the_time_of_day(tmp_path: Path) -> None:
    header = TraceHeader(pilotage_trace=1, start=START)
    replay = Replay(header, SchedulerOptions(), ReplaySettings(), ResultWriter(tmp_path / "r"))
    assert replay.clock.time() == header.start_time
