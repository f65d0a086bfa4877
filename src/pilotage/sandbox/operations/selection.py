"""Which records a list or watch asks for: label and field selectors on stored bytes.

Labels lie beside the record. Fields are read from the JSON with a decoder made for just the paths in question, so that
selecting pods by node skips over everything else in them. Only the fields that the API server knows for a kind can be
selected; asking for another one is a 400, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from pilotage.model.selectors import (
    FieldRequirement,
    LabelRequirements,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)
from pilotage.sandbox.errors import bad_request
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.storage.records import Key, Record

_KEY_FIELDS: Final = ("metadata.name", "metadata.namespace")

_EVENT_FIELDS: Final = (
    *(f"involvedObject.{field}" for field in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")),
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)

# Where a kind's fields may be missing in JSON, this is how the API server renders them (mostly Go zero values).
_SELECTABLE: Final[Mapping[str, Mapping[str, str]]] = {
    "pods": {
        "spec.nodeName": "",
        "spec.restartPolicy": "",
        "spec.schedulerName": "",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "false",
        "status.phase": "",
        "status.podIP": "",
        "status.nominatedNodeName": "",
    },
    "events": dict.fromkeys(_EVENT_FIELDS, ""),
    "nodes": {"spec.unschedulable": "false"},
    "certificatesigningrequests.certificates.k8s.io": {"spec.signerName": ""},
    "ipaddresses.networking.k8s.io": {"spec.parentRef.name": "", "spec.parentRef.resource": ""},
    "namespaces": {"status.phase": ""},
    "secrets": {"type": ""},
    "jobs.batch": {"status.successful": "0"},
    "replicasets.apps": {"status.replicas": "0"},
    "replicationcontrollers": {"status.replicas": "0"},
    "resourceslices.resource.k8s.io": {"spec.nodeName": "", "spec.driver": ""},
}

# events.k8s.io names the same fields differently; `source` of a core event lies one level deeper.
_EVENT_SOURCE: Final = "source.component"
_EVENT_REPORTER: Final = "reportingComponent"
"""Who is the source of an event that names none."""
_ALIASES: Final[Mapping[str, str]] = {"reportingController": _EVENT_REPORTER, "source": _EVENT_SOURCE}


@dataclass(frozen=True, slots=True)
class ObjectSelection:
    """A compiled pair of selectors; `matches` is what lists and watches ask per record."""

    labels: LabelRequirements | None
    fields: tuple[FieldRequirement, ...] = ()
    defaults: tuple[str, ...] = ()
    unwanted: tuple[bytes, ...] = ()
    """Words of which an object must contain one, if it is not to match by its fields; () if there are no such words."""

    @property
    def is_everything(self) -> bool:
        return self.labels is None and not self.fields

    @property
    def exact_name(self) -> str:
        """The only name that can match, if there is such a name: the list is then a look-up."""
        return next((r.value for r in self.fields if r.path == "metadata.name" and r.operator == "="), "")

    def matches(self, record: Record) -> bool:
        if self.labels is not None and not self.labels.matches(record.labels):
            return False
        return not self.fields or self._fields_match(record)

    def _fields_match(self, record: Record) -> bool:
        if self.unwanted and _has_none(record.body, self.unwanted):
            return True
        by_path, paths = _grouped(self.fields, self.defaults)
        for path in _KEY_FIELDS:
            if path in by_path and not _all_match(by_path[path], _key_field(record.key, path)):
                return False
        if not paths:
            return True
        values = list(_reader(paths)(record.body))
        if _EVENT_SOURCE in paths and not values[paths.index(_EVENT_SOURCE)]:
            [values[paths.index(_EVENT_SOURCE)]] = _reader((_EVENT_REPORTER,))(record.body)
        return all(_all_match(by_path[path], value) for path, value in zip(paths, values, strict=True))


EVERYTHING: Final = ObjectSelection(None)

_Grouped: TypeAlias = dict[str, list[tuple[FieldRequirement, str]]]


@lru_cache(maxsize=256)
def _grouped(fields: tuple[FieldRequirement, ...], defaults: tuple[str, ...]) -> tuple[_Grouped, tuple[str, ...]]:
    """Requirements with the values that stand for nothing, by path; and the paths that must be read from the object."""
    by_path: _Grouped = {}
    for requirement, default in zip(fields, defaults, strict=True):
        by_path.setdefault(requirement.path, []).append((requirement, default))
    return by_path, tuple(path for path in by_path if path not in _KEY_FIELDS)


def _has_none(body: bytes, words: tuple[bytes, ...]) -> bool:
    for word in words:  # noqa: SIM110 - asked for every event, and a generator costs more than the search
        if word in body:
            return False
    return True


def _all_match(requirements: Sequence[tuple[FieldRequirement, str]], actual: str) -> bool:
    return all(requirement.matches(actual or default) for requirement, default in requirements)


def parse_selection(resource_type: ResourceType, labels: str, fields: str) -> ObjectSelection:
    """Compile the texts of `labelSelector` and `fieldSelector`; ApiError 400 when one cannot be used."""
    if not labels and not fields:
        return EVERYTHING
    try:
        requirements = parse_label_selector(labels) if labels.strip() else None
        field_requirements = parse_field_selector(fields)
    except SelectorError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None
    known = _selectable_fields(resource_type)
    found: list[FieldRequirement] = []
    for requirement in field_requirements:
        path = _canonical(resource_type, requirement.path)
        if path not in known:
            # kubectl puts the selectors before this sentence by itself.
            raise bad_request(f"field label not supported: {requirement.path}")
        found.append(requirement._replace(path=_ALIASES.get(path, path) if resource_type.storage == "events" else path))
    defaults = tuple(known.get(requirement.path, "") for requirement in found)
    return ObjectSelection(requirements, tuple(found), defaults, _unwanted(found, defaults))


def _unwanted(fields: Sequence[FieldRequirement], defaults: Sequence[str]) -> tuple[bytes, ...]:
    """What is known without reading a field: that it has not this value, which stands nowhere in the object.

    That is so for words that JSON writes in one way only, and that do not stand for a field that is absent.
    """
    for requirement, default in zip(fields, defaults, strict=True):
        word = requirement.value
        if requirement.operator != "!=" or word == default or not (word.isascii() and word.isalpha()):
            return ()
    return tuple(requirement.value.encode() for requirement in fields)


def _selectable_fields(resource_type: ResourceType) -> Mapping[str, str]:
    known = dict.fromkeys(_KEY_FIELDS, "")
    known.update(_SELECTABLE.get(resource_type.storage, {}))
    known.update(dict.fromkeys(resource_type.selectable_fields, ""))
    return known


def _canonical(resource_type: ResourceType, path: str) -> str:
    if resource_type.storage != "events":
        return path
    if path.startswith("regarding."):
        return "involvedObject." + path.removeprefix("regarding.")
    return "reportingComponent" if path == "reportingController" else path


def _key_field(key: Key, path: str) -> str:
    return key.name if path == "metadata.name" else key.namespace


@lru_cache(maxsize=256)
def _reader(paths: tuple[str, ...]) -> Callable[[bytes], Sequence[str]]:
    """A function that reads the texts at `paths` from the JSON of an object ("" where there is nothing)."""
    tree: dict[str, Any] = {}
    for path in paths:
        node = tree
        *parents, leaf = path.split(".")
        for parent in parents:
            node = node.setdefault(parent, {})
        node.setdefault(leaf, {})
    decode = msgspec.json.Decoder(_struct(tree)).decode
    steps = [_attribute_path(tree, path) for path in paths]

    def read(body: bytes) -> Sequence[str]:
        try:
            found = decode(body)
        except msgspec.ValidationError:
            return [""] * len(steps)
        return [_text_at(found, attributes) for attributes in steps]

    return read


def _struct(tree: Mapping[str, Any]) -> Any:
    fields = [(f"f{at}", _struct(below) | None if below else Any, None) for at, below in enumerate(tree.values())]
    return msgspec.defstruct("Selected", fields, rename={f"f{at}": name for at, name in enumerate(tree)})


def _attribute_path(tree: Mapping[str, Any], path: str) -> list[str]:
    attributes = []
    for part in path.split("."):
        attributes.append(f"f{list(tree).index(part)}")
        tree = tree[part]
    return attributes


def _text_at(found: Any, attributes: Sequence[str]) -> str:
    for attribute in attributes:
        found = getattr(found, attribute)
        if found is None:
            return ""
    return str(found).lower() if isinstance(found, bool) else str(found)
