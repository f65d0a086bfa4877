"""Pods on simulated nodes live as their annotations say, with one status write per transition."""

from __future__ import annotations

import pytest

from pilotage.sandbox.life.kubelet import KubeletSettings
from pilotage.sandbox.life.node_templates import make_nodes
from tests.sandbox.living_cluster import LivingCluster, condition, pod


def first_container(cluster: LivingCluster, name: str) -> dict[str, object]:
    status: dict[str, object] = cluster.status("Pod", name)["containerStatuses"][0]
    return status


async def test_bound_pod_runs_and_is_ready_after_the_start_delay() -> None:
    cluster = LivingCluster(binds=False)
    cluster.create(pod("a"))
    await cluster.run(10)
    assert cluster.status("Pod", "a")["phase"] == "Pending"
    cluster.api.bind("default", "a", "node-00001")
    await cluster.run(0.9)
    assert cluster.status("Pod", "a")["phase"] == "Pending"
    await cluster.run(0.2)
    found = cluster.get("Pod", "a")
    assert found["status"]["phase"] == "Running"
    assert found["status"]["hostIP"] == "172.16.0.1" and found["status"]["podIP"].startswith("10.")
    for kind in ("PodScheduled", "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"):
        assert condition(found, kind)["status"] == "True"
    assert first_container(cluster, "a")["ready"] is True


async def test_start_costs_one_write() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node="node-00001"))
    before = cluster.store.revision
    await cluster.run(60)
    assert cluster.status("Pod", "a")["phase"] == "Running"
    assert cluster.store.revision == before + 1


async def test_pods_get_different_addresses() -> None:
    cluster = LivingCluster()
    for number in range(20):
        cluster.create(pod(f"p{number}", node="node-00001"))
    await cluster.run(5)
    addresses = {found["status"]["podIP"] for found in cluster.pods(phase="Running")}
    assert len(addresses) == 20


async def test_pod_of_the_host_network_has_the_address_of_its_node() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node="node-00001", hostNetwork=True))
    await cluster.run(5)
    assert cluster.status("Pod", "a")["podIP"] == "172.16.0.1"


async def test_pod_on_a_node_that_is_not_simulated_is_left_alone_until_the_node_becomes_so() -> None:
    cluster = LivingCluster(nodes=0)
    node = next(make_nodes(1))
    node["metadata"]["annotations"] = {}
    cluster.create(node)
    cluster.create(pod("a", node="node-00001"))
    await cluster.run(60)
    assert cluster.status("Pod", "a")["phase"] == "Pending"
    node = cluster.get("Node", "node-00001")
    node["metadata"]["annotations"] = {"sandbox.pilotage.dev/simulated": "true"}
    cluster.api.update("nodes", "", "node-00001", node)
    await cluster.run(5)
    assert cluster.status("Pod", "a")["phase"] == "Running"


async def test_kubelet_that_manages_all_nodes_needs_no_annotation() -> None:
    cluster = LivingCluster(nodes=0, kubelet=KubeletSettings(manages_all_nodes=True))
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}})
    cluster.create(pod("a", node="bare"))
    await cluster.run(5)
    assert cluster.status("Pod", "a")["phase"] == "Running"
    assert condition(cluster.get("Node", "bare"), "Ready")["status"] == "True"


async def test_node_that_says_so_is_left_alone_by_a_kubelet_that_manages_all() -> None:
    cluster = LivingCluster(nodes=0, kubelet=KubeletSettings(manages_all_nodes=True))
    annotations = {"sandbox.pilotage.dev/simulated": "false"}
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "mine", "annotations": annotations}})
    cluster.create(pod("a", node="mine"))
    await cluster.run(60)
    assert cluster.status("Pod", "a")["phase"] == "Pending"


async def test_start_delay_of_the_annotation_wins() -> None:
    cluster = LivingCluster()
    cluster.create(pod("slow", node="node-00001", annotations={"start-delay": "30s"}))
    await cluster.run(29)
    assert cluster.status("Pod", "slow")["phase"] == "Pending"
    await cluster.run(2)
    assert cluster.status("Pod", "slow")["phase"] == "Running"


