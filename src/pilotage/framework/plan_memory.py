"""The plans that were made while certain plugins serve a profile.

They are kept here and not with the specs: a plan holds plugins, which hold the cluster, whose pods hold the specs, and
pods are invisible to the garbage collector. A spec that referred to a plan would keep all of it alive for ever.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pilotage.model import PodSpec

if TYPE_CHECKING:
    from pilotage.framework.plan import Named, Plan


class PlanMemory:
    """Dies with the plugins that the plans hold."""

    __slots__ = ("by_spec", "evaluating", "splits")

    def __init__(self) -> None:
        self.by_spec: WeakKeyDictionary[PodSpec, dict[Hashable, Plan]] = WeakKeyDictionary()
        """By what else of a pod is signed."""
        self.splits: dict[frozenset[str], Plan] = {}
        """By the names of the plugins that do not sign; still without a signature."""
        self.evaluating: Named | None = None
        """All that filter or score."""
