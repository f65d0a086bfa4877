"""Queues, flavors and checks are kept by a finalizer until nothing uses them any more.

A ClusterQueue that is deleted admits nothing more and stays, as Terminating, until the last workload has given back its
quota; a flavor or a check stays until no ClusterQueue names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pilotage.jobs.controller.objects import Objects, ReconcileKey
from pilotage.jobs.controller.refusals import of_check
from pilotage.jobs.controller.release_order import held_quota
from pilotage.jobs.controller.steps import PatchObject, Step
from pilotage.jobs.controller.workload_facts import hold_patch, release_patch
from pilotage.model.kueue import AdmissionCheck, ClusterQueue, ResourceFlavor

KEPT: Final = ("ClusterQueue", "ResourceFlavor", "AdmissionCheck")

Kept = ClusterQueue | ResourceFlavor | AdmissionCheck


def steps_of_kept(subject: ReconcileKey, objects: Objects) -> Iterator[Step]:
    """Hold it as long as it is there; let it go when it is deleted and not needed any more."""
    obj: Kept | None = objects.of(subject.kind).get(subject.key)
    if obj is None:
        return
    if not is_deleted(obj):
        patch = hold_patch(obj)
    else:
        patch = None if _is_needed(obj, objects) else release_patch(obj)
    if patch is not None:
        yield PatchObject(obj, patch)
    elif isinstance(obj, AdmissionCheck):
        yield from of_check(obj)


def is_deleted(obj: Kept) -> bool:
    return obj.metadata.deletion_timestamp is not None


def _is_needed(obj: Kept, objects: Objects) -> bool:
    queues: list[ClusterQueue] = list(objects.of("ClusterQueue").values())
    match obj:
        case ClusterQueue():
            held = (held_quota(workload) for workload in objects.workloads.values())
            return any(one is not None and one.cluster_queue == obj.name for one in held)
        case ResourceFlavor():
            groups = (group for queue in queues for group in queue.spec.resource_groups)
            return any(flavor.name == obj.name for group in groups for flavor in group.flavors)
        case AdmissionCheck():
            strategies = (queue.spec.admission_checks_strategy for queue in queues)
            return any(rule.name == obj.name for one in strategies if one is not None for rule in one.admission_checks)
