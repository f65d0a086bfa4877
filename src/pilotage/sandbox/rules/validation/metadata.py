"""Rules for `metadata`, which all kinds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pilotage.sandbox.rules.validation.names import (
    label_1035_problem,
    label_problem,
    labels_errors,
    qualified_name_problem,
    subdomain_problem,
)
from pilotage.sandbox.rules.validation.problems import IMMUTABLE, Errors, forbidden, invalid, required
from pilotage.sandbox.rules.validation.shapes import Int64, Labels, Shape

_ANNOTATION_BYTES: Final = 256 * 1024
_NAME_RULES: Final[Mapping[str, Callable[[str], str]]] = {"Namespace": label_problem, "Service": label_1035_problem}


class OwnerReference(Shape):
    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None


class Metadata(Shape):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    generation: Int64 | None = None
    labels: Labels | None = None
    annotations: Labels | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int64 | None = None


class AnyObject(Shape):
    """What all kinds have in common, and the shape of a kind of which only the metadata is known."""

    api_version: str | None = None
    kind: str | None = None
    metadata: Metadata | None = None


def metadata_errors(kind: str, metadata: Metadata | None, path: str = "metadata") -> Errors:
    """What is wrong with the metadata of a stored object."""
    if metadata is None:
        return [required(f"{path}.name", "name or generateName is required")]
    errors = _name_errors(kind, metadata, path)
    if metadata.namespace and (problem := label_problem(metadata.namespace)):
        errors.append(invalid(f"{path}.namespace", metadata.namespace, problem))
    return errors + common_errors(metadata, path)


def common_errors(metadata: Metadata, path: str) -> Errors:
    """What is wrong apart from the name: also for the metadata of templates, which have none."""
    errors = labels_errors(f"{path}.labels", metadata.labels) if metadata.labels else []
    if metadata.annotations:
        errors += _annotation_errors(metadata.annotations, f"{path}.annotations")
    for finalizer in metadata.finalizers or ():
        if problem := qualified_name_problem(finalizer):
            errors.append(invalid(f"{path}.finalizers", finalizer, problem))
    if metadata.owner_references:
        errors += _owner_errors(metadata.owner_references, f"{path}.ownerReferences")
    return errors


def changed_metadata_errors(kind: str, old: Metadata | None, new: Metadata | None) -> Errors:
    """What is wrong with the metadata after an update: what was accepted once is not judged anew."""
    if old is None or new is None or old.name != new.name or old.namespace != new.namespace:
        return metadata_errors(kind, new)
    changed = Metadata(
        labels=None if old.labels == new.labels else new.labels,
        annotations=None if old.annotations == new.annotations else new.annotations,
        finalizers=None if old.finalizers == new.finalizers else new.finalizers,
        owner_references=None if old.owner_references == new.owner_references else new.owner_references,
    )
    return common_errors(changed, "metadata")


def metadata_update_errors(old: Metadata | None, new: Metadata | None) -> Errors:
    """What an update may not change."""
    if old is None or new is None:
        return []
    errors = [
        invalid(f"metadata.{field}", now, IMMUTABLE)
        for field, before, now in (
            ("name", old.name, new.name),
            ("namespace", old.namespace or "", new.namespace or ""),
            ("uid", old.uid, new.uid),
        )
        if before != now
    ]
    if old.deletion_timestamp is not None and new.finalizers:
        added = [name for name in new.finalizers if name not in (old.finalizers or ())]
        if added:
            names = ", ".join(f'"{name}"' for name in added)
            problem = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{names}}}"
            )
            errors.append(forbidden("metadata.finalizers", problem))
    return errors


def _name_errors(kind: str, metadata: Metadata, path: str) -> Errors:
    if not metadata.name:
        # The generated name has been filled in by now, if one was asked for.
        return [required(f"{path}.name", "name or generateName is required")]
    problem = _NAME_RULES.get(kind, subdomain_problem)(metadata.name)
    return [invalid(f"{path}.name", metadata.name, problem)] if problem else []


def _annotation_errors(annotations: Labels, path: str) -> Errors:
    errors: Errors = []
    size = 0
    for key, value in annotations.items():
        if problem := qualified_name_problem(key.lower()):
            errors.append(invalid(path, key, problem))
        size += len(key.encode(errors="replace")) + len(value.encode(errors="replace"))
    if size > _ANNOTATION_BYTES:
        errors.append(invalid(path, "", f"may not be more than {_ANNOTATION_BYTES} bytes"))
    return errors


def _owner_errors(owners: list[OwnerReference], path: str) -> Errors:
    errors: Errors = []
    controllers: list[str] = []
    for index, owner in enumerate(owners):
        if not owner.api_version:
            errors.append(invalid(f"{path}[{index}].apiVersion", owner.api_version or "", "version must not be empty"))
        for field, value in (("kind", owner.kind), ("name", owner.name), ("uid", owner.uid)):
            if not value:
                errors.append(invalid(f"{path}[{index}].{field}", "", "must not be empty"))
        if owner.controller:
            controllers.append(owner.name or "")
    if len(controllers) > 1:
        first, second = controllers[:2]
        problem = (
            f'Only one reference can have Controller set to true. Found "true" in references for {first} and {second}'
        )
        errors.append(invalid(path, "", problem))
    return errors
