"""The verbs of the API server on records, in the version that a client asked for.

`Api` wraps these for code inside the sandbox; the HTTP routes call them directly, because a record already holds the
bytes of the answer. Every verb takes the served `ResourceType`; objects are converted to and from their stored form
here, at the border, and everything behind it knows one form only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pilotage.model import queue_admission
from pilotage.sandbox.errors import bad_request, conflict, not_found
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.kinds.shapes import check_options_shape, check_shape
from pilotage.sandbox.operations.backend import Backend, Object
from pilotage.sandbox.operations.binding import bind_pod
from pilotage.sandbox.operations.creation import Creation
from pilotage.sandbox.operations.deletion import Deleted, Deletion
from pilotage.sandbox.operations.eviction import PodEviction
from pilotage.sandbox.operations.field_management import (
    SYSTEM,
    ApplyRequest,
    Author,
    apply_config,
    apply_scale,
    manage_scale,
)
from pilotage.sandbox.operations.policies import USER, Policies
from pilotage.sandbox.operations.scale import scale_of, scaled
from pilotage.sandbox.operations.selection import EVERYTHING, ObjectSelection
from pilotage.sandbox.operations.terminating import Terminating
from pilotage.sandbox.operations.updates import Updates, has_separate_spec
from pilotage.sandbox.rules.conversion import from_storage, to_storage
from pilotage.sandbox.rules.patch import Patch, apply_patch
from pilotage.sandbox.storage.records import Record

_ABOVE_SPEC: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_METADATA: Final = frozenset({"apiVersion", "kind", "metadata"})


class Verbs:
    """All verbs of one sandbox."""

    def __init__(self, backend: Backend) -> None:
        terminating = Terminating()
        self._backend = backend
        self._deletion = Deletion(backend, terminating)
        self._policies = Policies(backend)
        self._creation = Creation(backend, terminating, self._policies)
        self._updates = Updates(backend, self._deletion, self._policies)
        self._eviction = PodEviction(backend, self._deletion)
        self._deletion.resume()

    @property
    def warnings(self) -> list[str]:
        """Of admission policies about the last write."""
        return self._policies.warnings

    @contextmanager
    def asked_by(self, user: Mapping[str, Any]) -> Iterator[None]:
        """The verbs that are called within are this user's, and not the administrator's."""
        self._policies.user = dict(user)
        try:
            yield
        finally:
            self._policies.user = USER

    def read(self, served: ResourceType, namespace: str, name: str) -> Record:
        return self._backend.record(served, namespace, name)

    def select(
        self, served: ResourceType, namespace: str | None = None, selection: ObjectSelection = EVERYTHING
    ) -> list[Record]:
        """The matching records, by namespace and name."""
        store = self._backend.store
        name = selection.exact_name
        if name and (namespace or not served.namespaced):
            found = self._backend.find(served, namespace or "", name)
            records: Sequence[Record] = [] if found is None else [found]
        else:
            records = store.list(served.storage, namespace if served.namespaced else None)
        return list(records) if selection.is_everything else [r for r in records if selection.matches(r)]

    def create(
        self, served: ResourceType, namespace: str, obj: Object, *, author: Author = SYSTEM, dry_run: bool = False
    ) -> Record:
        if served.is_stored_as_served:
            return self._creation.create(served, namespace, obj, author, dry_run=dry_run)
        check_shape(served, obj)
        stored = self._backend.registry.of(served.storage)
        return self._creation.create_converted(stored, namespace, to_storage(served, obj), author, dry_run=dry_run)

    def update(
        self,
        served: ResourceType,
        record: Record,
        obj: Object,
        *,
        author: Author = SYSTEM,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Record:
        is_about_status = subresource == "status" and has_separate_spec(served)
        old = record.outline() if is_about_status else record.object()
        return self._update(served, record, (old, obj), author, subresource=subresource, dry_run=dry_run)

    def update_metadata(self, served: ResourceType, record: Record, obj: Object) -> Record:
        """Replace the metadata and leave the rest alone, whatever `obj` says about it."""
        if not has_separate_spec(served):
            return self.update(served, record, obj)
        return self._updates.update_metadata(served, record, (record.outline(), obj), SYSTEM)

    def _update(
        self,
        served: ResourceType,
        record: Record,
        change: tuple[Object, Object],
        author: Author,
        *,
        subresource: str,
        dry_run: bool,
    ) -> Record:
        """The change is from the record's object as it is stored to what a client wants it to be."""
        old, obj = change
        if not served.is_stored_as_served:
            check_shape(served, obj)
            obj = to_storage(served, obj)
        change = (old, obj)
        return self._updates.update(
            self._stored(served), record, change, author, subresource=subresource, dry_run=dry_run
        )

    def patch(
        self,
        served: ResourceType,
        record: Record,
        patch: tuple[str, bytes],
        *,
        author: Author = SYSTEM,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Record:
        """Apply a patch, given as content type and body."""
        change = Patch(*patch)
        if has_separate_spec(served):
            if subresource == "status" and change.is_only_about(_ABOVE_SPEC):
                patched = _patched_above_spec(served, record, change)
                return self._updates.update(served, record, patched, author, subresource=subresource, dry_run=dry_run)
            is_followed = bool(self._backend.queued) and queue_admission.is_followed(served.group, served.kind)
            is_about_metadata = not subresource and not is_followed and change.is_only_about(_METADATA)
            if is_about_metadata and not self._policies.mutates(served, "UPDATE"):
                patched = _patched_above_spec(served, record, change)
                return self._updates.update_metadata(served, record, patched, author, dry_run=dry_run)
        old = record.object()
        current = old if served.is_stored_as_served else from_storage(served, record.object())
        obj = change.applied_to(served.kind, current)
        _keep_version(obj, current)
        return self._update(served, record, (old, obj), author, subresource=subresource, dry_run=dry_run)

    def apply(
        self, served: ResourceType, namespace: str, name: str, request: ApplyRequest, *, dry_run: bool = False
    ) -> tuple[Record, bool]:
        """Apply a configuration; also tells whether the object was created by it."""
        config, now = request.config, self._backend.now()
        check_shape(served, config)
        metadata = config["metadata"] = config.get("metadata") or {}
        metadata.setdefault("name", name)
        if metadata["name"] != name:
            raise bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
            )
        record = self._backend.find(served, namespace, name)
        author = request.author._replace(has_managers=True)
        if record is None:
            if request.subresource:
                raise not_found(served.qualified, name)
            if metadata.get("uid"):
                problem = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: "
                raise conflict(served.qualified, name, problem)
            obj = apply_config(served, None, request, now)
            return self.create(served, namespace, obj, author=author, dry_run=dry_run), True
        live = from_storage(served, record.object())
        obj = apply_config(served, live, request, now)
        _keep_version(obj, live)
        if _differ_in_times_only(live, obj):
            return record, False
        change = (record.object(), obj)
        return self._update(served, record, change, author, subresource=request.subresource, dry_run=dry_run), False

    def delete(
        self, served: ResourceType, record: Record, options: Mapping[str, Any], *, dry_run: bool = False
    ) -> Deleted:
        stored = self._stored(served)
        if self._policies.concern(stored, "DELETE"):
            self._policies.judge(stored, "DELETE", None, record.object(), dry_run=dry_run)
        return self._deletion.delete(stored, record, options, dry_run=dry_run)

    def scale(self, served: ResourceType, record: Record) -> Object:
        return scale_of(served, record.object())

    def set_scale(
        self, served: ResourceType, record: Record, scale: Object, *, author: Author = SYSTEM, dry_run: bool = False
    ) -> Object:
        """Set the replicas; returns the Scale as it is then."""
        before = scale_of(served, record.object())
        obj = scaled(served, record.object(), scale)
        managers = manage_scale(served, obj, (before, scale_of(served, obj)), author, self._backend.now())
        return self._scaled(served, record, obj, managers, dry_run=dry_run)

    def apply_scale(
        self, served: ResourceType, record: Record, request: ApplyRequest, *, dry_run: bool = False
    ) -> Object:
        """Apply a Scale; returns it as it is then."""
        check_options_shape("Scale", request.config)
        obj = record.object()
        scale, managers = apply_scale(served, obj, scale_of(served, obj), request, self._backend.now())
        return self._scaled(served, record, scaled(served, obj, scale), managers, dry_run=dry_run)

    def _scaled(
        self, served: ResourceType, record: Record, obj: Object, managers: list[Object] | None, *, dry_run: bool
    ) -> Object:
        obj["metadata"].pop("managedFields", None)
        if managers:
            obj["metadata"]["managedFields"] = managers
        change, author = (record.object(), obj), Author(has_managers=True)
        written = self._updates.update(self._stored(served), record, change, author, dry_run=dry_run)
        return scale_of(served, written.object())

    def patch_scale(
        self,
        served: ResourceType,
        record: Record,
        patch: tuple[str, bytes],
        *,
        author: Author = SYSTEM,
        dry_run: bool = False,
    ) -> Object:
        scale = apply_patch(patch[0], "Scale", scale_of(served, record.object()), patch[1])
        return self.set_scale(served, record, scale, author=author, dry_run=dry_run)

    def bind(self, namespace: str, pod: str, node_name: str, *, uid: str | None, dry_run: bool = False) -> None:
        bind_pod(self._backend, namespace, pod, node_name, uid=uid, dry_run=dry_run)

    def evict(self, namespace: str, pod: str, options: Mapping[str, Any], *, dry_run: bool = False) -> None:
        self._eviction.evict(namespace, pod, options, dry_run=dry_run)

    def _stored(self, served: ResourceType) -> ResourceType:
        return served if served.is_stored_as_served else self._backend.registry.of(served.storage)


def _patched_above_spec(served: ResourceType, record: Record, change: Patch) -> tuple[Object, Object]:
    """The stored object in outline, and what the patch makes of it apart from its spec."""
    old = record.outline()
    current = {field: value for field, value in old.items() if field in _ABOVE_SPEC}
    obj = change.applied_to(served.kind, current)
    _keep_version(obj, current)
    return old, obj


def _differ_in_times_only(live: Object, obj: Object) -> bool:
    """Whether nothing is changed but when somebody is said to have changed something."""
    before, after = (_without_times(one) for one in (live, obj))
    return before == after


def _without_times(obj: Object) -> Object:
    metadata = dict(obj["metadata"])
    entries = metadata.pop("managedFields", None) or ()
    metadata["managedFields"] = [{**entry, "time": None} for entry in entries]
    return {**obj, "metadata": metadata}


def _keep_version(patched: Object, current: Object) -> None:
    """A patch that takes the resource version away still applies to the version that it was applied to."""
    metadata = patched.get("metadata")
    if isinstance(metadata, dict) and not metadata.get("resourceVersion"):
        metadata["resourceVersion"] = current["metadata"]["resourceVersion"]
