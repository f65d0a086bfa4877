"""RayJob (ray.io): a RayCluster of its own, and with submissionMode K8sJobMode a pod that submits to it."""

from __future__ import annotations

from typing import Final

from pilotage.jobs.adapters.facts import JobEnding
from pilotage.jobs.adapters.kinds.custom import CustomKind, Standing, suspended_by
from pilotage.jobs.adapters.kinds.job_kind import CannotQueue
from pilotage.jobs.adapters.kinds.pods_in_spec import PodsInSpec, map_at, text_at
from pilotage.jobs.adapters.kinds.ray_cluster import pods_of_cluster
from pilotage.model.custom_jobs import CustomJob, custom_kind
from pilotage.model.pod_spec import Container, ResourceRequirements, TemplateSpec
from pilotage.model.workloads import PodTemplate

_SUBMITTER: Final = "submitter"
_SUBMITS_BY_JOB: Final = "K8sJobMode"
_TEMPLATE_OF_KUBERAY: Final = PodTemplate(
    spec=TemplateSpec(
        containers=(
            Container(
                name="ray-job-submitter",
                resources=ResourceRequirements(
                    requests={"cpu": "500m", "memory": "200Mi"}, limits={"cpu": "1", "memory": "1Gi"}
                ),
            ),
        )
    )
)
"""What KubeRay submits with if the RayJob does not say how."""


def _pods(job: CustomJob) -> list[PodsInSpec]:
    if job.spec.get("clusterSelector"):
        raise CannotQueue("clusterSelector names a cluster that runs already; queue that RayCluster instead")
    if job.spec.get("shutdownAfterJobFinishes") is not True:
        raise CannotQueue("set shutdownAfterJobFinishes: its cluster would run on without quota when the job has ended")
    cluster = map_at(job.spec, "rayClusterSpec")
    if not cluster:
        raise CannotQueue("it has no rayClusterSpec")
    pods = pods_of_cluster(cluster, ("rayClusterSpec",))
    if (text_at(job.spec, "submissionMode") or _SUBMITS_BY_JOB) == _SUBMITS_BY_JOB:
        if job.spec.get("submitterPodTemplate"):
            pods.append(PodsInSpec(_SUBMITTER, 1, ("submitterPodTemplate",)))
        else:
            pods.append(PodsInSpec(_SUBMITTER, 1, template=_TEMPLATE_OF_KUBERAY))
    return pods


def _standing(job: CustomJob) -> Standing:
    state = text_at(job.status, "jobDeploymentStatus")
    ending = None
    if state in ("Complete", "Failed"):
        succeeded = text_at(job.status, "jobStatus") == "SUCCEEDED"
        default = "Job finished successfully" if succeeded else "Job failed"
        ending = JobEnding(succeeded, text_at(job.status, "message") or default)
    return Standing(
        is_active=state not in ("", "Suspended", "Complete", "Failed"),
        are_pods_ready=text_at(job.status, "rayClusterStatus", "state") == "ready",
        ending=ending,
    )


RAY_JOB = CustomKind(
    **suspended_by("ray.io", "RayJob"),
    resource=custom_kind("ray.io", "v1", "RayJob"),
    pods=_pods,
    standing=_standing,
)
