"""Jobs with `spec.scheduling` make their Workload and their PodGroup, and their pods name it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pilotage.sandbox.errors import ApiError
from tests.sandbox.living_cluster import LivingCluster, Object, job, pod_group

GANG: Object = {"schedulingPolicy": {"gang": {}}}
GROUP_TEMPLATE = "scheduling.k8s.io/group-template-name"


def gang(name: str = "train", parallelism: int = 3, scheduling: Object = GANG, **spec: Any) -> Object:
    return job(name, completions=parallelism, parallelism=parallelism, scheduling=scheduling, **spec)


def groups_of_pods(cluster: LivingCluster) -> list[str]:
    return [(pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "") for pod in cluster.pods()]


def told(cluster: LivingCluster, name: str = "train") -> set[tuple[str, str]]:
    events = cluster.api.list("events", "default")
    return {(e["type"], e["reason"]) for e in events if e["involvedObject"]["name"] == name}


async def test_workload_and_group_are_made_before_the_first_pod() -> None:
    cluster = LivingCluster()
    made = cluster.create(gang())
    await cluster.run(3)
    (workload,), (group,) = cluster.all("Workload"), cluster.all("PodGroup")
    name = workload["metadata"]["name"]
    assert re.fullmatch("train-[a-z0-9]+", name)
    assert re.fullmatch(f"{name}-train-pgt-0-[a-z0-9]+", group["metadata"]["name"])
    assert workload["spec"] == {
        "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "train"},
        "podGroupTemplates": [
            {
                "name": "train-pgt-0",
                "schedulingPolicy": {"gang": {"minCount": 3}},
                "disruptionMode": {"single": {}},
            }
        ],
    }
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    assert group["spec"]["workloadRef"] == {"workloadName": name, "templateName": "train-pgt-0"}
    assert [(o["kind"], o.get("controller", False)) for o in group["metadata"]["ownerReferences"]] == [
        ("Job", True),
        ("Workload", False),
    ]
    (owner,) = workload["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (made["metadata"]["uid"], True)
    assert groups_of_pods(cluster) == [group["metadata"]["name"]] * 3
    assert told(cluster) == {("Normal", "WorkloadCreated"), ("Normal", "PodGroupCreated")}


async def test_what_the_job_declares_reaches_its_group() -> None:
    cluster = LivingCluster()
    cluster.api.create("priorityclasses.scheduling.k8s.io", "", {"metadata": {"name": "high"}, "value": 7})
    scheduling = {
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "schedulingConstraints": {"topology": [{"key": "zone"}]},
        "disruptionMode": {"all": {}},
        "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
    }
    wanted = gang(scheduling=scheduling)
    wanted["spec"]["template"]["spec"]["priorityClassName"] = "high"
    cluster.create(wanted)
    await cluster.run(3)
    spec = cluster.all("PodGroup")[0]["spec"]
    assert {field: spec[field] for field in scheduling} == scheduling
    assert (spec["priorityClassName"], spec["priority"]) == ("high", 7)


@pytest.mark.parametrize("scheduling", [{}, {"schedulingPolicy": {"basic": {}}}], ids=["unsaid", "basic"])
async def test_without_a_gang_the_group_is_basic(scheduling: Object) -> None:
    cluster = LivingCluster()
    cluster.create(gang(scheduling=scheduling))
    await cluster.run(3)
    assert cluster.all("PodGroup")[0]["spec"]["schedulingPolicy"] == {"basic": {}}


async def test_a_job_that_says_nothing_makes_no_group() -> None:
    cluster = LivingCluster()
    cluster.create(job("plain"))
    await cluster.run(3)
    assert groups_of_pods(cluster) == [""] and not cluster.all("PodGroup") and not cluster.all("Workload")


async def test_a_changed_count_is_passed_on() -> None:
    cluster = LivingCluster()
    cluster.create(gang(parallelism=4))
    await cluster.run(3)
    cluster.edit("Job", "train", scheduling={"schedulingPolicy": {"gang": {"minCount": 2}}})
    await cluster.run(1)
    assert cluster.all("PodGroup")[0]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
    template = cluster.all("Workload")[0]["spec"]["podGroupTemplates"][0]
    assert template["schedulingPolicy"] == {"gang": {"minCount": 2}}


async def test_an_unsaid_count_follows_the_parallelism() -> None:
    cluster = LivingCluster()
    cluster.create(gang(parallelism=4))
    await cluster.run(3)
    cluster.edit("Job", "train", parallelism=2)
    await cluster.run(1)
    assert cluster.all("PodGroup")[0]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}


async def test_everything_goes_with_the_job() -> None:
    for policy in ("Background", "Foreground"):
        cluster = LivingCluster()
        cluster.create(gang())
        await cluster.run(3)
        cluster.delete("Job", "train", propagationPolicy=policy)
        await cluster.settle()
        for kind in ("Job", "Pod", "PodGroup", "Workload"):
            assert cluster.all(kind) == [], (policy, kind)


async def test_a_finished_job_keeps_its_group_until_it_expires() -> None:
    cluster = LivingCluster()
    cluster.create(gang(ttlSecondsAfterFinished=100))
    await cluster.run(60)
    assert cluster.status("Job", "train")["succeeded"] == 3 and len(cluster.all("PodGroup")) == 1
    await cluster.settle()
    assert [cluster.all(kind) for kind in ("Job", "PodGroup", "Workload")] == [[], [], []]


async def test_a_suspended_job_has_its_group_from_the_beginning() -> None:
    cluster = LivingCluster()
    cluster.create(gang(suspend=True))
    await cluster.run(3)
    (group,) = cluster.names("PodGroup")
    assert cluster.pods() == []
    cluster.edit("Job", "train", suspend=False)
    await cluster.run(3)
    assert groups_of_pods(cluster) == [group] * 3


async def test_pods_with_a_group_of_their_own_keep_it() -> None:
    cluster = LivingCluster()
    cluster.create(pod_group("mine", 3))
    wanted = gang()
    wanted["spec"]["template"]["spec"]["schedulingGroup"] = {"podGroupName": "mine"}
    cluster.create(wanted)
    await cluster.run(3)
    assert groups_of_pods(cluster) == ["mine"] * 3 and cluster.names("PodGroup") == ["mine"]
    assert told(cluster) == {("Warning", "SchedulingIgnored")}


def owned_by_set(wanted: Object, cluster: LivingCluster, template: str = "") -> Object:
    owner = cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "set"}})["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "set", "uid": owner["uid"], "controller": True}
    wanted["metadata"] |= {"ownerReferences": [reference]}
    if template:
        wanted["metadata"]["annotations"] = {GROUP_TEMPLATE: template}
    return wanted


async def test_who_controls_the_job_decides() -> None:
    cluster = LivingCluster()
    cluster.create(owned_by_set(gang(), cluster))
    await cluster.run(3)
    assert groups_of_pods(cluster) == [""] * 3 and not cluster.all("PodGroup")
    assert told(cluster) == {("Warning", "SchedulingIgnored")}


async def test_a_job_makes_the_group_of_a_template_of_its_controller() -> None:
    cluster = LivingCluster()
    templates = [
        {"name": "leader", "schedulingPolicy": {"basic": {}}},
        {"name": "workers", "schedulingPolicy": {"gang": {"minCount": 2}}},
    ]
    spec = {"controllerRef": {"kind": "ConfigMap", "name": "set"}, "podGroupTemplates": templates}
    cluster.create(
        {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "metadata": {"name": "set"}, "spec": spec}
    )
    wanted = gang()
    del wanted["spec"]["scheduling"]
    cluster.create(owned_by_set(wanted, cluster, "workers"))
    await cluster.run(3)
    (group,) = cluster.all("PodGroup")
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
    assert group["spec"]["workloadRef"] == {"workloadName": "set", "templateName": "workers"}
    assert [owner["kind"] for owner in group["metadata"]["ownerReferences"]] == ["Job"]
    assert groups_of_pods(cluster) == [group["metadata"]["name"]] * 3
    assert cluster.names("Workload") == ["set"]


async def test_a_template_that_is_not_there_is_reported() -> None:
    cluster = LivingCluster()
    cluster.create(owned_by_set(gang(), cluster, "workers"))
    await cluster.run(3)
    assert groups_of_pods(cluster) == [""] * 3
    assert ("Warning", "SchedulingIgnored") in told(cluster)


async def test_no_pod_starts_before_the_group_and_a_second_try_makes_no_second_workload() -> None:
    cluster = LivingCluster()
    wanted = gang()
    wanted["spec"]["template"]["spec"]["priorityClassName"] = "later"
    cluster.create(wanted)
    await cluster.run(30)
    (workload,) = cluster.names("Workload")
    assert cluster.pods() == [] and ("Warning", "FailedPodGroupCreate") in told(cluster)
    cluster.api.create("priorityclasses.scheduling.k8s.io", "", {"metadata": {"name": "later"}, "value": 7})
    await cluster.run(65)
    assert cluster.names("Workload") == [workload]
    assert groups_of_pods(cluster) == cluster.names("PodGroup") * 3


@pytest.mark.parametrize("name", ["j" * 63, "with.dots", "ends-with." + "x" * 46 + ".y"])
async def test_every_name_of_a_job_gives_names(name: str) -> None:
    """Names of templates are shorter than those of Jobs, and have no dots."""
    cluster = LivingCluster()
    cluster.create(gang(name))
    await cluster.run(3)
    (group,) = cluster.names("PodGroup")
    assert groups_of_pods(cluster) == [group] * 3


REFUSED: dict[str, tuple[Object, str]] = {
    "both": (
        {"schedulingPolicy": {"basic": {}, "gang": {}}},
        'schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of: `basic`, `gang`',
    ),
    "none": ({"schedulingPolicy": {}}, 'schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`'),
    "too-many": (
        {"schedulingPolicy": {"gang": {"minCount": 4}}},
        "schedulingPolicy.gang.minCount: Invalid value: 4: must not be greater than parallelism (3)",
    ),
    "zero": (
        {"schedulingPolicy": {"gang": {"minCount": 0}}},
        "schedulingPolicy.gang.minCount: Invalid value: 0: must be greater than or equal to 1",
    ),
    "topology": (
        {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
        "schedulingConstraints.topology: Too many: 2: must have at most 1 item",
    ),
    "claim": (
        {"resourceClaims": [{"name": "a"}]},
        'resourceClaims[0]: Invalid value: "": must specify one of: `resourceClaimName`, `resourceClaimTemplateName`',
    ),
    "mode": ({"disruptionMode": {}}, 'disruptionMode: Invalid value: "": must specify one of: `single`, `all`'),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_scheduling_is_rejected(name: str) -> None:
    scheduling, problem = REFUSED[name]
    with pytest.raises(ApiError) as refused:
        LivingCluster().create(gang(scheduling=scheduling))
    assert f"spec.scheduling.{problem}" in str(refused.value)


@pytest.mark.parametrize(
    ("scheduling", "problem"),
    [
        ({"schedulingPolicy": {"basic": {}}}, "schedulingPolicy: Invalid value: null: the basic/gang policy variant"),
        ({**GANG, "disruptionMode": {"all": {}}}, "disruptionMode: Invalid value: null: field is immutable"),
    ],
)
def test_scheduling_cannot_change_but_for_the_count(scheduling: Object, problem: str) -> None:
    cluster = LivingCluster()
    cluster.create(gang())
    with pytest.raises(ApiError) as refused:
        cluster.edit("Job", "train", scheduling=scheduling)
    assert f"spec.scheduling.{problem}" in str(refused.value)
