"""Kubeflow's training jobs (kubeflow.org): PyTorchJob, TFJob, XGBoostJob, PaddleJob, JAXJob and MPIJob.

They differ in the name of the field that holds the replicas of each role, and in the order of the roles.
"""

from __future__ import annotations

from typing import Final

from pilotage.jobs.adapters.kinds.custom import CustomKind, Standing, condition_of, ending_by_condition, suspended_by
from pilotage.jobs.adapters.kinds.pods_in_spec import PodsInSpec, map_at, number_at
from pilotage.model.custom_jobs import CustomJob, custom_kind

_GROUP: Final = "kubeflow.org"


def _training_job(kind: str, replicas: str, roles: tuple[str, ...], version: str = "v1") -> CustomKind:
    def pods(job: CustomJob) -> list[PodsInSpec]:
        given = map_at(job.spec, replicas)
        ordered = [role for role in roles if role in given] + sorted(given.keys() - set(roles))
        return [
            PodsInSpec(role.lower(), number_at(given, 1, role, "replicas"), (replicas, role, "template"))
            for role in ordered
        ]

    return CustomKind(
        **suspended_by(_GROUP, kind),
        resource=custom_kind(_GROUP, version, kind),
        pods=pods,
        standing=_standing,
        own_priority_class=("runPolicy", "schedulingPolicy", "priorityClass"),
    )


def _standing(job: CustomJob) -> Standing:
    statuses = map_at(job.status, "replicaStatuses")
    return Standing(
        is_active=any(number_at(statuses, 0, role, "active") > 0 for role in statuses),
        are_pods_ready=condition_of(job, "Running") is not None,
        ending=ending_by_condition(job, succeeded="Succeeded", failed="Failed"),
    )


TRAINING_JOBS: Final = (
    _training_job("PyTorchJob", "pytorchReplicaSpecs", ("Master", "Worker")),
    _training_job("TFJob", "tfReplicaSpecs", ("Chief", "Master", "PS", "Worker", "Evaluator")),
    _training_job("XGBoostJob", "xgbReplicaSpecs", ("Master", "Worker")),
    _training_job("PaddleJob", "paddleReplicaSpecs", ("Master", "Worker")),
    _training_job("JAXJob", "jaxReplicaSpecs", ("Worker",)),
    _training_job("MPIJob", "mpiReplicaSpecs", ("Launcher", "Worker"), version="v2beta1"),
)
