"""Delete: what goes at once, what is only marked, and who has the last word.

An object goes at once unless something holds it: a grace period (pods on a node: the kubelet confirms with a deletion
of grace 0), finalizers (their owners remove them by updates), or content of its own (namespaces, definitions). Held
objects are marked with a deletionTimestamp. `propagationPolicy` turns into the finalizers `orphan` and
`foregroundDeletion`, on which the garbage collector acts; with `Background` it acts after the object is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from pilotage.clock import rfc3339
from pilotage.sandbox.errors import FieldError, conflict, forbidden, invalid
from pilotage.sandbox.kinds.crds import CLEANUP_FINALIZER, CRD_RESOURCE
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.kinds.shapes import check_options_shape
from pilotage.sandbox.operations.backend import Backend, Object, unsaved_record
from pilotage.sandbox.operations.terminating import Terminating, remaining_content
from pilotage.sandbox.storage.records import Key, Record

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"

_DEFAULT_GRACE_SECONDS: Final = 30
_IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
_ORPHANS_BY_DEFAULT: Final = frozenset({"jobs.batch", "replicationcontrollers"})
_POLICIES: Final = ("Background", "Foreground", "Orphan")


@dataclass(frozen=True, slots=True)
class Deleted:
    """How a deletion ended: the object's last state, and whether it is gone."""

    record: Record
    is_gone: bool


class Deletion:
    """The delete verb of one sandbox."""

    def __init__(self, backend: Backend, terminating: Terminating) -> None:
        self._backend = backend
        self._terminating = terminating

    def delete(
        self, resource_type: ResourceType, record: Record, options: Mapping[str, Any], *, dry_run: bool = False
    ) -> Deleted:
        """Delete the object or mark it; ApiError 409 when a precondition does not hold."""
        _check_options(options)
        _check_preconditions(resource_type, record, options.get("preconditions") or {})
        if resource_type.storage == "namespaces" and record.key.name in _IMMORTAL:
            raise forbidden("namespaces", record.key.name, "this namespace may not be deleted")
        is_pod = resource_type.storage == "pods"
        obj = record.outline() if is_pod else record.object()
        grace = _pod_grace_seconds(obj, options) if is_pod else 0
        is_changed = _mark(self._backend, resource_type, obj, grace, options)
        if not is_held(resource_type, obj):
            return Deleted(record if dry_run else self.remove(record.key, obj), True)
        if dry_run:
            return Deleted(unsaved_record(record.key, obj, record.revision), False)
        if is_changed:
            record = self._backend.store.update(record.key, obj)
        if resource_type.storage in ("namespaces", CRD_RESOURCE):
            return self._drain(record)
        return Deleted(record, False)

    def remove(self, key: Key, obj: Object | None = None) -> Record:
        """Take an object out of the store, and every owner that only waited for it."""
        record = self._backend.store.delete(key, obj)
        self._terminating.end(key)
        for owner in self._terminating.removed(key):
            self._finish(owner)
        namespace = Key("namespaces", "", key.namespace)
        if key.resource == "pods" and self._terminating.is_draining(namespace) and not self._has_pods(namespace):
            self._delete_content(namespace)
        return record

    def resume(self) -> None:
        """After a restart: go on with the owners whose deletion had begun."""
        for resource in ("namespaces", CRD_RESOURCE):
            for record in self._backend.store.list(resource):
                if record.object()["metadata"].get("deletionTimestamp"):
                    self._drain(record)

    def _drain(self, owner: Record) -> Deleted:
        key = owner.key
        if not self._terminating.is_draining(key):
            self._terminating.begin(key, (record.key for record in self._content(key)))
            self._delete_content(key)
        if self._terminating.is_empty(key):
            self._finish(key)
        current = self._backend.store.get(key)
        return Deleted(current or owner, current is None)

    def _has_pods(self, namespace: Key) -> bool:
        return bool(self._backend.store.list("pods", namespace.name))

    def _delete_content(self, owner: Key) -> None:
        """Pods go first, what they may use only when the last of them has gone."""
        content = list(self._content(owner))
        if owner.resource == "namespaces":
            content = [record for record in content if record.key.resource == "pods"] or content
        for record in content:
            current = self._backend.store.get(record.key)
            if current is not None:
                options = {"propagationPolicy": "Background"}
                self.delete(self._backend.registry.of(record.key.resource), current, options)
        if owner.resource == "namespaces":
            self._show_what_remains(owner)

    def _show_what_remains(self, namespace: Key) -> None:
        record = self._backend.store.get(namespace)
        if record is None or self._terminating.is_empty(namespace):
            return
        obj = record.object()
        remaining = [one.outline()["metadata"] | {"resource": one.key.resource} for one in self._content(namespace)]
        obj["status"] = {**(obj.get("status") or {}), "conditions": remaining_content(remaining, self._backend.now())}
        self._backend.store.update(namespace, obj)

    def _content(self, owner: Key) -> Iterable[Record]:
        store = self._backend.store
        if owner.resource == CRD_RESOURCE:
            yield from store.list(owner.name)
            return
        for resource in store.resources():
            if self._backend.registry.knows(resource) and self._backend.registry.of(resource).namespaced:
                yield from store.list(resource, owner.name)

    def _finish(self, owner: Key) -> None:
        """The owner is empty: drop the server's own hold on it, and the owner if no one else holds it."""
        record = self._backend.store.get(owner)
        if record is None:
            return
        obj = record.object()
        _release(obj)
        if is_held(self._backend.registry.of(owner.resource), obj):
            self._backend.store.update(owner, obj)
        else:
            self.remove(owner, obj)


