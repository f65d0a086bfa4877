"""CustomResourceDefinitions: what a definition makes the server serve.

A definition is accepted at once (its conditions say so from the first read on), and the registry follows the stored
definitions: written, their versions are served; gone, they are not. Versions of one kind share their storage and differ
only in `apiVersion`, as with the API server's conversion strategy `None`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pilotage.sandbox.errors import FieldError
from pilotage.sandbox.kinds.resources import ResourceRegistry, ResourceType
from pilotage.sandbox.kinds.schema_rules import rule_problems
from pilotage.sandbox.kinds.structural_schema import ObjectRules
from pilotage.sandbox.storage.records import Change, Record
from pilotage.sandbox.storage.store import Store

CRD_RESOURCE: Final = "customresourcedefinitions.apiextensions.k8s.io"
CLEANUP_FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
"""Holds a definition until its objects are gone."""

Object = dict[str, Any]


def follow_definitions(store: Store, registry: ResourceRegistry) -> None:
    """Serve what the stored definitions define, now and after every change of them."""
    for record in store.list(CRD_RESOURCE):
        _serve(registry, record)

    def follow(change: Change) -> None:
        if change.type == "DELETED":
            registry.remove_crd(change.record.key.name)
        else:
            _rewrite_stored(store, _serve(registry, change.record))

    store.subscribe(CRD_RESOURCE, follow)


def _serve(registry: ResourceRegistry, record: Record) -> ResourceType:
    types = [replace(one, defined_at=record.revision) for one in types_of(record.object())]
    registry.add_crd(record.key.name, types)
    return types[0]


def _rewrite_stored(store: Store, stored: ResourceType) -> None:
    """When the storage version changes, what is stored changes with it: bytes are served as they lie there."""
    for record in store.list(stored.storage):
        obj = record.object()
        if obj.get("apiVersion") == stored.api_version:
            return
        obj["apiVersion"] = stored.api_version
        store.update(record.key, obj)


def types_of(definition: Mapping[str, Any]) -> list[ResourceType]:
    """A type for every version, the stored one first."""
    spec = definition["spec"]
    versions = sorted(spec["versions"], key=lambda version: not version.get("storage"))
    stored = versions[0]["name"]
    return [_type_of(spec, version, stored) for version in versions]


def _type_of(spec: Mapping[str, Any], version: Mapping[str, Any], stored: str) -> ResourceType:
    names = spec["names"]
    schema = _schema_of(version)
    subresources = version.get("subresources") or {}
    return ResourceType(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        kind=names["kind"],
        namespaced=spec.get("scope") == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(name for name in ("scale", "status") if subresources.get(name) is not None),
        tracks_generation=True,
        storage_api_version=f"{spec['group']}/{stored}",
        is_custom=True,
        is_served=bool(version.get("served")),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        schema=schema,
        rules=ObjectRules(schema) if schema else None,
        printer_columns=tuple(version.get("additionalPrinterColumns") or ()),
        scale_paths=subresources.get("scale"),
        selectable_fields=tuple(field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ()),
    )


def accept_definition(definition: Object, now: str) -> None:
    """Write the status that the API server's own controllers would write, and hold the definition for its objects."""
    spec = definition.get("spec") or {}
    finalizers = definition["metadata"].get("finalizers") or ()
    definition["metadata"]["finalizers"] = [*dict.fromkeys((*finalizers, CLEANUP_FINALIZER))]
    definition["status"] = {
        "conditions": [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
            _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
        ],
        "acceptedNames": dict(spec.get("names") or {}),
        "storedVersions": [version.get("name") for version in spec.get("versions") or () if version.get("storage")],
    }


def definition_errors(definition: Mapping[str, Any], registry: ResourceRegistry) -> list[FieldError]:
    """Why the definition cannot be served."""
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    errors = [
        FieldError(path, type="FieldValueRequired")
        for path, value in (
            ("spec.group", spec.get("group")),
            ("spec.names.plural", names.get("plural")),
            ("spec.names.kind", names.get("kind")),
            ("spec.versions", spec.get("versions")),
        )
        if not value
    ]
    if errors:
        return errors
    errors = [*_scope_errors(spec), *_name_errors(definition, spec, registry), *_version_errors(spec["versions"])]
    return errors or _rule_errors(spec["versions"])


def _rule_errors(versions: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    """The API server has a schema that all versions share in one place, whatever the definition looks like."""
    schemas = [_schema_of(version) for version in versions]
    if all(schema == schemas[0] for schema in schemas):
        return rule_problems(schemas[0] or {}, "spec.validation.openAPIV3Schema")
    paths = [f"spec.versions[{at}].schema.openAPIV3Schema" for at in range(len(schemas))]
    return [error for schema, path in zip(schemas, paths, strict=True) for error in rule_problems(schema or {}, path)]


def _schema_of(version: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return (version.get("schema") or {}).get("openAPIV3Schema")


def _scope_errors(spec: Mapping[str, Any]) -> list[FieldError]:
    scope = spec.get("scope")
    if scope in ("Namespaced", "Cluster"):
        return []
    supported = 'supported values: "Cluster", "Namespaced"'
    return [FieldError("spec.scope", supported, scope or "", "FieldValueNotSupported")]


def _name_errors(
    definition: Mapping[str, Any], spec: Mapping[str, Any], registry: ResourceRegistry
) -> list[FieldError]:
    plural, group = spec["names"]["plural"], spec["group"]
    name = definition["metadata"].get("name")
    errors = []
    if name != f"{plural}.{group}":
        errors.append(FieldError("metadata.name", "must be spec.names.plural+'.'+spec.group", name))
    builtin = next((t for t in registry if t.group == group and not t.is_custom), None)
    if builtin is not None or "." not in group:
        errors.append(FieldError("spec.group", "should be a domain with at least one dot, of your own", group))
    return errors


def _version_errors(versions: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    stored = [version for version in versions if version.get("storage")]
    errors = []
    if len(stored) != 1:
        problem = "must have exactly one version marked as storage version"
        errors.append(FieldError("spec.versions", problem, [version.get("name") for version in versions]))
    for at, version in enumerate(versions):
        if not version.get("name"):
            errors.append(FieldError(f"spec.versions[{at}].name", type="FieldValueRequired"))
        if not _schema_of(version):
            path = f"spec.versions[{at}].schema.openAPIV3Schema"
            errors.append(FieldError(path, "schemas are required", type="FieldValueRequired"))
    return errors


def _condition(kind: str, reason: str, message: str, now: str) -> Object:
    return {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
