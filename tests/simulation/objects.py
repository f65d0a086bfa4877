"""Objects of simulated worlds in few words."""

from __future__ import annotations

from typing import Any

from pilotage.jobs.adapters import marks

Json = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
DRIVER = "d.example.com"
KUEUE = "kueue.x-k8s.io/v1beta2"
RUN_FOR = "sandbox.pilotage.dev/run-for"
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def node(name: str, zone: str, cpu: int, pods: int) -> Json:
    amounts = {"cpu": str(cpu), "memory": f"{cpu * 2}Gi", "pods": str(pods)}
    labels = {HOSTNAME: name, ZONE: zone}
    return {"metadata": {"name": name, "labels": labels}, "status": {"capacity": amounts, "allocatable": amounts}}


def resource_slice(name: str, node_name: str, devices: int) -> Json:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    listed = [{"name": f"gpu-{number}"} for number in range(devices)]
    return {
        "metadata": {"name": name},
        "spec": {"driver": DRIVER, "pool": pool, "nodeName": node_name, "devices": listed},
    }


def pod_spec(cpu: int, memory: int, **fields: Any) -> Json:
    """`cpu` in thousandths, `memory` in Mi."""
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    container: Json = {"name": "c", "image": "i", "resources": {"requests": requests}}
    if (port := fields.pop("host_port", None)) is not None:
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    return {"containers": [container], "terminationGracePeriodSeconds": fields.pop("grace", 1), **fields}


def pod(name: str, spec: Json, **labels: str) -> Json:
    return {"metadata": {"name": name, "labels": {"app": "none", **labels}}, "spec": spec}


def anti_affinity(app: str) -> Json:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOSTNAME}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(app: str) -> list[Json]:
    selector = {"matchLabels": {"app": app}}
    return [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]


def volume(name: str, claim: str) -> Json:
    return {"name": name, "persistentVolumeClaim": {"claimName": claim}}


def volume_claim(name: str, storage_class: str, mode: str) -> Json:
    spec = {
        "accessModes": [mode],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"metadata": {"name": name}, "spec": spec}


def local_volume(name: str, node_name: str) -> Json:
    requirement = {"key": HOSTNAME, "operator": "In", "values": [node_name]}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": f"/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}},
        },
    }


def device_request(count: int = 1) -> Json:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}


def deployment(name: str, replicas: int, spec: Json) -> Json:
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    selector = {"matchLabels": {"app": name}}
    return {"metadata": {"name": name}, "spec": {"replicas": replicas, "selector": selector, "template": template}}


def budget(name: str, app: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}}}


def job(name: str, parallelism: int, spec: Json, *, queue: str, seconds: int, priority: str = "") -> Json:
    labels = {marks.QUEUE_NAME: queue} if queue else {}
    if priority:
        labels[marks.PRIORITY_CLASS] = priority
    metadata = {"labels": {"app": name}, "annotations": {RUN_FOR: f"{seconds}s"}}
    template = {"metadata": metadata, "spec": {**spec, "restartPolicy": "Never"}}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"parallelism": parallelism, "completions": parallelism, "suspend": bool(queue), "template": template},
    }


def pod_group(name: str, least: int, priority_class: str, priority: int, mode: str) -> Json:
    """A gang of at least so many pods; 0: pods that need not start together."""
    policy: Json = {"gang": {"minCount": least}} if least else {"basic": {}}
    spec = {"schedulingPolicy": policy, "disruptionMode": {mode: {}}}
    return {"metadata": {"name": name}, "spec": {**spec, "priorityClassName": priority_class, "priority": priority}}


def cluster_queue(name: str, cohort: str, cpu: int, preemption: Json) -> Json:
    amounts = [{"name": "cpu", "nominalQuota": str(cpu)}, {"name": "memory", "nominalQuota": "1Ti"}]
    quotas = [{"name": "std", "resources": amounts}]
    spec: Json = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": quotas}],
        "preemption": preemption,
    }
    if cohort:
        spec["cohortName"] = cohort
    # At rest it is asked whether quota lies idle; that no node has room is another reason to wait.
    by_quota = {"queueing.pilotage.dev/node-aware-admission": "false"}
    return {"metadata": {"name": name, "annotations": by_quota}, "spec": spec}
