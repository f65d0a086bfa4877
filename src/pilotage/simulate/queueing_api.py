"""The API of a queueing scenario, in memory: what is written is what is there.

A test may put a server in its place, which says itself what became of a write.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from pilotage.model.kueue import Workload, WorkloadStatus

Json = dict[str, Any]


class QueueingApi:
    """Each method answers with what is stored afterwards."""

    def create(self, obj: Json) -> Json:
        return obj

    def update(self, obj: Json) -> Json:
        """All but its status."""
        return obj

    def patch(self, stored: Json, patch: Json, subresource: str = "") -> Json:
        """A merge patch, whose metadata says only for which version it is meant."""
        return merged(stored, {key: value for key, value in patch.items() if key != "metadata"})

    def write_status(self, workload: Workload, status: WorkloadStatus) -> Workload:
        return replace(workload, status=status)

    def deactivate(self, workload: Workload) -> Workload:
        return replace(workload, spec=replace(workload.spec, active=False))

    def delete(self, kind: str, namespace: str, name: str) -> None: ...


def merged(base: Json, patch: Json) -> Json:
    """JSON merge patch."""
    result = dict(base)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            known = result.get(key)
            result[key] = merged(known if isinstance(known, dict) else {}, value)
        else:
            result[key] = value
    return result
