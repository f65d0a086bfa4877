"""A whole sandbox in virtual time: store, Api, all controllers, and a binder in place of a scheduler.

cluster = LivingCluster(nodes=2)
cluster.create(deployment("web", replicas=3))
await cluster.run(5)
assert len(cluster.pods(phase="Running")) == 3
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

from pilotage.sandbox.api import Api
from pilotage.sandbox.life.controllers.controller import MOST_PODS, ControllerContext, Due, Interest
from pilotage.sandbox.life.facts import PodFacts
from pilotage.sandbox.life.kubelet import KubeletSettings
from pilotage.sandbox.life.loop import DEFAULT_CONTROLLERS, Life
from pilotage.sandbox.life.node_templates import make_nodes
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.storage.store import Key, Store
from pilotage.testing.virtual_clock import VirtualClock

Object = dict[str, Any]

PLAIN = KubeletSettings(start_jitter_seconds=0.0)
RESOURCES = {
    "Deployment": "deployments.apps",
    "ReplicaSet": "replicasets.apps",
    "ReplicationController": "replicationcontrollers",
    "StatefulSet": "statefulsets.apps",
    "DaemonSet": "daemonsets.apps",
    "ControllerRevision": "controllerrevisions.apps",
    "CronJob": "cronjobs.batch",
    "Service": "services",
    "Endpoints": "endpoints",
    "EndpointSlice": "endpointslices.discovery.k8s.io",
    "ServiceAccount": "serviceaccounts",
    "Secret": "secrets",
    "ResourceQuota": "resourcequotas",
    "Lease": "leases.coordination.k8s.io",
    "Job": "jobs.batch",
    "PodDisruptionBudget": "poddisruptionbudgets.policy",
    "StorageClass": "storageclasses.storage.k8s.io",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "ResourceClaim": "resourceclaims.resource.k8s.io",
    "ResourceClaimTemplate": "resourceclaimtemplates.resource.k8s.io",
    "PodGroup": "podgroups.scheduling.k8s.io",
    "Workload": "workloads.scheduling.k8s.io",
    "ConfigMap": "configmaps",
    "Namespace": "namespaces",
    "Node": "nodes",
    "Pod": "pods",
}
CLUSTER_SCOPED = ("Node", "Namespace", "PersistentVolume", "StorageClass")


class Binder:
    """Binds every pending pod to the next node, at once."""

    name = "binder"

    def __init__(self, world: ControllerContext) -> None:
        self._world = world
        self._turn = 0

    def interests(self) -> Mapping[str, Interest]:
        return {"pods": _unassigned}

    def reconcile(self, key: Key) -> float | None:
        pod = self._world.index.pod(key)
        nodes = [record.key.name for record in self._world.api.store.list("nodes")]
        if pod is not None and not pod.node_name and nodes:
            self._turn += 1
            self._world.api.bind(key.namespace, key.name, nodes[self._turn % len(nodes)])
        return None


def _unassigned(seen: ObservedChange) -> Iterable[Due]:
    pod = seen.new
    return (Due(pod.key),) if isinstance(pod, PodFacts) and not pod.node_name and pod.is_active else ()


class LivingCluster:
    def __init__(
        self,
        *,
        nodes: int = 1,
        binds: bool = True,
        kubelet: KubeletSettings = PLAIN,
        store: Store | None = None,
        most_pods: int = MOST_PODS,
    ) -> None:
        self.clock = VirtualClock()
        self.store = store or Store(history=100_000)
        self.api = Api(self.store, clock=self.clock, rng=random.Random(1))
        controllers = (*DEFAULT_CONTROLLERS, Binder) if binds else DEFAULT_CONTROLLERS
        self.life = Life(
            self.api, self.clock, random.Random(2), controllers=controllers, kubelet=kubelet, most_pods=most_pods
        )
        self.life.start()
        self.life.step()  # what every namespace has is there
        for node in make_nodes(nodes):
            self.create(node)

    async def run(self, seconds: float) -> None:
        """Let that much time pass."""
        end = self.clock.monotonic() + seconds
        self.life.step()
        while (due := self.life.next_due) is not None and due <= end:
            await self.clock.advance(max(due - self.clock.monotonic(), 0.0))
            self.life.step()
        await self.clock.advance(end - self.clock.monotonic())
        self.life.check()

    async def settle(self, limit_seconds: float = 7200.0) -> None:
        """Let time pass until nothing happens by itself any more."""
        end = self.clock.monotonic() + limit_seconds
        self.life.step()
        while (due := self.life.next_due) is not None:
            assert due <= end, f"still busy after {limit_seconds} s"
            await self.clock.advance(max(due - self.clock.monotonic(), 0.0))
            self.life.step()
        self.life.check()

    def create(self, obj: Object, namespace: str = "default") -> Object:
        kind = obj["kind"]
        return self.api.create(RESOURCES[kind], "" if kind in CLUSTER_SCOPED else namespace, obj)

    def get(self, kind: str, name: str, namespace: str = "default") -> Object:
        return self.api.get(RESOURCES[kind], "" if kind in CLUSTER_SCOPED else namespace, name)

    def find(self, kind: str, name: str, namespace: str = "default") -> Object | None:
        return self.api.find(RESOURCES[kind], "" if kind in CLUSTER_SCOPED else namespace, name)

    def all(self, kind: str, namespace: str | None = None) -> list[Object]:
        return self.api.list(RESOURCES[kind], namespace)

    def edit(self, kind: str, name: str, namespace: str = "default", /, **spec: Any) -> Object:
        """Change fields of the spec."""
        obj = self.get(kind, name, namespace)
        obj["spec"].update(spec)
        return self.api.update(RESOURCES[kind], "" if kind in CLUSTER_SCOPED else namespace, name, obj)

    def delete(self, kind: str, name: str, namespace: str = "default", /, **options: Any) -> None:
        self.api.delete(RESOURCES[kind], "" if kind in CLUSTER_SCOPED else namespace, name, options)

    def pods(self, *, phase: str | None = None, app: str | None = None) -> list[Object]:
        pods = self.api.list("pods")
        pods = [pod for pod in pods if phase is None or pod["status"]["phase"] == phase]
        return [pod for pod in pods if app is None or pod["metadata"]["labels"].get("app") == app]

    def names(self, kind: str) -> list[str]:
        """Without those that every namespace has."""
        names = [obj["metadata"]["name"] for obj in self.all(kind)]
        return [name for name in names if name != "kube-root-ca.crt"]

    def status(self, kind: str, name: str) -> Object:
        status: Object = self.get(kind, name)["status"]
        return status


def condition(obj: Object, kind: str) -> Object:
    """One condition of an object, or {}."""
    return next((c for c in obj["status"].get("conditions") or () if c["type"] == kind), {})


def pod(name: str, *, node: str | None = None, annotations: Mapping[str, str] | None = None, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}, "annotations": _prefixed(annotations)},
        "spec": {"containers": [{"name": "c", "image": "i"}], **({"nodeName": node} if node else {}), **spec},
    }


def pod_group(name: str, min_count: int = 0, **spec: Any) -> Object:
    """A gang, or without a count a basic group."""
    policy: Object = {"gang": {"minCount": min_count}} if min_count else {"basic": {}}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def member(name: str, group: str, **spec: Any) -> Object:
    return pod(name, schedulingGroup={"podGroupName": group}, **spec)


def template(app: str, annotations: Mapping[str, str] | None = None, image: str = "i", **spec: Any) -> Object:
    metadata = {"labels": {"app": app}, "annotations": _prefixed(annotations)}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def deployment(name: str, replicas: int = 1, *, annotations: Mapping[str, str] | None = None, **spec: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, annotations),
            **spec,
        },
    }


def replica_set(name: str, replicas: int = 1, *, annotations: Mapping[str, str] | None = None, **spec: Any) -> Object:
    return {**deployment(name, replicas, annotations=annotations, **spec), "kind": "ReplicaSet"}


def stateful_set(name: str, replicas: int = 1, **spec: Any) -> Object:
    return {**deployment(name, replicas, serviceName=name, **spec), "kind": "StatefulSet"}


def daemon_set(name: str, **spec: Any) -> Object:
    obj = {**deployment(name, **spec), "kind": "DaemonSet"}
    del obj["spec"]["replicas"]
    return obj


def job(name: str, *, annotations: Mapping[str, str] | None = None, restart: str = "Never", **spec: Any) -> Object:
    pods = template(name, annotations, restartPolicy=restart)
    metadata = {"name": name}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": pods, **spec}}


def budget(name: str, app: str, **spec: Any) -> Object:
    selector = {"matchLabels": {"app": app}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": selector, **spec},
    }


def _prefixed(annotations: Mapping[str, str] | None) -> dict[str, str]:
    return {f"sandbox.pilotage.dev/{name}": text for name, text in (annotations or {}).items()}
