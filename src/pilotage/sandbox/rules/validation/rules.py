"""Which rules apply to which kind, and the two public checks.

A kind without rules is checked for its metadata only. An update that leaves everything but metadata and status alone
is not judged anew: what was accepted once stays acceptable, and status updates are frequent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilotage.sandbox.kinds.builtin_groups import is_builtin
from pilotage.sandbox.rules.json_fields import Json
from pilotage.sandbox.rules.validation.config_data import CONFIG_DATA_RULES
from pilotage.sandbox.rules.validation.devices import DEVICE_RULES
from pilotage.sandbox.rules.validation.field_rules import KindRules
from pilotage.sandbox.rules.validation.jobs import JOB_RULES
from pilotage.sandbox.rules.validation.limit_ranges import LIMIT_RANGE_RULES
from pilotage.sandbox.rules.validation.metadata import (
    changed_metadata_errors,
    metadata_errors,
    metadata_update_errors,
    name_errors,
)
from pilotage.sandbox.rules.validation.nodes import NODE_RULES
from pilotage.sandbox.rules.validation.pod_groups import POD_GROUP_RULES
from pilotage.sandbox.rules.validation.pods import POD_RULES
from pilotage.sandbox.rules.validation.policies import POLICY_RULES
from pilotage.sandbox.rules.validation.problems import Errors
from pilotage.sandbox.rules.validation.services import SERVICE_RULES
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
    **POD_GROUP_RULES,
}


def validate_create(kind: str, obj: Json) -> Errors:
    """Everything that is wrong with a new object."""
    rules = _rules_for(kind, obj)
    return metadata_errors(kind, obj.get("metadata")) + rules.state(obj, "") + rules.creation(obj, "")


def validate_metadata(kind: str, obj: Json) -> Errors:
    """What is wrong with the metadata of a new object whose other parts are known to be right."""
    return metadata_errors(kind, obj.get("metadata"))


def validate_name(kind: str, obj: Json) -> Errors:
    """What is wrong with the name of a new object of which everything else is known to be right."""
    return name_errors(kind, obj["metadata"]["name"])


def validate_update(kind: str, old: Json, new: Json) -> Errors:
    """Everything that is wrong with a changed object."""
    rules = _rules_for(kind, new)
    metadata = new.get("metadata")
    errors = metadata_errors(kind, metadata) + metadata_update_errors(old.get("metadata"), metadata)
    if _has_new_content(old, new):
        return errors + rules.state(new, "") + rules.update(old, new)
    return errors + rules.state(new, "") if rules.judges_status else errors


def validate_state(kind: str, obj: Json) -> Errors:
    """What is wrong with an object whatever it was before."""
    return metadata_errors(kind, obj.get("metadata")) + _rules_for(kind, obj).state(obj, "")


def validate_metadata_update(kind: str, old: Json, new: Json) -> Errors:
    """Everything that is wrong with an object of which only the metadata changed."""
    before, after = old.get("metadata"), new.get("metadata")
    return changed_metadata_errors(kind, before, after) + metadata_update_errors(before, after)


def validate_status(kind: str, old: Json, new: Json) -> Errors:
    """Everything that is wrong with the status of `new`; `old` may be an outline."""
    return _rules_for(kind, new).status(old, new)


def _has_new_content(old: Json, new: Json) -> bool:
    """Does anything but metadata and status differ."""
    if old.get("spec") != new.get("spec"):
        return True
    return any(
        old.get(key) != new.get(key) for key in old.keys() | new.keys() if key not in ("spec", "metadata", "status")
    )


def _rules_for(kind: str, obj: Json) -> KindRules:
    return _BUILTIN.get(kind, _METADATA_ONLY) if is_builtin(obj) else _METADATA_ONLY
