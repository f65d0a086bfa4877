"""How many replicas each ReplicaSet of a Deployment should have next: the decision, without any effects.

RollingUpdate keeps two limits while it moves from the old sets to the new one: never more than
`replicas + maxSurge` pods in all, never fewer than `replicas - maxUnavailable` available ones. The new set grows into
what the surge leaves free; old sets give up unhealthy pods first, then healthy ones as far as the second limit
allows. Recreate first empties the old sets, waits for the last old pod to be gone, and then fills the new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pilotage.sandbox.life.controllers.int_or_percent import scaled_value


@dataclass(frozen=True, slots=True)
class SetSize:
    """One ReplicaSet of the Deployment: how many pods it is asked for, and how many of these are available."""

    name: str
    replicas: int
    available: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """What a rolling update must keep to."""

    replicas: int
    max_surge: int
    max_unavailable: int

    @classmethod
    def of(cls, replicas: int, max_surge: int | str, max_unavailable: int | str) -> Limits:
        surge = scaled_value(max_surge, replicas, round_up=True)
        unavailable = scaled_value(max_unavailable, replicas, round_up=False)
        # With both at zero nothing could ever move.
        return cls(replicas, surge, unavailable if surge or unavailable else 1)


def roll(limits: Limits, new: SetSize, old: Sequence[SetSize]) -> dict[str, int]:
    """The next sizes of the sets that change, by name; `old` is ordered from the oldest on."""
    grown = _grow_new(limits, new, old)
    if grown != new.replicas:
        return {new.name: grown}
    return _shrink_old(limits, new, old)


def in_proportion(limits: Limits, most_before: int, sets: Sequence[SetSize]) -> dict[str, int]:
    """The sizes of all sets in use when the Deployment is scaled while it rolls: each keeps its part of the whole.

    `sets` is ordered from the oldest on; `most_before`: how many pods there might have been at most until now. What
    rounding leaves over goes to the largest set, of two equal ones to the newer when the whole grows.
    """
    allowed = limits.replicas + limits.max_surge if limits.replicas else 0
    to_add = allowed - sum(one.replicas for one in sets)
    newest_first = list(reversed(sets)) if to_add > 0 else list(sets)
    ordered = sorted(newest_first, key=lambda one: -one.replicas)
    sizes, added = {}, 0
    for one in ordered:
        share = round(one.replicas * allowed / max(most_before, 1)) - one.replicas
        change = min(max(share, 0), to_add - added) if to_add > 0 else max(min(share, 0), to_add - added)
        sizes[one.name] = one.replicas + change
        added += change
    if ordered:
        first = ordered[0].name
        sizes[first] = max(sizes[first] + to_add - added, 0)
    return sizes


def recreate(replicas: int, new: SetSize | None, old: Sequence[SetSize], *, old_pods_are_gone: bool) -> dict[str, int]:
    """The next sizes of the sets that change, by name; the new set (None: to be made) waits for the old pods to go."""
    shrunk = {old_set.name: 0 for old_set in old if old_set.replicas}
    if shrunk or new is None or not old_pods_are_gone or new.replicas == replicas:
        return shrunk
    return {new.name: replicas}


def _grow_new(limits: Limits, new: SetSize, old: Sequence[SetSize]) -> int:
    if new.replicas >= limits.replicas:
        return limits.replicas
    room = limits.replicas + limits.max_surge - new.replicas - sum(old_set.replicas for old_set in old)
    return min(new.replicas + max(room, 0), limits.replicas)


def _shrink_old(limits: Limits, new: SetSize, old: Sequence[SetSize]) -> dict[str, int]:
    min_available = limits.replicas - limits.max_unavailable
    total = new.replicas + sum(old_set.replicas for old_set in old)
    # Pods of the new set that are not available yet are no reason to give up old ones.
    budget = total - min_available - (new.replicas - new.available)
    sizes = {old_set.name: old_set.replicas for old_set in old}
    for old_set in old:
        unhealthy = min(old_set.replicas - old_set.available, max(budget, 0))
        sizes[old_set.name] -= unhealthy
        budget -= unhealthy
    available = new.available + sum(old_set.available for old_set in old)
    budget = min(budget, available - min_available)
    for old_set in old:
        given_up = min(sizes[old_set.name], max(budget, 0))
        sizes[old_set.name] -= given_up
        budget -= given_up
    return {old_set.name: sizes[old_set.name] for old_set in old if sizes[old_set.name] != old_set.replicas}
