"""Rules for `metadata`, which all kinds share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pilotage.sandbox.rules.json_fields import Json
from pilotage.sandbox.rules.validation.field_rules import Rule, each, fields, syntax
from pilotage.sandbox.rules.validation.names import (
    address_problem,
    label,
    label_1035_problem,
    label_map,
    path_segment_problem,
    qualified_name_problem,
    subdomain,
)
from pilotage.sandbox.rules.validation.problems import IMMUTABLE, Errors, forbidden, invalid, required

_ANNOTATION_BYTES: Final = 256 * 1024
_NAME_RULES: Final[Mapping[str, Rule]] = {
    "Namespace": label,
    "Service": syntax(label_1035_problem),
    "IPAddress": syntax(address_problem),
    **dict.fromkeys(("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"), syntax(path_segment_problem)),
}
_JUDGED_AFTER_CHANGES: Final = ("labels", "annotations", "finalizers", "ownerReferences")


def metadata_errors(kind: str, metadata: Json | None) -> Errors:
    """What is wrong with the metadata of a stored object."""
    name = metadata.get("name") if metadata is not None else None
    if metadata is None or not name:
        # The generated name has been filled in by now, if one was asked for.
        missing = [required("metadata.name", "name or generateName is required")]
        return missing if metadata is None else missing + _common_errors(metadata)
    return name_errors(kind, name) + _common_errors(metadata)


def name_errors(kind: str, name: str) -> Errors:
    return _NAME_RULES.get(kind, subdomain)(name, "metadata.name")


def _common_errors(metadata: Json) -> Errors:
    """What is wrong apart from the name."""
    namespace = metadata.get("namespace")
    errors = label(namespace, "metadata.namespace") if namespace else []
    return errors + template_metadata(metadata, "metadata")


def changed_metadata_errors(kind: str, old: Json | None, new: Json | None) -> Errors:
    """What is wrong with the metadata after an update: what was accepted once is not judged anew."""
    if new is None or not isinstance(old, dict) or any(old.get(key) != new.get(key) for key in ("name", "namespace")):
        return metadata_errors(kind, new)
    changed = {key: new[key] for key in _JUDGED_AFTER_CHANGES if key in new and new[key] != old.get(key)}
    return template_metadata(changed, "metadata") if changed else []


def metadata_update_errors(old: Any, new: Json | None) -> Errors:
    """What an update may not change."""
    if not isinstance(old, dict) or new is None:
        return []
    errors = [
        invalid(f"metadata.{field}", now, IMMUTABLE)
        for field, before, now in (
            ("name", old.get("name"), new.get("name")),
            ("namespace", old.get("namespace") or "", new.get("namespace") or ""),
            ("uid", old.get("uid"), new.get("uid")),
        )
        if before != now
    ]
    if old.get("deletionTimestamp") is not None and new.get("finalizers"):
        errors += _finalizer_errors(old.get("finalizers"), new["finalizers"])
    return errors


def _finalizer_errors(old: Any, new: list[str]) -> Errors:
    added = [name for name in new if not isinstance(old, list) or name not in old]
    if not added:
        return []
    names = ", ".join(f'"{name}"' for name in added)
    problem = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{names}}}"
    return [forbidden("metadata.finalizers", problem)]


def _annotations(annotations: Mapping[str, str], path: str) -> Errors:
    errors: Errors = []
    size = 0
    for key, value in annotations.items():
        if problem := qualified_name_problem(key.lower()):
            errors.append(invalid(path, key, problem))
        size += len(key.encode(errors="replace")) + len(value.encode(errors="replace"))
    if size > _ANNOTATION_BYTES:
        errors.append(invalid(path, "", f"may not be more than {_ANNOTATION_BYTES} bytes"))
    return errors


def _finalizers(finalizers: list[str], path: str) -> Errors:
    problems = ((name, qualified_name_problem(name)) for name in finalizers)
    return [invalid(path, name, problem) for name, problem in problems if problem]


def _not_empty(problem: str) -> Rule:
    return lambda text, path: [] if text else [invalid(path, "", problem)]


def _owners(owners: list[Json], path: str) -> Errors:
    errors = _EACH_OWNER(owners, path)
    controllers = [owner.get("name") or "" for owner in owners if owner.get("controller")]
    if len(controllers) <= 1:
        return errors
    first, second = controllers[:2]
    problem = f'Only one reference can have Controller set to true. Found "true" in references for {first} and {second}'
    return [*errors, invalid(path, "", problem)]


_EACH_OWNER: Final = each(
    fields(
        ("apiVersion", _not_empty("version must not be empty"), ""),
        ("kind", _not_empty("must not be empty"), ""),
        ("name", _not_empty("must not be empty"), ""),
        ("uid", _not_empty("must not be empty"), ""),
    )
)
template_metadata: Final = fields(
    ("labels", label_map),
    ("annotations", _annotations),
    ("finalizers", _finalizers),
    ("ownerReferences", _owners),
)
"""What holds apart from the name: the metadata of templates has none."""
