"""What the rules of one kind consist of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pilotage.sandbox.rules.json_fields import Json
from pilotage.sandbox.rules.validation.metadata import AnyObject
from pilotage.sandbox.rules.validation.problems import Errors


@dataclass(frozen=True, slots=True)
class ObjectUpdate:
    """An update: the raw objects and their shapes."""

    old: Json
    new: Json
    before: Any
    after: Any


def no_rule(_: Any) -> Errors:
    return []


@dataclass(frozen=True, slots=True)
class KindRules:
    """The rules of one kind; `shape` must have a field `metadata`."""

    shape: type[Any] = AnyObject
    state: Callable[[Any], Errors] = no_rule
    """What must hold in every state; gets the shape."""
    creation: Callable[[Any], Errors] = no_rule
    """What must hold for a new object only; gets the shape."""
    update: Callable[[ObjectUpdate], Errors] = no_rule
    """What a change may not do; not asked when only metadata or status differ."""
    judges_status: bool = False
    """`state` also reads the status, so it is asked again when only that changes."""
