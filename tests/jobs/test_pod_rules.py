"""LimitRanges and RuntimeClasses: what they add to requests, whom they stop, and whose news their changes are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.jobs.effective_pods import Surroundings
from pilotage.jobs.effects import Event, StatusChanged
from pilotage.jobs.engine import JobQueueing
from pilotage.jobs.shapes import WorkloadShape, shape_of
from pilotage.model import KINDS
from pilotage.model.kueue import PodSet, Workload
from pilotage.model.limit_ranges import LimitRange, LimitRangeSpec
from pilotage.model.policy import RuntimeClass
from pilotage.rng import seeded
from tests.jobs.world import World, groups

Json = dict[str, Any]


def limit_range(name: str = "bounds", namespace: str = "ns", **container: Any) -> LimitRange:
    body = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"limits": [{"type": "Container", **container}]},
    }
    return msgspec.convert(body, LimitRange)


def runtime_class(name: str, **overhead: str) -> RuntimeClass:
    return msgspec.convert({"metadata": {"name": name}, "overhead": {"podFixed": overhead}}, RuntimeClass)


def container(name: str = "c", requests: Json | None = None, limits: Json | None = None, **fields: Any) -> Json:
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}, **fields}


def submit(world: World, name: str, *containers: Json, namespace: str = "ns", count: int = 1, **spec: Any) -> None:
    """A workload with more to its pods than the short form can say."""
    template = {"spec": {"containers": list(containers), **spec}}
    body = {
        "metadata": {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"},
        "spec": {"queueName": "lq-main", "podSets": [{"name": "main", "count": count, "template": template}]},
    }
    workload: Workload = KINDS["workloads"].decode(msgspec.json.encode(body))
    world.stage.workloads[workload.key] = workload
    world.engine.upsert(workload)
    world.settle()


def put(world: World, *objects: LimitRange | RuntimeClass) -> None:
    for obj in objects:
        world.engine.upsert(obj)
    world.settle()


def remove(world: World, obj: LimitRange | RuntimeClass) -> None:
    world.engine.delete(obj)
    world.settle()


def used(world: World) -> int:
    """Thousandths of a core."""
    [quota] = world.engine.cluster_queues()[0].quotas
    return quota.used


# --- what is counted --------------------------------------------------------------------------------------------------


def shape(spec: Json, *ranges: Json, overheads: Json | None = None) -> WorkloadShape:
    pod_set = msgspec.convert({"name": "main", "template": {"spec": spec}}, PodSet)
    named = tuple(
        (f"r{at}", msgspec.convert({"limits": [{"type": "Container", **one}]}, LimitRangeSpec))
        for at, one in enumerate(ranges)
    )
    return shape_of((pod_set,), Surroundings(named, overheads or {}))


def per_pod(spec: Json, *ranges: Json, overheads: Json | None = None) -> dict[str, int]:
    return dict(shape(spec, *ranges, overheads=overheads).pod_sets[0].per_pod)


@pytest.mark.parametrize(
    ("spec", "ranges", "cpu"),
    [
        ({"containers": [container()]}, [], None),
        ({"containers": [container(limits={"cpu": "2"})]}, [], 2000),
        ({"containers": [container()]}, [{"defaultRequest": {"cpu": "250m"}}], 250),
        ({"containers": [container()]}, [{"default": {"cpu": "500m"}}], 500),
        ({"containers": [container()]}, [{"default": {"cpu": "1"}, "defaultRequest": {"cpu": "250m"}}], 250),
        ({"containers": [container(requests={"cpu": "1"})]}, [{"defaultRequest": {"cpu": "250m"}}], 1000),
        ({"containers": [container(limits={"cpu": "1"})]}, [{"defaultRequest": {"cpu": "250m"}}], 1000),
        ({"containers": [container()]}, [{"defaultRequest": {"cpu": "1"}}, {"defaultRequest": {"cpu": "2"}}], 1000),
        ({"containers": [container("a"), container("b")]}, [{"defaultRequest": {"cpu": "1"}}], 2000),
        (
            {"containers": [container("a")], "initContainers": [container("i", requests={"cpu": "3"})]},
            [{"defaultRequest": {"cpu": "1"}}],
            3000,
        ),
        (
            {"containers": [container("a")], "initContainers": [container("s", restartPolicy="Always")]},
            [{"defaultRequest": {"cpu": "1"}}],
            2000,
        ),
        ({"containers": [container()], "resources": {"limits": {"cpu": "3"}}}, [], 3000),
        ({"containers": [container(requests={"cpu": "1"})], "resources": {"limits": {"cpu": "3"}}}, [], 1000),
        (
            {"containers": [container()], "resources": {"limits": {"cpu": "3"}}},
            [{"defaultRequest": {"cpu": "1"}}],
            3000,
        ),
    ],
    ids=[
        "nothing",
        "own limit",
        "default request",
        "default limit",
        "both",
        "own request",
        "own limit before default request",
        "first by name",
        "every container",
        "init step",
        "sidecar",
        "limit of the pod",
        "container asks, pod limits",
        "limit of the pod before defaults",
    ],
)
def test_requests_are_those_that_the_pods_will_have(spec: Json, ranges: list[Json], cpu: int | None) -> None:
    assert per_pod(spec, *ranges).get("cpu") == cpu


@pytest.mark.parametrize(
    ("spec", "overheads", "cpu"),
    [
        ({"runtimeClassName": "kata"}, {"kata": {"cpu": "100m"}}, 1100),
        ({"runtimeClassName": "kata"}, {"kata": {}}, 1000),
        ({"runtimeClassName": "kata", "overhead": {"cpu": "300m"}}, {"kata": {"cpu": "100m"}}, 1300),
        ({"overhead": {"cpu": "300m"}}, {}, 1300),
    ],
)
def test_the_overhead_of_the_runtime_class_is_counted_once(spec: Json, overheads: Json, cpu: int) -> None:
    whole = {"containers": [container(requests={"cpu": "1"})], **spec}
    assert per_pod(whole, overheads=overheads)["cpu"] == cpu


def test_equal_content_has_one_shape_only_where_the_rules_are_equal() -> None:
    spec = {"containers": [container(requests={"cpu": "1"})]}
    assert shape(spec, {"max": {"cpu": "2"}}) is shape(spec, {"max": {"cpu": "2"}})
    assert shape(spec, {"max": {"cpu": "2"}}) is not shape(spec)


# --- who is stopped ---------------------------------------------------------------------------------------------------


def told(spec: Json, *ranges: Json) -> list[str]:
    rejection = shape(spec, *ranges).rejection
    return [] if rejection is None else [one.detail for one in rejection.obstacles]


def test_a_request_above_a_default_limit_names_both() -> None:
    rejection = shape({"containers": [container(requests={"cpu": "2"})]}, {"default": {"cpu": "1"}}).rejection
    assert rejection is not None
    [problem] = rejection.obstacles
    assert problem.detail == (
        "pod set main: container c requests 2 cpu, more than its limit of 1 (the default of LimitRange r0)"
    )
    assert (problem.need, problem.most, problem.code) == (2000, 1000, "Misconfigured")


def test_a_request_above_the_own_limit_is_named() -> None:
    spec = {"containers": [container(requests={"memory": "2Gi"}, limits={"memory": "1024Mi"})]}
    assert told(spec) == ["pod set main: container c requests 2Gi memory, more than its limit of 1Gi"]


def test_every_broken_bound_names_pod_set_container_amount_and_limit_range() -> None:
    spec = {
        "containers": [container(limits={"cpu": "2"}), container("d", requests={"cpu": "10m"}, limits={"cpu": "1"})]
    }
    assert told(spec, {"max": {"cpu": "1"}}, {"min": {"cpu": "100m"}, "maxLimitRequestRatio": {"cpu": "50"}}) == [
        "pod set main: maximum cpu usage per Container is 1, but limit is 2 (container c, LimitRange r0)",
        "pod set main: minimum cpu usage per Container is 100m, but request is 10m (container d, LimitRange r1)",
        "pod set main: cpu max limit to request ratio per Container is 50, but provided ratio is 100.000000 "
        "(container d, LimitRange r1)",
    ]


def test_a_workload_against_the_limits_waits_as_misconfigured_and_lets_others_by() -> None:
    world = World()
    world.queue("main", std=4)
    put(world, limit_range(max={"cpu": "1"}, default={"cpu": "1"}, defaultRequest={"cpu": "1"}))
    submit(world, "wide", container("big", limits={"cpu": "2"}))
    submit(world, "fine", container())
    assert (world.state("wide"), world.state("fine")) == ("pending", "admitted")
    reason, message = world.why("wide")
    assert reason == "Misconfigured"
    assert message == (
        "pod set main: maximum cpu usage per Container is 1, but limit is 2 (container big, LimitRange bounds)"
    )
    report = world.engine.explain("ns/wide")
    assert report is not None and report.place == "inadmissible"
    assert [(one.code, one.resource, one.need, one.most) for one in report.shortages] == [
        ("Misconfigured", "cpu", 2000, 1000)
    ]
    assert "LimitRange" in report.waits_for[0]
    assert ("wide", "Misconfigured") in world.stage.events


def test_in_a_strict_queue_it_blocks_those_behind_it() -> None:
    world = World()
    world.queue("main", std=4, strategy="StrictFIFO")
    bounds = limit_range(max={"cpu": "1"})
    put(world, bounds)
    submit(world, "a-wide", container(limits={"cpu": "2"}))
    submit(world, "b-fine", container(limits={"cpu": "1"}))
    submit(world, "c-wide", container(limits={"cpu": "3"}))
    assert (world.why("a-wide")[0], world.why("b-fine")[0]) == ("Misconfigured", "PendingEvaluation")
    assert "limit is 3" in world.why("c-wide")[1], "nobody has to wait for the turn of a job that can never run"
    remove(world, bounds)
    assert (world.state("a-wide"), world.state("b-fine")) == ("admitted", "admitted")


def test_a_missing_runtime_class_is_waited_for() -> None:
    world = World()
    world.queue("main", std=4)
    submit(world, "boxed", container(requests={"cpu": "1"}), runtimeClassName="kata", count=2)
    assert world.why("boxed") == ("Misconfigured", "pod set main: RuntimeClass kata doesn't exist")
    put(world, runtime_class("kata", cpu="250m"))
    assert (world.state("boxed"), used(world)) == ("admitted", 2500)


# --- changes ----------------------------------------------------------------------------------------------------------


def test_changes_of_a_limit_range_are_followed_while_a_workload_waits() -> None:
    world = World()
    world.queue("main", std=2)
    put(world, limit_range(defaultRequest={"cpu": "3"}))
    submit(world, "w", container())
    assert world.why("w")[0] == "ExceedsMaxQuota"
    assert world.workload("w").status.resource_requests[0].resources == {"cpu": "3"}
    put(world, limit_range(max={"cpu": "100m"}, default={"cpu": "500m"}, defaultRequest={"cpu": "500m"}))
    assert world.why("w")[0] == "Misconfigured"
    assert world.workload("w").status.resource_requests[0].resources == {"cpu": "500m"}
    put(world, limit_range(max={"cpu": "1"}, default={"cpu": "500m"}, defaultRequest={"cpu": "500m"}))
    assert (world.state("w"), used(world)) == ("admitted", 500)


def test_changed_requests_are_told_even_if_the_reason_stays() -> None:
    world = World()
    world.queue("main", std=4)
    submit(world, "holder", container(requests={"cpu": "4"}))
    put(world, limit_range(defaultRequest={"cpu": "3"}))
    submit(world, "w", container())
    put(world, limit_range(defaultRequest={"cpu": "2"}))
    assert world.why("w")[0] == "WaitingForQuota"
    assert world.workload("w").status.resource_requests[0].resources == {"cpu": "2"}


def test_of_two_limit_ranges_the_first_by_name_goes_first_whenever_it_came() -> None:
    world = World()
    world.queue("main", std=4)
    put(world, limit_range("b", defaultRequest={"cpu": "2"}), limit_range("a", defaultRequest={"cpu": "1"}))
    submit(world, "w", container())
    assert used(world) == 1000


def test_a_restart_repeats_no_event_and_keeps_the_reason() -> None:
    world = World()
    world.queue("main", std=2)
    put(world, limit_range(max={"cpu": "1"}))
    submit(world, "w", container(limits={"cpu": "2"}))
    fresh = JobQueueing(world.stage.clock, seeded(0), world.stage.configuration)
    fresh.set_namespace("ns", {})
    for obj in (limit_range(max={"cpu": "1"}), *world.stage.objects(), world.workload("w")):
        fresh.upsert(obj)
    while fresh.cycle():
        pass
    assert [one for one in fresh.take_effects() if isinstance(one, StatusChanged | Event)] == []
    found = fresh.workload("ns/w")
    assert found is not None and found.status == world.workload("w").status


def test_who_has_quota_keeps_it_as_it_is_and_is_judged_anew_after_an_eviction() -> None:
    world = World()
    world.queue("main", std=2)
    submit(world, "w", container(requests={"cpu": "1"}))
    put(world, limit_range(max={"cpu": "500m"}, default={"cpu": "500m"}, defaultRequest={"cpu": "500m"}))
    assert (world.state("w"), used(world)) == ("admitted", 1000)
    world.change("clusterQueue", "main", stopPolicy="HoldAndDrain")
    world.change("clusterQueue", "main", stopPolicy="None")
    assert world.state("w") == "pending" and world.why("w")[0] == "Misconfigured"
    remove(world, limit_range())
    assert (world.state("w"), used(world)) == ("admitted", 1000)


def test_a_limit_range_of_another_namespace_and_another_class_are_no_news() -> None:
    world = World()
    world.queue("main", std=1)
    submit(world, "w", container(requests={"cpu": "2"}))
    before = world.workload("w")
    world.engine.take_effects()
    for obj in (limit_range(namespace="elsewhere", max={"cpu": "1"}), runtime_class("kata", cpu="1")):
        world.engine.upsert(obj)
        assert not world.engine.cycle() and world.engine.take_effects() == []
        world.engine.delete(obj)
        assert not world.engine.cycle() and world.engine.take_effects() == []
    assert world.workload("w") == before


def test_a_limit_range_that_changes_nothing_wakes_no_one() -> None:
    world = World()
    world.queue("main", std=1)
    put(world, limit_range(max={"cpu": "4"}))
    submit(world, "w", container(limits={"cpu": "2"}))
    world.engine.take_effects()
    world.engine.upsert(limit_range(max={"cpu": "4"}))
    assert not world.engine.cycle() and world.engine.take_effects() == []


def test_the_overhead_of_a_class_is_followed_and_so_is_another_class() -> None:
    world = World()
    world.queue("main", std=2)
    put(world, runtime_class("kata", cpu="2"), runtime_class("slim", cpu="100m"))
    submit(world, "w", container(requests={"cpu": "1"}), runtimeClassName="kata")
    assert world.why("w")[0] == "ExceedsMaxQuota"
    submit(world, "w", container(requests={"cpu": "1"}), runtimeClassName="slim")
    assert (world.state("w"), used(world)) == ("admitted", 1100)
    submit(world, "x", container(requests={"cpu": "1"}), runtimeClassName="kata")
    put(world, runtime_class("kata"))
    assert world.why("x")[0] == "WaitingForQuota"
    world.change("clusterQueue", "main", groups=groups(std=3))
    assert (world.state("x"), used(world)) == ("admitted", 2100)


def test_finished_and_deleted_workloads_are_not_followed() -> None:
    """That nobody is followed for ever is among the invariants that are checked after each step."""
    world = World()
    world.queue("main", std=2)
    put(world, runtime_class("kata"))
    for name in ("done", "gone"):
        submit(world, name, container(requests={"cpu": "1"}), runtimeClassName="kata")
    world.finish("done")
    world.engine.delete(world.workload("gone"))
    world.engine.check()
    put(world, limit_range(max={"cpu": "500m"}), runtime_class("kata", cpu="1"))
    assert (world.state("done"), used(world)) == ("finished", 0)
