"""What the scheduler must be allowed to do; `deploy/base/rbac.yaml` grants this and nothing more."""

from __future__ import annotations

from typing import Final

from pilotage.kube.election import LeaseName
from pilotage.kube.preflight import Permission

BINDING: Final = Permission("create", "", "pods", "binding")
WRITES: Final = (
    BINDING,
    Permission("patch", "", "pods", "status"),
    Permission("delete", "", "pods"),
    Permission("create", "events.k8s.io", "events"),
    Permission("patch", "events.k8s.io", "events"),
    Permission("patch", "", "persistentvolumes"),
    Permission("patch", "", "persistentvolumeclaims"),
    Permission("create", "resource.k8s.io", "resourceclaims"),
    Permission("patch", "resource.k8s.io", "resourceclaims"),
    Permission("delete", "resource.k8s.io", "resourceclaims"),
    Permission("patch", "resource.k8s.io", "resourceclaims", "status"),
)

_KUEUE: Final = "kueue.x-k8s.io"
QUEUEING_WRITES: Final = (
    Permission("create", _KUEUE, "workloads"),
    Permission("patch", _KUEUE, "workloads"),
    Permission("delete", _KUEUE, "workloads"),
    Permission("patch", _KUEUE, "clusterqueues"),
    Permission("patch", _KUEUE, "resourceflavors"),
    Permission("patch", _KUEUE, "admissionchecks"),
    Permission("patch", _KUEUE, "workloads", "status"),
    Permission("patch", _KUEUE, "clusterqueues", "status"),
    Permission("patch", _KUEUE, "localqueues", "status"),
    Permission("patch", "batch", "jobs"),
    Permission("patch", "batch", "jobs", "status"),
    Permission("patch", "", "pods"),
)
"""What `--workload-queueing` needs besides; `deploy/workload-queueing` grants it."""


def lease_permissions(lease: LeaseName) -> tuple[Permission, ...]:
    """`create` cannot be granted for one name only: a lease that does not exist has none yet."""
    names = {"get": lease.name, "create": "", "update": lease.name}
    return tuple(
        Permission(verb, "coordination.k8s.io", "leases", "", lease.namespace, name) for verb, name in names.items()
    )
