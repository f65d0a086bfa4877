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
    """Finds what paths address. Collections are few and remembered; the path of an object begins with that of one."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry
        self._collections: dict[str, Target] = {}
        self._made_for = registry.version

    def target_of(self, path: str) -> Target | None:
        """The addressed collection, object or subresource; None if the path is not that of a resource."""
        if self._made_for != self._registry.version or len(self._collections) > _MOST_REMEMBERED:
            self._collections.clear()
            self._made_for = self._registry.version
        return self._collections.get(path) or self._in_known_collection(path) or self._parsed(path)

    def _in_known_collection(self, path: str) -> Target | None:
        above, _, last = path.rpartition("/")
        collection = self._collections.get(above)
        if collection is not None:
            return Target(collection.resource_type, collection.namespace, last, "") if last else None
        above, _, name = above.rpartition("/")
        collection = self._collections.get(above)
        # Below a namespace there are collections too.
        if collection is None or not name or not last or collection.resource_type.storage == "namespaces":
            return None
        return Target(collection.resource_type, collection.namespace, name, last)

    def _parsed(self, path: str) -> Target | None:
        target = _parse(self._registry, path)
        if target is not None:
            self._collections[_collection_path(path, target)] = target._replace(name="", subresource="")
        return target


def _collection_path(path: str, target: Target) -> str:
    """The beginning of the path that addresses the collection."""
    path = path.rstrip("/")
    for step in (target.subresource, target.name):
        if step:
            path = path.removesuffix(f"/{step}")
    return path


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