@pytest.mark.parametrize(("exit_code", "phase", "reason"), [("0", "Succeeded", "Completed"), ("3", "Failed", "Error")])
async def test_pod_that_runs_for_a_time_ends_as_its_exit_code_says(exit_code: str, phase: str, reason: str) -> None:
    cluster = LivingCluster()
    annotations = {"run-for": "30s", "exit-code": exit_code}
    cluster.create(pod("a", node="node-00001", restartPolicy="Never", annotations=annotations))
    await cluster.run(30)
    assert cluster.status("Pod", "a")["phase"] == "Running"
    await cluster.run(2)
    found = cluster.get("Pod", "a")
    assert found["status"]["phase"] == phase
    assert condition(found, "Ready")["status"] == "False"
    ended = found["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (int(exit_code), reason)
    assert (ended["startedAt"], ended["finishedAt"]) == ("2026-01-01T00:00:01Z", "2026-01-01T00:00:31Z")


async def test_failing_pod_never_runs() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node="node-00001", restartPolicy="Never", annotations={"fail": "true"}))
    before = cluster.store.revision
    await cluster.settle()
    assert cluster.status("Pod", "a")["phase"] == "Failed"
    assert cluster.store.revision == before + 1


async def test_never_ready_pod_runs_but_is_not_ready() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node="node-00001", annotations={"never-ready": "true"}))
    await cluster.settle()
    found = cluster.get("Pod", "a")
    assert found["status"]["phase"] == "Running"
    assert condition(found, "Ready")["reason"] == "ContainersNotReady"


async def test_pod_becomes_ready_after_the_time_asked_for() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node="node-00001", annotations={"ready-after": "10s"}))
    await cluster.run(10)
    assert condition(cluster.get("Pod", "a"), "Ready")["status"] == "False"
    await cluster.run(2)
    assert condition(cluster.get("Pod", "a"), "Ready")["status"] == "True"
    assert first_container(cluster, "a")["ready"] is True


async def test_container_that_exits_is_restarted_after_a_growing_back_off() -> None:
    cluster = LivingCluster()
    annotations = {"run-for": "5s", "exit-code": "1", "start-delay": "0s"}
    cluster.create(pod("a", node="node-00001", annotations=annotations))
    await cluster.run(6)
    assert first_container(cluster, "a")["state"]["waiting"]["reason"] == "CrashLoopBackOff"  # type: ignore[index]
    assert first_container(cluster, "a")["restartCount"] == 0
    await cluster.run(10)  # back-off of 10 s, started again at 15 s
    assert "running" in first_container(cluster, "a")["state"]  # type: ignore[operator]
    assert first_container(cluster, "a")["restartCount"] == 1
    assert first_container(cluster, "a")["lastState"]["terminated"]["exitCode"] == 1  # type: ignore[index]
    await cluster.run(20)  # exited at 20 s, waits 20 s
    assert "waiting" in first_container(cluster, "a")["state"]  # type: ignore[operator]
    await cluster.run(5)
    assert first_container(cluster, "a")["restartCount"] == 2
    assert cluster.status("Pod", "a")["phase"] == "Running"


async def test_container_that_fails_at_once_counts_its_restarts_and_restarts_only_on_failure() -> None:
    cluster = LivingCluster()
    cluster.create(pod("bad", node="node-00001", restartPolicy="OnFailure", annotations={"fail": "true"}))
    cluster.create(pod("good", node="node-00001", restartPolicy="OnFailure", annotations={"run-for": "1s"}))
    await cluster.run(35)  # restarted after 10 s and 20 s
    assert first_container(cluster, "bad")["restartCount"] == 2
    assert cluster.status("Pod", "good")["phase"] == "Succeeded"


async def test_wrong_annotation_is_reported_in_the_status_and_can_be_corrected() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node="node-00001", annotations={"run-for": "soon"}))
    await cluster.settle()
    waiting = first_container(cluster, "a")["state"]["waiting"]  # type: ignore[index]
    assert cluster.status("Pod", "a")["phase"] == "Pending"
    assert waiting["reason"] == "CreateContainerConfigError"
    assert 'sandbox.pilotage.dev/run-for: "soon" is no duration' in waiting["message"]
    found = cluster.get("Pod", "a")
    found["metadata"]["annotations"]["sandbox.pilotage.dev/run-for"] = "1h"
    cluster.api.update("pods", "default", "a", found)
    await cluster.run(5)
    assert cluster.status("Pod", "a")["phase"] == "Running"


async def test_annotation_written_while_the_pod_runs_takes_effect() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node="node-00001", restartPolicy="Never"))
    await cluster.run(20)
    found = cluster.get("Pod", "a")
    found["metadata"]["annotations"] = {"sandbox.pilotage.dev/run-for": "5s"}
    cluster.api.update("pods", "default", "a", found)
    await cluster.run(1)
    assert cluster.status("Pod", "a")["phase"] == "Succeeded"


