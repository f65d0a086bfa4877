"""Pods and groups are asked about by the names that people use; quota, gang and nodes are told in this order."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.cycle.report import scheduler_report
from pilotage.explain.engine import put
from pilotage.explain.group_text import render_group
from pilotage.explain.render import render
from pilotage.explain.report import GroupReport, JobQuota, Report
from pilotage.explain.subject import UnknownSubject
from pilotage.model import KINDS
from pilotage.queue.report import Selection
from tests.cycle.group_stage import group_stage, members
from tests.explain.group_world import GroupWorld

NODE = {"node": {"name": "n1", "cpu": "2"}}
GROUP = {"podGroup": {"name": "train", "min": 3}}


def of_job(pods: Any, job: str) -> list[dict[str, Any]]:
    """The pods as a job's controller would make them."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"uid-{job}", "controller": True}
    made = []
    for pod in pods:
        fields = pod["pod"]
        spec = {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": fields["cpu"]}}}],
            "schedulingGroup": {"podGroupName": fields["group"]},
        }
        metadata = {"name": fields["name"], "namespace": "default", "ownerReferences": [owner]}
        made.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return made


def test_a_member_is_placed_together_with_its_group() -> None:
    world = GroupWorld(NODE, GROUP, *members("train", 3))
    report = world.ask("train-1")
    assert isinstance(report, Report) and report.pod_group == world.group("train")
    assert not report.fits and report.answer.startswith(
        "default/train-1 is placed together with its group: pod group default/train does not fit: 2 of 3 pods"
    )
    text = render(report)
    assert "Would fit if:" in text and "its minCount were 2 instead of 3" in text


def test_a_member_that_runs_is_on_its_node() -> None:
    running = {"pod": {"name": "train-9", "group": "train", "cpu": "1", "node": "n1"}}
    report = GroupWorld(NODE, GROUP, running).ask("train-9")
    assert isinstance(report, Report) and report.answer == "default/train-9 is on node n1."
    assert report.pod_group is not None and report.pod_group.run == 1


@pytest.mark.parametrize("subject", ["podgroup/train", "podgroups/train", "pg/train", "PodGroup/train"])
def test_a_group_has_the_names_that_kubectl_knows(subject: str) -> None:
    assert isinstance(GroupWorld(NODE, GROUP, *members("train", 3)).ask(subject), GroupReport)


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("podgroup/trian", 'podgroup "trian" not found in namespace "default" (did you mean "train"?)'),
        ("podgroup/zzz", 'podgroup "zzz" not found in namespace "default"; there are default/train'),
        ("podgruop/train", "is no kind that has pods"),
        ("train-l", '(did you mean "train-1"?)'),
    ],
)
def test_what_is_not_there_is_reported_with_what_is(subject: str, text: str) -> None:
    with pytest.raises(UnknownSubject) as raised:
        GroupWorld(NODE, GROUP, *members("train", 2)).ask(subject)
    assert text in str(raised.value)


def test_without_the_gate_there_are_no_groups() -> None:
    off = {"GenericWorkload": False, "TopologyAwareWorkloadScheduling": False, "PodGroupPreemptionPolicy": False}
    world = GroupWorld(NODE, *members("train", 3)[:1], gates=off)
    with pytest.raises(UnknownSubject, match="the feature gate GenericWorkload is off"):
        world.ask("podgroup/other")
    report = world.ask("train-0")
    assert isinstance(report, Report) and report.pod_group is None and report.fits


def test_quota_comes_before_the_gang_and_the_gang_before_nodes() -> None:
    world = GroupWorld(NODE, GROUP, *of_job(members("train", 3), "learn"))
    waiting = JobQuota("default/job-learn", "pending", "team", "WaitingForQuota", "2 more cpu needed", 0)
    for subject in ("podgroup/train", "job/learn", "train-0"):
        report = world.ask(subject, quota_of={"learn": waiting}.get)
        assert not report.fits and report.quota == waiting
        quota, gang, nodes = (report.answer.index(part) for part in ("WaitingForQuota", "does not fit", "Insufficient"))
        assert quota < gang < nodes, report.answer
    admitted = JobQuota("default/job-learn", "admitted", "team")
    report = world.ask("job/learn", quota_of={"learn": admitted}.get)
    assert isinstance(report, Report) and report.answer.startswith("default/train-0 is placed together with its group")
    assert "workload default/job-learn is admitted in team" in render(report)


def test_other_pods_are_not_asked_for_quota() -> None:
    report = GroupWorld(NODE, GROUP, *members("train", 3)).ask("podgroup/train", quota_of=pytest.fail)
    assert report.quota is None


async def test_the_queue_of_a_running_scheduler_says_since_when_and_how_often() -> None:
    async with group_stage() as stage:
        await stage.put(NODE, GROUP, *members("train", 3))
        queue = scheduler_report(stage.scheduler, Selection())
    world = GroupWorld(NODE, GROUP, *members("train", 3))
    for subject in ("podgroup/train", "train-2"):
        report = world.ask(subject, queue=queue)
        group = report if isinstance(report, GroupReport) else report.pod_group
        assert group is not None and group.queue is not None
        assert (group.queue.place, group.queue.attempts) == ("backoff", 1)
        assert group.queue.backoff_seconds > 0
        assert "backoff left: " in render_group(group)


def test_a_report_survives_the_way_over_http() -> None:
    world = GroupWorld(NODE, GROUP, *members("train", 3))
    for subject, kind in (("podgroup/train", GroupReport), ("train-0", Report)):
        report = world.ask(subject)
        assert msgspec.json.decode(msgspec.json.encode(report), type=kind) == report


def test_of_a_job_without_pods_the_next_one_is_explained() -> None:
    template = {"spec": {"runtimeClassName": "slow", "containers": [{"name": "c"}]}}
    metadata = {"name": "later", "namespace": "default"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    world = GroupWorld(NODE)
    put(world.cluster, "Job", KINDS["jobs"].decode(msgspec.json.encode(job)))
    report = world.ask("job/later")
    assert report.fits and report.answer.startswith("default/later-(next) fits on 1 of 1 nodes")
