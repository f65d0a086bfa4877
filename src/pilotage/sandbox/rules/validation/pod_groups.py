"""Rules for PodGroups and Workloads, which declare pods to be scheduled together.

A Workload holds templates of PodGroups. Groups of groups are not served: their fields were dropped before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from pilotage.sandbox.errors import FieldError
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty, dicts_in
from pilotage.sandbox.rules.validation.field_rules import KindRules, at_least, each, fields, nothing, optional, syntax
from pilotage.sandbox.rules.validation.group_fields import (
    at_most,
    duplicates,
    group,
    group_update_errors,
)
from pilotage.sandbox.rules.validation.names import label, qualified_name, subdomain
from pilotage.sandbox.rules.validation.problems import (
    IMMUTABLE,
    Errors,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)

_STATUSES: Final = ("False", "True", "Unknown")
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_TEXT: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    f"'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_REASON.pattern}')"
)
_LONGEST_REASON: Final = 1024
_LONGEST_MESSAGE: Final = 32 * 1024
_TEMPLATE_FIELDS: Final = (
    "schedulingPolicy",
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "priority",
    "preemptionPolicy",
    "name",
)


def _status_errors(old: Json, new: Json) -> Errors:
    """What is wrong with a new status of the PodGroup `old`, which may be an outline."""
    status = new.get("status") or {}
    errors = _conditions(status.get("conditions") or (), "status.conditions")
    spec = old.get("spec")
    spec = msgspec.json.decode(spec) if isinstance(spec, msgspec.Raw) else spec
    declared = [claim.get("name") for claim in dicts_in(spec, "resourceClaims")]
    for at, entry in enumerate(status.get("resourceClaimStatuses") or ()):
        if entry.get("name") not in declared:
            problem = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(f"status.resourceClaimStatuses[{at}].name", entry.get("name") or "", problem))
    return errors


def _conditions(conditions: Sequence[Json], path: str) -> Errors:
    errors: Errors = []
    seen: set[str | None] = set()
    for at, condition in enumerate(conditions):
        if condition.get("type") in seen:
            errors.append(duplicate(f"{path}[{at}]", condition.get("type")))
        seen.add(condition.get("type"))
        errors += _CONDITION(condition, f"{path}[{at}]")
    return errors


def _condition_type(name: str, path: str) -> Errors:
    return qualified_name(name, path) if name else [required(path, "is required")]


def _condition_status(status: str, path: str) -> Errors:
    return [] if status in _STATUSES else [not_supported(path, status, _STATUSES)]


def _reason(reason: str, path: str) -> Errors:
    if len(reason) > _LONGEST_REASON:
        return [_too_long(path, _LONGEST_REASON)]
    return [] if _REASON.fullmatch(reason) else [invalid(path, reason, _REASON_TEXT)]


def _message(message: str, path: str) -> Errors:
    return [_too_long(path, _LONGEST_MESSAGE)] if len(message) > _LONGEST_MESSAGE else []


def _too_long(path: str, most: int) -> FieldError:
    return FieldError(path, f"may not be more than {most} bytes", type="FieldValueTooLong")


def _pod_group_update(old: Json, new: Json) -> Errors:
    before, after = dict_or_empty(old.get("spec")), dict_or_empty(new.get("spec"))
    is_same = before.get("workloadRef") == after.get("workloadRef")
    errors = [] if is_same else [invalid("spec.workloadRef", None, IMMUTABLE)]
    return errors + group_update_errors(before, after, "spec")


def _templates(spec: Json, path: str) -> Errors:
    templates = spec.get("podGroupTemplates")
    if not templates:
        problem = "must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`"
        return [invalid(path, "", problem)]
    return _EIGHT_TEMPLATES(templates, f"{path}.podGroupTemplates")


def _all_templates(templates: Sequence[Json], path: str) -> Errors:
    errors = _TEMPLATES_ARE_UNIQUE(templates, path) + _EACH_TEMPLATE(templates, path)
    if len({(template.get("priorityClassName") or "", template.get("priority")) for template in templates}) > 1:
        errors.append(invalid("spec", None, "detected multiple priority configurations"))
    return errors


def _workload_update(old_workload: Json, new_workload: Json) -> Errors:
    old, new = dict_or_empty(old_workload.get("spec")), dict_or_empty(new_workload.get("spec"))
    path = "spec.podGroupTemplates"
    is_same_controller = old.get("controllerRef") == new.get("controllerRef")
    errors = [] if is_same_controller else [invalid("spec.controllerRef", None, IMMUTABLE)]
    before = {str(template.get("name")): template for template in dicts_in(old, "podGroupTemplates")}
    after = list(enumerate(dicts_in(new, "podGroupTemplates")))
    names = {str(template.get("name")) for _, template in after}
    errors += [
        forbidden(f"{path}[{at}]", "item may not be added") for at, t in after if str(t.get("name")) not in before
    ]
    errors += [forbidden(path, "item may not be removed") for name in before if name not in names]
    for at, template in after:
        if (name := str(template.get("name"))) in before:
            errors += group_update_errors(before[name], template, f"{path}[{at}]")
    return errors


def _segment_problem(text: str) -> str:
    """A name that stands in a path."""
    if text in (".", ".."):
        return f"may not be '{text}'"
    return next((f"may not contain '{letter}'" for letter in "/%" if letter in text), "")


_CONDITION: Final = fields(
    ("type", _condition_type, ""),
    ("status!", _condition_status),
    ("observedGeneration", at_least(0, "must be greater than or equal to zero")),
    ("lastTransitionTime!", nothing),
    ("reason!", _reason),
    ("message", _message),
)
_POD_GROUP: Final = fields(
    ("workloadRef", fields(("workloadName!", subdomain), ("templateName!", label))),
    ("", group),
)
_TEMPLATES_ARE_UNIQUE: Final = duplicates(_TEMPLATE_FIELDS)
_EACH_TEMPLATE: Final = each(fields(("name!", label), ("", group)))
_EIGHT_TEMPLATES: Final = at_most(8, _all_templates)
_WORKLOAD: Final = fields(
    (
        "controllerRef",
        fields(
            ("apiGroup", optional(subdomain)),
            ("kind!", syntax(_segment_problem)),
            ("name!", syntax(_segment_problem)),
        ),
    ),
    ("", _templates),
)

POD_GROUP_RULES: Final[Mapping[str, KindRules]] = {
    "PodGroup": KindRules(fields(("spec", _POD_GROUP, {})), update=_pod_group_update, status=_status_errors),
    "Workload": KindRules(fields(("spec", _WORKLOAD, {})), update=_workload_update),
}
