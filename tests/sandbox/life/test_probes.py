"""What probes find in simulated containers, and what becomes of the pods."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage.sandbox.life.pod_plan import PodPlan
from pilotage.sandbox.life.probes import Probed, probed
from tests.sandbox.living_cluster import LivingCluster, pod

NODE = "node-00001"
HTTP = {"httpGet": {"port": 80}}
FAILS, WORKS = {"exec": {"command": ["/bin/false"]}}, {"exec": {"command": ["sh", "-c", "exit 0"]}}


@pytest.mark.parametrize(
    ("container", "plan", "expected"),
    [
        ({}, PodPlan(), Probed()),
        ({}, PodPlan(unhealthy_after=5.0, startup_after=5.0), Probed()),
        ({}, PodPlan(ready_after=5.0, unready_after=9.0), Probed(0.0, 5.0, 9.0)),
        ({}, PodPlan(is_never_ready=True), Probed(0.0, None)),
        ({"readinessProbe": {**HTTP, "initialDelaySeconds": 30}}, PodPlan(ready_after=5.0), Probed(0.0, 30.0)),
        ({"readinessProbe": FAILS}, PodPlan(), Probed(0.0, None)),
        ({"readinessProbe": WORKS}, PodPlan(), Probed()),
        ({"livenessProbe": HTTP}, PodPlan(), Probed()),
        ({"livenessProbe": HTTP}, PodPlan(unhealthy_after=15.0), Probed(0.0, 0.0, None, 35.0, "liveness")),
        (
            {"livenessProbe": {**FAILS, "initialDelaySeconds": 5, "periodSeconds": 2, "failureThreshold": 1}},
            PodPlan(),
            Probed(0.0, 0.0, None, 5.0, "liveness"),
        ),
        ({"startupProbe": {**HTTP, "failureThreshold": 9}}, PodPlan(startup_after=50.0), Probed(50.0, 50.0)),
        ({"startupProbe": HTTP}, PodPlan(startup_after=50.0), Probed(30.0, None, None, 30.0, "startup")),
        ({"startupProbe": FAILS}, PodPlan(), Probed(30.0, None, None, 30.0, "startup")),
    ],
)
def test_probes(container: dict[str, Any], plan: PodPlan, expected: Probed) -> None:
    assert probed(container, plan) == expected


def container(**probes: Any) -> list[dict[str, Any]]:
    return [{"name": "c", "image": "i", **probes}]


def status(cluster: LivingCluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.status("Pod", "a")["containerStatuses"][0]
    return found


async def test_a_container_that_is_not_alive_is_killed_and_restarted() -> None:
    cluster = LivingCluster()
    probe = {**HTTP, "periodSeconds": 5, "failureThreshold": 2}
    annotations = {"unhealthy-after": "20s"}
    cluster.create(pod("a", node=NODE, annotations=annotations, containers=container(livenessProbe=probe)))
    await cluster.run(24)
    assert (status(cluster)["ready"], status(cluster)["restartCount"]) == (True, 0)
    await cluster.run(3)
    assert status(cluster)["lastState"]["terminated"]["exitCode"] == 137
    assert status(cluster)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    await cluster.run(10)
    assert (status(cluster)["ready"], status(cluster)["restartCount"]) == (True, 1)
    events = {event["reason"]: event["message"] for event in cluster.api.list("events", "default")}
    assert events["Killing"] == "Container c failed liveness probe, will be restarted"
    assert events["Unhealthy"].startswith("Liveness probe failed")


async def test_a_container_that_is_not_alive_ends_a_pod_that_is_never_restarted() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node=NODE, restartPolicy="Never", containers=container(livenessProbe=FAILS)))
    cluster.api.patch(
        "pods",
        "default",
        "a",
        b'{"metadata":{"annotations":{"sandbox.pilotage.dev/run-for":"1h"}}}',
        "application/merge-patch+json",
    )
    await cluster.run(30)
    assert cluster.status("Pod", "a")["phase"] == "Failed"
    assert status(cluster)["state"]["terminated"]["exitCode"] == 137


async def test_a_pod_becomes_ready_and_unready_by_its_probes() -> None:
    cluster = LivingCluster()
    probe = {**HTTP, "initialDelaySeconds": 10}
    annotations = {"unready-after": "20s"}
    cluster.create(pod("a", node=NODE, annotations=annotations, containers=container(readinessProbe=probe)))
    seen = []
    for _ in range(3):
        await cluster.run(8)
        seen.append(status(cluster)["ready"])
    assert seen == [False, True, False] and status(cluster)["restartCount"] == 0


async def test_a_container_has_started_when_its_startup_probe_succeeds() -> None:
    cluster = LivingCluster()
    annotations = {"startup-after": "15s"}
    cluster.create(pod("a", node=NODE, annotations=annotations, containers=container(startupProbe=HTTP)))
    await cluster.run(10)
    assert (status(cluster)["started"], status(cluster)["ready"]) == (False, False)
    await cluster.run(10)
    assert (status(cluster)["started"], status(cluster)["ready"]) == (True, True)
