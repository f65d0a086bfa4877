"""Clusters for tests of others: started and left in milliseconds, in real and in virtual time."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import textwrap
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.api import CycleState, Filter, NodeView, Plugin, Pod, Reason, Reject
from pilotage.library import ClusterOptions, ConditionNotMet, NoSuchKind, SandboxCluster
from pilotage.sandbox.errors import ApiError

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
}
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i}]}
"""
WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


@pytest.fixture
def virtual() -> Any:
    with SandboxCluster(nodes=2, virtual_time=True, https=False) as cluster:
        yield cluster


def pod(name: str, cpu: str = "1") -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return POD | {"metadata": {"name": name}, "spec": {"containers": [container]}}


class TestObjects:
    def test_a_deployment_becomes_available(self, virtual: SandboxCluster) -> None:
        [made] = virtual.apply(DEPLOYMENT)
        assert made["metadata"]["namespace"] == "default"
        assert virtual.wait("deploy/web", "Available")["status"]["readyReplicas"] == 3
        assert {one["spec"]["nodeName"] for one in virtual.list("pods", labels="app=web")} <= {
            node["metadata"]["name"] for node in virtual.list("nodes")
        }

    def test_what_is_there_is_changed(self, virtual: SandboxCluster) -> None:
        virtual.apply(DEPLOYMENT)
        virtual.apply(DEPLOYMENT.replace("replicas: 3", "replicas: 1"))
        assert virtual.get("deployment/web")["spec"]["replicas"] == 1
        virtual.patch("deployment/web", {"spec": {"replicas": 2}})
        virtual.wait("deployment/web", lambda web: web["status"].get("readyReplicas") == 2)

    def test_files_directories_and_dicts_are_applied(self, virtual: SandboxCluster, tmp_path: Path) -> None:
        (tmp_path / "a.yaml").write_text(DEPLOYMENT)
        (tmp_path / "b.yaml").write_text(WIDGETS)
        assert len(virtual.apply(tmp_path, pod("p"))) == 3
        virtual.apply(
            {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}, namespace="default"
        )
        assert virtual.get("widget/w")["kind"] == "Widget"

    def test_deletion_is_waited_for(self, virtual: SandboxCluster) -> None:
        virtual.apply(DEPLOYMENT)
        virtual.wait("deploy/web", "Available")
        virtual.delete("deploy/web")
        virtual.wait("deploy/web", "gone")
        virtual.advance(120)
        assert virtual.list("pods") == []

    def test_nodes_come_and_go(self, virtual: SandboxCluster) -> None:
        virtual.nodes(5)
        assert len(virtual.list("nodes")) == 5
        virtual.nodes(1)
        assert len(virtual.list("nodes")) == 1

    def test_what_is_wrong_is_said(self, virtual: SandboxCluster) -> None:
        with pytest.raises(NoSuchKind, match='no kind "deploymnt"'):
            virtual.get("deploymnt/web")
        with pytest.raises(NoSuchKind, match='no kind "Pood" in version "v1"'):
            virtual.apply({"apiVersion": "v1", "kind": "Pood", "metadata": {"name": "x"}})
        with pytest.raises(ApiError, match='pods "none" not found'):
            virtual.get("pod/none")
        with pytest.raises(ValueError, match="https=False"):
            _ = virtual.kubeconfig


class TestTime:
    def test_an_hour_passes_in_no_time(self, virtual: SandboxCluster) -> None:
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {
                "template": {
                    "metadata": {"annotations": {"sandbox.pilotage.dev/run-for": "3600s"}},
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
                }
            },
        }
        virtual.apply(job)
        virtual.advance(3000)
        assert virtual.get("job/j")["status"]["active"] == 1
        assert virtual.wait("job/j", "Complete", seconds=1000)["status"]["succeeded"] == 1

    def test_the_same_seed_gives_the_same_cluster(self) -> None:
        def played() -> list[Any]:
            with SandboxCluster(virtual_time=True, https=False, nodes=4) as cluster:
                cluster.apply(DEPLOYMENT)
                cluster.wait("deploy/web", "Available")
                return cluster.list("pods")

        assert played() == played()

    def test_who_waits_in_vain_is_told_why(self, virtual: SandboxCluster) -> None:
        virtual.apply(pod("huge", cpu="1000"))
        with pytest.raises(ConditionNotMet) as failed:
            virtual.wait("pod/huge", "Ready", seconds=30)
        text = str(failed.value)
        assert "pod/huge in namespace default is not Ready after 30 s" in text
        assert "FailedScheduling: 0/2 nodes are available: 2 Insufficient cpu" in text
        assert "it asked for" in text

    def test_real_time_is_waited_for_and_not_moved(self) -> None:
        with SandboxCluster(https=False, scheduler=False) as cluster:
            with pytest.raises(ValueError, match="virtual_time=True"):
                cluster.advance(1)
            with pytest.raises(ConditionNotMet, match="is not there after 0 s"):
                cluster.wait("pod/p", seconds=0)
            threading.Timer(0.01, lambda: cluster.apply(POD)).start()
            assert cluster.wait("pod/p")["metadata"]["name"] == "p"


