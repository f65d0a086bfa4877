"""Kueue's kinds, with the columns that their definitions ask for in a real cluster."""

from __future__ import annotations

from typing import Any, Final

from pilotage.sandbox.http.tables.custom import custom_kind


def _column(name: str, path: str, kind: str = "string", priority: int = 0) -> dict[str, Any]:
    return {"name": name, "jsonPath": path, "type": kind, "priority": priority}


def _condition(name: str) -> dict[str, Any]:
    return _column(name, f".status.conditions[?(@.type=='{name}')].status")


_AGE: Final = _column("Age", ".metadata.creationTimestamp", "date")

KUEUE: Final = {
    "Workload": custom_kind(
        [
            _column("Queue", ".spec.queueName"),
            _column("Reserved in", ".status.admission.clusterQueue"),
            _condition("Admitted"),
            _condition("Finished"),
            _AGE,
        ]
    ),
    "LocalQueue": custom_kind(
        [
            _column("ClusterQueue", ".spec.clusterQueue"),
            _column("Pending Workloads", ".status.pendingWorkloads", "integer"),
            _column("Admitted Workloads", ".status.admittedWorkloads", "integer"),
        ]
    ),
    "ClusterQueue": custom_kind(
        [
            _column("Cohort", ".spec.cohortName"),
            _column("Strategy", ".spec.queueingStrategy", priority=1),
            _column("Pending Workloads", ".status.pendingWorkloads", "integer"),
            _column("Admitted Workloads", ".status.admittedWorkloads", "integer", 1),
        ]
    ),
    "Cohort": custom_kind([_column("Parent", ".spec.parentName"), _AGE]),
    "AdmissionCheck": custom_kind([_column("Controller", ".spec.controllerName"), _condition("Active"), _AGE]),
    "ResourceFlavor": custom_kind([_AGE]),
    "WorkloadPriorityClass": custom_kind([_column("Value", ".value", "integer")]),
}
