"""What has no effect here is said in a Warning Event on the object, once."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.jobs.adapters import marks
from tests.jobs.live.test_creation import pod
from tests.jobs.live.world import KUEUE, QueueingWorld, job, living, queue

Json = dict[str, Any]


def told(cluster: QueueingWorld, name: str, reason: str = "NotSupported") -> list[str]:
    found = [one for one in cluster.objects("Event") if one["involvedObject"]["name"] == name]
    return [one["message"] for one in found if one["reason"] == reason and one["type"] == "Warning"]


async def test_marks_of_kueue_that_are_not_known_are_named_once() -> None:
    async with living() as cluster:
        made = job("j", annotations={"kueue.x-k8s.io/queue-nmae": "x"})
        made["spec"]["template"]["metadata"]["annotations"]["kueue.x-k8s.io/podset-slice-size"] = "2"
        cluster.create(*queue(cpu=4), made, job("plain"))
        await cluster.run(60)
        [text] = told(cluster, "j")
        assert "queue-nmae" in text and "podset-slice-size" in text
        assert told(cluster, "plain") == []


async def test_a_job_that_is_sent_elsewhere_is_neither_queued_nor_started() -> None:
    async with living(admits=True) as cluster:
        made = job("j")
        made["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"
        cluster.create(*queue(cpu=4), made)
        await cluster.run(20)
        [text] = told(cluster, "j")
        assert "managedBy" in text
        assert cluster.objects("Workload") == [] and not cluster.pods("j")


@pytest.mark.parametrize("controller", ["kueue.x-k8s.io/provisioning-request", "kueue.x-k8s.io/multikueue"])
async def test_a_check_that_nobody_answers_says_so(controller: str) -> None:
    async with living() as cluster:
        spec = {"controllerName": controller}
        cluster.create({"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": {"name": "c"}, "spec": spec})
        await cluster.run(10)
        [text] = told(cluster, "c")
        assert controller in text


async def test_a_pod_that_was_not_gated_is_named_and_a_gated_one_is_not() -> None:
    async with living() as cluster:
        gated = pod("gated")
        gated["spec"]["schedulingGates"] = [{"name": marks.GATE}]
        cluster.create(*queue(cpu=4), pod("escaped"), gated, job("j"))
        await cluster.run(20)
        assert len(told(cluster, "escaped", "NotQueued")) == 1
        assert told(cluster, "gated", "NotQueued") == []
        names = [one["metadata"]["name"] for one in cluster.pods("j")]
        assert names and not any(told(cluster, name, "NotQueued") for name in names)
