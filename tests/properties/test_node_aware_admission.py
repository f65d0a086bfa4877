"""Random histories of queues on nodes: nothing is admitted that does not fit, no quota is exceeded, no one starves."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pilotage.assembly import SchedulerOptions, thinking_engines
from pilotage.cluster.state import Cluster
from pilotage.jobs.adapters import marks
from pilotage.jobs.configuration.load import queueing_of
from pilotage.jobs.room_on_nodes import NodeRoom
from pilotage.model import Pod
from pilotage.model.frozen_map import FrozenMap
from pilotage.simulate.queueing_file import Named
from pilotage.simulate.queueing_stage import QueueingStage, is_true
from pilotage.testing import builders
from pilotage.testing.virtual_clock import VirtualClock

SETTINGS = settings(max_examples=30, deadline=None, derandomize=True)
STEPS = 40
OPTIONS = SchedulerOptions()


class NodeHistory:
    """Two queues that share quota, and one alone; more quota than there is room on the nodes."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.cluster = Cluster()
        self.room = NodeRoom(self.cluster, partial(thinking_engines, clock=VirtualClock(), options=OPTIONS))
        self.nodes: dict[str, int] = {}
        for _ in range(rng.randint(1, 4)):
            self.add_node()
        self.stage = QueueingStage(queueing_of({"waitForPodsReady": {"enable": False}}), self.room)
        self.foreign: list[Pod] = []
        self.names: list[str] = []
        self.bound: dict[str, list[Pod]] = {}
        self._put("flavor", name="std")
        preemption = rng.choice([{}, {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "LowerPriority"}])
        for name, cohort in (("alone", ""), ("east", "ring"), ("west", "ring")):
            group = {"resources": ["cpu"], "flavors": [{"name": "std", "quotas": {"cpu": rng.randint(4, 16)}}]}
            strategy = rng.choice(["StrictFIFO", "BestEffortFIFO", "BestEffortFIFO"])
            fields: dict[str, Any] = {"groups": [group], "cohort": cohort, "strategy": strategy}
            self._put("clusterQueue", name=name, preemption=preemption, **fields)
            self._put("localQueue", name=f"lq-{name}", clusterQueue=name)
        self.stage.settle()

    def _put(self, kind: str, **fields: Any) -> None:
        self.stage.apply(Named(kind, fields["name"], "ns", fields))

    # --- what happens -------------------------------------------------------------------------------------------

    def step(self) -> None:
        actions = [
            self.submit,
            self.finish,
            self.bind,
            self.lose,
            self.occupy,
            self.vacate,
            self.add_node,
            self.pass_time,
        ]
        self.rng.choices(actions, [8, 4, 4, 1, 2, 2, 0.3, 3])[0]()
        self.stage.settle()
        self.check()

    def submit(self) -> None:
        name, rng = f"w{len(self.names):03}", self.rng
        self.names.append(name)
        fields: dict[str, Any] = {"queue": f"lq-{rng.choice(['alone', 'east', 'west'])}", "count": rng.randint(1, 3)}
        if fields["count"] > 1 and rng.random() < 0.3:
            fields["minCount"] = 1
        self._put("workload", name=name, priority=rng.choice([0, 0, 5]), requests={"cpu": rng.randint(1, 4)}, **fields)

    def running(self) -> list[str]:
        return [name for name in self.names if self.state(name) == "admitted"]

    def state(self, name: str) -> str:
        found = self.stage.engine.explain(f"ns/{name}")
        assert found is not None
        return found.state

    def finish(self) -> None:
        for name in self._some(self.running()):
            self.end(name)

    def end(self, name: str) -> None:
        for pod in self.bound.pop(name, []):
            self.cluster.remove_pod(pod.uid)
        self.stage.engine.finished(f"ns/{name}", "Succeeded", "")

    def bind(self) -> None:
        """A pod of a workload gets a node, wherever it fits beside those that are there: not where it was expected."""
        for name in self._some(self.running()):
            workload = self.stage.workloads[f"ns/{name}"]
            assert workload.status.admission is not None
            [assigned] = workload.status.admission.pod_set_assignments
            pods = self.bound.setdefault(name, [])
            kept = [pod for own in self.room.kept_for(f"ns/{name}") for pod in own.stand_ins]
            if len(pods) < (assigned.count or 0) and kept:
                stand_in = self.rng.choice(kept)
                pod = replace(
                    stand_in,
                    name=f"{name}-{self.rng.random()}",
                    uid=f"{name}-{self.rng.random()}",
                    labels=FrozenMap({marks.POD_SET: "main"}),
                    annotations=FrozenMap({marks.WORKLOAD: name}),
                )
                self.cluster.put_pod(pod)
                pods.append(pod)

    def lose(self) -> None:
        """A pod of a workload fails; its job will make another one."""
        for name in self._some([name for name, pods in self.bound.items() if pods]):
            self.cluster.remove_pod(self.bound[name].pop().uid)

    def occupy(self) -> None:
        """Somebody else's pod takes what is free."""
        for node in self._some([*self.nodes]):
            free = self.nodes[node] - self.used(node)
            if free > 0:
                made = builders.pod(f"foreign-{self.rng.random()}").requests(cpu=self.rng.randint(1, free)).node(node)
                self.foreign.append(made.build())
                self.cluster.put_pod(self.foreign[-1])

    def vacate(self) -> None:
        if self.foreign:
            self.cluster.remove_pod(self.foreign.pop(self.rng.randrange(len(self.foreign))).uid)

    def add_node(self) -> None:
        name, cpu = f"n{len(self.nodes)}", self.rng.randint(1, 8)
        self.nodes[name] = cpu
        self.cluster.put_node(builders.node(name).cpu(cpu).memory("64Gi").pods(110).build())

    def pass_time(self) -> None:
        self.stage.advance(self.rng.choice([1, 100, 400]))

    def _some(self, names: list[str]) -> list[str]:
        return [self.rng.choice(names)] if names else []

    # --- what must hold -----------------------------------------------------------------------------------------

    def used(self, node: str) -> int:
        """By pods and by what is kept, in cores."""
        table = self.room.mirrored.nodes
        row = table.row(node)
        assert row is not None
        return table.requested_at(row, "cpu") // 1000

    def check(self) -> None:
        self.stage.engine.check()
        self.room.mirrored.check()
        for node, cpu in self.nodes.items():
            assert self.used(node) <= cpu, f"{node} is promised twice"
        for name in self.running():
            workload = self.stage.workloads[f"ns/{name}"]
            assert workload.status.admission is not None
            [assigned] = workload.status.admission.pod_set_assignments
            kept = sum(len(own.stand_ins) for own in self.room.kept_for(f"ns/{name}"))
            assert kept + len(self.bound.get(name, [])) == assigned.count, f"every pod of {name} has a place"
        for queue in self.stage.engine.cluster_queues():
            total = sum(quota.used for quota in queue.quotas)
            own = sum(quota.nominal for quota in queue.quotas)
            assert total <= own + sum(quota.borrowed for quota in queue.quotas)

    def drain(self) -> None:
        """Nobody submits any more; whatever runs ends."""
        while self.foreign:
            self.vacate()
        for _ in range(3 * len(self.names) + 10):
            self.stage.settle()
            self.check()
            for name in self.running():
                self.end(name)
            self.stage.advance(400)

    def unfinished(self) -> list[str]:
        return [name for name in self.names if not is_true(self.stage.workloads[f"ns/{name}"], "Finished")]