async def test_deleted_pod_goes_after_a_short_while() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node="node-00001"))
    await cluster.run(5)
    cluster.delete("Pod", "a")
    await cluster.run(0.3)
    assert cluster.get("Pod", "a")["metadata"]["deletionTimestamp"]
    await cluster.run(0.5)
    assert cluster.find("Pod", "a") is None


async def test_deleted_pod_that_has_not_started_goes_too() -> None:
    cluster = LivingCluster()
    cluster.create(pod("a", node="node-00001", annotations={"start-delay": "1h"}))
    await cluster.run(1)
    cluster.delete("Pod", "a")
    await cluster.run(1)
    assert cluster.find("Pod", "a") is None


async def test_shorter_grace_given_later_ends_the_pod_earlier() -> None:
    cluster = LivingCluster(kubelet=KubeletSettings(stop_seconds=60.0))
    cluster.create(pod("a", node="node-00001", terminationGracePeriodSeconds=600))
    await cluster.run(5)
    cluster.delete("Pod", "a")
    await cluster.run(5)
    cluster.delete("Pod", "a", gracePeriodSeconds=1)
    await cluster.run(1.1)
    assert cluster.find("Pod", "a") is None


async def test_deleted_pod_with_a_finalizer_says_how_it_ended_and_stays() -> None:
    cluster = LivingCluster()
    held = pod("a", node="node-00001")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    cluster.create(held)
    await cluster.run(5)
    cluster.delete("Pod", "a")
    await cluster.settle()
    found = cluster.get("Pod", "a")
    assert found["status"]["phase"] == "Failed"
    found["metadata"]["finalizers"] = []
    cluster.api.update("pods", "default", "a", found)
    await cluster.settle()
    assert cluster.find("Pod", "a") is None


async def test_init_containers_are_done_and_sidecars_run() -> None:
    cluster = LivingCluster()
    image = {"image": "i"}
    init = [{"name": "once", **image}, {"name": "proxy", "restartPolicy": "Always", **image}]
    cluster.create(pod("a", node="node-00001", initContainers=init))
    await cluster.run(5)
    states = {s["name"]: s["state"] for s in cluster.status("Pod", "a")["initContainerStatuses"]}
    assert states["once"]["terminated"]["exitCode"] == 0 and "running" in states["proxy"]


async def test_run_goes_on_after_a_restart_of_the_sandbox() -> None:
    first = LivingCluster()
    first.create(pod("a", node="node-00001", restartPolicy="Never", annotations={"run-for": "60s"}))
    await first.run(30)
    second = LivingCluster(nodes=0, store=first.store)
    await second.clock.advance(30)
    await second.run(29)
    assert second.status("Pod", "a")["phase"] == "Running"
    await second.run(3)
    assert second.status("Pod", "a")["phase"] == "Succeeded"


async def test_pods_that_just_run_and_pods_that_are_gone_are_not_kept_in_mind() -> None:
    cluster = LivingCluster()
    for number in range(10):
        cluster.create(pod(f"p{number}", node="node-00001"))
    cluster.create(pod("short", node="node-00001", restartPolicy="Never", annotations={"run-for": "30s"}))
    await cluster.run(0.5)
    assert cluster.life.kubelet.pods_in_care == 11
    await cluster.run(5)
    assert cluster.life.kubelet.pods_in_care == 1
    await cluster.settle()
    cluster.delete("Pod", "p1")
    await cluster.settle()
    assert cluster.life.kubelet.pods_in_care == 0


def on_port(name: str, port: int = 8080, **more: object) -> dict[str, object]:
    containers = [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": port, **more}]}]
    return pod(name, node="node-00001", containers=containers)


async def test_a_pod_whose_port_of_the_node_is_taken_is_not_taken_in() -> None:
    cluster = LivingCluster()
    cluster.create(on_port("first"))
    await cluster.run(5)
    for other in (on_port("second"), on_port("third", hostIP="127.0.0.1"), on_port("fourth", protocol="UDP")):
        cluster.create(other)
    cluster.create(on_port("fifth", 8081))
    await cluster.run(5)
    found = {name: cluster.status("Pod", name) for name in ("first", "second", "third", "fourth", "fifth")}
    assert [status["phase"] for status in found.values()] == ["Running", "Failed", "Failed", "Running", "Running"]
    assert found["second"]["reason"] == "NodePorts" and "free ports" in found["second"]["message"]
