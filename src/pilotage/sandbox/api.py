"""The verbs of the API server on objects: what simulated kubelets, controllers and tests call.

Objects are plain dicts in JSON shape. Resources are named as in the store (`pods`, `deployments.apps`); the namespace
of a cluster-scoped resource is "". Every verb is synchronous, runs defaulting, admission and validation as the API
server would, and raises `ApiError` when it rejects. A returned dict is the caller's own: changing it changes nothing
in the store. An object that is handed in is taken over.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from pilotage.clock import Clock
from pilotage.sandbox.errors import no_such_path
from pilotage.sandbox.kinds.builtin_kinds import builtin_registry
from pilotage.sandbox.kinds.crds import follow_definitions
from pilotage.sandbox.kinds.resources import ResourceRegistry, ResourceType
from pilotage.sandbox.operations.backend import Backend, Object
from pilotage.sandbox.operations.selection import parse_selection
from pilotage.sandbox.operations.verbs import Verbs
from pilotage.sandbox.storage.records import Key
from pilotage.sandbox.storage.store import Store

Objects: TypeAlias = list[Object]

NAMESPACES_AT_START: Final = ("default", "kube-node-lease", "kube-public", "kube-system")


class Api:
    """The object-level API of one sandbox. The store may have content; the system's namespaces are made if missing."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        rng: random.Random,
        registry: ResourceRegistry | None = None,
        queued: frozenset[str] = frozenset(),
        mounts_tokens: bool = False,
    ) -> None:
        """`queued`: the integrations whose objects wait for their queue (`model.queue_admission`).

        `mounts_tokens`: pods get a volume with a token of their ServiceAccount, as in every cluster.
        """
        self.store = store
        self.clock = clock
        self.rng = rng
        self.registry = registry or builtin_registry()
        follow_definitions(store, self.registry)
        self.verbs = Verbs(Backend(store, self.registry, clock, rng, queued, mounts_tokens))
        self._make_namespaces()

    def get(self, resource: str, namespace: str, name: str) -> Object:
        """The object, or ApiError 404."""
        return self.verbs.read(self._type(resource), namespace, name).object()

    def find(self, resource: str, namespace: str, name: str) -> Object | None:
        """The object, or None."""
        record = self.store.get(Key(resource, namespace, name))
        return None if record is None else record.object()

    def list(
        self, resource: str, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> Objects:
        """The objects in order of namespace and name; None = of all namespaces."""
        resource_type = self._type(resource)
        selection = parse_selection(resource_type, label_selector, field_selector)
        return [record.object() for record in self.verbs.select(resource_type, namespace, selection)]

    def create(self, resource: str, namespace: str, obj: Object, *, dry_run: bool = False) -> Object:
        return self.verbs.create(self._type(resource), namespace, obj, dry_run=dry_run).object()

    def update(self, resource: str, namespace: str, name: str, obj: Object, subresource: str = "") -> Object:
        """Replace; a `metadata.resourceVersion` in `obj` makes it conditional (409 when it is not the stored one)."""
        resource_type = self._type(resource)
        record = self.verbs.read(resource_type, namespace, name)
        if subresource == "scale":
            return self.verbs.set_scale(resource_type, record, obj)
        return self.verbs.update(resource_type, record, obj, subresource=subresource).object()

    def patch(
        self, resource: str, namespace: str, name: str, body: bytes, content_type: str, subresource: str = ""
    ) -> Object:
        resource_type = self._type(resource)
        record = self.verbs.read(resource_type, namespace, name)
        if subresource == "scale":
            return self.verbs.patch_scale(resource_type, record, (content_type, body))
        return self.verbs.patch(resource_type, record, (content_type, body), subresource=subresource).object()

    def delete(self, resource: str, namespace: str, name: str, options: Mapping[str, Any] | None = None) -> Object:
        """Delete or begin to delete, with metav1.DeleteOptions; returns the last state of the object."""
        resource_type = self._type(resource)
        record = self.verbs.read(resource_type, namespace, name)
        return self.verbs.delete(resource_type, record, options or {}).record.object()

    def bind(self, namespace: str, pod: str, node_name: str, uid: str | None = None) -> None:
        """Assign a pod to a node; ApiError 409 if it is assigned, on its way out, gated, or another pod by uid."""
        self.verbs.bind(namespace, pod, node_name, uid=uid)

    def evict(self, namespace: str, pod: str, options: Mapping[str, Any] | None = None) -> None:
        """Delete a pod if its disruption budget allows it now; ApiError 429 otherwise."""
        self.verbs.evict(namespace, pod, options or {})

    def _type(self, resource: str) -> ResourceType:
        if not self.registry.knows(resource):
            raise no_such_path()
        return self.registry.of(resource)

    def _make_namespaces(self) -> None:
        for name in NAMESPACES_AT_START:
            if self.find("namespaces", "", name) is None:
                self.create("namespaces", "", {"metadata": {"name": name}})