@SETTINGS
@given(st.integers(0, 2**32))
def test_nothing_is_admitted_that_does_not_fit_and_every_workload_that_could_fit_has_its_turn(seed: int) -> None:
    history = NodeHistory(seed)
    for _ in range(STEPS):
        history.step()
    history.drain()
    stuck = {name: history.stage.engine.explain(f"ns/{name}") for name in history.unfinished()}
    strict = {one.name for one in history.stage.engine.cluster_queues() if one.strategy == "StrictFIFO"}
    for name, report in stuck.items():
        assert report is not None
        # What can never fit stays, and in a StrictFIFO queue also what is behind it.
        if report.cluster_queue in strict and report.position:
            continue
        workload = history.stage.workloads[f"ns/{name}"]
        [pod_set] = workload.spec.pod_sets
        cpu = int(str(pod_set.template.spec.containers[0].resources.requests["cpu"]))
        least = pod_set.min_count or pod_set.count
        places = sum(size // cpu for size in history.nodes.values())
        assert report.reason == "ExceedsMaxQuota" or places < least, (seed, name, report)


@SETTINGS
@given(st.integers(0, 2**32))
def test_a_large_workload_is_admitted_although_small_ones_never_stop_coming(seed: int) -> None:
    history = NodeHistory(seed)
    rng, largest = history.rng, max(history.nodes.values())
    group = {"resources": ["cpu"], "flavors": [{"name": "std", "quotas": {"cpu": 100}}]}
    history.stage.patch(Named("clusterQueue", "alone", "ns", {"groups": [group], "strategy": "BestEffortFIFO"}))
    for _ in range(8):
        history._put("workload", name=(name := f"w{len(history.names):03}"), queue="lq-alone", requests={"cpu": 1})
        history.names.append(name)
    history.stage.settle()
    history._put("workload", name="large", queue="lq-alone", requests={"cpu": largest})
    for _ in range(60):
        history.stage.settle()
        history.check()
        if history.state("large") == "admitted":
            break
        for name in history.running():
            if rng.random() < 0.3:
                history.end(name)
        for _ in range(4):
            history._put("workload", name=(name := f"w{len(history.names):03}"), queue="lq-alone", requests={"cpu": 1})
            history.names.append(name)
        history.stage.advance(60)
    assert history.state("large") == "admitted", seed
