"""Pods that wait for an event, indexed by the plugin that rejected them, in groups of equal pods, and by key.

An event is asked about only those pods whose rejectors registered for it, and only once per group if the answer holds
for all of it; one that a plugin has narrowed down touches only the pods that were named. Pods behind a gate are groups
of their own, so that an event that cannot open it passes them by. So the cost of an event does not grow with the number
of pods that it cannot help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pilotage.model import Pod
from pilotage.model.pod_stand_in import StandIn, stand_in
from pilotage.queue.sub_queues import QueuedPodInfo

Group = tuple[str, int, int, str]
"""Pods that share namespace, spec and labels, and wait behind the same gate (or none, "")."""


class Alike(dict[str, QueuedPodInfo]):
    """The pods of a group by UID; never empty while it is filed."""

    __slots__ = ("stand_in",)
    stand_in: StandIn
    """Stands for all of them; there is none before `make_stand_in`, as most groups are gone before they need it."""

    def make_stand_in(self) -> StandIn:
        self.stand_in = stand_in(next(iter(self.values())).pod)
        return self.stand_in


class _Filed(NamedTuple):
    """Where an entry was put."""

    key: str
    rejectors: frozenset[str]
    scheduler: str
    group: Group


class UnschedulablePods:
    """Unschedulable and gated entries by UID, with the index over their rejectors."""

    def __init__(self) -> None:
        self._entries: dict[str, QueuedPodInfo] = {}
        self._by_rejector: dict[str, dict[str, dict[Group, Alike]]] = {}
        """By scheduler name and plugin."""
        self._filed_under: dict[str, _Filed] = {}
        self._by_key: dict[str, QueuedPodInfo] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(self._entries.values())

    def get(self, uid: str) -> QueuedPodInfo | None:
        return self._entries.get(uid)

    def add(self, entry: QueuedPodInfo) -> None:
        pod = entry.pod
        uid, key, scheduler, group = pod.uid, pod.key, pod.spec.scheduler_name, group_of(entry)
        self._entries[uid] = entry
        # The entry's own fields may change while it is filed; remember where it was put.
        self._filed_under[uid] = _Filed(key, entry.rejectors, scheduler, group)
        self._by_key[key] = entry
        by_rejector = self._by_rejector.setdefault(scheduler, {})
        for rejector in sorted(entry.rejectors):
            groups = by_rejector.setdefault(rejector, {})
            alike = groups.get(group)
            if alike is None:
                alike = groups[group] = Alike()
            alike[uid] = entry

    def remove(self, uid: str) -> QueuedPodInfo | None:
        entry = self._entries.pop(uid, None)
        if entry is None:
            return None
        key, rejectors, scheduler, group = self._filed_under.pop(uid)
        # A pod that was recreated under the same name may have been filed before the old one was removed.
        if self._by_key.get(key) is entry:
            del self._by_key[key]
        by_rejector = self._by_rejector[scheduler]
        for rejector in rejectors:
            groups = by_rejector[rejector]
            alike = groups[group]
            del alike[uid]
            if not alike:
                del groups[group]
                if not groups:
                    del by_rejector[rejector]
        return entry

    def update(self, entry: QueuedPodInfo, pod: Pod) -> None:
        """The pod of an entry has changed; most changes leave it where it was put."""
        was_at = self._filed_under[pod.uid]
        entry.pod = pod
        if was_at.group != group_of(entry) or was_at.rejectors != entry.rejectors:
            self.remove(pod.uid)
            self.add(entry)

    def with_key(self, key: str) -> QueuedPodInfo | None:
        """The waiting pod of this key ("namespace/name")."""
        return self._by_key.get(key)

    def named(self, scheduler_name: str, plugin: str, key: str) -> QueuedPodInfo | None:
        """The waiting pod of this key ("namespace/name"), if this plugin rejected it."""
        entry = self._by_key.get(key)
        if entry is None:
            return None
        filed = self._filed_under[entry.pod.uid]
        return entry if filed.scheduler == scheduler_name and plugin in filed.rejectors else None

    def rejecting(self, scheduler_name: str) -> Mapping[str, Mapping[Group, Alike]]:
        """Plugins that rejected pods that wait, each with these pods by group."""
        return self._by_rejector.get(scheduler_name, {})

    def check(self) -> None:
        """Verify the invariants; for tests."""
        assert self._entries.keys() == self._filed_under.keys()
        plugins = [groups for by_rejector in self._by_rejector.values() for groups in by_rejector.values()]
        assert all(pods for groups in plugins for pods in groups.values()) and all(plugins)
        indexed = {uid for groups in plugins for pods in groups.values() for uid in pods}
        assert indexed == {uid for uid, filed in self._filed_under.items() if filed.rejectors}
        assert all(self._entries.get(entry.pod.uid) is entry for entry in self._by_key.values())
        assert self._by_key.keys() == {filed.key for filed in self._filed_under.values()}


def group_of(entry: QueuedPodInfo) -> Group:
    pod = entry.pod
    return pod.namespace, id(pod.spec), id(pod.labels), entry.gated_by
