"""URL paths of API objects, taken apart.

    /api/v1/namespaces/shop/pods/web-1/status
    /apis/<group>/<version>/[namespaces/<namespace>/]<plural>[/<name>[/<subresource>]]

`namespaces` is both a scope and a resource: `/namespaces/shop/status` is the status of the namespace itself.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pilotage.sandbox.errors import no_such_path
from pilotage.sandbox.kinds.resources import ResourceRegistry, ResourceType

_OF_NAMESPACE: Final = ("status", "finalize")
_MOST_REMEMBERED: Final = 4096


class Target(NamedTuple):
    """What a path addresses."""

    resource_type: ResourceType
    namespace: str | None
    """None: all namespaces, or a cluster-scoped resource."""
    name: str
    subresource: str

    @property
    def own_namespace(self) -> str:
        """The namespace of the one object that is addressed; ApiError 404 when the path leaves it open."""
        if self.namespace is None and self.resource_type.namespaced:
            raise no_such_path()
        return self.namespace or ""


class Paths:
    """Finds what paths address; collections, which are few and asked for most, are remembered."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry
        self._collections: dict[str, Target] = {}
        self._made_for = registry.version

    def target_of(self, path: str) -> Target | None:
        """The addressed collection, object or subresource; None if the path is not that of a resource."""
        if self._made_for != self._registry.version or len(self._collections) > _MOST_REMEMBERED:
            self._collections.clear()
            self._made_for = self._registry.version
        target = self._collections.get(path)
        if target is None:
            target = _parse(self._registry, path)
            if target is not None and not target.name:
                self._collections[path] = target
        return target


def _parse(registry: ResourceRegistry, path: str) -> Target | None:
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if "" in rest:
        raise no_such_path()
    namespace = None
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in _OF_NAMESPACE):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        raise no_such_path()
    resource_type = registry.find(group, version, rest[0])
    if namespace is not None and not resource_type.namespaced:
        raise no_such_path()
    return Target(resource_type, namespace, rest[1] if len(rest) > 1 else "", rest[2] if len(rest) > 2 else "")
