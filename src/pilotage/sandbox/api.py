"""The verbs of the API server on objects: what HTTP handlers, simulated kubelets and controllers call.

Objects are plain dicts in JSON shape. Resources are named as in the store (`pods`, `deployments.apps`); the namespace
of a cluster-scoped resource is "". Every verb is synchronous, runs defaulting, admission and validation as the API
server would, and raises `ApiError` when it refuses. A returned dict is the caller's own: changing it changes nothing
in the store.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from pilotage.clock import Clock
from pilotage.sandbox.builtin_kinds import builtin_registry
from pilotage.sandbox.resources import ResourceRegistry
from pilotage.sandbox.store import Store

Object = dict[str, Any]


class Api:
    """The object-level API of one sandbox."""

    def __init__(
        self, store: Store, *, clock: Clock, rng: random.Random, registry: ResourceRegistry | None = None
    ) -> None:
        self.store = store
        self.clock = clock
        self.rng = rng
        self.registry = registry or builtin_registry()

    def get(self, resource: str, namespace: str, name: str) -> Object:
        """The object, or ApiError 404."""
        raise NotImplementedError

    def list(
        self, resource: str, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> list[Object]:
        """The objects in order of namespace and name; None = of all namespaces."""
        raise NotImplementedError

    def create(self, resource: str, namespace: str, obj: Object) -> Object:
        raise NotImplementedError

    def update(self, resource: str, namespace: str, name: str, obj: Object, subresource: str = "") -> Object:
        """Replace; a `metadata.resourceVersion` in `obj` makes it conditional (409 when it is not the stored one)."""
        raise NotImplementedError

    def patch(
        self, resource: str, namespace: str, name: str, body: bytes, content_type: str, subresource: str = ""
    ) -> Object:
        raise NotImplementedError

    def delete(self, resource: str, namespace: str, name: str, options: Mapping[str, Any] | None = None) -> Object:
        """Delete or begin to delete, with metav1.DeleteOptions; returns the last state of the object."""
        raise NotImplementedError

    def bind(self, namespace: str, pod: str, node_name: str, uid: str | None = None) -> None:
        raise NotImplementedError

    def evict(self, namespace: str, pod: str, options: Mapping[str, Any] | None = None) -> None:
        raise NotImplementedError
