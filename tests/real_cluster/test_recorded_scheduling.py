"""kube-scheduler at a real API server is recorded, and what it did is replayed here.

Pods come one after the other: the next one when the one before it has a node, or was told that it has none. So each
decision meets a state that the trace knows.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from pilotage.assembly import SchedulerOptions
from pilotage.bench.contenders import ALONE
from pilotage.bench.program import ServerProgram
from pilotage.lab.agreement import OTHER, SAME, TIED, judged
from pilotage.lab.replay import ReplaySettings
from pilotage.lab.simulation import TraceInput, simulate
from pilotage.lab.starts.pod_history import PodHistory, history_of_trace
from pilotage.lab.trace.format import read
from pilotage.rng import seeded
from pilotage.testing import VirtualClock

from .client import Json
from .objects import condition, node, pod, priority_class, taint
from .servers import RealServer, Server, eventually
from .world import World

pytestmark = pytest.mark.real_server

NODES = 40
FULL = 4
"""Nodes for the pods that preempt, full with one pod each."""
PILOTAGE = str(Path(sys.executable).parent / "pilotage")


def nodes() -> Iterator[Json]:
    rng = seeded(19)
    for number in range(NODES):
        taints = [taint("dedicated", "batch")] if number % 8 == 7 else []
        labels = {"topology.kubernetes.io/zone": f"z{number % 3}", "disk": "ssd" if number % 4 == 0 else "hdd"}
        yield node(f"n{number:02}", cpu=str(rng.choice([4, 8, 16])), labels=labels, taints=taints)
    for number in range(FULL):
        yield node(f"full{number}", cpu="1", taints=[taint("dedicated", "full")])


def workloads() -> Iterator[Json]:
    """Seven kinds of pods in turn, and in the end those that must preempt."""
    rng = seeded(20)
    makers = (_plain, _spread, _apart, _on_ssd, _tolerant, _preferring, _near)
    for number in range(210):
        yield makers[number % len(makers)](number, rng.choice([100, 250, 500, 1000]), rng.randrange(NODES))
    for number in range(FULL):
        yield _for_full(pod(f"low{number}", cpu="1", priority_class=f"low{number}"))
    for number in range(FULL - 1):
        yield _for_full(pod(f"high{number}", cpu="1", priority_class="high"))
    yield pod("huge", cpu="64")


def _labelled(one: Json, app: str) -> Json:
    one["metadata"]["labels"] = {"app": app}
    return one


def _plain(number: int, cpu: int, _: int) -> Json:
    return _labelled(pod(f"plain{number}", cpu=f"{cpu}m"), "plain")


def _spread(number: int, cpu: int, _: int) -> Json:
    selector = {"matchLabels": {"app": "spread"}}
    rule = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    constraints = [{**rule, "labelSelector": selector}]
    return _labelled(pod(f"spread{number}", cpu=f"{cpu}m", topologySpreadConstraints=constraints), "spread")


def _apart(number: int, cpu: int, _: int) -> Json:
    term = {"labelSelector": {"matchLabels": {"app": "apart"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return _labelled(pod(f"apart{number}", cpu=f"{cpu}m", affinity=affinity), "apart")


def _on_ssd(number: int, cpu: int, _: int) -> Json:
    return _labelled(pod(f"ssd{number}", cpu=f"{cpu}m", nodeSelector={"disk": "ssd"}), "ssd")


def _tolerant(number: int, cpu: int, _: int) -> Json:
    tolerations = [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]
    return _labelled(pod(f"batch{number}", cpu=f"{cpu}m", tolerations=tolerations), "batch")


def _preferring(number: int, cpu: int, wanted: int) -> Json:
    """One node is better than all others by far, and of the others one is better than the rest."""
    terms = [
        {
            "weight": weight,
            "preference": {
                "matchExpressions": [
                    {"key": "kubernetes.io/hostname", "operator": "In", "values": [f"n{at % NODES:02}"]}
                ]
            },
        }
        for weight, at in ((100, wanted), (60, wanted + 1), (30, wanted + 2))
    ]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    tolerations = [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]
    one = pod(f"preferring{number}", cpu=f"{cpu}m", affinity=affinity, tolerations=tolerations)
    return _labelled(one, "preferring")


def _near(number: int, cpu: int, _: int) -> Json:
    term = {"labelSelector": {"matchLabels": {"app": "spread"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "podAffinityTerm": term}]}
    }
    return _labelled(pod(f"near{number}", cpu=f"{cpu}m", affinity=affinity), "near")


def _for_full(one: Json) -> Json:
    one["spec"]["tolerations"] = [{"key": "dedicated", "operator": "Equal", "value": "full", "effect": "NoSchedule"}]
    one["spec"]["nodeSelector"] = {"full": "yes"}
    return one


@contextmanager
def kube_scheduler(server: RealServer, folder: Path) -> Iterator[None]:
    program = server.plane.assets.kube_scheduler
    if program is None:
        pytest.skip(f"no kube-scheduler in {server.plane.assets.folder}")
    connection = {"kubeconfig": str(server.scheduler), "qps": 1000, "burst": 1000}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": connection,
        "leaderElection": {"leaderElect": False},
    }
    file = folder / "kube-scheduler.yaml"
    file.write_text(yaml.safe_dump(configuration))
    running = ServerProgram([program, f"--config={file}", ALONE[1]], folder / "kube-scheduler.log")
    running.start()
    try:
        yield
    finally:
        running.stop()


@contextmanager
def recording(server: Server, trace: Path, log: Path) -> Iterator[None]:
    command = [PILOTAGE, "record", "--kubeconfig", str(server.admin), "-o", str(trace)]
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            eventually("it records", lambda: b"recording" in log.read_bytes())
            yield
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0, log.read_text()
        finally:
            process.kill()


def _is_decided(world: World, name: str) -> bool:
    found = world.pod(name)
    decided = condition(found, "PodScheduled")
    return bool(found["spec"].get("nodeName")) or (decided is not None and decided.get("reason") == "Unschedulable")


@pytest.fixture(scope="module")
def recorded(real_server: RealServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A trace of kube-scheduler at work."""
    folder = tmp_path_factory.mktemp("recorded")
    world = World(real_server, folder)
    trace = folder / "real.jsonl"
    try:
        made = [*nodes()]
        for one in made[NODES:]:
            one["metadata"]["labels"]["full"] = "yes"
        world.create(*made, *(priority_class(f"low{number}", number) for number in range(FULL)))
        world.create(priority_class("high", 1000))
        with kube_scheduler(real_server, folder), recording(real_server, trace, folder / "record.log"):
            world.create(pod("marker", schedulingGates=[{"name": "example.com/never"}]))
            eventually("pods are recorded", lambda: b'"marker"' in trace.read_bytes())
            for one in workloads():
                name = one["metadata"]["name"]
                world.create(one)
                if name.startswith("high"):
                    world.wait_bound(name)
                else:
                    eventually(f"{name} is decided about", lambda name=name: _is_decided(world, name))
        yield trace
    finally:
        world.clear()


