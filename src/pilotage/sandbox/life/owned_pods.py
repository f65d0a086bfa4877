"""The pods of one controller by what they mean to it, counted as they change.

A ReplicaSet or Job of ten thousand pods hears of each of their changes. It must not look at all of them each time, so
the numbers it needs are kept up to date here, one pod at a time:

    active      neither ended nor being deleted          ready        ... of these, how many are ready
    leaving     being deleted and not ended yet          held         not active any more, but kept by a finalizer
"""

from __future__ import annotations

from collections.abc import Iterable

from pilotage.sandbox.life.facts import PodFacts
from pilotage.sandbox.storage.records import Key


class OwnedPods:
    """The pods that one object controls."""

    __slots__ = ("_active", "_held", "_members", "leaving", "ready")

    def __init__(self) -> None:
        self._members: dict[Key, PodFacts] = {}
        self._active: dict[Key, None] = {}
        self._held: dict[Key, None] = {}
        self.ready = 0
        self.leaving = 0

    def __len__(self) -> int:
        return len(self._members)

    @property
    def active(self) -> int:
        return len(self._active)

    def active_pods(self) -> list[PodFacts]:
        return [self._members[key] for key in self._active]

    def held_pods(self) -> list[PodFacts]:
        return [self._members[key] for key in self._held]

    def pods(self) -> Iterable[PodFacts]:
        return list(self._members.values())

    def put(self, pod: PodFacts) -> None:
        """Add a pod, or note its change."""
        key = pod.key
        if key in self._members:
            self._uncount(self._members[key], pod)
        self._members[key] = pod
        if pod.is_active:
            self._active[key] = None
            self.ready += pod.is_ready
        else:
            self.leaving += pod.is_deleting and not pod.is_finished
            if pod.finalizers:
                self._held[key] = None

    def remove(self, key: Key) -> None:
        pod = self._members.pop(key, None)
        if pod is not None:
            self._uncount(pod, None)

    def check(self) -> None:
        """The counts are those that a look at every pod would give."""
        pods = self._members.values()
        active = [pod for pod in pods if pod.is_active]
        assert sorted(self._active) == sorted(pod.key for pod in active)
        assert self.ready == sum(pod.is_ready for pod in active)
        assert self.leaving == sum(pod.is_deleting and not pod.is_finished for pod in pods)
        assert sorted(self._held) == sorted(pod.key for pod in pods if pod.finalizers and not pod.is_active)

    def _uncount(self, old: PodFacts, new: PodFacts | None) -> None:
        if old.is_active:
            self.ready -= old.is_ready
            if new is None or not new.is_active:  # one that stays active keeps its place in the order
                del self._active[old.key]
        else:
            self.leaving -= old.is_deleting and not old.is_finished
            self._held.pop(old.key, None)


NO_PODS = OwnedPods()
"""Of an object that controls no pods; never changed."""