class TestSnapshots:
    def test_everything_is_as_it_was(self, virtual: SandboxCluster) -> None:
        virtual.apply(DEPLOYMENT, pod("kept"))
        virtual.wait("deploy/web", "Available")
        before, pods = virtual.snapshot(), [one["metadata"]["uid"] for one in virtual.list("pods")]
        virtual.delete("deploy/web")
        virtual.patch("pod/kept", {"metadata": {"labels": {"a": "b"}}})
        virtual.apply(WIDGETS, pod("more"))
        virtual.advance(60)
        virtual.reset(before)
        virtual.advance(60)
        assert [one["metadata"]["uid"] for one in virtual.list("pods")] == pods
        assert virtual.get("pod/kept")["metadata"].get("labels") is None
        assert virtual.get("deploy/web")["status"]["readyReplicas"] == 3
        with pytest.raises(NoSuchKind):
            virtual.list("widgets")


class TestClients:
    def test_a_client_reaches_it_over_https(self) -> None:
        with SandboxCluster() as cluster:
            config = yaml.safe_load(cluster.kubeconfig.read_text())
            server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
            assert server["server"].startswith("https://127.0.0.1:")
            done = subprocess.run(
                ["kubectl", "--kubeconfig", cluster.kubeconfig, "create", "deployment", "web", "--image=i"],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            cluster.wait("deployment/web", "Available")
            request = urllib.request.Request(server["server"] + "/api/v1/pods")
            with pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED"):
                urllib.request.urlopen(request, context=ssl.create_default_context())
            assert user["token"]
        assert not cluster.kubeconfig.exists()

    def test_faults_hit_clients(self) -> None:
        with SandboxCluster(faults=["500,resource=configmaps"]) as cluster:
            command = ["kubectl", "--kubeconfig", cluster.kubeconfig, "create", "configmap", "c"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert "a fault was asked for" in done.stderr
            cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})

    def test_many_clusters_live_side_by_side(self) -> None:
        with SandboxCluster(nodes=1) as one, SandboxCluster(nodes=2) as other:
            one.apply(POD)
            one.wait("pod/p", "Ready")
            assert other.list("pods") == [] and len(other.list("nodes")) == 2
            assert one.kubeconfig != other.kubeconfig


class TestScheduler:
    def test_plugins_and_explanations(self) -> None:
        class NotHere(Plugin, Filter):
            def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Reject | None:
                return Reject(Reason("NotHere", "node(s) were not here"))

        config = {"plugins": [NotHere], "virtual_time": True, "https": False, "nodes": 2}
        with SandboxCluster(ClusterOptions(**config)) as cluster:  # type: ignore[arg-type]
            cluster.apply(POD)
            cluster.advance(5)
            assert "node(s) were not here" in cluster.explain("pod/p")
            assert cluster.events("p")[0].startswith("FailedScheduling: 0/2 nodes are available")

    def test_without_a_scheduler_pods_stay_where_they_are(self) -> None:
        with SandboxCluster(scheduler=False, virtual_time=True, https=False) as cluster:
            cluster.apply(POD)
            cluster.advance(60)
            assert "nodeName" not in cluster.get("pod/p")["spec"]
            with pytest.raises(ValueError, match="without a scheduler"):
                cluster.explain("pod/p")


def test_options_that_do_not_exist_are_rejected() -> None:
    with pytest.raises(TypeError, match="node"):
        SandboxCluster(node=3)


def test_a_cluster_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="nowhere"), SandboxCluster(manifests=[tmp_path / "nowhere.yaml"]):
        pass


class TestPytestPlugin:
    def test_fixtures_of_a_stranger(self, tmp_path: Path) -> None:
        """A test of someone who installed Pilotage and has no configuration at all."""
        (tmp_path / "test_mine.py").write_text(
            textwrap.dedent(
                """
                import os
                import pytest

                POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                       "spec": {"containers": [{"name": "c", "image": "i"}]}}

                def test_runs(cluster):
                    assert os.environ["KUBECONFIG"] == str(cluster.kubeconfig)
                    cluster.apply(POD)
                    cluster.wait("pod/p", "Ready")

                def test_is_fresh(cluster):
                    assert cluster.list("pods") == [] and len(cluster.list("nodes")) == 3

                @pytest.mark.pilotage(nodes=1, virtual_time=True, https=False)
                class TestVirtual:
                    def test_options(self, cluster):
                        cluster.advance(3600)
                        assert len(cluster.list("nodes")) == 1

                    @pytest.mark.pilotage(nodes=2)
                    def test_the_nearest_mark_wins(self, cluster):
                        assert len(cluster.list("nodes")) == 2
                        assert cluster.options.virtual_time

                def test_two(make_cluster):
                    a, b = make_cluster(https=False), make_cluster(https=False, nodes=1)
                    a.apply(POD)
                    assert b.list("pods") == []
                """
            )
        )
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", str(tmp_path)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTEST_ADDOPTS": ""},
            check=False,
        )
        assert done.returncode == 0, done.stdout
        assert "5 passed" in done.stdout

    def test_pytest_starts_without_the_rest(self) -> None:
        code = "import pilotage.pytest_plugin, sys; print([m for m in sys.modules if m.startswith('pilotage.')])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "['pilotage.pytest_plugin']"


@pytest.mark.e2e
def test_a_sandbox_for_tests_in_other_languages_ends_with_them() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "pilotage", "sandbox", "--ephemeral"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        kubeconfig = process.stdout.readline().strip()
        done = subprocess.run(
            ["kubectl", "--kubeconfig", kubeconfig, "get", "nodes", "-o", "name"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert len(done.stdout.splitlines()) == 3
        process.stdin.close()
        assert process.wait(30) == 0
    assert not Path(kubeconfig).exists()
