"""Which rules apply to which kind, and the two public checks.

A kind without rules is checked for its metadata only. An update that leaves everything but metadata and status alone
is not judged anew: what was accepted once stays acceptable, and status updates are frequent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilotage.sandbox.errors import FieldError
from pilotage.sandbox.kinds.builtin_groups import is_builtin
from pilotage.sandbox.rules.json_fields import Json
from pilotage.sandbox.rules.validation.config_data import CONFIG_DATA_RULES
from pilotage.sandbox.rules.validation.devices import DEVICE_RULES
from pilotage.sandbox.rules.validation.jobs import JOB_RULES
from pilotage.sandbox.rules.validation.kind_rules import KindRules, ObjectUpdate
from pilotage.sandbox.rules.validation.limit_ranges import LIMIT_RANGE_RULES
from pilotage.sandbox.rules.validation.metadata import (
    AnyObject,
    changed_metadata_errors,
    metadata_errors,
    metadata_update_errors,
)
from pilotage.sandbox.rules.validation.nodes import NODE_RULES
from pilotage.sandbox.rules.validation.pods import POD_RULES
from pilotage.sandbox.rules.validation.policies import POLICY_RULES
from pilotage.sandbox.rules.validation.services import SERVICE_RULES
from pilotage.sandbox.rules.validation.shapes import read_shape
from pilotage.sandbox.rules.validation.storage import STORAGE_RULES
from pilotage.sandbox.rules.validation.workloads import WORKLOAD_RULES

_METADATA_ONLY: Final = KindRules()
_BUILTIN: Final[Mapping[str, KindRules]] = {
    "Pod": POD_RULES,
    "Node": NODE_RULES,
    **WORKLOAD_RULES,
    **JOB_RULES,
    **SERVICE_RULES,
    **CONFIG_DATA_RULES,
    **STORAGE_RULES,
    **POLICY_RULES,
    **LIMIT_RANGE_RULES,
    **DEVICE_RULES,
}


def validate_create(kind: str, obj: Json) -> list[FieldError]:
    """Everything that is wrong with a new object; a wrong type hides what else may be wrong."""
    rules = _rules_for(kind, obj)
    typed = read_shape(rules.shape, obj)
    if isinstance(typed, FieldError):
        return [typed]
    return metadata_errors(kind, typed.metadata) + rules.state(typed) + rules.creation(typed)


def validate_metadata(kind: str, obj: Json) -> list[FieldError]:
    """What is wrong with the metadata of a new object whose other parts are known to be right."""
    typed = read_shape(AnyObject, obj)
    return [typed] if isinstance(typed, FieldError) else metadata_errors(kind, typed.metadata)


def validate_update(kind: str, old: Json, new: Json) -> list[FieldError]:
    """Everything that is wrong with a changed object."""
    rules = _rules_for(kind, new)
    after = read_shape(rules.shape, new)
    if isinstance(after, FieldError):
        return [after]
    errors = metadata_errors(kind, after.metadata)
    before = read_shape(rules.shape, old)
    if isinstance(before, FieldError):
        # A stored object that should never have been let in: it must be possible to mend it.
        return errors + rules.state(after)
    errors += metadata_update_errors(before.metadata, after.metadata)
    if _has_new_content(old, new):
        return errors + rules.state(after) + rules.update(ObjectUpdate(old, new, before, after))
    return errors + rules.state(after) if rules.judges_status else errors


def validate_metadata_update(kind: str, old: Json, new: Json) -> list[FieldError]:
    """Everything that is wrong with an object of which only the metadata changed."""
    after = read_shape(AnyObject, new)
    if isinstance(after, FieldError):
        return [after]
    before = read_shape(AnyObject, old)
    if isinstance(before, FieldError):
        return metadata_errors(kind, after.metadata)
    errors = changed_metadata_errors(kind, before.metadata, after.metadata)
    return errors + metadata_update_errors(before.metadata, after.metadata)


def _has_new_content(old: Json, new: Json) -> bool:
    """Does anything but metadata and status differ."""
    if old.get("spec") != new.get("spec"):
        return True
    return any(
        old.get(key) != new.get(key) for key in old.keys() | new.keys() if key not in ("spec", "metadata", "status")
    )


def _rules_for(kind: str, obj: Json) -> KindRules:
    return _BUILTIN.get(kind, _METADATA_ONLY) if is_builtin(obj) else _METADATA_ONLY
