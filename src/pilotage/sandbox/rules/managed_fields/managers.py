"""The managers of an object: who has set which of its fields, in what manner and when.

    metadata.managedFields -> Managers -> update / apply -> Managers -> metadata.managedFields

A manager that updates owns what it changes, and takes it from everybody else. A manager that applies owns what its
configuration says; where that changes what others own it is a conflict, or taken from them by force; what it no longer
says is removed, unless somebody else owns it. The scale subresource has the managers of the object who own its number
of replicas; who loses it there loses it here, too. Pure: the time comes from outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.kinds.merge_types import MergeType
from pilotage.sandbox.rules.managed_fields.comparison import FieldChange, compare
from pilotage.sandbox.rules.managed_fields.field_sets import (
    NOTHING,
    FieldSet,
    Path,
    difference,
    fields_of,
    from_fields_v1,
    holds,
    intersection,
    path_text,
    paths_in,
    to_fields_v1,
    union,
    with_declared,
    without,
)
from pilotage.sandbox.rules.managed_fields.merging import merged, removed

Object = dict[str, Any]

APPLY: Final = "Apply"
UPDATE: Final = "Update"
BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""Owns what was there when an object without managers is applied for the first time."""

SCALE_VERSION: Final = "autoscaling/v1"
_REPLICAS_OF_SCALE: Final[Path] = ("f:spec", "f:replicas")
_ANCIENT: Final = "ancient-changes"
_MOST_UPDATERS: Final = 10
_KUBECTL: Final = "kubectl"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_NOBODYS: Final[tuple[Path, ...]] = (
    ("f:apiVersion",),
    ("f:kind",),
    *(
        ("f:metadata", f"f:{field}")
        for field in (
            *("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation"),
            *("managedFields", "resourceVersion"),
        )
    ),
)
_METADATA: Final[FieldSet] = {"f:metadata": {".": NOTHING}}
_encode = msgspec.json.Encoder().encode


class Manager(NamedTuple):
    """Who. Somebody who updates in two versions is two managers; who applies is one."""

    name: str
    operation: str
    api_version: str
    subresource: str

    @property
    def shown(self) -> str:
        quoted = _encode(self.name).decode()
        if self.subresource:
            quoted += f" with subresource {_encode(self.subresource).decode()}"
        return quoted if self.operation == APPLY else f"{quoted} using {self.api_version}"


class OwnedFields(NamedTuple):
    """What a manager owns, in which version it said so, and when it last changed something."""

    fields: FieldSet
    api_version: str
    time: str | None
    unread: Object | None = None
    """The entry as it stands in managedFields, whose fields were not looked at."""


Managers = dict[Manager, OwnedFields]
Conflicts = list[tuple[Manager, Path]]


class ApplyConflict(ApiError):
    """A configuration changes what others own."""

    def __init__(self, conflicts: Conflicts) -> None:
        causes = [
            {"reason": "FieldManagerConflict", "message": f"conflict with {manager.shown}", "field": path_text(path)}
            for manager, path in conflicts
        ]
        super().__init__(409, "Conflict", _conflict_message(conflicts), {"causes": causes})
        self.conflicts = conflicts


def _conflict_message(conflicts: Conflicts) -> str:
    if len(conflicts) == 1:
        [(manager, path)] = conflicts
        return f"Apply failed with 1 conflict: conflict with {manager.shown}: {path_text(path)}"
    lines: dict[Manager, list[str]] = {}
    for manager, path in conflicts:
        lines.setdefault(manager, []).append(f"- {path_text(path)}")
    listed = "\n".join("\n".join((f"conflicts with {one.shown}:", *lines[one])) for one in sorted(lines))
    return f"Apply failed with {len(conflicts)} conflicts: {listed}"


def read_managers(
    metadata: Mapping[str, Any], change: FieldChange | None = None, by: Manager | None = None
) -> Managers:
    """ValueError for what is no list of managers. Of a change, only those are read whom it can concern."""
    touched = None if change is None else {step for part in change for step in part}
    managers: Managers = {}
    for entry in metadata.get("managedFields") or ():
        operation, api_version = entry.get("operation"), entry.get("apiVersion")
        if operation not in (APPLY, UPDATE) or not api_version or entry.get("fieldsType") != "FieldsV1":
            raise ValueError("operation, apiVersion or fieldsType of a manager")
        name, subresource = entry.get("manager") or "", entry.get("subresource") or ""
        manager = Manager(name, operation, "" if operation == APPLY else api_version, subresource)
        fields = entry.get("fieldsV1") or {}
        if touched is not None and manager != by and touched.isdisjoint(fields):
            managers[manager] = OwnedFields(NOTHING, api_version, entry.get("time"), entry)
        else:
            managers[manager] = OwnedFields(from_fields_v1(fields), api_version, entry.get("time"))
    return managers


