"""Which of the resources that a pod asks for count against quota, and as what: `resources` of the configuration.

Resources with an excluded prefix do not count at all. A transformation lets one resource count as others, in proportion
(`outputs` for one unit of it), in addition to it (`Retain`) or in its place (`Replace`); with `multiplyBy` once for
each unit of a further resource that the pod asks for. Parts of a unit count as parts, and the sum is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

import msgspec

from pilotage.jobs.configuration.kinds import ResourceSettings
from pilotage.model.quantity import Quantity, parse_quantity

_MILLI: Final = 1000


class Transformation(msgspec.Struct, array_like=True, frozen=True):
    replaces: bool
    outputs: dict[str, Quantity]
    multiply_by: str = ""


class CountingRules(msgspec.Struct, array_like=True, frozen=True):
    """Part of what makes a shape: to be encoded."""

    excluded: tuple[str, ...] = ()
    transformations: dict[str, Transformation] = msgspec.field(default_factory=dict)


ALL_AS_ASKED: Final = CountingRules()


def counting_rules(resources: ResourceSettings) -> CountingRules:
    transformations = {
        one.input: Transformation(one.strategy == "Replace", dict(one.outputs), one.multiply_by)
        for one in resources.transformations
    }
    return CountingRules(resources.exclude_resource_prefixes, transformations)


def counted(asked: Mapping[str, int], rules: CountingRules) -> dict[str, int]:
    """What counts of the requests of a pod; cpu in thousandths, everything else in units."""
    kept = {name: amount for name, amount in asked.items() if not name.startswith(rules.excluded)}
    if not kept.keys() & rules.transformations.keys():
        return kept
    total: dict[str, Fraction] = {}
    for name, amount in kept.items():
        rule = rules.transformations.get(name)
        if rule is None or not rule.replaces:
            total[name] = total.get(name, Fraction()) + amount
        if rule is not None:
            times = Fraction(kept.get(rule.multiply_by, 1), _scale(rule.multiply_by))
            for output, factor in rule.outputs.items():
                made = Fraction(amount, _scale(name)) * parse_quantity(factor) * times * _scale(output)
                total[output] = total.get(output, Fraction()) + made
    return {name: math.ceil(amount) for name, amount in total.items()}


def _scale(resource: str) -> int:
    return _MILLI if resource == "cpu" else 1
