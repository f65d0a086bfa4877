"""Tests of the operator: each has a cluster of its own, and none needs containers."""

from pathlib import Path

import pytest
from kopf.testing import KopfRunner

HERE = Path(__file__).parent
WORKER = """
apiVersion: example.com/v1
kind: Worker
metadata: {name: w}
spec: {size: 3}
"""


@pytest.fixture
def operator(cluster):
    cluster.apply(HERE / "crd.yaml")
    with KopfRunner(["run", "--all-namespaces", "--standalone", str(HERE / "operator_of_workers.py")]) as runner:
        yield runner


def test_a_worker_has_pods(cluster, operator):
    cluster.apply(WORKER)
    cluster.wait("worker/w", lambda worker: worker.get("status", {}).get("ready") == 3)
    assert len(cluster.list("pods", labels="worker=w")) == 3


def test_a_worker_grows(cluster, operator):
    cluster.apply(WORKER)
    cluster.wait("deployment/w", "Available")
    cluster.patch("worker/w", {"spec": {"size": 5}})
    cluster.wait("worker/w", lambda worker: worker["status"].get("ready") == 5)


def test_pods_that_find_no_place_are_not_ready(cluster, operator):
    cluster.nodes(0)
    cluster.apply(WORKER)
    cluster.wait("deployment/w")
    waiting = cluster.wait("deployment/w", lambda web: web["status"].get("unavailableReplicas") == 3)
    assert "readyReplicas" not in waiting["status"]
    assert "no nodes" in cluster.explain("deployment/w")
    cluster.nodes(1)
    cluster.wait("worker/w", lambda worker: worker.get("status", {}).get("ready") == 3)


def test_what_a_worker_had_goes_with_it(cluster, operator):
    cluster.apply(WORKER)
    cluster.wait("deployment/w", "Available")
    cluster.delete("worker/w")
    cluster.wait("deployment/w", "gone")


@pytest.mark.pilotage(faults=["500,resource=deployments,times=2", "latency=20ms"])
def test_an_api_server_in_a_bad_mood_is_survived(cluster, operator):
    cluster.apply(WORKER)
    cluster.wait("worker/w", lambda worker: worker.get("status", {}).get("ready") == 3, seconds=150)