def write_managers(managers: Managers) -> list[Object]:
    """As `metadata.managedFields`: appliers first, then by time."""

    def rank(one: Manager) -> tuple[Any, ...]:
        share = managers[one]
        return one.operation, share.time or "", one.name, share.api_version, one.subresource

    return [_entry(manager, managers[manager]) for manager in sorted(managers, key=rank)]


def _entry(manager: Manager, share: OwnedFields) -> Object:
    if share.unread is not None:
        return share.unread
    entry: Object = {"manager": manager.name} if manager.name else {}
    entry.update(operation=manager.operation, apiVersion=share.api_version)
    if share.time:
        entry["time"] = share.time
    entry.update(fieldsType="FieldsV1", fieldsV1=to_fields_v1(share.fields))
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def change_between(kind: MergeType, old: Object, new: Object) -> FieldChange:
    """KeyMissing where lists cannot be compared."""
    return compare(kind, _unmanaged(old), _unmanaged(new))


def updated(change: FieldChange, by: Manager, now: str, managers: Managers) -> Managers:
    """The managers after somebody has changed the object."""
    taken = union(change.modified, change.added)
    kept = _without_taken(managers, taken, change.removed)
    owned = _ownable(taken)
    if owned:
        before = kept.get(by)
        fields = owned if before is None else union(before.fields, owned)
        kept[by] = OwnedFields(fields, by.api_version, now)
    return _capped(kept)


def _ownable(fields: FieldSet) -> FieldSet:
    return difference(without(fields, _NOBODYS), _METADATA)


def _unmanaged(obj: Object) -> Object:
    metadata = obj.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {field: value for field, value in metadata.items() if field != "managedFields"}}


def _without_taken(managers: Managers, taken: FieldSet, gone: FieldSet, but: Manager | None = None) -> Managers:
    """What everybody still owns when some fields were taken by somebody else and some are gone."""
    kept: Managers = {}
    for manager, share in managers.items():
        if share.unread is not None:
            kept[manager] = share
            continue
        fields = share.fields if manager == but else difference(difference(share.fields, taken), gone)
        if fields:
            kept[manager] = share._replace(fields=fields)
    return kept


def _capped(managers: Managers) -> Managers:
    """At most ten managers that update: the oldest become one per version."""
    updaters = [manager for manager in managers if manager.operation == UPDATE]
    if len(updaters) <= _MOST_UPDATERS:
        return managers
    updaters.sort(key=lambda one: (managers[one].time or "", one))
    managers = {manager: _read(share) for manager, share in managers.items()}
    capped, left, first = dict(managers), len(updaters), dict[str, Manager]()
    for manager in updaters:
        if left <= _MOST_UPDATERS:
            break
        share = managers[manager]
        if share.api_version not in first:
            first[share.api_version] = manager
            continue
        bucket = Manager(_ANCIENT, UPDATE, share.api_version, "")
        if bucket not in capped:
            capped[bucket] = capped.pop(first[share.api_version])
        capped.pop(manager, None)
        capped[bucket] = OwnedFields(union(share.fields, capped[bucket].fields), share.api_version, share.time)
        left -= 1
    return capped


def _read(share: OwnedFields) -> OwnedFields:
    if share.unread is None:
        return share
    return share._replace(fields=from_fields_v1(share.unread.get("fieldsV1") or {}), unread=None)


class Applied(NamedTuple):
    """What an applied configuration made of an object."""

    obj: Object
    managers: Managers


class Application(NamedTuple):
    """A configuration and who applies it; `ignored` are fields that its endpoint does not write."""

    config: Object
    by: Manager
    ignored: tuple[Path, ...]
    force: bool
    now: str


def applied(kind: MergeType, live: Object, managers: Managers, what: Application) -> Applied:
    """ApplyConflict when others own what would change, KeyMissing when lists cannot be compared."""
    live = _unmanaged(live)
    try:
        done = _applied(kind, live, managers, what)
    except ApplyConflict as conflict:
        if what.by.name != _KUBECTL:
            raise
        # What client-side apply has set belongs to the same user.
        own = _last_applied_fields(kind, live)
        others = [one for one in conflict.conflicts if not holds(own, one[1])]
        if others:
            raise ApplyConflict(others) from None
        done = _applied(kind, live, managers, what._replace(force=True))
    if what.by.name == _KUBECTL:
        _keep_last_applied(done.obj, what.config)
    return done