def is_held(resource_type: ResourceType, obj: Mapping[str, Any]) -> bool:
    """Whether a marked object has to stay for now."""
    metadata = obj["metadata"]
    if metadata.get("finalizers"):
        return True
    if resource_type.storage == "pods":
        return bool(metadata.get("deletionGracePeriodSeconds"))
    return resource_type.storage == "namespaces" and bool((obj.get("spec") or {}).get("finalizers"))


def _release(obj: Object) -> None:
    if obj["kind"] == "Namespace":
        obj["spec"] = {**(obj.get("spec") or {}), "finalizers": []}
    else:
        metadata = obj["metadata"]
        metadata["finalizers"] = [name for name in metadata.get("finalizers") or () if name != CLEANUP_FINALIZER]


def _mark(backend: Backend, resource_type: ResourceType, obj: Object, grace: int, options: Mapping[str, Any]) -> bool:
    """Mark the object for deletion; False if it is marked already."""
    metadata = obj["metadata"]
    finalizers = _finalizers(resource_type, metadata.get("finalizers") or [], options)
    is_changed = finalizers != (metadata.get("finalizers") or [])
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    if metadata.get("deletionTimestamp"):
        # A later deletion may shorten the time that is left, never lengthen it.
        is_shorter = "gracePeriodSeconds" in options and grace < metadata.get("deletionGracePeriodSeconds", 0)
        if not is_shorter:
            return is_changed
    elif metadata.get("generation"):
        metadata["generation"] += 1
    metadata["deletionTimestamp"] = rfc3339(backend.clock.time() + grace) if grace else backend.now()
    metadata["deletionGracePeriodSeconds"] = grace
    if resource_type.storage == "namespaces":
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    return True


def _finalizers(resource_type: ResourceType, current: list[str], options: Mapping[str, Any]) -> list[str]:
    policy = _policy(resource_type, options)
    if policy is None:
        return current
    kept = [name for name in current if name not in (ORPHAN, FOREGROUND)]
    added = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])
    return kept + added


def _policy(resource_type: ResourceType, options: Mapping[str, Any]) -> str | None:
    """None: not said, so that what the object already carries stays in force."""
    policy = options.get("propagationPolicy")
    if policy is not None:
        return str(policy)
    if options.get("orphanDependents") is not None:
        return "Orphan" if options["orphanDependents"] else "Background"
    return "Orphan" if resource_type.storage in _ORPHANS_BY_DEFAULT else None


class _PodSpec(msgspec.Struct, rename="camel"):
    """What decides how long a pod may take."""

    node_name: str | None = None
    termination_grace_period_seconds: int | None = None


_decode_spec = msgspec.json.Decoder(_PodSpec).decode


def _pod_grace_seconds(obj: Mapping[str, Any], options: Mapping[str, Any]) -> int:
    """How long the pod, given in outline, may take to go."""
    spec = _decode_spec(obj["spec"])
    asked = options.get("gracePeriodSeconds")
    own = spec.termination_grace_period_seconds
    grace = asked if asked is not None else _DEFAULT_GRACE_SECONDS if own is None else own
    if not spec.node_name or (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    return int(grace) if grace >= 0 else 1


def _check_options(options: Mapping[str, Any]) -> None:
    if not options:
        return
    check_options_shape("DeleteOptions", options)
    policy = options.get("propagationPolicy")
    if policy is not None and options.get("orphanDependents") is not None:
        problem = "orphanDependents and deletionPropagation cannot be both set"
        raise invalid("DeleteOptions", "", "", [FieldError("propagationPolicy", problem, policy)])
    if policy is not None and policy not in _POLICIES:
        supported = ", ".join(f'"{name}"' for name in (*_POLICIES, "nil"))
        error = FieldError("propagationPolicy", f"supported values: {supported}", policy, "FieldValueNotSupported")
        raise invalid("DeleteOptions", "meta.k8s.io", "", [error])


def _check_preconditions(resource_type: ResourceType, record: Record, preconditions: Mapping[str, Any]) -> None:
    uid, version = preconditions.get("uid"), preconditions.get("resourceVersion")
    if uid is not None and uid != record.uid:
        problem = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {record.uid}"
        raise conflict(resource_type.qualified, record.key.name, problem)
    if version is not None and version != str(record.revision):
        problem = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({record.revision}). The object might have been modified"
        )
        raise conflict(resource_type.qualified, record.key.name, problem)
