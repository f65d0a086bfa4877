"""Volumes from claim to running pod: the whole scheduler against the sandbox's API server and volume controller."""

from __future__ import annotations

from typing import Any

from pilotage.assembly import SchedulerOptions, options_from_configuration
from pilotage.config.load import configuration_of
from pilotage.plugins.volume_binding.catalog import VolumeCatalog
from pilotage.sandbox.life.controllers.provisioner import PROVISIONER
from tests.plugins.living_scheduler import LivingScheduler, living
from tests.sandbox.living_cluster import pod

Object = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"


def storage_class(name: str, provisioner: str = PROVISIONER, **fields: Any) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **fields,
    }


def claim(name: str, class_name: str, size: str = "1Gi") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "resources": {"requests": {"storage": size}},
        },
    }


def local_volume(name: str, node_name: str, class_name: str, size: str = "10Gi") -> Object:
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node_name]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"keep": "me"}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "local": {"path": "/mnt"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }


def pod_with(name: str, *claims: str) -> Object:
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    return pod(name, volumes=volumes)


def phase(cluster: LivingScheduler, name: str) -> str:
    return str(cluster.get("Pod", name)["status"]["phase"])


async def test_a_volume_is_made_for_the_first_consumer_and_the_pod_runs() -> None:
    async with living(nodes=3) as cluster:
        cluster.create(storage_class("fast"))
        cluster.create(claim("data", "fast"))
        await cluster.run(2)
        assert cluster.get("PersistentVolumeClaim", "data")["status"]["phase"] == "Pending"
        cluster.create(pod_with("web", "data"))
        await cluster.run(5)
        node_name, bound = cluster.node_of("web"), cluster.get("PersistentVolumeClaim", "data")
        assert node_name
        assert phase(cluster, "web") == "Running"
        assert bound["status"]["phase"] == "Bound"
        assert bound["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == node_name


async def test_the_pod_is_not_bound_before_its_claim_is() -> None:
    async with living(nodes=1) as cluster:
        cluster.create(storage_class("slow", provisioner="nobody.example"))
        cluster.create(claim("data", "slow"))
        cluster.create(pod_with("web", "data"))
        await cluster.run(30)
        metadata = cluster.get("PersistentVolumeClaim", "data")["metadata"]
        assert metadata["annotations"]["volume.kubernetes.io/selected-node"]
        assert cluster.node_of("web") == ""


async def test_a_local_volume_decides_the_node_and_keeps_what_others_wrote_into_it() -> None:
    async with living(nodes=3) as cluster:
        names = cluster.names("Node")
        cluster.create(storage_class("local", provisioner="kubernetes.io/no-provisioner"))
        cluster.create(local_volume("disk", names[2], "local"))
        cluster.create(claim("data", "local"))
        cluster.create(pod_with("db", "data"))
        await cluster.run(5)
        volume = cluster.get("PersistentVolume", "disk")
        assert cluster.node_of("db") == names[2]
        assert volume["spec"]["claimRef"]["name"] == "data"
        assert volume["spec"]["local"] == {"path": "/mnt"}
        assert volume["metadata"]["annotations"]["keep"] == "me"
        assert volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
        assert cluster.get("PersistentVolumeClaim", "data")["status"]["phase"] == "Bound"


async def test_two_pods_do_not_get_one_volume() -> None:
    async with living(nodes=2) as cluster:
        names = cluster.names("Node")
        cluster.create(storage_class("local", provisioner="kubernetes.io/no-provisioner"))
        cluster.create(local_volume("disk", names[0], "local"))
        for name in ("one", "two"):
            cluster.create(claim(name, "local"))
            cluster.create(pod_with(name, name))
        await cluster.run(5)
        placed = [name for name in ("one", "two") if cluster.node_of(name)]
        (waiting,) = {"one", "two"} - set(placed)
        assert len(placed) == 1
        assert "node(s) didn't find available persistent volumes to bind" in cluster.why(waiting)
        cluster.create(local_volume("more", names[1], "local"))
        await cluster.run(15)
        assert cluster.node_of(waiting) == names[1]


async def test_binding_that_takes_too_long_frees_the_volume_for_others() -> None:
    async with living(nodes=1, options=_binding_within(seconds=5)) as cluster:
        cluster.create(storage_class("slow", provisioner="nobody.example"))
        cluster.create(claim("data", "slow"))
        cluster.create(pod_with("web", "data"))
        await cluster.run(7)
        events = [e for e in cluster.api.list("events") if e["reason"] == "FailedScheduling"]
        assert any("binding volumes" in (e.get("message") or e.get("note") or "") for e in events)
        assert cluster.node_of("web") == ""


async def test_claims_of_ephemeral_volumes_are_waited_for() -> None:
    async with living(nodes=2) as cluster:
        cluster.create(storage_class("fast"))
        template = {"spec": claim("x", "fast")["spec"]}
        cluster.create(pod("job", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]))
        await cluster.run(5)
        assert phase(cluster, "job") == "Running"
        assert cluster.get("PersistentVolumeClaim", "job-scratch")["status"]["phase"] == "Bound"


async def test_a_pod_that_is_deleted_while_its_volume_is_made_leaves_nothing_assumed() -> None:
    async with living(nodes=1) as cluster:
        cluster.create(storage_class("slow", provisioner="nobody.example"))
        cluster.create(claim("data", "slow"))
        cluster.create(pod_with("web", "data"))
        await cluster.run(2)
        cluster.delete("Pod", "web")
        await cluster.run(5)
        assert cluster.find("Pod", "web") is None
        assert _assumed(cluster) == 0


def _assumed(cluster: LivingScheduler) -> int:
    return cluster.process.scheduler.cluster.index(VolumeCatalog).assumed


def _binding_within(seconds: int) -> SchedulerOptions:
    arguments = {"kind": "VolumeBindingArgs", "bindTimeoutSeconds": seconds}
    return options_from_configuration(
        configuration_of(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"pluginConfig": [{"name": "VolumeBinding", "args": arguments}]}],
            },
            "test",
        )
    )