@pytest.fixture(scope="module")
def history(recorded: Path) -> PodHistory:
    header, records = read(recorded)
    return history_of_trace(header.start_time, records)


def test_no_decision_of_kube_scheduler_is_another_one_here(history: PodHistory) -> None:
    found = [*judged(history, SchedulerOptions(), VirtualClock())]
    assert [one for one in found if one.verdict == OTHER] == []
    same = sum(one.verdict == SAME for one in found)
    tied = sum(one.verdict == TIED for one in found)
    print(f"{len(found)} decisions: {same} the same, {tied} tied")
    assert len(found) >= 210 + FULL + FULL - 1


def test_where_the_rules_have_one_answer_it_is_the_same(history: PodHistory) -> None:
    found = [one for one in judged(history, SchedulerOptions(), VirtualClock()) if one.pod.startswith("default/pref")]
    assert len(found) == 30
    assert {one.verdict for one in found} == {SAME}


def test_a_free_replay_places_and_preempts_as_many(history: PodHistory, recorded: Path, tmp_path: Path) -> None:
    result = simulate(TraceInput(recorded), SchedulerOptions(), ReplaySettings(), tmp_path / "result")
    observed = {pod.key for pod in history.pods if pod.bound is not None}
    pods = result.pods
    bound = {name for name, time in zip(pods["pod"].tolist(), pods["bound"].tolist(), strict=True) if time == time}
    assert bound == observed
    assert result.totals["pods"]["waiting"] == 2, "the one that fits nowhere, and the one behind a gate"
