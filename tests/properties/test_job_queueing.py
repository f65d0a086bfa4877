"""Random histories of workload queueing: quota is kept, the order is kept, every workload is in one place."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.jobs.configuration.load import queueing_of
from pilotage.jobs.effects import StatusChanged
from pilotage.jobs.engine import JobQueueing
from pilotage.rng import seeded
from pilotage.simulate.queueing_file import Named
from pilotage.simulate.queueing_stage import QueueingStage, is_true

CPU = ("std", "cpu")
STEPS = 40
SETTINGS = settings(max_examples=40, deadline=None, derandomize=True)
PREEMPTION = [
    {},
    {"withinClusterQueue": "LowerPriority"},
    {"withinClusterQueue": "LowerOrNewerEqualPriority", "reclaimWithinCohort": "LowerPriority"},
    {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
    {"reclaimWithinCohort": "LowerPriority", "borrowWithinCohort": {"policy": "LowerPriority"}},
]


class History:
    """A world with four queues, two of which share quota with each other, and things that happen in it."""

    def __init__(self, seed: int, *, is_fair: bool = False) -> None:
        self.rng = rng = random.Random(seed)
        strategy = {"timestamp": rng.choice(["Eviction", "Creation"]), "backoffBaseSeconds": 5, "backoffLimitCount": 3}
        ready: dict[str, Any] = {"timeout": "20s", "recoveryTimeout": "10s", "requeuingStrategy": strategy}
        ready["blockAdmission"] = rng.random() < 0.2
        config: dict[str, Any] = {"waitForPodsReady": ready}
        if rng.random() < 0.25 or is_fair:
            config["fairSharing"] = {}
        self.stage = QueueingStage(queueing_of(config))
        self.names: list[str] = []
        self.submitted = 0
        self.queues: dict[str, dict[str, Any]] = {}
        self.log: list[str] = []
        self._put("flavor", name="std")
        self._put("admissionCheck", name="gate")
        self._put("cohort", name="ring")
        for name, cohort in (("alone", ""), ("east", "ring"), ("west", "ring"), ("north", "ring")):
            self._add_queue(name, cohort)

    def _put(self, kind: str, **fields: Any) -> None:
        self.stage.apply(Named(kind, fields["name"], "ns", fields))

    def _patch(self, kind: str, name: str, **fields: Any) -> None:
        self.stage.patch(Named(kind, name, "ns", fields))

    def _add_queue(self, name: str, cohort: str) -> None:
        rng = self.rng
        quota: dict[str, int] = {"nominal": rng.randint(2, 8)}
        if cohort and rng.random() < 0.4:
            quota["borrow"] = rng.randint(0, 5)
        if cohort and rng.random() < 0.4:
            quota["lend"] = rng.randint(0, quota["nominal"])
        fields: dict[str, Any] = {
            "name": name,
            "cohort": cohort,
            "strategy": rng.choice(["StrictFIFO", "BestEffortFIFO"]),
            "groups": self._groups(quota),
            "preemption": rng.choice(PREEMPTION if cohort else PREEMPTION[:2]),
        }
        if rng.random() < 0.2:
            fields["checks"] = [{"name": "gate"}]
        self.queues[name] = {"quota": quota, **fields}
        self._put("clusterQueue", **fields)
        self._put("localQueue", name=f"lq-{name}", clusterQueue=name)

    def _groups(self, quota: dict[str, int]) -> list[dict[str, Any]]:
        return [{"resources": ["cpu"], "flavors": [{"name": "std", "quotas": {"cpu": quota}}]}]

    # --- what happens -------------------------------------------------------------------------------------------------

    def step(self) -> None:
        action = self.rng.choices(
            [self.submit, self.advance, self.finish, self.ready, self.evicted, self.change, self.administer],
            [6, 4, 3, 3, 2, 2, 1],
        )[0]
        action()
        self.stage.settle()

    def submit(self) -> None:
        self.submitted += 1
        rng, name = self.rng, f"w{self.submitted:03}"
        self.names.append(name)
        fields: dict[str, Any] = {"name": name, "queue": f"lq-{rng.choice([*self.queues])}"}
        fields |= {"priority": rng.choice([0, 0, 1, 5]), "requests": {"cpu": rng.randint(1, 4)}}
        fields |= {"count": rng.randint(1, 3), "eviction": rng.choice(["auto", "manual"])}
        if fields["count"] > 1 and rng.random() < 0.3:
            fields["minCount"] = 1
        self._put("workload", **fields)

    def advance(self) -> None:
        self.stage.advance(self.rng.choice([1, 3, 10, 25]))

    def _some(self, *kinds: str) -> list[str]:
        found = [
            name
            for name in self.names
            if (workload := self.stage.workloads.get(f"ns/{name}")) is not None
            and all(is_true(workload, kind) for kind in kinds)
            and not is_true(workload, "Finished")
        ]
        return [self.rng.choice(found)] if found else []

    def finish(self) -> None:
        for name in self._some("Admitted"):
            self.stage.engine.finished(f"ns/{name}", "Succeeded", "")

    def ready(self) -> None:
        for name in self._some("Admitted"):
            self.stage.engine.pods_ready(f"ns/{name}", self.rng.random() < 0.8)

    def evicted(self) -> None:
        for name in self._some("Evicted", "QuotaReserved"):
            self.stage.engine.pods_gone(f"ns/{name}")

    def change(self) -> None:
        for name in self._some():
            match self.rng.randrange(5):
                case 0:
                    active = not self.stage.workloads[f"ns/{name}"].spec.active
                    self._patch("workload", name, active=active)
                case 1:
                    self._patch("workload", name, priority=self.rng.choice([0, 1, 5]))
                case 2:
                    self.stage.delete(Named("workload", name, "ns", {}))
                    self.names.remove(name)
                case 3 if is_true(self.stage.workloads[f"ns/{name}"], "QuotaReserved"):
                    self.stage.reclaim(name, 1)
                case 4 if any(one.name == "gate" for one in self.stage.workloads[f"ns/{name}"].status.admission_checks):
                    state = self.rng.choice(["Ready", "Ready", "Retry", "Rejected"])
                    self.stage.write_check({"workload": name, "name": "gate", "state": state})

    def administer(self) -> None:
        name = self.rng.choice([*self.queues])
        match self.rng.randrange(3):
            case 0:
                self._patch("clusterQueue", name, stopPolicy=self.rng.choice(["None", "None", "Hold", "HoldAndDrain"]))
            case 1:
                self._patch("localQueue", f"lq-{name}", stopPolicy=self.rng.choice(["None", "None", "HoldAndDrain"]))
            case _:
                quota = self.queues[name]["quota"]
                quota["nominal"] += self.rng.choice([-2, 1, 2])
                quota["nominal"] = max(quota["nominal"], quota.get("lend", 0))
                self._patch("clusterQueue", name, groups=self._groups(quota))

    # --- what must hold -----------------------------------------------------------------------------------------------

    def used(self) -> dict[str, int]:
        return {
            report.name: next(quota.used for quota in report.quotas) // 1000
            for report in self.stage.engine.cluster_queues()
        }

    def excess(self) -> Counter[str]:
        """By how much a limit is exceeded: worked out from the definition, not with the engine's tree."""
        used, over = self.used(), Counter[str]()
        taken = pool = 0
        for name, queue in self.queues.items():
            quota = queue["quota"]
            kept = max(0, quota["nominal"] - quota["lend"]) if "lend" in quota else 0
            if not queue["cohort"]:
                over[name] = used[name] - quota["nominal"]
                continue
            taken += max(0, used[name] - kept)
            pool += quota["nominal"] - kept
            if "borrow" in quota:
                over[name] = used[name] - quota["nominal"] - quota["borrow"]
        over["ring"] = taken - pool
        return Counter({name: amount for name, amount in over.items() if amount > 0})

    def pending(self) -> dict[str, list[str]]:
        """Who is to be tried, in order."""
        return {
            name: [one.key for one in self.stage.engine.pending(name) if one.reason != "" and one.requeue_at is None]
            for name in self.queues
        }

    def event(self) -> None:
        workloads = sorted(self.stage.workloads.items())
        self.log.append(f"{self.stage.now()} {self.used()} {self.pending()} {hash(str(workloads))}")


