"""Builders give real model objects, fill in what was not said, and never change under a test's feet."""

from __future__ import annotations

from pilotage.cluster.node_resources import node_allocatable
from pilotage.model import pod_requests
from pilotage.model.node import Taint
from pilotage.testing import node, pod


def test_a_plain_node_has_room_and_its_hostname() -> None:
    built = node("a").build()
    assert built.name == "a" and built.uid == "uid-a"
    assert node_allocatable(built) == {"cpu": 4000, "memory": 16 * 2**30, "pods": 110}
    assert built.labels == {"kubernetes.io/hostname": "a"}
    assert built.spec.taints == () and not built.spec.unschedulable


def test_a_node_says_what_it_was_told() -> None:
    built = (
        node("a").cpu("2").memory("1Gi").pods(3).allocatable("example.com/gpu", 8).without("memory")
        .zone("z1").region("r1").label("disk", "ssd").annotation("note", "x")
        .taint("gpu", "NoSchedule", "yes").unschedulable().condition("Ready", "True").version(7).uid("other")
        .build()
    )  # fmt: skip
    assert node_allocatable(built) == {"cpu": 2000, "pods": 3, "example.com/gpu": 8}
    assert built.labels["topology.kubernetes.io/zone"] == "z1"
    assert built.labels["topology.kubernetes.io/region"] == "r1"
    assert built.labels["disk"] == "ssd" and built.annotations == {"note": "x"}
    assert built.spec.taints == (Taint("gpu", "yes", "NoSchedule"),)
    assert built.spec.unschedulable and built.status.conditions[0].type == "Ready"
    assert (built.resource_version, built.uid) == ("7", "other")


def test_a_plain_pod_is_pending_and_requests_nothing() -> None:
    built = pod("p").build()
    assert (built.key, built.uid, built.node_name, built.priority) == ("default/p", "uid-default-p", "", 0)
    assert pod_requests(built.spec) == {}
    assert built.spec.scheduler_name == "default-scheduler"


def test_a_pod_says_what_it_was_told() -> None:
    built = (
        pod("p").namespace("team").label("app", "web").priority(5).node("n").scheduler("mine").nominated("m")
        .terminating().generation(3).gate("a").gate("b").node_selector(disk="ssd").phase("Running")
        .build()
    )  # fmt: skip
    assert (built.key, built.uid) == ("team/p", "uid-team-p")
    assert (built.labels, built.priority, built.node_name) == ({"app": "web"}, 5, "n")
    assert (built.spec.scheduler_name, built.status.nominated_node_name) == ("mine", "m")
    assert built.is_terminating and built.generation == 3 and built.status.phase == "Running"
    assert [gate.name for gate in built.spec.scheduling_gates] == ["a", "b"]
    assert built.spec.node_selector == {"disk": "ssd"}


def test_requests_add_up_over_containers_sidecars_and_overhead() -> None:
    built = (
        pod("p").requests(cpu="1").requests({"example.com/gpu": 2}).container("b", cpu="500m")
        .init_container("big", cpu="10m").init_container("mesh", sidecar=True, cpu="250m").overhead(cpu="50m")
        .build()
    )  # fmt: skip
    assert pod_requests(built.spec) == {"cpu": 1800, "example.com/gpu": 2}


def test_tolerations_are_by_value_or_by_existence() -> None:
    by_value, by_key, of_all = (
        pod("p").tolerate("k", "NoExecute", "v").tolerate("k").tolerate().build().spec.tolerations
    )
    assert (by_value.key, by_value.operator, by_value.value, by_value.effect) == ("k", "Equal", "v", "NoExecute")
    assert (by_key.key, by_key.operator, by_key.effect) == ("k", "Exists", "")
    assert (of_all.key, of_all.operator) == ("", "Exists")


def test_node_affinity_requirements_are_joined_and_preferences_listed() -> None:
    built = pod("p").node_affinity_in("a", ["1", "2"]).node_affinity_in("b", ["3"]).prefer("c", ["4"], 7).build()
    affinity = built.spec.affinity.node_affinity
    (term,) = affinity.required.node_selector_terms
    assert [(r.key, r.operator, r.values) for r in term.match_expressions] == [
        ("a", "In", ("1", "2")),
        ("b", "In", ("3",)),
    ]
    (preferred,) = affinity.preferred
    assert preferred.weight == 7 and preferred.preference.match_expressions[0].values == ("4",)


def test_a_base_can_be_shared_because_builders_never_change() -> None:
    base = pod("p").label("app", "web")
    gated = base.gate("g").label("tier", "x")
    assert base.json() == pod("p").label("app", "web").json()
    assert gated.ungated().build().spec is base.build().spec
    base.json()["metadata"]["name"] = "changed"
    assert base.build().name == "p"


def test_json_is_what_a_user_would_send() -> None:
    sent = pod("p").json()
    assert (sent["apiVersion"], sent["kind"]) == ("v1", "Pod")
    assert "uid" not in sent["metadata"] and "resourceVersion" not in sent["metadata"] and "status" not in sent
