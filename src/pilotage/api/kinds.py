"""Further kinds that plugins watch: custom resources, ConfigMaps, anything that the API server has.

    class PodGroup(ApiObject, frozen=True):
        spec: PodGroupSpec = PodGroupSpec()

    POD_GROUPS = Kind("podgroups.scheduling.x-k8s.io", "v1alpha1", PodGroup)

    class Gangs(Plugin, PreFilter):
        watches = (POD_GROUPS,)

A kind is watched if a plugin that is enabled in some profile names it in `watches`. Then `handle.objects(POD_GROUPS)`
has its objects, `@on_event(POD_GROUPS, Action.ADD)` its events, and an index may name it in `kinds`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import msgspec

from pilotage.model import KINDS, KindInfo, kind_of
from pilotage.model.codec import Codec
from pilotage.model.kinds import POD_GROUPS, WATCHED, named
from pilotage.model.meta import ApiObject
from pilotage.model.suggestions import suggestion

_VERSION: Final = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
_PLURAL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_GROUP: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class UnknownKind(LookupError):
    """A kind that is not watched; the text has a suggestion."""


class Untyped(dict[str, Any]):
    """An object of a kind without a type: the JSON as a dict, and short ways to what is often asked for.

    It is shared by all callers; do not change it.
    """

    @property
    def metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = self["metadata"]
        return metadata

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    @property
    def namespace(self) -> str:
        return str(self.metadata.get("namespace") or "")

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid") or "")

    @property
    def key(self) -> str:
        """ "namespace/name", or "name" for a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def resource_version(self) -> str:
        return str(self.metadata.get("resourceVersion") or "")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind that a plugin wants watched.

    `resource` is the plural with its group, as kubectl and CustomResourceDefinitions name it: "configmaps",
    "podgroups.scheduling.x-k8s.io". The version may stand inside, as kube-scheduler's plugins write it:
    "podgroups.v1alpha1.scheduling.x-k8s.io".
    """

    resource: str
    version: str = ""
    struct: type[ApiObject] | None = None
    """What its objects are decoded into, a class that derives from `ApiObject`; without it they are dicts."""
    namespaced: bool = True
    plural: str = field(init=False, compare=False, repr=False)
    group: str = field(init=False, compare=False, repr=False)
    name: str = field(init=False, compare=False, repr=False)
    """Plural, version and group: "podgroups.v1alpha1.scheduling.x-k8s.io", "configmaps.v1"."""

    def __post_init__(self) -> None:
        plural, _, group = self.resource.partition(".")
        inside, _, rest = group.partition(".")
        version = self.version
        if not version and _VERSION.fullmatch(inside):
            version, group = inside, rest
        if not _PLURAL.fullmatch(plural) or (group and not _GROUP.fullmatch(group)):
            example = "podgroups.scheduling.x-k8s.io"
            raise ValueError(f'Kind("{self.resource}"): write it as the plural and the group, such as "{example}"')
        if not _VERSION.fullmatch(version):
            raise ValueError(f'Kind("{self.resource}"): say which version, such as Kind("{self.resource}", "v1")')
        if self.struct is not None and not (isinstance(self.struct, type) and issubclass(self.struct, ApiObject)):
            raise ValueError(f'Kind("{self.resource}"): {self.struct!r} does not derive from pilotage.api.ApiObject')
        values = {"plural": plural, "group": group, "version": version}
        values["resource"] = f"{plural}.{group}" if group else plural
        values["name"] = f"{plural}.{version}.{group}" if group else f"{plural}.{version}"
        for attribute, value in values.items():
            object.__setattr__(self, attribute, value)

    @property
    def info(self) -> KindInfo:
        """Where it lives in the API: what `get`, `create`, `update` and `patch` of the API server ask for."""
        return _info(self, self.name)

    def is_of(self, manifest: Mapping[str, Any]) -> bool:
        """Whether an object as it stands in a file is of this kind, by the rule that makes a plural of a kind."""
        kind = str(manifest.get("kind", ""))
        if manifest.get("apiVersion") != self.info.api_version:
            return False
        return _plural(kind) == self.plural or kind.lower() == self.plural or self._is_type(kind)

    def _is_type(self, kind: str) -> bool:
        return self.struct is not None and self.struct.__name__ == kind


@cache
def _info(kind: Kind, key: str) -> KindInfo:
    wire: Any = dict[str, Any] if kind.struct is None else kind.struct
    codec = Codec(key, wire, _untyped if kind.struct is None else named)
    return KindInfo(kind.group, kind.version, kind.plural, key, kind.namespaced, codec)


def _untyped(tree: dict[str, Any]) -> Untyped:
    metadata = tree.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise msgspec.ValidationError("Object missing required field `name` - at `$.metadata`")
    return Untyped(tree)


def _plural(kind: str) -> str:
    lower = kind.lower()
    if lower.endswith("s"):
        return f"{lower}es"
    return f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s"


def own_kind(name: str, watches: Iterable[Kind]) -> Kind:
    """Return the kind among these that a user means by a name; UnknownKind if there is none."""
    known = {alias: kind for kind in watches for alias in (kind.resource, kind.name)}
    found = known.get(name) or known.get(name.removesuffix("."))
    if found is None:
        raise UnknownKind(f'"{name}" is not among the kinds that the plugin watches{suggestion(name, known)}')
    return found


class WatchedKinds:
    """Every kind that a scheduler watches, by each of its names: its own kinds, and those of its plugins.

    Plugins that name the same kind with the same type share it. With another type it is watched once more, under a key
    of its own, so that plugins that do not know of each other get each what it asked for.
    """

    def __init__(
        self, watches: Mapping[str, Iterable[Kind]] | None = None, own: Mapping[str, KindInfo] | None = None
    ) -> None:
        """`watches` is what each enabled plugin names, by the plugin's name; `own` how the other kinds are read."""
        self.own: Mapping[str, KindInfo] = own or {plural: KINDS[plural] for plural in (*WATCHED, POD_GROUPS)}
        """The kinds that every scheduler watches, by plural."""
        self._keys: dict[str | Kind, str] = {info.kind: info.kind for info in self.own.values()}
        self._ambiguous: set[str] = set()
        self.foreign: dict[str, KindInfo] = {}
        """The kinds of plugins, by key."""
        self.wanted_by: dict[str, list[str]] = {}
        """For each of their keys, the plugins that name it."""
        for plugin, kinds in (watches or {}).items():
            for kind in kinds:
                self._add(plugin, kind)

    def _add(self, plugin: str, kind: Kind) -> None:
        key = self._keys.get(kind)
        if key is None:
            others = sum(info.path() == kind.info.path() for info in self.foreign.values())
            key = f"{kind.name}#{others + 1}" if others else kind.name
            self._keys[kind] = key
            self.foreign[key] = _info(kind, key)
            for alias in (kind.resource, kind.name):
                if self._keys.setdefault(alias, key) != key:
                    self._ambiguous.add(alias)
        self.wanted_by.setdefault(key, []).append(plugin)

    @property
    def keys(self) -> Iterable[str]:
        return dict.fromkeys(self._keys.values())

    @property
    def names(self) -> Mapping[str | Kind, str]:
        """What stands for one kind only, with the key of it."""
        return {name: key for name, key in self._keys.items() if name not in self._ambiguous}

    def key(self, kind: str | Kind) -> str:
        """Under what the cluster keeps the objects of a kind; UnknownKind if it is not watched."""
        key = self._keys.get(kind)
        if key is None:
            raise UnknownKind(self._unknown(kind))
        if self._ambiguous and kind in self._ambiguous:
            raise UnknownKind(f'plugins watch "{kind}" with different types; ask with the Kind itself')
        return key

    def has(self, kind: str | Kind) -> bool:
        """Whether it is watched."""
        return kind in self._keys

    def of_manifest(self, manifest: Mapping[str, Any]) -> list[KindInfo]:
        """What an object as it stands in a file is read as; empty if neither scheduling nor a plugin reads it."""
        own = kind_of(str(manifest.get("kind", "")))
        own = own and self.own.get(own.plural, own)
        found = [self.foreign[k] for kind, k in self._keys.items() if isinstance(kind, Kind) and kind.is_of(manifest)]
        if own is None:
            return found
        version = str(manifest.get("apiVersion", own.api_version))
        is_of_group = version.rpartition("/")[0] == own.group
        return [own, *found] if version == own.api_version or (is_of_group and not found) else found

    def of_object(self, obj: Any) -> list[str]:
        """Keys of an object of a plugin's type, or of a kind of our own."""
        found = [key for kind, key in self._keys.items() if isinstance(kind, Kind) and kind.struct is type(obj)]
        is_own = not found or type(obj).__module__.startswith("pilotage.model.")
        return [type(obj).__name__, *found] if is_own else found

    def _unknown(self, kind: str | Kind) -> str:
        if isinstance(kind, Kind):
            return f"{kind.name} is watched by no enabled plugin; name it in the plugin's `watches`"
        names = [name for name in self._keys if isinstance(name, str)]
        near = suggestion(kind, names)
        known = kind_of(kind) or KINDS.get(kind.partition(".")[0])
        if known is not None and known.plural in WATCHED:
            return f'objects of "{kind}" are known as "{known.kind}"'
        if known is not None and not near:
            resource = f"{known.plural}.{known.group}" if known.group else known.plural
            return f'"{kind}" is not watched; add Kind("{resource}", "{known.version}") to the plugin\'s `watches`'
        return f'"{kind}" is watched by no enabled plugin{near}; name it in the plugin\'s `watches`'