@SETTINGS
@given(st.integers(0, 2**32))
def test_quota_is_never_exceeded_except_where_it_was_lowered(seed: int) -> None:
    history = History(seed)
    before = history.excess()
    for _ in range(STEPS):
        lowered = {name: dict(queue["quota"]) for name, queue in history.queues.items()}
        history.step()
        history.stage.engine.check()
        after = history.excess()
        changed = {name for name, queue in history.queues.items() if queue["quota"] != lowered[name]}
        if not changed:
            assert all(after[name] <= before[name] for name in after), (seed, before, after)
        before = after


@SETTINGS
@given(st.integers(0, 2**32))
def test_a_strict_queue_serves_no_one_before_the_first(seed: int) -> None:
    history = History(seed)
    for _ in range(STEPS):
        waiting = history.pending()
        sure = {key for key, workload in history.stage.workloads.items() if not is_true(workload, "Evicted")}
        priorities = {key: workload.spec.priority for key, workload in history.stage.workloads.items()}
        history.stage.reserved.clear()
        history.step()
        now = history.pending()
        for name, queue in history.queues.items():
            if queue["strategy"] != "StrictFIFO":
                continue
            served = [f"ns/{one}" for one in history.stage.reserved if f"ns/{one}" in waiting[name]]
            for key in served:
                ahead = waiting[name][: waiting[name].index(key)]
                waited = {one for one in now[name] if one.removeprefix("ns/") not in history.stage.reserved}
                passed = [one for one in ahead if one in waited and one in sure and key in sure]
                changed = [one for one in (*passed, key) if _priority(history, one) != priorities[one]]
                assert not passed or changed, (seed, name, key, passed)


