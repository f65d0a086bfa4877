"""Which pods belong together when the pod does not say so: those of its services and its controller.

Services are indexed by namespace, and what they select together is remembered per set of labels until a service of
that namespace changes: scheduling a pod does not search the services.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pilotage.api import ClusterIndex, Handle
from pilotage.model import Pod
from pilotage.model.frozen_map import FrozenMap
from pilotage.model.meta import OwnerReference
from pilotage.plugins.pod_topology_spread.pod_selector import (
    BadSelector,
    PodSelector,
    comparable,
    sorted_pairs,
)

_KEPT_LABELS = 4096
_NO_SERVICE = PodSelector()
_CONTROLLERS = {
    ("v1", "ReplicationController"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
}


class Services(ClusterIndex):
    """The selectors of all services, by namespace."""

    kinds: ClassVar[frozenset[str]] = frozenset({"Service"})

    def __init__(self) -> None:
        self._selectors: dict[str, dict[str, Mapping[str, str]]] = {}
        self._merged: dict[str, dict[FrozenMap, PodSelector]] = {}

    def object_put(self, kind: str, old: Any | None, new: Any) -> None:
        if old is not None and old.spec.selector == new.spec.selector:
            return
        self._selectors.setdefault(new.namespace, {})[new.name] = new.spec.selector
        self._merged.pop(new.namespace, None)

    def object_removed(self, kind: str, obj: Any) -> None:
        services = self._selectors[obj.namespace]
        del services[obj.name]
        if not services:
            del self._selectors[obj.namespace]
        self._merged.pop(obj.namespace, None)

    def selected_with(self, namespace: str, labels: FrozenMap) -> PodSelector:
        """What the services of a pod with these labels select, all together; empty if it has no service."""
        services = self._selectors.get(namespace)
        if services is None:
            return _NO_SERVICE
        merged = self._merged.setdefault(namespace, {})
        known = merged.get(labels)
        if known is None:
            if len(merged) >= _KEPT_LABELS:
                merged.clear()
            known = merged[labels] = _merge(services, labels)
        return known


def _merge(services: Mapping[str, Mapping[str, str]], labels: FrozenMap) -> PodSelector:
    # A service without a selector selects nothing; here that is the same as selecting by no label.
    matching = [selector for selector in services.values() if selector.items() <= labels.items()]
    return PodSelector(sorted_pairs(pair for selector in matching for pair in selector.items()))


class DeducedSelectors:
    """Selectors for pods that have no constraints of their own."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._services = handle.index(Services)

    def selector_of(self, pod: Pod) -> PodSelector:
        """What selects the pod and its like; empty if nothing does."""
        of_services = self._services.selected_with(pod.namespace, pod.labels)
        owner = pod.controller if pod.owner_references else None
        if owner is None or (owner.api_version, owner.kind) not in _CONTROLLERS:
            return of_services
        return self._with_controller(of_services, pod.namespace, owner)

    def _with_controller(self, of_services: PodSelector, namespace: str, owner: OwnerReference) -> PodSelector:
        controller = self._handle.objects(owner.kind).get(f"{namespace}/{owner.name}")
        if controller is None:
            return of_services
        if owner.kind == "ReplicationController":
            return PodSelector(sorted_pairs({**dict(of_services.pairs), **controller.spec.selector}.items()))
        if controller.spec.selector is None:
            return of_services
        try:
            return comparable(controller.spec.selector).narrowed(of_services.pairs)
        except BadSelector:
            return of_services
