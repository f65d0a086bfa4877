"""Which PersistentVolumeClaims a pod uses: by name, or generated for an ephemeral volume."""

from __future__ import annotations

from typing import Final, NamedTuple

from pilotage.model import Pod
from pilotage.model.pod_spec import PodSpec

_MEMO: Final = "pod volumes: claims"


class ClaimOfPod(NamedTuple):
    """A claim that a pod mounts."""

    name: str
    is_ephemeral: bool

    def key(self, pod: Pod) -> str:
        return f"{pod.namespace}/{self.name}"


def claims_of(pod: Pod) -> tuple[ClaimOfPod, ...]:
    """In the order of the pod's volumes; for nearly all pods there is nothing to look at."""
    spec = pod.spec
    if not spec.volumes:
        return ()
    return tuple(
        ClaimOfPod(name, False) if not is_ephemeral else ClaimOfPod(f"{pod.name}-{name}", True)
        for name, is_ephemeral in _mounted(spec)
    )


def has_claims(pod: Pod) -> bool:
    return bool(pod.spec.volumes) and bool(_mounted(pod.spec))


def uses_claim(pod: Pod, namespace: str, name: str, *, with_ephemeral: bool = True) -> bool:
    """Does the pod mount this claim?"""
    if pod.namespace != namespace:
        return False
    return any(claim.name == name for claim in claims_of(pod) if with_ephemeral or not claim.is_ephemeral)


def _mounted(spec: PodSpec) -> tuple[tuple[str, bool], ...]:
    """(claim name, False), or (volume name, True) for a claim that is named after the pod as well."""
    known: tuple[tuple[str, bool], ...] | None = spec.memo.get(_MEMO)
    if known is None:
        found: list[tuple[str, bool]] = []
        for volume in spec.volumes:
            if volume.persistent_volume_claim is not None:
                found.append((volume.persistent_volume_claim.claim_name, False))
            elif volume.ephemeral is not None:
                found.append((volume.name, True))
        known = spec.memo[_MEMO] = tuple(found)
    return known
