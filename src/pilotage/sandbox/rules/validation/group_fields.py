"""Rules for what a PodGroup declares, and equally a template of one in a Workload, and a Job that makes its own.

Of these fields only `gang.minCount` may change. The order of errors is that of the fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pilotage.sandbox.errors import FieldError
from pilotage.sandbox.rules.json_fields import Json, dict_or_empty
from pilotage.sandbox.rules.validation.field_rules import Rule, at_least, each, fields, one_of, optional
from pilotage.sandbox.rules.validation.names import label, qualified_name, subdomain
from pilotage.sandbox.rules.validation.problems import IMMUTABLE, Errors, duplicate, invalid

_HIGHEST_PRIORITY: Final = 1_000_000_000
_IMMUTABLE_FIELDS: Final = (
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "priority",
    "preemptionPolicy",
)
_CLAIM_FIELDS: Final = ("name", "resourceClaimName", "resourceClaimTemplateName")


def exactly_one_of(*members: str) -> Rule:
    """Exactly one of the members of a union is there."""
    names = ", ".join(f"`{name}`" for name in members)

    def check(union: Json, path: str) -> Errors:
        given = [name for name in members if union.get(name) is not None]
        if not given:
            return [invalid(path, "", f"must specify one of: {names}")]
        return [invalid(path, f"{{{', '.join(given)}}}", f"must specify exactly one of: {names}")] if given[1:] else []

    return check


def at_most(most: int, rule: Rule) -> Rule:
    """`rule` for a list that has no more elements than that."""
    problem = f"must have at most {most} {'item' if most == 1 else 'items'}"

    def check(items: Sequence[Json], path: str) -> Errors:
        if len(items) > most:
            return [FieldError(path, problem, len(items), "FieldValueTooMany")]
        return rule(items, path)

    return check


def duplicates(shown_fields: Sequence[str]) -> Rule:
    """No element of a list has the name of one before it; what is shown of one that has are these fields."""

    def check(items: Sequence[Json], path: str) -> Errors:
        errors: Errors = []
        names: set[str | None] = set()
        for at, item in enumerate(items):
            if item.get("name") in names:
                shown = {field: item[field] for field in shown_fields if item.get(field) is not None}
                errors.append(duplicate(f"{path}[{at}]", shown))
            names.add(item.get("name"))
        return errors

    return check


def group_update_errors(old: Json, new: Json, path: str) -> Errors:
    """What may not change of a PodGroup, or of a template of one."""
    errors = _policy_update_errors(old.get("schedulingPolicy"), new.get("schedulingPolicy"), f"{path}.schedulingPolicy")
    return errors + [
        invalid(f"{path}.{field}", None, IMMUTABLE) for field in _IMMUTABLE_FIELDS if old.get(field) != new.get(field)
    ]


def _policy_update_errors(old: Any, new: Any, path: str) -> Errors:
    """The choice of a policy is made for ever."""
    before, after = dict_or_empty(old), dict_or_empty(new)
    errors = [invalid(f"{path}.basic", None, IMMUTABLE)] if before.get("basic") != after.get("basic") else []
    if "gang" in after and "gang" not in before:
        errors.append(invalid(f"{path}.gang", None, "field cannot be set once created"))
    if "gang" in before and "gang" not in after:
        errors.append(invalid(f"{path}.gang", None, "field cannot be cleared once set"))
    return errors


def _priority(priority: int, path: str) -> Errors:
    if priority <= _HIGHEST_PRIORITY:
        return []
    return [invalid(path, priority, f"must be less than or equal to {_HIGHEST_PRIORITY}")]


def _claims(claims: Sequence[Json], path: str) -> Errors:
    return _CLAIMS_ARE_UNIQUE(claims, path) + _EACH_CLAIM(claims, path)


_CLAIMS_ARE_UNIQUE: Final = duplicates(_CLAIM_FIELDS)
_EACH_CLAIM: Final = each(
    fields(
        ("", exactly_one_of("resourceClaimName", "resourceClaimTemplateName")),
        ("name!", label),
        ("resourceClaimName", subdomain),
        ("resourceClaimTemplateName", subdomain),
    )
)
min_count: Final = at_least(1, "must be greater than or equal to 1")
scheduling_constraints: Final = fields(("topology", at_most(1, each(fields(("key!", qualified_name))))))
resource_claims: Final = at_most(4, _claims)
disruption_mode: Final = exactly_one_of("single", "all")

group: Final = fields(
    (
        "schedulingPolicy",
        fields(("", exactly_one_of("basic", "gang")), ("gang", fields(("minCount!", min_count)))),
        {},
    ),
    ("schedulingConstraints", scheduling_constraints),
    ("resourceClaims", resource_claims),
    ("disruptionMode", disruption_mode),
    ("priorityClassName", optional(subdomain)),
    ("priority", _priority),
    ("preemptionPolicy", one_of("Never", "PreemptLowerPriority")),
)
"""What a PodGroup and a template of one have in common."""
