"""A job of each kind, and what its operator writes into its status. Every pod asks for one core."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

from pilotage.jobs.adapters import marks

Json = dict[str, Any]
POD: Json = {
    "metadata": {"labels": {"app": "x"}, "annotations": {"note": "mine"}},
    "spec": {
        "containers": [{"name": "main", "image": "work", "resources": {"requests": {"cpu": "1"}}}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "mine", "operator": "Exists"}],
    },
}


class Sample(NamedTuple):
    api_version: str
    kind: str
    spec: Json
    switch: tuple[str, ...]
    pod_sets: dict[str, int]
    running: Json
    """The status once all of its pods are ready."""
    finished: Json
    """Empty: it serves."""
    stopped: Json
    selectors: list[tuple[str | int, ...]]
    """Where the node selectors of its pods are."""

    def job(self, name: str = "sample", **changes: Any) -> Json:
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {"name": name, "namespace": "default", "labels": {marks.QUEUE_NAME: "lq"}},
            "spec": deepcopy({**self.spec, **changes}),
        }


def _done(type_: str) -> Json:
    return {"conditions": [{"type": type_, "status": "True", "message": "all done", "reason": "Ended"}]}


_CLUSTER: Json = {
    "rayVersion": "2.9",
    "headGroupSpec": {"rayStartParams": {}, "template": POD},
    "workerGroupSpecs": [
        {
            "groupName": "Small",
            "replicas": 2,
            "minReplicas": 0,
            "maxReplicas": 5,
            "rayStartParams": {},
            "template": POD,
        },
        {"groupName": "pods", "replicas": 1, "numOfHosts": 2, "rayStartParams": {}, "template": POD},
    ],
}
_HEAD = ("headGroupSpec", "template", "spec", "nodeSelector")
_WORKERS = [("workerGroupSpecs", at, "template", "spec", "nodeSelector") for at in (0, 1)]
_IN_TEMPLATE = ("template", "spec", "nodeSelector")


def _training(kind: str, field: str, first: str, version: str = "v1") -> Sample:
    return Sample(
        f"kubeflow.org/{version}",
        kind,
        {
            "runPolicy": {"backoffLimit": 2},
            field: {first: {"template": POD}, "Worker": {"replicas": 3, "template": POD}},
        },
        ("runPolicy", "suspend"),
        {first.lower(): 1, "worker": 3},
        {
            "conditions": [{"type": "Running", "status": "True"}],
            "replicaStatuses": {first: {"active": 1}, "Worker": {"active": 3}},
        },
        _done("Succeeded"),
        {
            "conditions": [{"type": "Running", "status": "False"}],
            "replicaStatuses": {first: {"active": 0}, "Worker": {"active": 0}},
        },
        [(field, role, *_IN_TEMPLATE) for role in (first, "Worker")],
    )


JOB_SET = Sample(
    "jobset.x-k8s.io/v1alpha2",
    "JobSet",
    {
        "replicatedJobs": [
            {"name": "driver", "replicas": 1, "template": {"spec": {"template": POD}}},
            {
                "name": "workers",
                "replicas": 2,
                "template": {"spec": {"parallelism": 3, "completions": 2, "template": POD}},
            },
        ]
    },
    ("suspend",),
    {"driver": 1, "workers": 4},
    {
        "replicatedJobsStatus": [
            {"name": "driver", "ready": 1, "succeeded": 0, "active": 1},
            {"name": "workers", "ready": 1, "succeeded": 1, "active": 1},
        ]
    },
    _done("Completed"),
    {"replicatedJobsStatus": [{"name": "driver", "active": 0}, {"name": "workers", "active": 0}]},
    [("replicatedJobs", at, "template", "spec", "template", "spec", "nodeSelector") for at in (0, 1)],
)
RAY_JOB = Sample(
    "ray.io/v1",
    "RayJob",
    {
        "entrypoint": "python main.py",
        "shutdownAfterJobFinishes": True,
        "submitterPodTemplate": POD,
        "rayClusterSpec": _CLUSTER,
    },
    ("suspend",),
    {"head": 1, "small": 2, "pods": 2, "submitter": 1},
    {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "rayClusterStatus": {"state": "ready"}},
    {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "message": "all done"},
    {"jobDeploymentStatus": "Suspended", "jobStatus": "", "rayClusterStatus": {"state": "suspended"}},
    [
        ("submitterPodTemplate", "spec", "nodeSelector"),
        *(("rayClusterSpec", *path) for path in (_HEAD, *_WORKERS)),
    ],
)
RAY_CLUSTER = Sample(
    "ray.io/v1",
    "RayCluster",
    _CLUSTER,
    ("suspend",),
    {"head": 1, "small": 2, "pods": 2},
    {"state": "ready"},
    {},
    {"state": "suspended"},
    [_HEAD, *_WORKERS],
)
_ROLE: Json = {
    "cores": 1,
    "memory": "512m",
    "labels": {"app": "x"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "mine", "operator": "Exists"}],
}
SPARK = Sample(
    "sparkoperator.k8s.io/v1beta2",
    "SparkApplication",
    {"type": "Scala", "mode": "cluster", "driver": _ROLE, "executor": {**_ROLE, "instances": 3}},
    ("suspend",),
    {"driver": 1, "executor": 3},
    {"applicationState": {"state": "RUNNING"}, "executorState": dict.fromkeys(("a", "b", "c"), "RUNNING")},
    {"applicationState": {"state": "COMPLETED"}},
    {"applicationState": {"state": "SUSPENDED"}},
    [("driver", "nodeSelector"), ("executor", "nodeSelector")],
)
_JOB: Json = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "inner"},
    "spec": {"parallelism": 2, "template": POD},
}
APP_WRAPPER = Sample(
    "workload.codeflare.dev/v1beta2",
    "AppWrapper",
    {
        "components": [
            {"template": {"apiVersion": "v1", "kind": "Pod", **POD}},
            {"template": _JOB, "podSets": [{"replicas": 2, "path": "template.spec.template"}]},
            {"template": _JOB},
        ]
    },
    ("suspend",),
    {"sample-0": 1, "sample-1": 2, "sample-2": 2},
    {
        "phase": "Running",
        "conditions": [{"type": "QuotaReserved", "status": "True"}, {"type": "PodsReady", "status": "True"}],
    },
    {"phase": "Succeeded"},
    {"phase": "Suspended", "conditions": [{"type": "QuotaReserved", "status": "False"}]},
    [("components", at, "podSetInfos", 0, "nodeSelector") for at in range(3)],
)
WIDGET = Sample(
    "example.com/v1alpha1",
    "Widget",
    {"stages": [{"replicas": 2, "template": POD}, {"template": POD}]},
    ("suspend",),
    {"stages": 2, "stages-2": 1},
    {"phase": "Running", "active": 3},
    _done("Complete"),
    {"phase": "Suspended", "active": 0},
    [("stages", at, *_IN_TEMPLATE) for at in (0, 1)],
)
EXTERNAL = "Widget.v1alpha1.example.com"

SAMPLES = {
    one.kind: one
    for one in (
        JOB_SET,
        RAY_JOB,
        RAY_CLUSTER,
        _training("PyTorchJob", "pytorchReplicaSpecs", "Master"),
        _training("MPIJob", "mpiReplicaSpecs", "Launcher", "v2beta1"),
        SPARK,
        APP_WRAPPER,
        WIDGET,
    )
}
