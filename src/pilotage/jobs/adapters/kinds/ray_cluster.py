"""RayCluster (ray.io): a head and groups of workers. It serves until it is deleted."""

from __future__ import annotations

from typing import Final

from pilotage.jobs.adapters.kinds.custom import CustomKind, Standing, condition_of, suspended_by
from pilotage.jobs.adapters.kinds.job_kind import CannotQueue
from pilotage.jobs.adapters.kinds.pods_in_spec import Json, Path, PodsInSpec, number_at, numbered_maps_at, text_at
from pilotage.model.custom_jobs import CustomJob, custom_kind

HEAD: Final = "head"


def pods_of_cluster(cluster: Json, path: Path) -> list[PodsInSpec]:
    """`path`: where the spec of the cluster is."""
    if cluster.get("enableInTreeAutoscaling") is True:
        raise CannotQueue("enableInTreeAutoscaling would start pods that no quota was given for; set it to false")
    workers = [
        PodsInSpec(
            name=text_at(one, "groupName").lower(),
            count=number_at(one, 1, "replicas") * max(number_at(one, 1, "numOfHosts"), 1),
            path=(*path, "workerGroupSpecs", index, "template"),
        )
        for index, one in numbered_maps_at(cluster, "workerGroupSpecs")
        if one.get("suspend") is not True
    ]
    return [PodsInSpec(HEAD, 1, (*path, "headGroupSpec", "template")), *workers]


def _standing(job: CustomJob) -> Standing:
    state = text_at(job.status, "state")
    was_made = bool(state or job.status.get("conditions"))
    is_suspended = state == "suspended" or condition_of(job, "RayClusterSuspended") is not None
    return Standing(is_active=was_made and not is_suspended, are_pods_ready=state == "ready")


RAY_CLUSTER = CustomKind(
    **suspended_by("ray.io", "RayCluster"),
    resource=custom_kind("ray.io", "v1", "RayCluster"),
    pods=lambda job: pods_of_cluster(job.spec, ()),
    standing=_standing,
)