def _priority(history: History, key: str) -> int | None:
    workload = history.stage.workloads.get(key)
    return None if workload is None else workload.spec.priority


@pytest.mark.parametrize(("seed", "is_fair"), [(4775, False), (337, True)])
def test_preemption_comes_to_an_end(seed: int, is_fair: bool) -> None:
    """Histories in which it once went round for ever: a rival with a lower share took what was meant for the preemptor;
    the preemptor lost its place because a slow victim's queue had a lower share by then."""
    history = History(seed, is_fair=is_fair)
    for _ in range(STEPS):
        history.step()
        history.stage.engine.check()


@SETTINGS
@given(st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_log(seed: int) -> None:
    logs = []
    for _ in range(2):
        history = History(seed)
        for _ in range(STEPS):
            history.step()
            history.event()
        logs.append(history.log)
    assert logs[0] == logs[1]


@SETTINGS
@given(st.integers(0, 2**32), st.integers(1, STEPS))
def test_a_restart_changes_nothing(seed: int, after: int) -> None:
    """A new engine that reads the API books the same usage and has the same workloads waiting."""
    history = History(seed)
    for _ in range(after):
        history.step()
    stage = history.stage
    fresh = JobQueueing(stage.clock, seeded(0), stage.configuration)
    for obj in stage.objects():
        fresh.upsert(obj)
    fresh.set_namespace("ns", {})
    for workload in stage.workloads.values():
        fresh.upsert(workload)
    fresh.check()
    assert _picture(fresh, history) == _picture(stage.engine, history)
    assert fresh.next_due() == stage.engine.next_due()
    while fresh.cycle():
        pass
    reserved = [
        effect.workload.key
        for effect in fresh.take_effects()
        if isinstance(effect, StatusChanged)
        and is_true(effect.workload, "QuotaReserved")
        is not is_true(stage.workloads[effect.workload.key], "QuotaReserved")
    ]
    assert reserved == [], "nothing was left to do"


def _picture(engine: JobQueueing, history: History) -> Any:
    waiting = {name: [one.key for one in engine.pending(name)] for name in history.queues}
    return [(one.name, one.quotas, one.admitted, one.is_active) for one in engine.cluster_queues()], waiting
