"""Which pods use a claim: by their spec, or by the name that a controller generated and wrote into their status."""

from __future__ import annotations

from typing import Any

from pilotage.api import ClusterIndex
from pilotage.model import Pod


class ReferencingPods(ClusterIndex):
    """Claim ("namespace/name") -> keys of the pods that use it."""

    kinds = frozenset({"Pod"})

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, None]] = {}

    def of(self, claim_key: str) -> list[str]:
        return list(self._pods.get(claim_key, ()))

    def object_put(self, kind: str, old: Any | None, new: Pod) -> None:
        if old is not None:
            if _uses_the_same(old, new):
                return
            self._drop(old)
        for claim_key in used_claims(new):
            self._pods.setdefault(claim_key, {})[new.key] = None

    def object_removed(self, kind: str, obj: Pod) -> None:
        self._drop(obj)

    def _drop(self, pod: Pod) -> None:
        for claim_key in used_claims(pod):
            users = self._pods.get(claim_key)
            if users is None:
                continue
            users.pop(pod.key, None)
            if not users:
                del self._pods[claim_key]


def _uses_the_same(old: Pod, new: Pod) -> bool:
    """Most changes of a pod are about other things than its claims."""
    if old.spec is not new.spec or old.name != new.name:
        return False
    return not new.spec.resource_claims or old.status.resource_claim_statuses == new.status.resource_claim_statuses


def used_claims(pod: Pod) -> list[str]:
    """The claims of a pod as far as they have names."""
    if not pod.spec.resource_claims:
        return []
    generated = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    return [
        f"{pod.namespace}/{name}"
        for entry in pod.spec.resource_claims
        if (name := entry.resource_claim_name or generated.get(entry.name))
    ]
