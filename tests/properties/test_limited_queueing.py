"""Random histories in which LimitRanges come, change and go: nobody starts against them, and nobody waits in vain."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pilotage.jobs.engine import JobQueueing
from pilotage.model.limit_ranges import LimitRange
from pilotage.rng import seeded
from pilotage.simulate.queueing_stage import is_true
from tests.properties.test_job_queueing import SETTINGS, STEPS, History

_OTHERS = frozenset(
    {
        "PendingEvaluation",
        "WaitingForQuota",
        "ExceedsMaxQuota",
        "WaitingForPreemptedWorkloads",
        "WaitingForPodsReady",
        "Suspended",
    }
)
"""Whoever keeps to the limits waits for one of these."""


class LimitedHistory(History):
    """As `History`; now and then the largest request of a container is set, in its namespace or elsewhere."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.limits_rng = random.Random(seed)
        self.ranges: dict[str, LimitRange] = {}

    def breaks(self, key: str) -> bool:
        """Its container has no limit of its own, so that it gets the maximum of the first LimitRange."""
        bounds = [int(str(one.spec.limits[0].max["cpu"])) for _, one in sorted(self.ranges.items())]
        spec = self.stage.workloads[key].spec.pod_sets[0].template.spec
        request = int(str(spec.containers[0].resources.requests["cpu"]))
        return bool(bounds) and (request > bounds[0] or bounds[0] > min(bounds))

    def reason(self, key: str) -> str:
        conditions = self.stage.workloads[key].status.conditions
        return next(one.reason for one in conditions if one.type == "QuotaReserved")

    def limit(self) -> None:
        rng = self.limits_rng
        name, namespace = rng.choice("ab"), rng.choice(["ns", "ns", "elsewhere"])
        known = self.ranges.get(name)
        if known is not None and namespace == "ns" and rng.random() < 0.4:
            self.stage.engine.delete(self.ranges.pop(name))
        else:
            body = {
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"limits": [{"type": "Container", "max": {"cpu": str(rng.randint(1, 4))}}]},
            }
            made = msgspec.convert(body, LimitRange)
            self.stage.engine.upsert(made)
            if namespace == "ns":
                self.ranges[name] = made
        self.stage.settle()

    def step(self) -> None:
        """Limits first: whoever gets quota afterwards was judged by them."""
        if self.limits_rng.random() < 0.3:
            self.limit()
        super().step()


@SETTINGS
@given(st.integers(0, 2**32))
def test_no_one_gets_quota_against_the_limits_and_everyone_else_is_judged_by_quota(seed: int) -> None:
    history = LimitedHistory(seed)
    for _ in range(STEPS):
        history.stage.reserved.clear()
        history.step()
        history.stage.engine.check()
        for name in history.stage.reserved:
            assert f"ns/{name}" not in history.stage.workloads or not history.breaks(f"ns/{name}"), (seed, name)
        for key in (key for waiting in history.pending().values() for key in waiting):
            expected = ("Misconfigured", "Suspended") if history.breaks(key) else _OTHERS
            assert history.reason(key) in expected, (seed, key, history.reason(key))


@SETTINGS
@given(st.integers(0, 2**32), st.integers(1, STEPS))
def test_a_restart_under_limits_changes_nothing(seed: int, after: int) -> None:
    history = LimitedHistory(seed)
    for _ in range(after):
        history.step()
    stage = history.stage
    fresh = JobQueueing(stage.clock, seeded(0), stage.configuration)
    fresh.set_namespace("ns", {})
    for obj in (*history.ranges.values(), *stage.objects(), *stage.workloads.values()):
        fresh.upsert(obj)
    fresh.check()
    while fresh.cycle():
        pass
    for key, workload in stage.workloads.items():
        found = fresh.workload(key)
        assert found is not None and is_true(found, "QuotaReserved") is is_true(workload, "QuotaReserved"), (seed, key)
