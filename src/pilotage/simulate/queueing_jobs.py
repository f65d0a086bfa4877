"""Jobs in queueing scenarios: kept suspended, started and restored by the real adapter of batch Jobs.

The Job controller is played by the steps of the scenario, except for one thing: a suspended Job has no pods.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pilotage.jobs.adapters import batch_job, marks
from pilotage.jobs.adapters.pod_set_info import PodSetConflict, pod_set_infos
from pilotage.jobs.adapters.workload_draft import workload_name
from pilotage.model.kueue import ResourceFlavor, Workload, WorkloadPriorityClass
from pilotage.model.workloads import Job
from pilotage.simulate.queueing_api import QueueingApi
from pilotage.simulate.queueing_objects import API_VERSION, NAMESPACE, pod_spec

Json = dict[str, Any]


def job_object(s: Json) -> Json:
    labels = {marks.QUEUE_NAME: s["queue"]} if "queue" in s else {}
    if "priorityClass" in s:
        labels[marks.PRIORITY_CLASS] = s["priorityClass"]
    annotations = {marks.MIN_PARALLELISM: str(s["minParallelism"])} if "minParallelism" in s else {}
    spec: Json = {"parallelism": s.get("parallelism", 1), "template": {"spec": pod_spec(s)}}
    if "completions" in s:
        spec["completions"] = s["completions"]
    metadata = {
        "name": s["name"],
        "uid": s["name"],
        "namespace": NAMESPACE,
        "labels": labels,
        "annotations": annotations,
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec, "status": {}}


class QueuedJob:
    """A Job and what is done to it."""

    def __init__(self, fields: Json, api: QueueingApi) -> None:
        self._api = api
        self._json = api.create(job_object(fields))
        self.name: str = fields["name"]
        self.is_queued = "queue" in fields
        if self.is_queued and not self.job.spec.suspend:
            self._patch(batch_job.suspend_patch(self.job))

    @property
    def job(self) -> Job:
        return msgspec.convert(self._json, Job)

    @property
    def workload_key(self) -> str:
        return f"{NAMESPACE}/{workload_name(batch_job.KIND, self.name, self.name)}"

    @property
    def stored(self) -> Json:
        return self._json

    def workload(self, classes: dict[str, WorkloadPriorityClass], created: str) -> Json:
        job = self.job
        found = classes.get(job.labels.get(marks.PRIORITY_CLASS, ""))
        name = self.workload_key.partition("/")[2]
        spec = {
            "queueName": batch_job.queue_of(job),
            "priority": found.value if found is not None else 0,
            "podSets": msgspec.to_builtins(batch_job.pod_sets(job)),
        }
        metadata = {"name": name, "namespace": NAMESPACE, "uid": name, "creationTimestamp": created}
        return {"apiVersion": API_VERSION, "kind": "Workload", "metadata": metadata, "spec": spec}

    def start(self, workload: Workload, flavors: dict[str, ResourceFlavor]) -> None:
        infos = pod_set_infos(workload, flavors)
        if isinstance(infos, PodSetConflict):
            raise ValueError(infos.message)
        self._patch(batch_job.start_patch(self.job, infos[0]))

    def stop(self, workload: Workload) -> None:
        self._patch(batch_job.suspend_patch(self.job))
        self.report({"active": 0, "ready": 0})
        restored = batch_job.restore_patch(self.job, workload.spec.pod_sets)
        if restored is not None:
            self._patch(restored)

    def report(self, status: Json) -> None:
        """What the Job controller says."""
        self._json = self._api.patch(self._json, {"status": status}, "status")

    def _patch(self, patch: Json) -> None:
        self._json = self._api.patch(self._json, patch)
