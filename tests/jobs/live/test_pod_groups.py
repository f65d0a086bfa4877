"""Rules for groups of pods, row by row."""

from __future__ import annotations

from pilotage.jobs.adapters import marks
from tests.jobs.live.test_pods import pod, running
from tests.jobs.live.world import Json, QueueingWorld, living, queue


def marked(member: Json, **annotations: str) -> Json:
    member["metadata"]["annotations"] |= annotations
    return member


def names(cluster: QueueingWorld) -> list[str]:
    return sorted(one["metadata"]["name"] for one in cluster.objects("Pod"))


def end(cluster: QueueingWorld, name: str, phase: str) -> None:
    cluster.change_status("Pod", name, {"phase": phase})


async def test_a_pod_too_many_is_deleted_while_the_group_waits_too() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=1), pod("a", group="ring", total=2))
        await cluster.run(2)
        cluster.create(pod("b", group="ring", total=2))
        await cluster.run(2)
        cluster.create(pod("c", group="ring", total=2))
        await cluster.run(5)
        assert names(cluster) == ["a", "b"], "older ones stay"
        assert cluster.workload("ring")["spec"]["podSets"][0]["count"] == 2


async def test_fast_admission_does_not_wait_for_all_members() -> None:
    async with living() as cluster:
        fast = {marks.GROUP_FAST_ADMISSION: "true"}
        cluster.create(*queue(cpu=3), marked(pod("a", group="ring", total=3), **fast))
        await cluster.run(5)
        assert running(cluster) == ["a"]
        assert cluster.workload("ring")["spec"]["podSets"][0]["count"] == 3, "quota is booked for all"
        assert cluster.get("ClusterQueue", "cq")["status"]["flavorsUsage"][0]["resources"][0]["total"] == "3"
        cluster.create(*(marked(pod(name, group="ring", total=3), **fast) for name in "bc"))
        await cluster.run(5)
        assert running(cluster) == ["a", "b", "c"]


async def test_a_failed_member_may_be_replaced() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), *(pod(name, group="ring", total=2) for name in "ab"))
        await cluster.run(5)
        end(cluster, "a", "Failed")
        await cluster.run(3)
        assert cluster.condition("ring", "Finished") == "" and cluster.condition("ring", "PodsReady").startswith(
            "False"
        )
        cluster.create(pod("again", group="ring", total=2))
        await cluster.run(5)
        assert running(cluster) == ["again", "b"]
        assert cluster.condition("ring", "PodsReady") == "True/Recovered"


async def test_a_finished_member_counts_as_ready() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), *(pod(name, group="ring", total=2) for name in "ab"))
        await cluster.run(5)
        end(cluster, "a", "Succeeded")
        await cluster.run(5)
        assert cluster.condition("ring", "PodsReady") == "True/Started" and running(cluster) == ["b"]


async def test_a_group_whose_members_must_not_be_replaced_fails_when_all_have_ended() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), marked(pod("a", group="ring", total=2), **{marks.RETRIABLE_IN_GROUP: "false"}))
        cluster.create(pod("b", group="ring", total=2))
        await cluster.run(5)
        end(cluster, "a", "Failed")
        await cluster.run(3)
        assert cluster.condition("ring", "Finished") == "", "one still runs"
        end(cluster, "b", "Succeeded")
        await cluster.run(3)
        assert cluster.condition("ring", "Finished") == "True/Failed"
        assert cluster.get("ClusterQueue", "cq")["status"]["reservingWorkloads"] == 0


async def test_without_that_mark_a_group_that_failed_waits_for_replacements() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), *(pod(name, group="ring", total=2) for name in "ab"))
        await cluster.run(5)
        for name in "ab":
            end(cluster, name, "Failed")
        await cluster.run(5)
        assert cluster.condition("ring", "Finished") == "" and cluster.condition("ring", "Admitted") == "True/Admitted"


async def test_a_serving_group_never_ends() -> None:
    async with living() as cluster:
        serving = {marks.GROUP_SERVING: "true"}
        cluster.create(*queue(cpu=2), *(marked(pod(name, group="ring", total=2), **serving) for name in "ab"))
        await cluster.run(5)
        for name in "ab":
            end(cluster, name, "Succeeded")
        await cluster.run(5)
        assert cluster.condition("ring", "Finished") == "" and cluster.condition("ring", "Admitted") == "True/Admitted"


async def test_a_preempted_pod_alone_is_gone_with_its_workload() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2), pod("a", cpu=2))
        await cluster.run(5)
        name = cluster.workload("a")["metadata"]["name"]
        cluster.change("ClusterQueue", "cq", {"spec": {"stopPolicy": "HoldAndDrain"}})
        await cluster.run(10)
        assert names(cluster) == [] and cluster.objects("Workload") == []
        assert "EvictedDueToClusterQueueStopped" in cluster.events(name) and "Stopped" in cluster.events("a")


async def test_other_gates_are_left_alone() -> None:
    async with living() as cluster:
        two = [{"name": marks.GATE}, {"name": "example.com/licence"}]
        cluster.create(*queue(cpu=2), pod("a", cpu=2, schedulingGates=two))
        await cluster.run(5)
        assert cluster.get("Pod", "a")["spec"]["schedulingGates"] == [{"name": "example.com/licence"}]
        assert cluster.condition("a", "Admitted") == "True/Admitted" and running(cluster) == []
