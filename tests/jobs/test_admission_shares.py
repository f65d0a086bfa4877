"""Admission fair sharing: LocalQueues that have used less go first."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from pilotage.config.problems import ConfigError
from pilotage.jobs.admission_shares import AdmissionShares
from pilotage.jobs.configuration.kinds import AdmissionFairSharing
from pilotage.jobs.configuration.load import queueing_of
from pilotage.jobs.engine import JobQueueing
from pilotage.jobs.pending import PendingWorkloads
from pilotage.model.kueue import FairSharing, LocalQueue, LocalQueueSpec
from pilotage.model.meta import ObjectMeta
from pilotage.rng import seeded
from pilotage.simulate.queueing_file import Named
from tests.jobs.world import World, groups

MODE = "UsageBasedAdmissionFairSharing"
CPU = ("std", "cpu")


def local(name: str, weight: str = "1") -> LocalQueue:
    spec = LocalQueueSpec(cluster_queue="cq", fair_sharing=FairSharing(weight))
    return LocalQueue(metadata=ObjectMeta(name=name, namespace="ns"), spec=spec)


def shares(half_life: float = 10, interval: float = 10, **weights: float) -> AdmissionShares:
    made = AdmissionShares(AdmissionFairSharing(half_life, interval, weights))
    made.keep([local("a"), local("b", "4"), local("c", "0")], 0)
    return made


def test_usage_counts_half_after_its_half_life() -> None:
    found = shares()
    used = {"cpu": 4000}
    assert found.next_due() == 10
    assert found.sample(9, lambda key: used) == [] and found.share("ns/a") == 0
    assert found.sample(10, lambda key: used) == ["ns/a", "ns/b", "ns/c"]
    assert found.share("ns/a") == pytest.approx(2)
    found.sample(20, lambda key: used)
    assert found.share("ns/a") == pytest.approx(3)
    found.sample(40, lambda key: {})
    assert found.share("ns/a") == pytest.approx(0.75), "twice its half-life without any"


def test_weights_of_queues_and_resources() -> None:
    found = shares(cpu=2.0)
    found.sample(10, lambda key: {"cpu": 4000, "gpu": 8})
    assert found.share("ns/a") == pytest.approx(2 * 2 + 4)
    assert found.share("ns/b") == pytest.approx((2 * 2 + 4) / 4)
    assert math.isinf(found.share("ns/c")), "weight 0 comes last"


def test_a_reservation_counts_as_one_interval_at_once() -> None:
    found = shares()
    found.charge("ns/a", {CPU: 4000, ("spot", "cpu"): 4000})
    assert found.share("ns/a") == pytest.approx(4)
    found.charge("ns/unknown", {CPU: 1})


def test_without_a_half_life_nothing_is_remembered() -> None:
    found = shares(half_life=0)
    found.charge("ns/a", {CPU: 4000})
    found.sample(10, lambda key: {"cpu": 4000})
    assert found.share("ns/a") == 0


def test_what_is_as_good_as_forgotten_is_dropped() -> None:
    found = shares()
    found.sample(10, lambda key: {"cpu": 1})
    found.sample(1000, lambda key: {})
    status = found.status("ns/a")
    assert status is not None and status.consumed_resources == {} and found.status("ns/unknown") is None


# --- in queues --------------------------------------------------------------------------------------------------------


def world(**more: Any) -> World:
    """Two LocalQueues of one ClusterQueue with room for two workloads."""
    sharing = {"usageHalfLifeTime": "100s", "usageSamplingInterval": "10s"}
    made = World(admissionFairSharing=sharing, waitForPodsReady={"enable": False})
    made.add("flavor", "std")
    made.add("clusterQueue", "main", groups=groups(std=2), **{"admissionMode": MODE, **more})
    for name in ("team", "other"):
        made.add("localQueue", f"lq-{name}", clusterQueue="main")
    return made


def submit(made: World, *names: str, **fields: Any) -> None:
    """All at once; they are called as their team, with a number."""
    for name in names:
        workload = {"name": name, "queue": f"lq-{name[:-1]}", "requests": {"cpu": 1}, **fields}
        made.stage.apply(Named("workload", name, "ns", workload))
    made.settle()


def waiting(made: World) -> list[str]:
    return [one.key.removeprefix("ns/") for one in made.engine.pending("main")]


def test_teams_take_turns_though_one_was_there_first() -> None:
    made = world()
    submit(made, "team1", "team2", "team3")
    submit(made, "other1", "other2", priority=-5)
    assert waiting(made) == ["other1", "other2", "team3"], "usage is compared before priority and age"
    made.finish("team1")
    assert made.state("other1") == "admitted"
    made.finish("team2")
    assert (made.state("other2"), made.state("team3")) == ("admitted", "pending"), "one has had two, the other one"


def test_usage_decays_and_the_order_changes_with_it() -> None:
    made = world()
    submit(made, "team1", "team2")
    made.stage.advance(50)
    made.finish("team1")
    made.finish("team2")
    submit(made, "other1", "other2")
    submit(made, "team3", "other3")
    assert waiting(made) == ["other3", "team3"]
    made.stage.advance(200)
    made.settle()
    assert waiting(made) == ["team3", "other3"], "others have run since"
    made.finish("other1")
    assert made.state("team3") == "admitted"


def test_the_weight_of_a_queue_lets_it_use_more() -> None:
    made = world()
    made.change("localQueue", "lq-team", fairWeight=3)
    made.change("clusterQueue", "main", groups=groups(std=8))
    rock = {"name": "rock1", "queue": "lq-rock", "requests": {"cpu": 8}}
    made.add("localQueue", "lq-rock", clusterQueue="main")
    made.stage.apply(Named("workload", "rock1", "ns", rock))
    made.settle()
    submit(made, *(f"team{number}" for number in range(1, 9)), *(f"other{number}" for number in range(1, 9)))
    made.finish("rock1")
    held = [name for name in made.stage.workloads if made.stage.workloads[name].status.admission]
    assert (sum("team" in name for name in held), sum("other" in name for name in held)) == (6, 2)


@pytest.mark.parametrize("strategy", ["StrictFIFO", "BestEffortFIFO"])
def test_everyone_gets_a_turn_with_both_strategies(strategy: str) -> None:
    made = world(strategy=strategy)
    names = ["team1", "team2", "team3", "other1", "other2"]
    submit(made, *names)
    for _ in range(3):
        for name in names:
            if made.state(name) == "admitted":
                made.finish(name)
    assert {made.state(name) for name in names} == {"finished"}
    order = made.stage.reserved
    assert {order[0][:-1], order[1][:-1]} == {"team", "other"}, "one each, though a team of three was before the other"


def test_a_preemptor_that_waits_for_its_victims_is_not_overtaken() -> None:
    """Else its victims would have their place back while a rival with less usage is tried in vain."""
    made = world(preemption={"withinClusterQueue": "LowerPriority"})
    submit(made, "other1", "other2", eviction="manual")
    submit(made, "other3", priority=5)
    assert made.state("other1") == "evicting" or made.state("other2") == "evicting"
    submit(made, "team1", requests={"cpu": 9})
    submit(made, "team2", priority=9)
    assert waiting(made)[0] == "other3"


def test_the_mode_can_be_changed_while_workloads_wait() -> None:
    made = world(admissionMode="NoAdmissionFairSharing")
    submit(made, "team1", "team2")
    submit(made, "team3")
    made.stage.advance(1)
    submit(made, "other1")
    assert waiting(made) == ["team3", "other1"] and made.engine.next_due() is None
    made.change("clusterQueue", "main", admissionMode=MODE)
    made.stage.advance(10)
    made.settle()
    assert waiting(made) == ["other1", "team3"]
    made.change("clusterQueue", "main", admissionMode="NoAdmissionFairSharing")
    assert waiting(made) == ["team3", "other1"] and made.engine.next_due() is None


def test_the_status_says_and_the_next_engine_goes_on_from_it() -> None:
    made = world()
    submit(made, "team1")
    made.stage.advance(100)
    made.settle()
    status = made.engine.local_queue_status("ns/lq-team")
    assert status.fair_sharing is not None
    found = status.fair_sharing.admission_fair_sharing_status
    assert found is not None and found.last_update == "2026-01-01T00:01:40Z"
    assert set(found.consumed_resources) == {"cpu"}
    submit(made, "team2")
    fresh = JobQueueing(made.stage.clock, seeded(0), made.stage.configuration)
    fresh.set_namespace("ns", {})
    for obj in made.stage.objects():
        if isinstance(obj, LocalQueue):
            obj = msgspec.structs.replace(obj, status=made.engine.local_queue_status(obj.key))
        fresh.upsert(obj)
    for workload in made.stage.workloads.values():
        fresh.upsert(workload)
    for name in ("team3", "other1"):
        made.stage.apply(
            Named("workload", name, "ns", {"name": name, "queue": f"lq-{name[:-1]}", "requests": {"cpu": 1}})
        )
        fresh.upsert(made.stage.workloads[f"ns/{name}"])
    assert [one.key for one in fresh.pending("main")] == ["ns/other1", "ns/team3"]
    assert fresh.next_due() == made.engine.next_due()


def test_it_is_off_without_configuration_or_mode() -> None:
    made = World(waitForPodsReady={"enable": False})
    made.add("clusterQueue", "main", groups=groups(std=2), admissionMode=MODE)
    made.add("localQueue", "lq", clusterQueue="main")
    workloads = made.engine._workloads
    pending = workloads.queues.pending(workloads.tree.queues["main"])
    assert type(pending) is PendingWorkloads and made.engine.next_due() is None
    status = made.engine.local_queue_status("ns/lq")
    assert status.fair_sharing is None
    gated = queueing_of({"admissionFairSharing": {}, "featureGates": {"AdmissionFairSharing": False}})
    assert gated.admission_fair_sharing is None


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"usageHalfLifeTime": "-1s"}, "admissionFairSharing.usageHalfLifeTime"),
        ({"usageSamplingInterval": "0s"}, "admissionFairSharing.usageSamplingInterval"),
        ({"resourceWeights": {"cpu": -1}}, "admissionFairSharing.resourceWeights[cpu]"),
        ({"usageHalfLife": "1h"}, "admissionFairSharing.usageHalfLife"),
    ],
)
def test_mistakes_in_the_configuration_are_named(given: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        queueing_of({"admissionFairSharing": given})
    assert [one.path for one in caught.value.problems] == [path]


def test_defaults() -> None:
    found = queueing_of({"admissionFairSharing": {"usageHalfLifeTime": "168h", "resourceWeights": {"cpu": 2}}})
    assert found.admission_fair_sharing == AdmissionFairSharing(604800.0, 300.0, {"cpu": 2.0})
    assert queueing_of({}).admission_fair_sharing is None
