"""The present of a cluster played forward: pods that wait, held against what became of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotage.assembly import SchedulerOptions
from pilotage.cli.main import call
from pilotage.clock import parse_rfc3339, rfc3339
from pilotage.explain.engine import cluster_of_manifests
from pilotage.lab.replay import ReplaySettings
from pilotage.lab.simulation import TraceInput, simulate
from pilotage.lab.starts.pod_copies import Effort, expected_start, past_starts
from pilotage.lab.starts.pod_history import PodHistory, history_of_cluster, history_of_trace, joined, with_decisions
from pilotage.lab.trace.finishing import open_trace
from pilotage.rng import seeded
from tests.lab.worlds import START, Change, node, pod, put, write

OPTIONS = SchedulerOptions()
NOW = parse_rfc3339(START)
MEANS = (60.0, 300.0)


def busy(count: int, load: float = 0.8) -> list[Change]:
    """Two nodes of four slots, and pods of two Jobs with lifetimes of their own."""
    rng, time = seeded(4), 0.0
    changes = [put(0, node(name).cpu("4").pods(110)) for name in ("a", "b")]
    for number in range(count):
        time += rng.expovariate(load * 8 * len(MEANS) / sum(MEANS))
        kind = rng.randrange(len(MEANS))
        one = pod(f"p{number}").owner("Job", f"job{kind}", "batch/v1").requests(cpu="1")
        changes.append(put(time, one, runs=MEANS[kind] * rng.lognormvariate(0, 0.4)))
    return changes


def decided(folder: Path, count: int) -> PodHistory:
    trace = write(folder / "trace.jsonl", busy(count))
    header, records = open_trace(trace)
    result = simulate(TraceInput(trace), OPTIONS, ReplaySettings(), folder / "result")
    history = history_of_trace(header.start_time, records)
    assert not history.is_observed
    return with_decisions(history, result.directory, result.totals["seconds"])


def test_a_history_of_a_simulation_has_what_was_decided(tmp_path: Path) -> None:
    history = decided(tmp_path, 60)
    assert len(history.pods) == 60
    assert all(one.bound is not None and one.ended is not None and one.is_over for one in history.pods)
    at = history.pods[40].arrived
    there = history.pods_at(at)
    assert sum(one.ran(at) for one in there) <= 8
    assert history.lifetimes(at).knows(("Job default/job0",))


def test_past_starts_are_foretold_from_what_was_known_then(tmp_path: Path) -> None:
    history = decided(tmp_path, 100)
    past = past_starts(history, OPTIONS, Effort(past=6, past_copies=4))
    assert len(past) == 6
    assert all(one.stated.soonest <= one.stated.middle <= one.stated.latest < 86_400 for one in past)
    assert sum(one.stated.holds(one.actual) for one in past) >= 2


def manifests(deadline: int | None = None) -> list[dict[str, Any]]:
    """Two slots: who is there began 100 seconds ago; three of the same Job ran for 150 seconds each."""

    def pod_of(name: str, created: float, *, bound: float | None = None, ended: float | None = None) -> dict[str, Any]:
        obj = pod(name).owner("Job", "train", "batch/v1").requests(cpu="1").json()
        obj["metadata"]["creationTimestamp"] = rfc3339(NOW + created)
        if bound is None:
            return obj
        obj["spec"]["nodeName"] = "n"
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": rfc3339(NOW + bound)}
        obj["status"] = {"phase": "Running", "conditions": [condition]}
        if ended is not None:
            over = {"state": {"terminated": {"finishedAt": rfc3339(NOW + ended)}}}
            obj["status"] |= {"phase": "Succeeded", "containerStatuses": [over]}
        return obj

    spec = {} if deadline is None else {"activeDeadlineSeconds": deadline}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "default"}, "spec": spec}
    gone = [pod_of(f"gone{number}", -1000, bound=-900, ended=-750) for number in range(3 if deadline is None else 0)]
    there = [pod_of(f"there{number}", -120, bound=-100) for number in range(2)]
    return [node("n").cpu("2").json(), job, *gone, *there, pod_of("waits", -10)]


def history_now(deadline: int | None = None) -> PodHistory:
    objects = manifests(deadline)
    pods = [msgspec.json.encode(one) for one in objects if one["kind"] == "Pod"]
    return history_of_cluster(cluster_of_manifests(objects), pods, NOW)


@pytest.mark.parametrize(("deadline", "sources", "expected"), [(None, (2, 0, 0), 50.0), (400, (0, 2, 0), 300.0)])
def test_the_end_of_those_who_run_is_that_of_their_like_or_their_deadline(
    deadline: int | None, sources: tuple[int, int, int], expected: float
) -> None:
    found = expected_start(history_now(deadline), ["default/waits"], OPTIONS, Effort(copies=5))
    assert found is not None and found.started == 5
    assert (found.from_history, found.from_deadline, found.without_end) == sources
    assert found.soonest is not None and expected <= found.soonest <= expected + 12, "backoff is at most ten seconds"


def test_who_runs_is_not_waited_for() -> None:
    assert expected_start(history_now(), ["default/there0"], OPTIONS, Effort(copies=2)) is None


def test_a_trace_adds_what_the_cluster_has_forgotten(tmp_path: Path) -> None:
    changes = [put(0, node("n").cpu("2"))]
    for number in range(3):
        one = pod(f"old{number}").owner("Job", "train", "batch/v1").requests(cpu="1")
        one = one.annotation("trace.pilotage.dev/observed-node", "n")
        changes.append(put(1, one.annotation("trace.pilotage.dev/observed-bound-at", "1.000"), runs=220))
    header, records = open_trace(write(tmp_path / "old.jsonl", changes))
    both = joined(history_of_trace(header.start_time - 86_400, records), history_now(deadline=10_000))
    found = expected_start(both, ["default/waits"], OPTIONS, Effort(copies=4))
    assert found is not None and (found.from_history, found.from_deadline) == (2, 0)
    assert found.soonest is not None and 120 <= found.soonest <= 132


# --- the commands -----------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("pilotage.clock.SystemClock.time", lambda self: NOW)
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests()}))
    return str(path)


def test_explain_says_when(cluster_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["explain", "waits", "-f", cluster_file]) == 1
    text = capsys.readouterr().out
    assert "Expected to start:" in text and "an estimate, not a guarantee" in text
    assert "of those that run, 2 end as those before them did" in text
    assert "too few past starts are known" in text


def test_explain_says_when_as_data_or_not_at_all(cluster_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["explain", "waits", "-f", cluster_file, "-o", "json"]) == 1
    start = json.loads(capsys.readouterr().out)["expectedStart"]
    assert start["fromHistory"] == 2 and start["copies"] == start["started"] and start["soonest"] >= 50
    assert call(["explain", "waits", "-f", cluster_file, "--no-when"]) == 1
    assert "Expected" not in capsys.readouterr().out


def test_how_good_ranges_are_is_reported_by_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = write(tmp_path / "busy.jsonl", busy(100))
    assert call(["trace", "starts", str(trace), "--past", "20", "--copies", "3", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)[str(trace)]
    assert found["lookedAt"] == 20 and found["factor"] > 0
    assert found["putRight"]["starts"] == found["copiesAlone"]["starts"] == 10
    assert 0.4 <= found["putRight"]["within"] <= 1
    assert call(["trace", "starts", str(write(tmp_path / "idle.jsonl", busy(4)))]) == 0
    assert "no pod of the trace had to wait" in capsys.readouterr().out
