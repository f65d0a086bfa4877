"""What a StatefulSet does next: the decision, without any effects.

With OrderedReady every pod waits for those of lower ordinals to be available, and the highest goes first when there are
too many; Parallel creates and deletes at once. Only a set that has all its pods is updated: from the highest ordinal
down to the partition, at most `max_unavailable` at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from pilotage.sandbox.life.facts import PodFacts

MOST_STEPS: Final = 1_000
"""A set may ask for two billion pods; so many are thought of at a time."""


@dataclass(frozen=True, slots=True)
class Replicas:
    """The pods of one set by ordinal, and what is asked of it."""

    pods: Mapping[int, PodFacts]
    available: Collection[int]
    """The ordinals whose pods are ready for long enough."""
    outdated: Collection[int]
    """The ordinals whose pods are not of the update revision."""
    wanted: range
    is_ordered: bool
    max_unavailable: int = 1
    update_from: int | None = 0
    """The lowest ordinal that is updated; None: pods are updated when someone deletes them."""


@dataclass(frozen=True, slots=True)
class Steps:
    create: Sequence[int] = ()
    delete: Sequence[PodFacts] = field(default=())


def next_steps(replicas: Replicas) -> Steps:
    if replicas.is_ordered:
        steps = _next_in_order(replicas)
        if steps is not None:
            return steps
    else:
        steps = _all_at_once(replicas)
        if steps.create or steps.delete:
            return steps
    return Steps(delete=_outdated(replicas))


def _next_in_order(replicas: Replicas) -> Steps | None:
    """The one step that the order allows, an empty one to wait for a pod; None: all is as it should be."""
    for ordinal in replicas.wanted:
        pod = replicas.pods.get(ordinal)
        if pod is None:
            return Steps(create=[ordinal])
        if pod.is_finished and not pod.is_deleting:
            return Steps(delete=[pod])
        if pod.is_deleting or ordinal not in replicas.available:
            return Steps()
    condemned = sorted((ordinal for ordinal in replicas.pods if ordinal not in replicas.wanted), reverse=True)
    if not condemned:
        return None
    first = replicas.pods[condemned[0]]
    unavailable = [ordinal for ordinal in condemned if ordinal not in replicas.available]
    # One that does not become available may go only when no lower one has the same trouble.
    is_held_up = condemned[0] not in replicas.available and unavailable[-1] != condemned[0]
    return Steps() if first.is_deleting or is_held_up else Steps(delete=[first])


def _all_at_once(replicas: Replicas) -> Steps:
    living = {ordinal: pod for ordinal, pod in replicas.pods.items() if not pod.is_deleting}
    ended = [pod for ordinal, pod in living.items() if pod.is_finished and ordinal in replicas.wanted]
    condemned = [living[ordinal] for ordinal in sorted(living, reverse=True) if ordinal not in replicas.wanted]
    missing = (ordinal for ordinal in replicas.wanted if ordinal not in replicas.pods)
    return Steps(list(islice(missing, MOST_STEPS)), [*ended, *condemned])


def _outdated(replicas: Replicas) -> list[PodFacts]:
    if replicas.update_from is None:
        return []
    chosen: list[PodFacts] = []
    unavailable = 0
    for ordinal in reversed(replicas.wanted):
        if ordinal < replicas.update_from or unavailable >= replicas.max_unavailable:
            break
        pod = replicas.pods[ordinal]
        if ordinal in replicas.outdated and not pod.is_deleting:
            chosen.append(pod)
            unavailable += 1
        else:
            unavailable += ordinal not in replicas.available
    return chosen
