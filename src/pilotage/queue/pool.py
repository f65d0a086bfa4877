"""Pods that wait for something to happen, indexed by the plugin that refused them and by pod class.

An event is asked about only those pods whose rejectors registered for it, and only once per class of equal pods: its
cost does not grow with the number of pods that it cannot help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pilotage.queue.entry import ClassKey, Entry

_Classes = dict[ClassKey, dict[str, Entry]]


class WaitingPool:
    """Unschedulable and gated entries by UID, with the index over their rejectors."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._by_rejector: dict[tuple[str, str], _Classes] = {}
        self._filed_under: dict[str, tuple[frozenset[str], str, ClassKey]] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, uid: str) -> Entry | None:
        return self._entries.get(uid)

    def add(self, entry: Entry) -> None:
        uid = entry.pod.uid
        self._entries[uid] = entry
        # The entry's own fields may change while it is filed; remember where it was put.
        filed = (entry.rejectors, entry.pod.spec.scheduler_name, entry.class_key)
        self._filed_under[uid] = filed
        for rejector in sorted(entry.rejectors):
            classes = self._by_rejector.setdefault((filed[1], rejector), {})
            classes.setdefault(filed[2], {})[uid] = entry

    def remove(self, uid: str) -> Entry | None:
        entry = self._entries.pop(uid, None)
        if entry is None:
            return None
        rejectors, scheduler, class_key = self._filed_under.pop(uid)
        for rejector in rejectors:
            classes = self._by_rejector[(scheduler, rejector)]
            del classes[class_key][uid]
            if not classes[class_key]:
                del classes[class_key]
            if not classes:
                del self._by_rejector[(scheduler, rejector)]
        return entry

    def refused_by(self, scheduler_name: str, plugin: str) -> Mapping[ClassKey, Mapping[str, Entry]]:
        """Waiting pods that this plugin refused, by class."""
        return self._by_rejector.get((scheduler_name, plugin), {})

    def check(self) -> None:
        """Verify the invariants; for tests."""
        assert self._entries.keys() == self._filed_under.keys()
        indexed = {uid for classes in self._by_rejector.values() for pods in classes.values() for uid in pods}
        assert indexed == {uid for uid, filed in self._filed_under.items() if filed[0]}
