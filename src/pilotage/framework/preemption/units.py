"""Pods that preemption makes go together or not at all.

The pods of a group with `disruptionMode: all` are one unit, wherever they are; every other pod is one by itself. A
member counts with the priority of its group, whatever the pod says.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from pilotage.api.group_members import PodGroups, group_key
from pilotage.api.preemption import started_at
from pilotage.framework.preemption.budgets import DisruptionBudgets
from pilotage.model import Pod

HIGHEST = 2**31
"""No pod has this priority."""


class Unit(Struct, frozen=True):
    """Pods that go or stay together."""

    pods: tuple[Pod, ...]
    priority: int
    is_of_group: bool

    @property
    def importance(self) -> tuple[float, ...]:
        """The most important first."""
        return -self.priority, not self.is_of_group, -len(self.pods), min(map(started_at, self.pods))


class VictimUnits:
    """What may have to go: pods as the groups of a cluster put them together, under the eyes of disruption budgets."""

    def __init__(self, budgets: DisruptionBudgets, groups: PodGroups) -> None:
        self.budgets = budgets
        self._groups = groups

    @property
    def version(self) -> int:
        """Changes when pods may form other units than before, although they stay where they are."""
        return self._groups.version

    def are_among(self, pods: Iterable[Pod]) -> bool:
        """Whether one of these pods is a member of a group that exists."""
        known = self._groups.objects
        return bool(known) and any(pod.spec.scheduling_group is not None and group_key(pod) in known for pod in pods)

    def of(self, pods: Iterable[Pod]) -> list[Unit]:
        """The units to which these pods belong."""
        return self.below(pods, HIGHEST)

    def below(self, pods: Iterable[Pod], priority: int) -> list[Unit]:
        """The units of lower priority to which these pods belong, with all their pods."""
        units: list[Unit] = []
        together: set[str] = set()
        for pod in pods:
            key = group_key(pod)
            group = self._groups.objects.get(key) if key else None
            if group is None:
                if pod.priority < priority:
                    units.append(Unit((pod,), pod.priority, is_of_group=bool(key)))
            elif group.priority >= priority or key in together:
                continue
            elif group.is_disrupted_as_one:
                together.add(key)
                units.append(Unit(tuple(self._groups.scheduled(key).values()), group.priority, is_of_group=True))
            else:
                units.append(Unit((pod,), group.priority, is_of_group=True))
        return units