def _applied(kind: MergeType, live: Object, managers: Managers, what: Application) -> Applied:
    by = what.by
    new = merged(kind, live, what.config)
    fields = without(fields_of(kind, what.config), what.ignored)
    last = managers.get(by)
    managers = {**managers, by: OwnedFields(fields, what.config["apiVersion"], last.time if last else None)}
    if last is not None:
        new = _pruned(kind, new, last.fields, managers)
    change = compare(kind, live, new)
    change = change._replace(modified=without(change.modified, what.ignored), added=without(change.added, what.ignored))
    taken = union(change.modified, change.added)
    conflicts = [
        (manager, path)
        for manager, share in managers.items()
        if manager != by
        for path in paths_in(intersection(share.fields, taken))
    ]
    if conflicts and not what.force:
        raise ApplyConflict(conflicts)
    managers = _without_taken(managers, taken, without(change.removed, what.ignored), but=by)
    owned = _ownable(fields)
    managers.pop(by, None)
    if owned:
        share = OwnedFields(owned, what.config["apiVersion"], last.time if last else None)
        managers[by] = share if new == live else share._replace(time=what.now)
    return Applied(new, _capped(managers))


def _pruned(kind: MergeType, new: Object, last: FieldSet, managers: Managers) -> Object:
    """Without what the manager applied the last time and does not any more, and nobody else owns."""
    everything = with_declared(kind, fields_of(kind, new))
    last = with_declared(kind, last)
    owned: FieldSet = NOTHING
    for share in managers.values():
        owned = union(owned, share.fields)
    kept = with_declared(kind, fields_of(kind, removed(kind, new, last) or {}))
    kept = union(kept, with_declared(kind, owned))
    pruned = removed(kind, new, difference(everything, kept)) or {}
    left = with_declared(kind, fields_of(kind, pruned))
    found: Object = removed(kind, new, intersection(difference(everything, left), last)) or {}
    return found


def _last_applied_fields(kind: MergeType, live: Object) -> FieldSet:
    """What client-side apply has set and is still so."""
    text = ((live.get("metadata") or {}).get("annotations") or {}).get(_LAST_APPLIED)
    try:
        config = msgspec.json.decode(text or b"")
    except msgspec.DecodeError:
        return NOTHING
    if not isinstance(config, dict) or config.get("apiVersion") != live.get("apiVersion"):
        return NOTHING
    change = compare(kind, config, live)
    fields = fields_of(kind, config)
    for changed in change:
        fields = difference(fields, changed)
    return fields


def _keep_last_applied(obj: Object, config: Object) -> None:
    """Client-side apply must be able to go on from here."""
    metadata = obj["metadata"]
    annotations = metadata.get("annotations")
    if not annotations or not annotations.get(_LAST_APPLIED):
        return
    plain = dict(config)
    own = {name: text for name, text in (config["metadata"].get("annotations") or {}).items() if name != _LAST_APPLIED}
    plain["metadata"] = {**config["metadata"], "annotations": own}
    if not own:
        del plain["metadata"]["annotations"]
    text = msgspec.json.Encoder(order="sorted").encode(plain).decode() + "\n"
    obj["metadata"] = {**metadata, "annotations": {**annotations, _LAST_APPLIED: text}}


def managers_of_scale(managers: Managers, replicas: Path) -> Managers:
    """Of the object's managers those who own the replicas."""
    found: Managers = {}
    for manager, share in managers.items():
        if holds(share.fields, replicas):
            seen = manager if manager.operation == APPLY else manager._replace(api_version=SCALE_VERSION)
            found[seen] = OwnedFields(_only(_REPLICAS_OF_SCALE), SCALE_VERSION, share.time)
    return found


def managers_after_scale(managers: Managers, scale: Managers, replicas: Path, api_version: str) -> Managers:
    """The object's managers when those of its scale are `scale`."""
    found: Managers = {}
    left = dict(scale)
    for manager, share in managers.items():
        if not holds(share.fields, replicas) or left.pop(manager, None) is not None:
            found[manager] = share
            continue
        fields = difference(share.fields, _only(replicas))
        if fields:
            found[manager] = share._replace(fields=fields)
    for manager, share in left.items():
        if holds(share.fields, _REPLICAS_OF_SCALE):
            known = managers.get(manager)
            found[manager] = OwnedFields(_only(replicas), api_version, known.time if known else None)
    return found


def _only(path: Path) -> FieldSet:
    fields: FieldSet = {".": NOTHING}
    for step in reversed(path):
        fields = {step: fields}
    return fields
