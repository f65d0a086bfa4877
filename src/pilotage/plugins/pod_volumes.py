"""Which PersistentVolumeClaims a pod uses: by name, or generated for an ephemeral volume."""

from __future__ import annotations

from typing import Final, NamedTuple

from pilotage.api import Reason
from pilotage.model import Pod
from pilotage.model.pod_spec import PodSpec
from pilotage.model.storage import PersistentVolume, PersistentVolumeClaim

_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_MEMO: Final = "pod volumes: claims"
_MEMO_OF_NAMES: Final = "pod volumes: names of claims"


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
        for name, is_ephemeral in mounted(spec)
    )


def has_claims(pod: Pod) -> bool:
    return bool(pod.spec.volumes) and bool(mounted(pod.spec))


def uses_claim(pod: Pod, namespace: str, name: str, *, with_ephemeral: bool = True) -> bool:
    """Whether the pod mounts this claim."""
    if pod.namespace != namespace or not pod.spec.volumes:
        return False
    named, ephemeral = _names(pod.spec)
    if name in named:
        return True
    own = f"{pod.name}-"
    return with_ephemeral and name.startswith(own) and name.removeprefix(own) in ephemeral


def claim_names(spec: PodSpec) -> frozenset[str]:
    """The claims that a pod names itself."""
    return _names(spec)[0]


def _names(spec: PodSpec) -> tuple[frozenset[str], frozenset[str]]:
    """Claims, and volumes whose claims are named after the pod: at an event all pods that wait may be asked."""
    known: tuple[frozenset[str], frozenset[str]] | None = spec.memo.get(_MEMO_OF_NAMES)
    if known is None:
        found = mounted(spec)
        named = frozenset(name for name, is_ephemeral in found if not is_ephemeral)
        known = spec.memo[_MEMO_OF_NAMES] = (named, frozenset(name for name, is_ephemeral in found if is_ephemeral))
    return known


def class_name_of(claim_or_volume: PersistentVolumeClaim | PersistentVolume) -> str:
    """The storage class, in the old annotation or in the spec; "" if there is none."""
    named = claim_or_volume.annotations.get(_CLASS_ANNOTATION)
    return named if named is not None else claim_or_volume.spec.storage_class_name or ""


def not_created_for(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """Why the claim of an ephemeral volume is not this pod's; None if it is."""
    owner = claim.metadata.controller
    if claim.namespace == pod.namespace and owner is not None and owner.uid == pod.uid:
        return None
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def claim_not_found(name: str) -> Reason:
    return Reason("ClaimNotFound", f'persistentvolumeclaim "{name}" not found', unresolvable=True)


def mounted(spec: PodSpec) -> tuple[tuple[str, bool], ...]:
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
