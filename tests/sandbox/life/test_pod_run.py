"""Pods of several containers: order, exits, deadlines, and changes while they run."""

from __future__ import annotations

from typing import Any

from pilotage.sandbox.life.kubelet import KubeletSettings
from tests.sandbox.living_cluster import LivingCluster, condition, pod

Object = dict[str, Any]
NODE = "node-00001"


def container(name: str, script: str = "sleep infinity", **more: Any) -> Object:
    return {"name": name, "image": "busybox", "command": ["sh", "-c", script], **more}


def state(cluster: LivingCluster, name: str, of: str, field: str = "containerStatuses") -> Object:
    found: Object = next(s for s in cluster.status("Pod", name)[field] if s["name"] == of)
    return found


async def test_init_containers_run_one_after_the_other_before_the_others_start() -> None:
    cluster = LivingCluster()
    init = [container("first", "sleep 10"), container("second", "sleep 10")]
    cluster.create(pod("a", node=NODE, initContainers=init))
    await cluster.run(5)
    found = cluster.get("Pod", "a")
    assert found["status"]["phase"] == "Pending"
    assert condition(found, "Initialized")["message"] == "containers with incomplete status: [first second]"
    assert "running" in state(cluster, "a", "first", "initContainerStatuses")["state"]
    waiting = {"waiting": {"reason": "PodInitializing"}}
    assert state(cluster, "a", "second", "initContainerStatuses")["state"] == waiting
    assert found["status"]["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}
    await cluster.run(10)
    assert "running" in state(cluster, "a", "second", "initContainerStatuses")["state"]
    await cluster.run(10)
    assert cluster.status("Pod", "a")["phase"] == "Running"
    assert condition(cluster.get("Pod", "a"), "Initialized")["status"] == "True"


async def test_init_container_that_fails_ends_a_pod_that_is_never_restarted() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node=NODE, restartPolicy="Never", initContainers=[container("bad", "exit 7")]))
    await cluster.settle()
    found = cluster.get("Pod", "a")
    assert found["status"]["phase"] == "Failed"
    assert found["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 7
    assert found["status"]["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}


async def test_init_container_that_fails_is_restarted_otherwise() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node=NODE, initContainers=[container("bad", "exit 7")]))
    await cluster.run(35)
    assert state(cluster, "a", "bad", "initContainerStatuses")["restartCount"] == 2
    assert cluster.status("Pod", "a")["phase"] == "Pending"


async def test_sidecar_lets_the_next_begin_and_ends_with_the_pod() -> None:
    cluster = LivingCluster()
    init = [container("proxy", restartPolicy="Always"), container("setup", "sleep 2")]
    cluster.create(
        pod("a", node=NODE, restartPolicy="Never", initContainers=init, containers=[container("main", "sleep 10")])
    )
    await cluster.run(6)
    assert "running" in state(cluster, "a", "proxy", "initContainerStatuses")["state"]
    assert cluster.status("Pod", "a")["phase"] == "Running"
    await cluster.settle()
    assert cluster.status("Pod", "a")["phase"] == "Succeeded"
    assert "terminated" in state(cluster, "a", "proxy", "initContainerStatuses")["state"]


async def test_containers_exit_on_their_own_and_the_worst_code_counts() -> None:
    cluster = LivingCluster()
    both = [container("quick", "sleep 1; exit 3"), container("slow", "sleep 20")]
    cluster.create(pod("a", node=NODE, restartPolicy="Never", containers=both))
    await cluster.run(5)
    found = cluster.get("Pod", "a")
    assert found["status"]["phase"] == "Running"
    assert condition(found, "Ready")["message"] == "containers with unready status: [quick]"
    await cluster.settle()
    assert cluster.status("Pod", "a")["phase"] == "Failed"


async def test_pod_that_is_never_restarted_ends_by_itself_after_a_default_time() -> None:
    for settings, phase in ((KubeletSettings(), "Succeeded"), (KubeletSettings(never_run_seconds=None), "Running")):
        cluster = LivingCluster(kubelet=settings)
        cluster.create(pod("a", node=NODE, restartPolicy="Never"))
        await cluster.settle()
        assert cluster.status("Pod", "a")["phase"] == phase


async def test_active_deadline_ends_whatever_runs() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node=NODE, activeDeadlineSeconds=30))
    await cluster.run(29)
    assert cluster.status("Pod", "a")["phase"] == "Running"
    await cluster.run(3)
    status = cluster.status("Pod", "a")
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137


async def test_resize_shows_in_the_status_without_a_restart_unless_the_policy_says_so() -> None:
    cluster = LivingCluster()
    sizes = {"requests": {"cpu": "1", "memory": "1Gi"}}
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    cluster.create(pod("a", node=NODE, containers=[container("c", resources=sizes, resizePolicy=policy)]))
    await cluster.run(5)
    for resource, amount, restarts in (("cpu", "2", 0), ("memory", "2Gi", 1)):
        found = cluster.get("Pod", "a")
        found["spec"]["containers"][0]["resources"]["requests"][resource] = amount
        cluster.api.update("pods", "default", "a", found, "resize")
        await cluster.run(1)
        shown = state(cluster, "a", "c")
        assert shown["resources"]["requests"][resource] == shown["allocatedResources"][resource] == amount
        assert shown["restartCount"] == restarts
        found = cluster.get("Pod", "a")
        assert found["status"]["observedGeneration"] == found["metadata"]["generation"]


async def test_new_image_restarts_the_container() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node=NODE))
    await cluster.run(5)
    found = cluster.get("Pod", "a")
    found["spec"]["containers"][0]["image"] = "new"
    cluster.api.update("pods", "default", "a", found)
    await cluster.run(1)
    shown = state(cluster, "a", "c")
    assert (shown["image"], shown["restartCount"]) == ("new", 1) and "terminated" in shown["lastState"]


async def test_ephemeral_container_runs_beside_the_others_and_is_not_restarted() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node=NODE))
    await cluster.run(5)
    found = cluster.get("Pod", "a")
    found["spec"]["ephemeralContainers"] = [container("debug", "sleep 5; exit 2")]
    cluster.api.update("pods", "default", "a", found, "ephemeralcontainers")
    await cluster.run(1)
    assert "running" in state(cluster, "a", "debug", "ephemeralContainerStatuses")["state"]
    await cluster.settle()
    ended = state(cluster, "a", "debug", "ephemeralContainerStatuses")["state"]["terminated"]
    assert ended["exitCode"] == 2 and cluster.status("Pod", "a")["phase"] == "Running"


async def test_readiness_gate_keeps_the_pod_unready_until_someone_opens_it() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node=NODE, readinessGates=[{"conditionType": "example.com/open"}]))
    await cluster.run(5)
    found = cluster.get("Pod", "a")
    assert condition(found, "ContainersReady")["status"] == "True"
    assert condition(found, "Ready")["reason"] == "ReadinessGatesNotReady"


async def test_pod_with_a_command_goes_on_after_a_restart_of_the_sandbox() -> None:
    first = LivingCluster()
    scripted = {"name": "c", "image": "i", "command": ["sleep"], "args": ["60"]}
    first.create(pod("a", node=NODE, restartPolicy="OnFailure", containers=[scripted]))
    await first.run(30)
    second = LivingCluster(nodes=0, store=first.store)
    await second.clock.advance(30)
    await second.run(40)
    assert second.status("Pod", "a")["phase"] == "Succeeded"
