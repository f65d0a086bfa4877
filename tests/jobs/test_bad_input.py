"""Wrong configuration is named, admits nobody wrongly and loses nobody."""

from __future__ import annotations

from pilotage.explain.workload_text import render_workload
from tests.jobs.world import World, groups


def condition(world: World, queue: str) -> tuple[str, str]:
    active = world.engine.cluster_queue_status(queue).conditions[0]
    return active.reason, active.message


def test_a_missing_flavor_is_named_and_its_arrival_starts_the_workload() -> None:
    world = World()
    world.add("clusterQueue", "main", groups=groups(later=4))
    world.add("localQueue", "lq-main", clusterQueue="main")
    world.submit("a", "main")
    assert condition(world, "main")[0] == "FlavorNotFound" and condition(world, "main")[1].endswith(": later")
    assert world.why("a")[0] == "Suspended" and "later" in world.why("a")[1]
    world.add("flavor", "later")
    assert world.state("a") == "admitted"


def test_a_cycle_of_cohorts_disables_its_tree_until_it_is_cut() -> None:
    world = World()
    world.add("cohort", "a", parent="b")
    world.add("cohort", "b", parent="a")
    world.queue("main", "a")
    world.queue("other", "elsewhere")
    world.submit("w", "main")
    world.submit("fine", "other")
    reason, message = condition(world, "main")
    assert reason == "CohortCycle" and "a -> b" in message
    assert (world.state("w"), world.state("fine")) == ("pending", "admitted")
    world.change("cohort", "b", parent="")
    assert world.state("w") == "admitted"


def test_a_workload_for_an_unknown_queue_waits_for_it() -> None:
    world = World()
    world.submit("w", "nowhere")
    assert world.why("w") == ("Misconfigured", "LocalQueue lq-nowhere doesn't exist")
    world.add("localQueue", "lq-nowhere", clusterQueue="ghost")
    assert world.why("w") == ("Misconfigured", "ClusterQueue ghost doesn't exist")
    world.queue("ghost")
    assert world.state("w") == "admitted"


def test_a_quota_lowered_below_its_use_evicts_no_one_admits_no_one_and_is_reported() -> None:
    world = World()
    world.queue("main", std=4)
    world.submit("big", "main", 4)
    world.change("clusterQueue", "main", groups=groups(std=2))
    world.submit("small", "main", 1)
    assert (world.state("big"), world.state("small")) == ("admitted", "pending")
    assert "usage exceeds the quota: cpu in flavor std by 2" in condition(world, "main")[1]
    world.finish("big")
    assert world.state("small") == "admitted"


def test_after_a_quota_cut_nothing_is_admitted_before_use_is_below_the_quota_again() -> None:
    world = World()
    world.queue("main", std=6)
    for name in ("a", "b", "c"):
        world.submit(name, "main", 2)
    world.change("clusterQueue", "main", groups=groups(std=3))
    world.submit("small", "main", 1)
    [shortage] = world.explain("small").shortages
    assert (shortage.have, shortage.exceeded_by) == (0, 3000)
    text = render_workload(world.explain("small"), 0.0, "pending")
    assert "std: pod set main needs 1 cpu, 0 free: 3 more in use than there is quota, so 4 must be given back" in text
    [quota] = world.engine.cluster_queues()[0].quotas
    assert (quota.used, quota.borrowed, quota.available) == (6000, 0, 0), "nobody lends it anything"
    world.finish("a")
    assert world.state("small") == "pending" and world.explain("small").shortages[0].exceeded_by == 1000
    assert [world.state(name) for name in ("b", "c")] == ["admitted", "admitted"]
    world.finish("b")
    assert world.state("small") == "admitted" and condition(world, "main")[1] == "Can admit new workloads"


def test_a_quota_cut_in_a_cohort_is_reported_by_the_queue_that_uses_too_much() -> None:
    world = World()
    world.queue("lender", "ring", std=4)
    world.queue("borrower", "ring", std=1)
    world.submit("big", "borrower", 5)
    world.change("clusterQueue", "lender", groups=groups(std=2))
    assert "usage exceeds the quota: cpu in flavor std by 2" in condition(world, "borrower")[1]
    assert condition(world, "lender")[1] == "Can admit new workloads", "it uses nothing"
    world.submit("own", "lender", 1)
    assert (world.state("big"), world.state("own")) == ("admitted", "pending")


def test_a_resource_in_two_groups_makes_a_queue_unusable() -> None:
    world = World()
    world.queue("main")
    world.change("clusterQueue", "main", groups=[*groups(std=1), *groups(std=1)])
    assert condition(world, "main")[0] == "Misconfigured" and "cpu" in condition(world, "main")[1]


def test_a_deleted_queue_keeps_its_books_until_its_workloads_are_done() -> None:
    world = World()
    world.queue("main", std=2)
    world.submit("runs", "main", 2)
    world.submit("waits", "main", 2)
    world.remove("clusterQueue", "main")
    assert (world.state("runs"), world.why("waits")[0]) == ("admitted", "Misconfigured")
    assert [one.reason for one in world.engine.cluster_queues()] == ["Terminating"]
    world.finish("runs")
    assert world.engine.cluster_queues() == []
    world.queue("main", std=2)
    assert world.state("waits") == "admitted"
