"""Events of workload queueing, under Kueue's reasons: on workloads, on Jobs and on pods."""

from __future__ import annotations

from typing import Any

from tests.jobs.live.world import (
    KUEUE,
    QueueingWorld,
    cluster_queue,
    flavor,
    job,
    living,
    local_queue,
    priority_class,
    queue,
)

NOW = "1970-01-01T00:00:00Z"


def events(cluster: QueueingWorld, name: str) -> dict[str, tuple[str, str, int]]:
    """Reason -> type, message of the last one, and how many there were."""
    found: dict[str, tuple[str, str, int]] = {}
    for one in sorted(cluster.objects("Event"), key=lambda one: str(one["metadata"]["name"])):
        if one["involvedObject"]["name"] == name:
            count = found[one["reason"]][2] + 1 if one["reason"] in found else 1
            found[one["reason"]] = (one["type"], one["message"], count)
    return found


def of_workload(cluster: QueueingWorld, owner: str) -> dict[str, tuple[str, str, int]]:
    return events(cluster, cluster.workload(owner)["metadata"]["name"])


def check(cluster: QueueingWorld, owner: str, state: str, message: str) -> None:
    name = cluster.workload(owner)["metadata"]["name"]
    told = {"name": "budget", "state": state, "message": message, "lastTransitionTime": NOW}
    cluster.change_status("Workload", name, {"admissionChecks": [told]})


async def checked(cluster: QueueingWorld) -> None:
    spec = {"controllerName": "example.com/budget"}
    cluster.create({"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": {"name": "budget"}, "spec": spec})
    active = {"type": "Active", "status": "True", "reason": "R", "message": "", "lastTransitionTime": NOW}
    cluster.change_status("AdmissionCheck", "budget", {"conditions": [active]})
    cluster.create(*queue(admissionChecksStrategy={"admissionChecks": [{"name": "budget"}]}))


async def test_a_job_that_is_queued_started_and_done() -> None:
    async with living() as cluster:
        cluster.create(flavor("small"), flavor("std"), cluster_queue(flavors={"small": 1, "std": 4}), local_queue())
        cluster.create(job("train", cpu=2, seconds=10))
        await cluster.run(30)
        told = events(cluster, "train")
        assert {name: (kind, count) for name, (kind, _, count) in told.items()}.items() >= {
            "Suspended": ("Normal", 1),
            "CreatedWorkload": ("Normal", 1),
            "Started": ("Normal", 1),
            "FinishedWorkload": ("Normal", 1),
        }.items()
        workload = of_workload(cluster, "train")
        assert workload.keys() == {"QuotaReserved", "Admitted"}
        message = workload["QuotaReserved"][1]
        assert message.startswith(
            "Quota reserved in cq, waited 0s; flavors considered: main: small (insufficient quota"
        )
        assert message.endswith(", std")


async def test_one_that_waits_and_preempts() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=2, preemption={"withinClusterQueue": "LowerPriority"}), priority_class("high", 9))
        cluster.create(job("low", cpu=2))
        await cluster.run(5)
        cluster.create(job("equal", cpu=1), job("huge", cpu=8), job("urgent", cpu=2, priority="high"))
        await cluster.run(10)
        waits, huge = of_workload(cluster, "equal"), of_workload(cluster, "huge")
        assert waits["WaitingForQuota"][0] == "Warning" and "1 more needed" in waits["WaitingForQuota"][1]
        assert huge["ExceedsMaxQuota"][0] == "Warning" and "request 8 > maximum 2" in huge["ExceedsMaxQuota"][1]
        victim, preemptor = of_workload(cluster, "low"), of_workload(cluster, "urgent")
        assert victim["Preempted"][0] == victim["EvictedDueToPreempted"][0] == "Normal"
        assert "InClusterQueue" in victim["Preempted"][1]
        assert preemptor["PreemptedWorkload"][0] == "Normal" and "job-low" in preemptor["PreemptedWorkload"][1]
        assert preemptor["WaitingForPreemptedWorkloads"][0] == "Warning"
        assert events(cluster, "low")["Stopped"][0] == "Normal"


async def test_one_whose_pods_are_never_ready() -> None:
    strategy = {"backoffLimitCount": 1, "backoffBaseSeconds": 1}
    async with living(configuration={"waitForPodsReady": {"timeout": "5s", "requeuingStrategy": strategy}}) as cluster:
        cluster.create(*queue(), job("never", is_ready=False))
        await cluster.run(40)
        told = of_workload(cluster, "never")
        assert told["EvictedDueToPodsReadyTimeout"][::2] == ("Normal", 1)
        assert told["EvictedDueToDeactivatedDueToRequeuingLimitExceeded"][::2] == ("Normal", 1)
        assert events(cluster, "never")["Started"][2] == events(cluster, "never")["Stopped"][2] == 2


async def test_one_that_ran_too_long() -> None:
    limited: dict[str, Any] = job("long")
    limited["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "10"
    async with living() as cluster:
        cluster.create(*queue(), limited)
        await cluster.run(30)
        told = of_workload(cluster, "long")
        assert told["MaximumExecutionTimeExceeded"][0] == "Warning"
        assert told["EvictedDueToDeactivatedDueToMaximumExecutionTimeExceeded"][0] == "Normal"


async def test_what_a_check_says_is_reported_on_the_job_once() -> None:
    async with living() as cluster:
        await checked(cluster)
        cluster.create(job("train"))
        await cluster.run(5)
        check(cluster, "train", "Pending", "asking for two nodes")
        await cluster.run(5)
        cluster.change("Job", "train", {"metadata": {"annotations": {"looked": "at"}}})
        await cluster.run(5)
        assert events(cluster, "train")["UpdatedAdmissionCheck"] == ("Normal", "budget: asking for two nodes", 1)
        check(cluster, "train", "Rejected", "no money")
        await cluster.run(5)
        assert of_workload(cluster, "train")["AdmissionCheckRejected"][0] == "Warning"
        assert "EvictedDueToDeactivatedDueToAdmissionCheck" in of_workload(cluster, "train")


async def test_a_job_that_changes_while_it_waits_and_one_that_is_resized_while_it_runs() -> None:
    async with living() as cluster:
        cluster.create(*queue(cpu=3), job("runs", parallelism=2), job("waits", cpu=3, completions=4))
        await cluster.run(5)
        cluster.change("Job", "waits", {"spec": {"parallelism": 2}})
        cluster.change("Job", "runs", {"spec": {"parallelism": 1}})
        await cluster.run(10)
        assert events(cluster, "waits")["UpdatedWorkload"][0] == "Normal"
        assert events(cluster, "runs")["DeletedWorkload"][0] == "Normal"
