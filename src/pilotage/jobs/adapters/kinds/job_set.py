"""JobSet (jobset.x-k8s.io): each replicated Job is a pod set."""

from __future__ import annotations

from pilotage.jobs.adapters.kinds.custom import CustomKind, Standing, ending_by_condition, suspended_by
from pilotage.jobs.adapters.kinds.pods_in_spec import Json, PodsInSpec, maps_at, number_at, numbered_maps_at, text_at
from pilotage.model.custom_jobs import CustomJob, custom_kind


def _pods(job: CustomJob) -> list[PodsInSpec]:
    return [
        PodsInSpec(
            name=text_at(one, "name"),
            count=_replicas(one) * _pods_of_each(one),
            path=("replicatedJobs", index, "template", "spec", "template"),
        )
        for index, one in numbered_maps_at(job.spec, "replicatedJobs")
    ]


def _replicas(replicated: Json) -> int:
    return number_at(replicated, 1, "replicas")


def _pods_of_each(replicated: Json) -> int:
    parallelism = number_at(replicated, 1, "template", "spec", "parallelism")
    return min(parallelism, number_at(replicated, parallelism, "template", "spec", "completions"))


def _standing(job: CustomJob) -> Standing:
    statuses = {text_at(one, "name"): one for one in maps_at(job.status, "replicatedJobsStatus")}
    replicated = maps_at(job.spec, "replicatedJobs")
    done = {name: number_at(one, 0, "succeeded") for name, one in statuses.items()}
    ready = sum(number_at(one, 0, "ready") for one in statuses.values()) + sum(done.values())
    return Standing(
        is_active=any(number_at(one, 0, "active") > 0 for one in statuses.values()),
        are_pods_ready=ready == sum(map(_replicas, replicated)),
        ending=ending_by_condition(job, succeeded="Completed", failed="Failed"),
        reclaimable={
            name: count * _pods_of_each(one)
            for one in replicated
            if 0 < (count := done.get(name := text_at(one, "name"), 0)) <= _replicas(one)
        },
    )


JOB_SET = CustomKind(
    **suspended_by("jobset.x-k8s.io", "JobSet"),
    resource=custom_kind("jobset.x-k8s.io", "v1alpha2", "JobSet"),
    pods=_pods,
    standing=_standing,
)
