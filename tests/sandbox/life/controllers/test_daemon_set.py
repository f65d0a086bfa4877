"""DaemonSets: a pod on every node that fits, and updates node by node."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.life.controllers.daemon_set_steps import DaemonView, Fit, next_daemon_steps
from pilotage.sandbox.life.facts import PodFacts
from pilotage.sandbox.storage.store import Key
from tests.sandbox.living_cluster import LivingCluster, daemon_set, template

GOOD, STAYS, BAD = Fit(True, True), Fit(False, True), Fit(False, False)


def a_pod(name: str, phase: str = "Running", **facts: Any) -> PodFacts:
    return PodFacts(Key("pods", "default", name), name, phase=phase, is_ready=phase == "Running", **facts)


def view(fit: Fit, *pods: PodFacts, **more: Any) -> DaemonView:
    return DaemonView(
        {"n1": fit},
        {"n1": pods} if pods else {},
        is_new=lambda pod: pod.key.name.startswith("new"),
        is_available=lambda pod: pod.is_ready,
        **more,
    )


@pytest.mark.parametrize(
    ("state", "created", "deleted"),
    [
        (view(GOOD), ["n1"], []),
        (view(STAYS), [], []),
        (view(GOOD, a_pod("new")), [], []),
        (view(STAYS, a_pod("new")), [], []),
        (view(BAD, a_pod("new")), [], ["new"]),
        (view(GOOD, a_pod("new", "Failed")), [], ["new"]),
        (view(GOOD, a_pod("new"), a_pod("new2")), [], ["new2"]),
        (view(GOOD, a_pod("old")), [], ["old"]),
        (view(GOOD, a_pod("old"), is_rolling=False), [], []),
        (view(GOOD, a_pod("old"), max_unavailable=0), [], []),
        (view(GOOD, a_pod("old", "Pending"), max_unavailable=0), [], ["old"]),
        (view(GOOD, a_pod("old"), max_surge=1), ["n1"], []),
        (view(GOOD, a_pod("old"), a_pod("new", "Pending"), max_surge=1), [], []),
        (view(GOOD, a_pod("old"), a_pod("new"), max_surge=1), [], ["old"]),
        (view(GOOD, a_pod("old", is_deleting=True)), [], []),
    ],
)
def test_next_daemon_steps(state: DaemonView, created: list[str], deleted: list[str]) -> None:
    steps = next_daemon_steps(state)
    assert (steps.create, [pod.key.name for pod in steps.delete]) == (created, deleted)


async def test_each_node_has_a_pod_and_counts_say_so() -> None:
    cluster = LivingCluster(nodes=3)
    cluster.create(daemon_set("agent"))
    await cluster.settle()
    status = cluster.status("DaemonSet", "agent")
    assert {status[n] for n in ("desiredNumberScheduled", "numberReady", "updatedNumberScheduled")} == {3}
    targets = [p["spec"]["affinity"]["nodeAffinity"] for p in cluster.pods()]
    required = [t["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0] for t in targets]
    assert sorted(term["matchFields"][0]["values"][0] for term in required) == sorted(cluster.names("Node"))


async def test_nodes_that_are_labelled_and_tainted_later_count() -> None:
    spec = template("agent", nodeSelector={"disk": "ssd"})
    cluster = LivingCluster(nodes=2)
    cluster.create(daemon_set("agent", template=spec))
    await cluster.settle()
    assert cluster.pods() == []
    name = cluster.names("Node")[0]
    node = cluster.get("Node", name)
    node["metadata"]["labels"]["disk"] = "ssd"
    cluster.api.update("nodes", "", name, node)
    await cluster.settle()
    assert len(cluster.pods()) == 1
    node = cluster.get("Node", name)
    node["spec"]["taints"] = [{"key": "broken", "effect": "NoExecute"}]
    cluster.api.update("nodes", "", name, node)
    await cluster.settle()
    assert cluster.pods() == []


async def test_failed_pod_is_replaced() -> None:
    cluster = LivingCluster(nodes=1)
    cluster.create(daemon_set("agent"))
    await cluster.settle()
    (pod,) = cluster.pods()
    pod["status"]["phase"] = "Failed"
    cluster.api.update("pods", "default", pod["metadata"]["name"], pod, "status")
    await cluster.settle()
    assert [p["status"]["phase"] for p in cluster.pods()] == ["Running"]


async def test_update_reaches_every_node_and_rollback_reuses_the_revision() -> None:
    cluster = LivingCluster(nodes=3)
    cluster.create(daemon_set("agent"))
    await cluster.settle()
    (first,) = cluster.names("ControllerRevision")
    cluster.edit("DaemonSet", "agent", template=template("agent", image="new"))
    await cluster.settle()
    assert {p["spec"]["containers"][0]["image"] for p in cluster.pods()} == {"new"}
    cluster.edit("DaemonSet", "agent", template=template("agent"))
    await cluster.settle()
    digests = {p["metadata"]["labels"]["controller-revision-hash"] for p in cluster.pods()}
    assert {f"agent-{digest}" for digest in digests} == {first}
    assert len(cluster.names("ControllerRevision")) == 2
