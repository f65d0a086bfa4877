"""Rules for nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pilotage.sandbox.rules.json_fields import Json, nested
from pilotage.sandbox.rules.validation.field_rules import KindRules, fields, one_of
from pilotage.sandbox.rules.validation.names import label_value, qualified_name
from pilotage.sandbox.rules.validation.placement import EFFECTS
from pilotage.sandbox.rules.validation.problems import Errors, duplicate, forbidden, required
from pilotage.sandbox.rules.validation.quantities import node_amounts


def _effect(effect: str, path: str) -> Errors:
    return _KNOWN_EFFECT(effect, path) if effect else [required(path, "must specify a taint effect")]


def _taints(taints: Sequence[Json], path: str) -> Errors:
    errors: Errors = []
    seen = set()
    for index, taint in enumerate(taints):
        errors += _TAINT(taint, f"{path}[{index}]")
        pair = (taint.get("key"), taint.get("effect"))
        if pair in seen:
            errors.append(duplicate(f"{path}[{index}]", "taints must be unique by key and effect pair"))
        seen.add(pair)
    return errors


def _set_once(old: Json, new: Json) -> Errors:
    return [
        forbidden(f"spec.{field}", f'node updates may not change {name} except from "" to valid')
        for field, name in (("providerID", "providerID"), ("podCIDRs", "podCIDR"))
        if (before := nested(old, "spec", field)) and before != nested(new, "spec", field)
    ]


_KNOWN_EFFECT: Final = one_of(*EFFECTS)
_TAINT: Final = fields(("key", qualified_name, ""), ("value", label_value), ("effect", _effect, ""))

NODE_RULES: Final = KindRules(
    fields(
        ("spec", fields(("taints", _taints))),
        ("status", fields(("capacity", node_amounts), ("allocatable", node_amounts))),
    ),
    update=_set_once,
    judges_status=True,
)
