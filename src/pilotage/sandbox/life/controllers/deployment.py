"""Deployments: one ReplicaSet per version of the pod template, moved from the old ones to the newest as asked.

The set of the current template is found by comparing templates and made if it is missing; its name, its selector and
its pods carry the template's hash. How many replicas each set gets next is decided in `rollout`; this file finds the
sets, applies the decision, numbers the revisions, forgets old ones and writes the status. ReplicaSets do the rest, and
their status changes bring the Deployment back here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from zlib import crc32

import msgspec

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.life.controllers.controller import (
    CHILD_DELAY,
    ControllerContext,
    Due,
    Interest,
    Object,
    controller_reference,
    itself,
)
from pilotage.sandbox.life.controllers.deployment_status import deployment_status, seconds_to_deadline
from pilotage.sandbox.life.controllers.replicaset import REPLICA_SETS
from pilotage.sandbox.life.controllers.rollout import Limits, SetSize, in_proportion, recreate, roll
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.storage.store import Key

DEPLOYMENTS: Final = "deployments.apps"
HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
"""On a ReplicaSet: the size of the Deployment when it got its own."""
MOST: Final = "deployment.kubernetes.io/max-replicas"

_SAFE_DIGITS: Final = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class _Sets:
    """The ReplicaSets of one Deployment."""

    new: Object | None
    old: Sequence[Object]
    """From the oldest on."""

    @property
    def all(self) -> list[Object]:
        return [*self.old, *([self.new] if self.new is not None else [])]


class DeploymentController:
    name = "deployment"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def interests(self) -> Mapping[str, Interest]:
        return {DEPLOYMENTS: itself, REPLICA_SETS: _deployment_of_set, "pods": self._deployment_of_gone_pod}

    def reconcile(self, key: Key) -> float | None:
        deployment = self._context.read(key)
        if deployment is None or "deletionTimestamp" in deployment["metadata"]:
            return None
        sets = self._find_sets(deployment)
        if deployment["spec"].get("paused"):
            self._scale_paused(deployment, sets)
        else:
            if sets.new is None:
                sets = self._make_new_set(deployment, sets)
            self._refresh(key, deployment, sets)
            self._resize(deployment, sets, self._scaled(deployment, sets) or self._next_sizes(deployment, sets))
            self._forget_old_sets(deployment, sets)
        return self._update_status(key)

    def _deployment_of_gone_pod(self, seen: ObservedChange) -> Iterable[Due]:
        """Recreate waits for the last old pod, which a ReplicaSet no longer counts once it is being deleted."""
        if seen.new is not None:
            return ()
        owner = seen.facts.controller
        replica_set = self._context.index.by_uid(owner.uid) if owner is not None else None
        return () if replica_set is None else _deployment_of_set(ObservedChange(None, replica_set, replica_set))

    def _find_sets(self, deployment: Object) -> _Sets:
        uid = deployment["metadata"]["uid"]
        children = (facts for facts in self._context.index.dependents(uid) if facts.key.resource == REPLICA_SETS)
        found = [obj for facts in children if not facts.is_deleting and (obj := self._context.read(facts.key))]
        found.sort(key=lambda obj: (obj["metadata"]["creationTimestamp"], obj["metadata"]["name"]))
        wanted = _bare_template(deployment)
        new = next((obj for obj in found if _bare_template(obj) == wanted), None)
        return _Sets(new, [obj for obj in found if obj is not new])

    def _make_new_set(self, deployment: Object, sets: _Sets) -> _Sets:
        metadata = deployment["metadata"]
        wanted = _new_set(deployment, _revision(sets.all) + 1)
        try:
            made = self._context.api.create(REPLICA_SETS, metadata["namespace"], wanted)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            # The set of another owner has this name: another hash is tried next time.
            status = deployment.setdefault("status", {})
            status["collisionCount"] = (status.get("collisionCount") or 0) + 1
            self._context.write_status(Key(DEPLOYMENTS, metadata["namespace"], metadata["name"]), deployment)
            raise
        return _Sets(made, sets.old)

    def _refresh(self, key: Key, deployment: Object, sets: _Sets) -> None:
        """The newest set carries the highest revision (also after going back to an old template), and so do we."""
        if sets.new is None:
            return
        revision = max(_revision([sets.new]), _revision(sets.old) + 1)
        patience = deployment["spec"].get("minReadySeconds") or 0
        if _revision([sets.new]) != revision or (sets.new["spec"].get("minReadySeconds") or 0) != patience:
            sets.new["metadata"].setdefault("annotations", {})[REVISION] = str(revision)
            sets.new["spec"]["minReadySeconds"] = patience
            sets.new.update(
                self._context.api.update(REPLICA_SETS, key.namespace, sets.new["metadata"]["name"], sets.new)
            )
        if _revision([deployment]) != revision:
            deployment["metadata"].setdefault("annotations", {})[REVISION] = str(revision)
            self._context.write(key, deployment)

    def _next_sizes(self, deployment: Object, sets: _Sets) -> dict[str, int]:
        strategy = deployment["spec"].get("strategy") or {}
        new = None if sets.new is None else _size(sets.new)
        old = [_size(old_set) for old_set in sets.old]
        if strategy.get("type") == "Recreate":
            return recreate(_replicas(deployment), new, old, old_pods_are_gone=not self._has_old_pods(sets))
        return {} if new is None else roll(_limits(deployment), new, old)

    def _has_old_pods(self, sets: _Sets) -> bool:
        owned = [self._context.index.owned_pods(old["metadata"]["uid"]) for old in sets.old]
        return any(pods.active or pods.leaving for pods in owned)

    def _scale_paused(self, deployment: Object, sets: _Sets) -> None:
        """A paused Deployment does not roll, but the set that is in use follows its size."""
        in_use = [obj for obj in sets.all if obj["spec"].get("replicas")] or ([sets.new] if sets.new else [])
        if len(in_use) == 1 and in_use[0]["spec"].get("replicas") != _replicas(deployment):
            self._resize(deployment, sets, {in_use[0]["metadata"]["name"]: _replicas(deployment)})

    def _scaled(self, deployment: Object, sets: _Sets) -> dict[str, int]:
        """The sizes of all sets in use, if the Deployment was scaled while it rolls; nothing otherwise."""
        in_use = [obj for obj in (*sets.old, *([sets.new] if sets.new else [])) if obj["spec"].get("replicas")]
        befores = [_annotated(obj, DESIRED) for obj in in_use]
        if len(in_use) < 2 or all(before in (None, _replicas(deployment)) for before in befores):
            return {}
        limits = _limits(deployment)
        before = max(_annotated(obj, MOST) or 0 for obj in in_use)
        return in_proportion(limits, before, [_size(obj) for obj in in_use])

    def _resize(self, deployment: Object, sets: _Sets, sizes: Mapping[str, int]) -> None:
        limits = _limits(deployment)
        for obj in sets.all:
            name = obj["metadata"]["name"]
            if name in sizes:
                obj["spec"]["replicas"] = sizes[name]
                annotations = obj["metadata"].setdefault("annotations", {})
                annotations |= {DESIRED: str(limits.replicas), MOST: str(limits.replicas + limits.max_surge)}
                self._context.write(Key(REPLICA_SETS, obj["metadata"]["namespace"], name), obj)

    def _forget_old_sets(self, deployment: Object, sets: _Sets) -> None:
        limit = deployment["spec"].get("revisionHistoryLimit", 10)
        empty = [obj for obj in sets.old if not obj["spec"].get("replicas") and not obj["status"].get("replicas")]
        for obj in empty[: max(len(sets.old) - limit, 0)]:
            facts = self._context.index.by_uid(obj["metadata"]["uid"])
            if facts is not None:
                self._context.delete(facts)

    def _update_status(self, key: Key) -> float | None:
        deployment = self._context.read(key)
        if deployment is None:
            return None
        sets = self._find_sets(deployment)
        status = deployment_status(deployment, sets.new, sets.old, self._context.clock.time())
        if status != deployment.get("status"):
            deployment["status"] = status
            self._context.write_status(key, deployment)
        return seconds_to_deadline(deployment, status, self._context.clock.time())


def _deployment_of_set(seen: ObservedChange) -> Iterable[Due]:
    owner = seen.facts.controller or (seen.old.controller if seen.old is not None else None)
    if owner is None or owner.kind != "Deployment":
        return ()
    return (Due(Key(DEPLOYMENTS, seen.key.namespace, owner.name), CHILD_DELAY),)


def _new_set(deployment: Object, revision: int) -> Object:
    spec, metadata = deployment["spec"], deployment["metadata"]
    collisions = (deployment.get("status") or {}).get("collisionCount") or 0
    template_hash = _hash(spec["template"], collisions)
    asked = spec["template"].get("metadata") or {}
    labels = {**(asked.get("labels") or {}), HASH_LABEL: template_hash}
    selector = spec.get("selector") or {}
    selector = {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: template_hash}}
    set_spec = {
        "replicas": 0,
        "selector": selector,
        "template": {**spec["template"], "metadata": {**asked, "labels": labels}},
    }
    if spec.get("minReadySeconds"):
        set_spec["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{template_hash}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": {REVISION: str(revision)},
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": set_spec,
    }


def _hash(template: Object, collisions: int) -> str:
    """Return ten characters that distinguish templates and can stand in a name."""
    encoded = msgspec.json.encode((template, collisions), order="deterministic")
    return "".join(_SAFE_DIGITS[int(digit)] for digit in f"{crc32(encoded):010d}")


def _bare_template(owner: Object) -> Object:
    """The pod template without the hash label, which is not part of what the user asked for."""
    template = owner["spec"]["template"]
    metadata = dict(template.get("metadata") or {})
    metadata["labels"] = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH_LABEL}
    metadata.pop("creationTimestamp", None)
    return {**template, "metadata": metadata}


def _revision(objects: Sequence[Object]) -> int:
    texts = [(obj["metadata"].get("annotations") or {}).get(REVISION, "") for obj in objects]
    return max((int(text) for text in texts if text.isdigit()), default=0)


def _replicas(deployment: Object) -> int:
    replicas = deployment["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def _limits(deployment: Object) -> Limits:
    strategy = deployment["spec"].get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return Limits(_replicas(deployment), 0, 0)
    rolling = strategy.get("rollingUpdate") or {}
    return Limits.of(_replicas(deployment), rolling.get("maxSurge", "25%"), rolling.get("maxUnavailable", "25%"))


def _annotated(replica_set: Object, annotation: str) -> int | None:
    text = (replica_set["metadata"].get("annotations") or {}).get(annotation, "")
    return int(text) if text.isdigit() else None


def _size(replica_set: Object) -> SetSize:
    replicas = _replicas(replica_set)
    # Just after a set was made smaller its status may still count pods that are about to go.
    available = min((replica_set.get("status") or {}).get("availableReplicas") or 0, replicas)
    return SetSize(replica_set["metadata"]["name"], replicas, available)
