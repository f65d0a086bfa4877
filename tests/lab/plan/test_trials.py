"""Trials of plans, played with the real scheduler."""

from __future__ import annotations

from pathlib import Path

from pilotage.assembly import SchedulerOptions
from pilotage.lab.plan.trials import Goals, Trials, like
from pilotage.lab.plan.workloads import Manifests
from pilotage.lab.replay import ReplaySettings
from pilotage.testing import node, pod
from tests.lab.plan.test_workloads import workload
from tests.lab.worlds import put, write

SHAPE = node("small").cpu("2").json()


def test_manifests_with_daemons() -> None:
    work = Manifests([workload("Deployment", "d", replicas=2)])
    trials = Trials(work, [SHAPE], SchedulerOptions(), Goals(), ReplaySettings())
    assert trials.attempt((1,)) is None
    outcome = trials.attempt((2,))
    assert outcome is not None and (outcome.pods, outcome.used["cpu"]) == (2, 1.0)
    with_daemon = Manifests([workload("Deployment", "d", replicas=2), workload("DaemonSet", "agent")])
    assert Trials(with_daemon, [SHAPE], SchedulerOptions(), Goals(), ReplaySettings()).attempt((9,)) is None


def test_a_trace_and_how_long_its_pods_may_wait(tmp_path: Path) -> None:
    trace = write(
        tmp_path / "t.jsonl",
        [put(0, node("old").cpu("64")), *(put(1, pod(f"p{at}").requests(cpu="2"), 60) for at in range(2))],
    )
    patient, eager = (
        Trials(trace, [SHAPE], SchedulerOptions(), Goals(waiting_p99=limit), ReplaySettings()) for limit in (None, 30)
    )
    assert patient.attempt((1,)) is not None and eager.attempt((1,)) is None and eager.attempt((2,)) is not None


def test_nodes_of_a_shape_differ_in_name_and_hostname() -> None:
    assert [one["metadata"]["labels"]["kubernetes.io/hostname"] for one in like(SHAPE, 2)] == ["small-0", "small-1"]
