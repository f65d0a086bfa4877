"""Which kinds the server knows, how they are addressed, and how each behaves.

A `ResourceType` is one kind in one served version. Several versions of a kind share one storage (`storage`), and so do
core and events.k8s.io Events. The registry finds types by URL (`find`) and by storage (`of`), and grows and shrinks
with CustomResourceDefinitions.

    /apis/apps/v1/...deployments -> find("apps", "v1", "deployments") -> ResourceType(storage="deployments.apps")
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pilotage.sandbox.errors import no_such_path
from pilotage.sandbox.kinds.structural_schema import ObjectRules

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One kind in one served version."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    tracks_generation: bool = False
    returns_deleted: bool = False
    """A delete answers with the object instead of a Status."""
    storage: str = ""
    """The store's resource string; empty = derived from plural and group."""
    storage_api_version: str = ""
    """The apiVersion in which objects are stored; empty = this version."""
    is_custom: bool = False
    is_served: bool = True
    """False: only stored in this version, as a definition may ask for."""
    list_kind: str = ""
    schema: Mapping[str, Any] | None = field(default=None, compare=False)
    rules: ObjectRules | None = field(default=None, compare=False)
    """What the schema demands."""
    defined_at: int = field(default=0, compare=False)
    """The revision of the definition: objects that are older have not had its defaults."""
    printer_columns: tuple[Mapping[str, Any], ...] = field(default=(), compare=False)
    scale_paths: Mapping[str, str] | None = field(default=None, compare=False)
    selectable_fields: tuple[str, ...] = ()
    no_effect: str = ""
    """Why objects of the kind are stored and nothing more: whoever writes one is warned."""
    # Derived, and asked for by every request.
    api_version: str = field(init=False)
    qualified: str = field(init=False)
    """How messages name the resource: `pods`, `deployments.apps`."""
    has_status: bool = field(init=False)
    is_stored_as_served: bool = field(init=False)

    def __post_init__(self) -> None:
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        qualified = f"{self.plural}.{self.group}" if self.group else self.plural
        stored = self.storage_api_version or api_version
        derived = {
            "api_version": api_version,
            "qualified": qualified,
            "storage": self.storage or qualified,
            "storage_api_version": stored,
            "list_kind": self.list_kind or f"{self.kind}List",
            "has_status": "status" in self.subresources,
            "is_stored_as_served": stored == api_version,
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def path(self, namespace: str = "", name: str = "") -> str:
        """The URL path of the collection, or of one object."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{scope}/{self.plural}" + (f"/{name}" if name else "")


class ResourceRegistry:
    """All served types; `version` rises with every change, so that derived documents know when to be rebuilt."""

    def __init__(self, types: Iterable[ResourceType]) -> None:
        self._by_url: dict[tuple[str, str, str], ResourceType] = {}
        self._by_storage: dict[str, ResourceType] = {}
        self._by_kind: dict[tuple[str, str], ResourceType] = {}
        self._crd_of: dict[str, list[ResourceType]] = {}
        self._replaced: dict[str, list[ResourceType]] = {}
        self.version = 0
        for resource_type in types:
            self._add(resource_type)

    def find(self, group: str, version: str, plural: str) -> ResourceType:
        """The type served at a URL; ApiError 404 when there is none."""
        found = self._by_url.get((group, version, plural))
        if found is None or not found.is_served:
            raise no_such_path()
        return found

    def of(self, storage: str) -> ResourceType:
        """The type in which `storage` is stored; KeyError when unknown."""
        return self._by_storage[storage]

    def knows(self, storage: str) -> bool:
        return storage in self._by_storage

    def for_kind(self, api_version: str, kind: str) -> ResourceType | None:
        """The type with this apiVersion and kind, as an object or owner reference names it."""
        return self._by_kind.get((api_version, kind))

    def __iter__(self) -> Iterator[ResourceType]:
        """Every served type."""
        return (t for t in self._by_url.values() if t.is_served)

    def groups(self) -> dict[str, list[str]]:
        """Group -> versions, most preferred first, in the order in which they were added."""
        groups: dict[str, list[str]] = {}
        for resource_type in self:
            versions = groups.setdefault(resource_type.group, [])
            if resource_type.version not in versions:
                versions.append(resource_type.version)
        return {group: sorted(versions, key=version_rank, reverse=True) for group, versions in groups.items()}

    def in_group_version(self, group: str, version: str) -> list[ResourceType]:
        return [t for t in self if t.group == group and t.version == version]

    def add_crd(self, name: str, types: Iterable[ResourceType]) -> None:
        """Serve the types that the definition `name` asks for, in place of what it asked for before.

        A definition may take the place of a built-in custom kind (Kueue's); removing it brings that back.
        """
        self._forget(name)
        added = list(types)
        for resource_type in added:
            builtin = self._by_url.get(_url(resource_type))
            if builtin is not None:
                self._replaced.setdefault(name, []).append(builtin)
            self._add(resource_type)
        self._crd_of[name] = added

    def remove_crd(self, name: str) -> None:
        self._forget(name)
        for resource_type in self._replaced.pop(name, ()):
            self._add(resource_type)

    def _forget(self, name: str) -> None:
        self.version += 1
        for resource_type in self._crd_of.pop(name, ()):
            self._by_url.pop(_url(resource_type), None)
            self._by_storage.pop(resource_type.storage, None)
            self._by_kind.pop((resource_type.api_version, resource_type.kind), None)

    def _add(self, resource_type: ResourceType) -> None:
        self.version += 1
        self._by_url[_url(resource_type)] = resource_type
        if resource_type.is_served:
            self._by_kind[resource_type.api_version, resource_type.kind] = resource_type
        if "get" in resource_type.verbs and resource_type.is_stored_as_served:
            self._by_storage[resource_type.storage] = resource_type


def version_rank(version: str) -> tuple[int, int, int]:
    """Kubernetes' order of versions: v2 > v1 > v1beta2 > v1beta1 > v1alpha1 > anything else."""
    stage_rank = {"": 3, "beta": 2, "alpha": 1}
    for stage in ("beta", "alpha", ""):
        major, separator, minor = version[1:].partition(stage) if stage else (version[1:], "", "0")
        if version.startswith("v") and major.isdigit() and (not stage or separator) and minor.isdigit():
            return stage_rank[stage], int(major), int(minor)
    return 0, 0, 0


def _url(resource_type: ResourceType) -> tuple[str, str, str]:
    return resource_type.group, resource_type.version, resource_type.plural
