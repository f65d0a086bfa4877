"""The part of a pod template that queueing is about: what pods need and which nodes they accept.

Workloads keep this much of their jobs' templates. Volumes, commands and the labels that the Job controller writes are
left out: they say nothing about quota or flavors, and jobs of the same shape stay equal without them.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from pilotage.jobs.adapters import marks
from pilotage.model.meta import ObjectMeta
from pilotage.model.pod_spec import Affinity, Container, PodSpecFields, TemplateSpec
from pilotage.model.workloads import PodTemplate

_WRITTEN_BY_THE_JOB_CONTROLLER = frozenset(
    {
        "controller-uid",
        "job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
        "batch.kubernetes.io/job-completion-index",
    }
)

_ADDED = frozenset({marks.POD_SET, marks.CLUSTER_QUEUE_NAME, marks.LOCAL_QUEUE_NAME})
"""What a start adds."""


def queued_template(labels: Mapping[str, str], annotations: Mapping[str, str], spec: PodSpecFields) -> PodTemplate:
    own = {name: value for name, value in labels.items() if not is_job_controllers(name) and name not in _ADDED}
    kept = {name: value for name, value in annotations.items() if name != marks.WORKLOAD}
    return PodTemplate(metadata=ObjectMeta(labels=own, annotations=kept), spec=queued_spec(spec))


def is_job_controllers(label: str) -> bool:
    """Whether the Job controller writes this label."""
    return label in _WRITTEN_BY_THE_JOB_CONTROLLER


def queued_spec(spec: PodSpecFields) -> TemplateSpec:
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    return TemplateSpec(
        runtime_class_name=spec.runtime_class_name if isinstance(spec, TemplateSpec) else "",
        priority_class_name=spec.priority_class_name,
        node_selector=dict(spec.node_selector),
        affinity=Affinity(node_affinity=affinity) if affinity is not None else None,
        tolerations=spec.tolerations,
        containers=tuple(map(_queued_container, spec.containers)),
        init_containers=tuple(map(_queued_container, spec.init_containers)),
        overhead=dict(spec.overhead),
        resources=spec.resources,
    )


def _queued_container(container: Container) -> Container:
    return replace(container, ports=(), restart_policy_rules=(), volume_mounts=())
