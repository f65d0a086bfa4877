"""StatefulSets: pods with names that stay, one after the other, each with claims of its own.

    web-0, web-1, ...   the claim `data` of web-1 is data-web-1 and outlives the pod

What to do next is decided in `stateful_set_steps`; this file finds the pods of the set, makes pods and claims, and
writes the status. A pod below the partition of a rolling update is made of the current revision, all others of the
update revision; once all pods are of the update revision it becomes the current one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.life.controllers.controller import (
    BATCH,
    CHILD_DELAY,
    ControllerContext,
    Due,
    Interest,
    Object,
    controller_reference,
    itself,
    record_event,
)
from pilotage.sandbox.life.controllers.int_or_percent import scaled_value
from pilotage.sandbox.life.controllers.pod_template import PodTemplate
from pilotage.sandbox.life.controllers.revisions import REVISION_HASH, RevisionHistory, Revisions
from pilotage.sandbox.life.controllers.stateful_set_steps import Replicas, Steps, next_steps
from pilotage.sandbox.life.facts import PodFacts
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.storage.store import Key

STATEFUL_SETS: Final = "statefulsets.apps"

_CLAIMS: Final = "persistentvolumeclaims"
_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_POD_INDEX: Final = "apps.kubernetes.io/pod-index"


class StatefulSetController:
    name = "statefulset"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._history = RevisionHistory(context)

    def interests(self) -> Mapping[str, Interest]:
        return {STATEFUL_SETS: itself, "pods": self._set_of_pod}

    def reconcile(self, key: Key) -> float | None:
        stateful_set = self._context.read(key)
        if stateful_set is None or "deletionTimestamp" in stateful_set["metadata"]:
            return None
        revisions = self._history.of(stateful_set)
        current = self._current_revision(stateful_set, revisions)
        replicas, wait = self._replicas(stateful_set, revisions)
        steps = next_steps(replicas)
        is_done = True
        try:
            is_done = self._act(stateful_set, revisions, current, steps)
        finally:
            self._update_status(key, stateful_set, revisions, current)
        used = {pod.labels.get(REVISION_HASH, "") for pod in replicas.pods.values()}
        self._history.forget_old(stateful_set, revisions, {*used, current})
        return wait if is_done else 0.0

    def _set_of_pod(self, seen: ObservedChange) -> Iterable[Due]:
        owner = seen.facts.controller or (seen.old.controller if seen.old is not None else None)
        if owner is None or owner.kind != "StatefulSet":
            return ()
        # A pod that is gone is missed at once: others wait for its place.
        return (Due(Key(STATEFUL_SETS, seen.key.namespace, owner.name), CHILD_DELAY if seen.new else 0.0),)

    def _current_revision(self, stateful_set: Object, revisions: Revisions) -> str:
        known = (stateful_set.get("status") or {}).get("currentRevision") or ""
        return known if revisions.template_of(known) is not None else str(revisions.current["metadata"]["name"])

    def _pods(self, stateful_set: Object) -> dict[int, PodFacts]:
        found: dict[int, PodFacts] = {}
        for pod in self._context.index.owned_pods(stateful_set["metadata"]["uid"]).pods():
            parent, _, ordinal = pod.key.name.rpartition("-")
            if parent == stateful_set["metadata"]["name"] and ordinal.isdecimal():
                found[int(ordinal)] = pod
        return found

    def _replicas(self, stateful_set: Object, revisions: Revisions) -> tuple[Replicas, float | None]:
        """What is there, and in how many seconds the next pod counts as available by itself."""
        spec, pods = stateful_set["spec"], self._pods(stateful_set)
        waits = {ordinal: self._wait(pod, spec) for ordinal, pod in pods.items()}
        update = revisions.current["metadata"]["name"]
        start = (spec.get("ordinals") or {}).get("start") or 0
        strategy = spec.get("updateStrategy") or {}
        rolling = strategy.get("rollingUpdate") or {}
        replicas = Replicas(
            pods,
            available={ordinal for ordinal, wait in waits.items() if wait is not None and wait <= 0},
            outdated={ordinal for ordinal, pod in pods.items() if pod.labels.get(REVISION_HASH) != update},
            wanted=range(start, start + _size(spec)),
            is_ordered=spec.get("podManagementPolicy") != "Parallel",
            max_unavailable=max(scaled_value(rolling.get("maxUnavailable") or 1, _size(spec), round_up=True), 1),
            update_from=None if strategy.get("type") == "OnDelete" else start + (rolling.get("partition") or 0),
        )
        return replicas, min((wait for wait in waits.values() if wait is not None and wait > 0), default=None)

    def _wait(self, pod: PodFacts, spec: Object) -> float | None:
        """In how many seconds the pod is available; None: not by itself."""
        if not pod.is_active or not pod.is_ready:
            return None
        patience = spec.get("minReadySeconds") or 0
        return self._context.seconds_until(pod.ready_since, patience) if patience else 0.0

    def _act(self, stateful_set: Object, revisions: Revisions, current: str, steps: Steps) -> bool:
        """Take a batch of the steps; False if some are left."""
        for ordinal in steps.create[:BATCH]:
            self._create(stateful_set, revisions, current, ordinal)
        for pod in steps.delete[:BATCH]:
            self._delete(stateful_set, pod)
        return len(steps.create) <= BATCH and len(steps.delete) <= BATCH

    def _create(self, stateful_set: Object, revisions: Revisions, current: str, ordinal: int) -> None:
        spec, update = stateful_set["spec"], str(revisions.current["metadata"]["name"])
        start = (spec.get("ordinals") or {}).get("start") or 0
        partition = ((spec.get("updateStrategy") or {}).get("rollingUpdate") or {}).get("partition") or 0
        revision = current if ordinal < start + partition else update
        pod = new_pod(stateful_set, revisions.template_of(revision) or spec["template"], revision, ordinal)
        self._create_claims(stateful_set, ordinal)
        try:
            self._context.create_pods(stateful_set, [pod])
        except ApiError as error:
            name = pod["metadata"]["name"]
            message = f"create Pod {name} in StatefulSet {stateful_set['metadata']['name']} failed error: {error}"
            record_event(self._context, stateful_set, "Warning", "FailedCreate", message)
            raise

    def _create_claims(self, stateful_set: Object, ordinal: int) -> None:
        metadata, spec = stateful_set["metadata"], stateful_set["spec"]
        for template in spec.get("volumeClaimTemplates") or ():
            name = claim_name(template, metadata["name"], ordinal)
            if self._context.api.store.get(Key(_CLAIMS, metadata["namespace"], name)) is not None:
                continue
            asked = template.get("metadata") or {}
            labels = {**(asked.get("labels") or {}), **((spec.get("selector") or {}).get("matchLabels") or {})}
            claim_metadata: Object = {"name": name, "labels": labels}
            if asked.get("annotations"):
                claim_metadata["annotations"] = dict(asked["annotations"])
            if _retention(spec, "whenDeleted") == "Delete":
                claim_metadata["ownerReferences"] = [controller_reference(stateful_set)]
            claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": claim_metadata}
            self._context.create(_CLAIMS, metadata["namespace"], {**claim, "spec": dict(template["spec"])})

    def _delete(self, stateful_set: Object, pod: PodFacts) -> None:
        spec = stateful_set["spec"]
        ordinal = int(pod.key.name.rpartition("-")[2])
        start = (spec.get("ordinals") or {}).get("start") or 0
        if _retention(spec, "whenScaled") == "Delete" and ordinal not in range(start, start + _size(spec)):
            self._give_claims_to(stateful_set, pod, ordinal)
        self._context.delete(pod)

    def _give_claims_to(self, stateful_set: Object, pod: PodFacts, ordinal: int) -> None:
        """The claims of a pod that is scaled away go with it."""
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.key.name, "uid": pod.uid}
        for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
            name = claim_name(template, stateful_set["metadata"]["name"], ordinal)
            key = Key(_CLAIMS, pod.key.namespace, name)
            claim = self._context.outline(key)
            if claim is not None:
                claim["metadata"]["ownerReferences"] = [owner]
                self._context.write_metadata(key, claim)

    def _update_status(self, key: Key, stateful_set: Object, revisions: Revisions, current: str) -> None:
        pods, spec = self._pods(stateful_set).values(), stateful_set["spec"]
        update = str(revisions.current["metadata"]["name"])
        living = [pod for pod in pods if not pod.is_deleting]
        ready = [pod for pod in pods if pod.phase == "Running" and pod.is_ready]
        status: Object = {
            "observedGeneration": stateful_set["metadata"].get("generation", 0),
            "replicas": len(pods),
            "readyReplicas": len(ready),
            "availableReplicas": sum((wait := self._wait(pod, spec)) is not None and wait <= 0 for pod in ready),
            "currentReplicas": sum(pod.labels.get(REVISION_HASH) == current for pod in living),
            "updatedReplicas": sum(pod.labels.get(REVISION_HASH) == update for pod in living),
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": (stateful_set.get("status") or {}).get("collisionCount") or 0,
        }
        is_rolling = (spec.get("updateStrategy") or {}).get("type") != "OnDelete"
        if is_rolling and status["updatedReplicas"] == status["readyReplicas"] == status["replicas"] == _size(spec):
            status["currentRevision"], status["currentReplicas"] = update, status["updatedReplicas"]
        for count in ("readyReplicas", "currentReplicas", "updatedReplicas"):
            if not status[count]:
                del status[count]
        before = stateful_set.get("status") or {}
        if before.get("conditions"):
            status["conditions"] = before["conditions"]
        if status != before:
            stateful_set["status"] = status
            self._context.write_status(key, stateful_set)


def new_pod(stateful_set: Object, template: Object, revision: str, ordinal: int) -> Object:
    """The pod of this ordinal: its name, its labels, and the volumes that are its claims."""
    metadata, spec = stateful_set["metadata"], stateful_set["spec"]
    name = f"{metadata['name']}-{ordinal}"
    labels = {REVISION_HASH: revision, _POD_NAME: name, _POD_INDEX: str(ordinal)}
    pod = PodTemplate({**stateful_set, "spec": {"template": template}}, labels=labels).make()
    del pod["metadata"]["generateName"]
    pod["metadata"]["name"] = name
    pod["spec"]["hostname"] = name
    if spec.get("serviceName"):
        pod["spec"]["subdomain"] = spec["serviceName"]
    claims = {one["metadata"]["name"]: one for one in spec.get("volumeClaimTemplates") or ()}
    own = [
        {"name": volume, "persistentVolumeClaim": {"claimName": claim_name(one, metadata["name"], ordinal)}}
        for volume, one in claims.items()
    ]
    if own:
        others = [volume for volume in pod["spec"].get("volumes") or () if volume["name"] not in claims]
        pod["spec"]["volumes"] = [*own, *others]
    return pod


def claim_name(template: Object, set_name: str, ordinal: int) -> str:
    return f"{template['metadata']['name']}-{set_name}-{ordinal}"


def _size(spec: Object) -> int:
    replicas = spec.get("replicas")
    return 1 if replicas is None else int(replicas)


def _retention(spec: Object, when: str) -> str:
    return str((spec.get("persistentVolumeClaimRetentionPolicy") or {}).get(when) or "Retain")
