"""Workloads and services: who owns pods and which pods belong together.

The scheduler reads selectors (default spread constraints follow from them); job queueing reads Jobs.
"""

from __future__ import annotations

import msgspec

from pilotage.model.meta import ApiObject, ObjectMeta, Shape, TimedCondition
from pilotage.model.pod_spec import TemplateSpec
from pilotage.model.selectors import LabelSelector


class PodTemplate(Shape, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: TemplateSpec = msgspec.field(default_factory=TemplateSpec)


class ServiceSpec(Shape, frozen=True):
    selector: dict[str, str] = msgspec.field(default_factory=dict)
    type: str = "ClusterIP"


class Service(ApiObject, frozen=True):
    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)


class ReplicaSetSpec(Shape, frozen=True):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)


class ReplicaSetStatus(Shape, frozen=True):
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    observed_generation: int = 0


class ReplicaSet(ApiObject, frozen=True):
    spec: ReplicaSetSpec = msgspec.field(default_factory=ReplicaSetSpec)
    status: ReplicaSetStatus = ReplicaSetStatus()


class ReplicationControllerSpec(Shape, frozen=True):
    replicas: int | None = None
    selector: dict[str, str] = msgspec.field(default_factory=dict)


class ReplicationController(ApiObject, frozen=True):
    spec: ReplicationControllerSpec = msgspec.field(default_factory=ReplicationControllerSpec)
    status: ReplicaSetStatus = ReplicaSetStatus()


class StatefulSetSpec(Shape, frozen=True):
    replicas: int | None = None
    selector: LabelSelector | None = None
    service_name: str = ""
    pod_management_policy: str = ""
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)


class StatefulSet(ApiObject, frozen=True):
    spec: StatefulSetSpec = msgspec.field(default_factory=StatefulSetSpec)
    status: ReplicaSetStatus = ReplicaSetStatus()


class DeploymentSpec(Shape, frozen=True):
    replicas: int | None = None
    selector: LabelSelector | None = None
    paused: bool = False
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)


class Deployment(ApiObject, frozen=True):
    spec: DeploymentSpec = msgspec.field(default_factory=DeploymentSpec)
    status: ReplicaSetStatus = ReplicaSetStatus()


class JobSpec(Shape, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = ""
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    suspend: bool = False
    managed_by: str | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)


class UncountedPods(Shape, frozen=True):
    """UIDs of pods that have ended and are not counted in the status yet."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(Shape, frozen=True):
    active: int = 0
    ready: int | None = None
    terminating: int | None = None
    succeeded: int = 0
    failed: int = 0
    start_time: str | None = None
    completion_time: str | None = None
    uncounted_terminated_pods: UncountedPods = UncountedPods()
    conditions: tuple[TimedCondition, ...] = ()


class Job(ApiObject, frozen=True):
    spec: JobSpec = msgspec.field(default_factory=JobSpec)
    status: JobStatus = JobStatus()
