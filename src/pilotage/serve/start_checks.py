"""What is looked at before anything is scheduled: it would otherwise only show as pods that stay pending."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from pilotage.assembly import SchedulerOptions, watched_kinds
from pilotage.clock import Clock
from pilotage.kube.client import KubeClient, ServerVersion
from pilotage.kube.election import LeaseName
from pilotage.kube.preflight import (
    Permission,
    Refused,
    await_server,
    has_kind,
    missing,
    missing_permissions,
    version_warning,
)
from pilotage.model import KINDS
from pilotage.model.kinds import POD_GROUPS, WATCHED_FOR_QUEUEING

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

GROUP_WRITES: Final = (Permission("patch", "scheduling.k8s.io", "podgroups", "status"),)
"""What pod groups (feature gate GenericWorkload) need besides, where the API server has them."""

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


log = logging.getLogger(__name__)

FOLLOWED_VERSION: Final = "1.37"
"""The version of Kubernetes whose scheduler this one follows."""


async def check_server(
    client: KubeClient,
    clock: Clock,
    options: SchedulerOptions,
    lease: LeaseName | None,
    on_problem: Callable[[str, float], None],
) -> ServerVersion:
    """Wait for the API server and return its version; warns of what it does not allow. Refused if it is of no use.

    `lease` is the one to be held, if any; `on_problem` hears why and how long it waits.
    """
    queueing = () if options.queueing is None else WATCHED_FOR_QUEUEING
    watched = watched_kinds(options)
    kinds = [KINDS[resource] for resource in dict.fromkeys((*watched.own, *queueing))]
    kinds += watched.foreign.values()
    server = await await_server(client, kinds, clock, on_problem, watched.wanted_by)
    warning = version_warning(server)
    if warning:
        log.warning("%s", warning)
    await _check_writing(client, options, lease)
    if options.queueing is not None and not await has_kind(client, KINDS["workloads"]):
        log.warning("nothing can be queued: this cluster lacks Kueue's kinds; kubectl apply -f deploy/crds")
    return server


async def _has_pod_groups(client: KubeClient) -> bool:
    kind = KINDS[POD_GROUPS]
    return await has_kind(client, kind) or await has_kind(client, kind.in_other_version())


async def _check_writing(client: KubeClient, options: SchedulerOptions, lease: LeaseName | None) -> None:
    wanted = [*WRITES]
    if options.feature_gates["GenericWorkload"] and await _has_pod_groups(client):
        wanted += GROUP_WRITES
    if options.queueing is not None:
        wanted += QUEUEING_WRITES
    if lease is not None:
        wanted += lease_permissions(lease)
    lacking = await missing_permissions(client, wanted)
    if BINDING in lacking:
        raise Refused(missing(permission) for permission in lacking)
    for permission in lacking:
        log.warning("%s", missing(permission))
