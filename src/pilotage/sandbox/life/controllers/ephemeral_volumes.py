"""Claims for the generic ephemeral volumes of pods: one per volume, owned by the pod, gone with it.

The claim of volume `v` of pod `p` is named `p-v`. A claim of that name that the pod does not own is another's
and is left alone; the pod then waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pilotage.sandbox.life.controllers.controller import ControllerContext, Due, Interest, Object, controller_reference
from pilotage.sandbox.life.controllers.volume_index import CLAIMS
from pilotage.sandbox.life.facts import PodFacts
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.storage.store import Key


class EphemeralVolumeController:
    name = "ephemeral-volume"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def interests(self) -> Mapping[str, Interest]:
        return {"pods": _pod_seen, CLAIMS: self._claim_gone}

    def reconcile(self, key: Key) -> float | None:
        facts = self._context.index.pod(key)
        pod = self._context.read(key)
        if facts is None or pod is None or not facts.is_active:
            return None
        for volume in pod["spec"].get("volumes") or ():
            template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
            claim = Key(CLAIMS, key.namespace, f"{key.name}-{volume['name']}")
            if template is not None and self._context.index.get(claim) is None:
                self._context.create(CLAIMS, key.namespace, _claim(claim, pod, template))
        return None

    def _claim_gone(self, seen: ObservedChange) -> Iterable[Due]:
        """A claim that was deleted under its pod is made anew."""
        owner = seen.facts.controller if seen.new is None else None
        if owner is None or owner.kind != "Pod":
            return ()
        return (Due(Key("pods", seen.key.namespace, owner.name)),)


def _pod_seen(seen: ObservedChange) -> Iterable[Due]:
    pod = seen.new
    if not isinstance(pod, PodFacts) or not pod.has_ephemeral_volumes or seen.old is not None:
        return ()
    return (Due(pod.key),)


def _claim(key: Key, pod: Object, template: Object) -> Object:
    asked = template.get("metadata") or {}
    metadata: Object = {"name": key.name, "namespace": key.namespace, "ownerReferences": [controller_reference(pod)]}
    for field in ("labels", "annotations"):
        if asked.get(field):
            metadata[field] = dict(asked[field])
    spec = dict(template.get("spec") or {})
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
