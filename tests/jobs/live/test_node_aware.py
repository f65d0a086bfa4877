"""Admission that knows the nodes, in a whole cluster: nothing starts that does not fit, and nothing waits in vain."""

from __future__ import annotations

from typing import Any

from tests.jobs.live.world import (
    QueueingWorld,
    by_quota_alone,
    cluster_queue,
    flavor,
    job,
    living,
    local_queue,
    node,
    priority_class,
    queue,
)

REQUIRED = "kueue.x-k8s.io/podset-required-topology"
PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"


def reserved(cluster: QueueingWorld, *names: str) -> list[str]:
    return [name for name in names if cluster.condition(name, "QuotaReserved").startswith("True")]


def why(cluster: QueueingWorld, name: str) -> str:
    conditions = cluster.workload(name)["status"]["conditions"]
    return next(str(one["message"]) for one in conditions if one["type"] == "QuotaReserved")


def nodes_of(cluster: QueueingWorld, name: str) -> list[str]:
    return sorted(str(pod["spec"].get("nodeName")) for pod in cluster.pods(name))


def annotated(objects: list[dict[str, Any]], **annotations: str) -> list[dict[str, Any]]:
    for one in objects:
        if one["kind"] == "ClusterQueue":
            names = {f"queueing.pilotage.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
            one["metadata"].setdefault("annotations", {}).update(names)
    return objects


def in_topology(made: dict[str, Any], annotation: str, key: str) -> dict[str, Any]:
    made["spec"]["template"]["metadata"]["annotations"][annotation] = key
    return made


async def test_a_job_whose_pods_do_not_all_fit_waits_although_there_is_quota() -> None:
    async with living(nodes=[node("a", cpu=4), node("b", cpu=2)]) as cluster:
        cluster.create(*queue(cpu=100), job("wide", cpu=2, parallelism=4))
        await cluster.run(5)
        assert cluster.condition("wide", "QuotaReserved") == "False/WaitingForNodes"
        assert "room for 3 of 4 pods" in why(cluster, "wide") and "2 Insufficient cpu" in why(cluster, "wide")
        assert cluster.is_suspended("wide") and cluster.pods("wide") == []
        cluster.create(node("c", cpu=2))
        await cluster.run(5)
        assert nodes_of(cluster, "wide") == ["a", "a", "b", "c"]


async def test_the_same_room_is_never_given_to_two() -> None:
    """Both are seen at once, and no pod exists when the second is looked at."""
    async with living(nodes=[node("a", cpu=4)]) as cluster:
        cluster.create(*queue(cpu=100), *(job(name, cpu=3) for name in ("one", "two")))
        await cluster.run(5)
        [first] = reserved(cluster, "one", "two")
        [second] = {"one", "two"} - {first}
        assert cluster.condition(second, "QuotaReserved") == "False/WaitingForNodes"
        cluster.delete("Job", first)
        await cluster.run(5)
        assert nodes_of(cluster, second) == ["a"]


async def test_two_queues_without_a_common_cohort_do_not_share_room_either() -> None:
    async with living(nodes=[node("a", cpu=4)]) as cluster:
        cluster.create(flavor("std"), *(cluster_queue(name, {"std": 4}) for name in ("x", "y")))
        cluster.create(local_queue("x", "x"), local_queue("y", "y"))
        cluster.create(job("one", cpu=3, queue="x"), job("two", cpu=3, queue="y"))
        await cluster.run(5)
        assert len(reserved(cluster, "one", "two")) == 1


async def test_pods_of_others_count_and_their_end_is_news() -> None:
    async with living(nodes=[node("a", cpu=4)]) as cluster:
        cluster.create(*queue(cpu=100), job("other", cpu=3, queue=""))
        await cluster.run(5)
        cluster.create(job("queued", cpu=2))
        await cluster.run(5)
        assert cluster.condition("queued", "QuotaReserved") == "False/WaitingForNodes"
        cluster.delete("Job", "other")
        await cluster.run(40)
        assert nodes_of(cluster, "queued") == ["a"]


async def test_what_fits_goes_past_what_does_not() -> None:
    async with living(nodes=[node("a", cpu=4)]) as cluster:
        cluster.create(*queue(cpu=100), job("first", cpu=3))
        await cluster.run(5)
        cluster.create(job("large", cpu=4))
        await cluster.run(5)
        cluster.create(job("small", cpu=1))
        await cluster.run(5)
        assert reserved(cluster, "first", "large", "small") == ["first", "small"]


async def test_in_a_strict_queue_nobody_goes_past_the_first() -> None:
    async with living(nodes=[node("a", cpu=4)]) as cluster:
        cluster.create(*queue(cpu=100, queueingStrategy="StrictFIFO"), job("first", cpu=3, seconds=60))
        await cluster.run(5)
        cluster.create(job("large", cpu=4))
        await cluster.run(5)
        cluster.create(job("small", cpu=1))
        await cluster.run(5)
        assert reserved(cluster, "first", "large", "small") == ["first"]
        await cluster.run(90)
        assert reserved(cluster, "first", "large", "small") == ["first", "large"]


async def test_a_flavor_whose_nodes_are_full_is_passed_over() -> None:
    async with living(nodes=[node("a", cpu=2, pool="one"), node("b", cpu=8, pool="two")]) as cluster:
        cluster.create(flavor("one", pool="one"), flavor("two", pool="two"), local_queue())
        cluster.create(cluster_queue(flavors={"one": 10, "two": 10}), job("train", cpu=4))
        await cluster.run(5)
        assert cluster.flavors("train") == {"cpu": "two"} and nodes_of(cluster, "train") == ["b"]


async def test_a_job_that_may_shrink_gets_as_many_pods_as_fit() -> None:
    async with living(nodes=[node("a", cpu=3)]) as cluster:
        least = {"kueue.x-k8s.io/job-min-parallelism": "2"}
        cluster.create(*queue(cpu=100), job("train", cpu=1, parallelism=5, annotations=least))
        await cluster.run(5)
        assert cluster.job("train")["spec"]["parallelism"] == 3 and nodes_of(cluster, "train") == ["a"] * 3


async def test_a_queue_may_go_by_quota_alone() -> None:
    async with living(nodes=[node("a", cpu=2)]) as cluster:
        cluster.create(*by_quota_alone(*queue(cpu=100)), job("large", cpu=4))
        await cluster.run(5)
        assert reserved(cluster, "large") == ["large"] and nodes_of(cluster, "large") == ["None"]
        cluster.change("ClusterQueue", "cq", {"metadata": {"annotations": None}})
        cluster.create(job("another", cpu=4))
        await cluster.run(5)
        assert cluster.condition("another", "QuotaReserved") == "False/WaitingForNodes"


async def test_what_an_annotation_cannot_mean_is_said_at_the_queue() -> None:
    async with living(nodes=[node("a", cpu=2)]) as cluster:
        cluster.create(*annotated(queue(cpu=100), node_aware_admission="no", nodes_kept_after="soon"))
        await cluster.run(5)
        [active] = cluster.get("ClusterQueue", "cq")["status"]["conditions"]
        assert active["status"] == "True"
        assert 'node-aware-admission is "no"; write "true" or "false"' in active["message"]
        assert 'nodes-kept-after is "soon"; write a duration' in active["message"]


async def test_without_any_node_quota_decides() -> None:
    async with living(nodes=[]) as cluster:
        cluster.create(*queue(cpu=4), job("train", cpu=4))
        await cluster.run(5)
        assert reserved(cluster, "train") == ["train"]


async def test_a_check_that_makes_nodes_is_not_held_back_by_those_that_there_are() -> None:
    async with living(nodes=[node("a", cpu=2)]) as cluster:
        check = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "AdmissionCheck",
            "metadata": {"name": "machines"},
            "spec": {"controllerName": "kueue.x-k8s.io/provisioning-request"},
        }
        rules = {"admissionChecks": [{"name": "machines"}]}
        cluster.create(check, *queue(cpu=100, admissionChecksStrategy=rules))
        cluster.change_status(
            "AdmissionCheck",
            "machines",
            {
                "conditions": [
                    {
                        "type": "Active",
                        "status": "True",
                        "reason": "Active",
                        "message": "",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ]
            },
        )
        await cluster.run(2)
        cluster.create(job("train", cpu=8))
        await cluster.run(5)
        assert reserved(cluster, "train") == ["train"]


async def test_no_one_is_preempted_for_a_job_that_would_not_fit_then_either() -> None:
    async with living(nodes=[node("a", cpu=4), node("b", cpu=4)]) as cluster:
        preemption = {"withinClusterQueue": "LowerPriority"}
        cluster.create(priority_class("high", 100), *queue(cpu=8, preemption=preemption))
        cluster.create(job("low", cpu=4))
        await cluster.run(5)
        cluster.create(job("wide", cpu=5, priority="high"))
        await cluster.run(5)
        assert not cluster.is_suspended("low") and cluster.condition("wide", "QuotaReserved") == "False/WaitingForNodes"
        cluster.create(job("right", cpu=4, parallelism=2, priority="high"))
        await cluster.run(60)
        assert cluster.is_suspended("low") and nodes_of(cluster, "right") == ["a", "b"]
        assert cluster.events("low").count("Stopped") == 1, "it does not come back as long as its pods hold the room"


async def test_a_workload_that_has_waited_long_enough_is_not_passed_any_more() -> None:
    """A stream of small jobs would keep the large one out for ever."""
    async with living(nodes=[node("a", cpu=4)]) as cluster:
        cluster.create(*annotated(queue(cpu=100), nodes_kept_after="60s"))
        cluster.create(*(job(f"first-{number}", cpu=2, seconds=40) for number in range(2)))
        await cluster.run(5)
        cluster.create(job("large", cpu=4))
        for number in range(12):
            cluster.create(job(f"small-{number}", cpu=2, seconds=40))
            await cluster.run(20)
            if reserved(cluster, "large"):
                break
        assert nodes_of(cluster, "large") == ["a"]
        assert number > 2, "others went first while it had not waited for a minute"
        last = next(name for name in (f"small-{at}" for at in range(number, -1, -1)) if not reserved(cluster, name))
        assert cluster.condition(last, "QuotaReserved") == "False/WaitingForNodes"


async def test_those_who_are_kept_back_are_told_for_whom() -> None:
    async with living(nodes=[node("a", cpu=4)]) as cluster:
        cluster.create(*annotated(queue(cpu=100), nodes_kept_after="10s"), job("first", cpu=1))
        await cluster.run(5)
        cluster.create(job("large", cpu=4))
        await cluster.run(20)
        cluster.create(job("small", cpu=1))
        await cluster.run(5)
        assert "no other node is left (1 node is kept for default/job-large" in why(cluster, "small")
        cluster.delete("Job", "large")
        await cluster.run(5)
        assert nodes_of(cluster, "small") == ["a"], "nobody waits for what is gone"


async def test_what_would_never_fit_keeps_nothing_back() -> None:
    async with living(nodes=[node("a", cpu=4)]) as cluster:
        cluster.create(*annotated(queue(cpu=100), nodes_kept_after="10s"), job("huge", cpu=5))
        await cluster.run(20)
        cluster.create(job("small", cpu=1))
        await cluster.run(5)
        assert nodes_of(cluster, "small") == ["a"]


async def test_higher_priorities_are_not_kept_back() -> None:
    async with living(nodes=[node("a", cpu=4)]) as cluster:
        cluster.create(priority_class("high", 100), *annotated(queue(cpu=100), nodes_kept_after="10s"))
        cluster.create(job("first", cpu=1))
        await cluster.run(5)
        cluster.create(job("large", cpu=4))
        await cluster.run(20)
        cluster.create(job("urgent", cpu=1, priority="high"))
        await cluster.run(5)
        assert nodes_of(cluster, "urgent") == ["a"]


# --- pods that come and go -------------------------------------------------------------------------------------------


async def test_the_room_of_a_pod_that_fails_is_kept_for_the_next_one() -> None:
    async with living(nodes=[node("a", cpu=4)]) as cluster:
        cluster.create(*queue(cpu=100), job("train", cpu=2, parallelism=2))
        await cluster.run(5)
        cluster.create(job("waiting", cpu=2))
        await cluster.run(2)
        cluster.delete("Pod", cluster.pods("train")[0]["metadata"]["name"])
        await cluster.run(60)
        assert nodes_of(cluster, "train") == ["a", "a"] and reserved(cluster, "waiting") == []


async def test_another_process_keeps_the_room_of_what_was_admitted_before_it() -> None:
    async with living(nodes=[node("a", cpu=4)]) as cluster:
        cluster.create(*queue(cpu=100), job("train", cpu=3))
        await cluster.run(5)
        async with cluster.restarted():
            cluster.create(job("second", cpu=2))
            await cluster.run(5)
            assert reserved(cluster, "second") == []
            cluster.delete("Job", "train")
            await cluster.run(40)
            assert nodes_of(cluster, "second") == ["a"]


async def test_what_was_kept_on_a_node_that_goes_is_kept_elsewhere() -> None:
    async with living(nodes=[node("a", cpu=4), node("b", cpu=4)]) as cluster:
        cluster.create(*queue(cpu=100), job("train", cpu=3, parallelism=2, completions=4, seconds=30))
        await cluster.run(5)
        assert nodes_of(cluster, "train") == ["a", "b"]
        cluster.delete("Node", "b")
        cluster.create(node("c", cpu=4))
        await cluster.run(2)
        cluster.create(job("second", cpu=3))
        await cluster.run(5)
        assert reserved(cluster, "second") == [], "the second pod of the first job will be there"


# --- topology --------------------------------------------------------------------------------------------------------


def racks(*more: dict[str, Any]) -> list[dict[str, Any]]:
    return [node("a1", rack="a"), node("a2", rack="a"), node("b1", rack="b"), node("b2", rack="b"), *more]


async def test_all_pods_go_where_the_required_topology_has_room_for_all() -> None:
    async with living(nodes=racks()) as cluster:
        cluster.create(*queue(cpu=100), job("here", cpu=8, nodeSelector={"rack": "a"}))
        await cluster.run(5)
        cluster.create(in_topology(job("train", cpu=4, parallelism=4), REQUIRED, "rack"))
        await cluster.run(5)
        assert nodes_of(cluster, "train") == ["b1", "b1", "b2", "b2"]
        [assigned] = cluster.workload("train")["status"]["admission"]["podSetAssignments"]
        assert assigned["topologyAssignment"]["levels"] == ["rack"]
        cluster.create(in_topology(job("another", cpu=4, parallelism=3), REQUIRED, "rack"))
        await cluster.run(5)
        assert "no value of the node label rack has room for all 3 pods, a for 2 of them" in why(cluster, "another")
        cluster.delete("Job", "train")
        await cluster.run(40)
        assert set(nodes_of(cluster, "another")) <= {"b1", "b2"}


async def test_the_smallest_domain_that_is_large_enough_is_taken() -> None:
    async with living(nodes=racks(node("c", cpu=4, rack="c"))) as cluster:
        cluster.create(*queue(cpu=100), in_topology(job("train", cpu=2, parallelism=2), REQUIRED, "rack"))
        await cluster.run(5)
        assert nodes_of(cluster, "train") == ["c", "c"]


async def test_a_preferred_topology_is_left_if_no_domain_has_room() -> None:
    async with living(nodes=racks()) as cluster:
        cluster.create(*queue(cpu=100), in_topology(job("close", cpu=8, parallelism=2), PREFERRED, "rack"))
        await cluster.run(5)
        assert nodes_of(cluster, "close") in (["a1", "a2"], ["b1", "b2"])
        cluster.delete("Job", "close")
        await cluster.run(40)
        cluster.create(in_topology(job("wide", cpu=8, parallelism=3), PREFERRED, "rack"))
        await cluster.run(5)
        assert len(nodes_of(cluster, "wide")) == 3 and "None" not in nodes_of(cluster, "wide")


async def test_a_topology_that_no_node_has_is_named() -> None:
    async with living(nodes=racks()) as cluster:
        cluster.create(*queue(cpu=100), in_topology(job("train", cpu=1), REQUIRED, "block"))
        await cluster.run(5)
        assert "no node has the label block" in why(cluster, "train")


async def test_a_job_that_is_stopped_loses_its_domain() -> None:
    async with living(nodes=racks()) as cluster:
        cluster.create(*queue(cpu=100), in_topology(job("train", cpu=1), REQUIRED, "rack"))
        await cluster.run(5)
        assert cluster.job("train")["spec"]["template"]["spec"]["nodeSelector"]["rack"] in ("a", "b")
        name = cluster.workload("train")["metadata"]["name"]
        cluster.change("Workload", name, {"spec": {"active": False}})
        await cluster.run(40)
        assert "nodeSelector" not in cluster.job("train")["spec"]["template"]["spec"]


# --- pods that no node takes ------------------------------------------------------------------------------------------


async def test_a_pod_that_no_node_takes_ends_its_workload_in_its_own_time() -> None:
    """Pods that start slowly have all the time of waitForPodsReady."""
    async with living(nodes=[node("a", cpu=8)]) as cluster:
        cluster.create(*by_quota_alone(*annotated(queue(cpu=100), unschedulable_timeout="60s")))
        cluster.create(job("large", cpu=9), job("slow", cpu=1, is_ready=False))
        await cluster.run(10)
        ready = next(one for one in cluster.workload("large")["status"]["conditions"] if one["type"] == "PodsReady")
        assert ready["reason"] == "WaitForStart" and "1 pod has no node: 0/1 nodes" in ready["message"]
        assert "Insufficient cpu" in ready["message"]
        await cluster.run(60)
        assert cluster.condition("large", "Evicted") == "True/PodsUnschedulable"
        assert cluster.workload("large")["status"]["requeueState"]["count"] == 1
        assert cluster.condition("slow", "Evicted") == "" and nodes_of(cluster, "slow") == ["a"]
        name = cluster.workload("large")["metadata"]["name"]
        assert "EvictedDueToPodsUnschedulable" in cluster.events(name)


async def test_a_job_may_have_a_time_of_its_own_and_a_node_that_comes_ends_the_wait() -> None:
    async with living(nodes=[node("a", cpu=8)], configuration={"waitForPodsReady": {"enable": False}}) as cluster:
        own = {"queueing.pilotage.dev/unschedulable-timeout": "30s"}
        cluster.create(*by_quota_alone(*queue(cpu=100)), job("patient", cpu=9), job("hasty", cpu=9, annotations=own))
        await cluster.run(20)
        cluster.change("Job", "patient", {"metadata": {"labels": {"x": "y"}}})
        await cluster.run(20)
        assert cluster.condition("hasty", "Evicted") == "True/PodsUnschedulable"
        assert cluster.condition("patient", "Evicted") == ""
        cluster.create(node("b", cpu=9))
        await cluster.run(200)
        assert nodes_of(cluster, "patient") == ["b"]


async def test_a_time_that_is_no_duration_is_said_at_the_job() -> None:
    async with living() as cluster:
        wrong = {"queueing.pilotage.dev/unschedulable-timeout": "soon"}
        cluster.create(*queue(), job("train", annotations=wrong))
        await cluster.run(5)
        assert "ErrWorkloadCompose" in cluster.events("train")
