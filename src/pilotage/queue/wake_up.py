"""Which waiting pods an event may help.

Every plugin that registered for an event is asked about the pods that it refused: about all of them, class by class, or
about those that its narrowing named. What another plugin says of the same event makes no difference to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pilotage.api.events import ClusterEvent, Hint, Resource
from pilotage.model import Pod
from pilotage.queue.entry import ClassKey, Entry
from pilotage.queue.hints import HintTable, Judges, Retry
from pilotage.queue.pool import WaitingPool

Keys = frozenset[str] | None
"""Of the pods that an event can concern; None: all."""


class WakeUp:
    """Asks the hints about the pods of the pool."""

    def __init__(self, hints: HintTable, pool: WaitingPool) -> None:
        self._hints = hints
        self._pool = pool

    def helped(self, event: ClusterEvent, old: Any, new: Any) -> list[tuple[Entry, Retry]]:
        """The waiting pods that are worth a retry, each with the best answer that it got."""
        if not len(self._pool) and not self._hints.is_narrowed(event):
            # Narrowings are asked, and counted, even if nobody waits: they may keep books of their own.
            return []
        if event.is_wildcard:
            named = self._pool if new is None else filter(None, [self._pool.get(new.uid)])
            return [(entry, Retry.AFTER_BACKOFF) for entry in named]
        helped: dict[str, tuple[Entry, Retry]] = {}
        for scheduler in self._hints.scheduler_names():
            judges = self._hints.judges(scheduler, event)
            keys = {plugin: self._hints.concerned(scheduler, plugin, event, old, new) for plugin in judges}
            for plugin, entry in self._queued(scheduler, judges, keys, old, new):
                if (entry.gated_by and not _may_open(entry, keys)) or _is_itself(entry, event, old, new):
                    continue
                retry = _retry(entry, plugin)
                uid = entry.pod.uid
                if uid not in helped or helped[uid][1] < retry:
                    helped[uid] = (entry, retry)
        return list(helped.values())

    def _queued(
        self, scheduler: str, judges: Judges, keys: dict[str, Keys], old: Any, new: Any
    ) -> Iterator[tuple[str, Entry]]:
        """Plugins that say Queue, with the pods for which they say it."""
        for plugin, hints in judges.items():
            for pods in self._alike(scheduler, plugin, keys[plugin]):
                if self._hints.ask(plugin, hints, next(iter(pods.values())).pod, old, new) is Hint.QUEUE:
                    for entry in pods.values():
                        yield plugin, entry

    def _alike(self, scheduler: str, plugin: str, keys: Keys) -> Iterator[Mapping[str, Entry]]:
        """The pods that the plugin refused and the event can concern, in groups that get the same answer."""
        classes = (
            self._pool.refused_by(scheduler, plugin) if keys is None else self._named(scheduler, plugin, keys)
        ).values()
        if self._hints.asks_per_pod(scheduler, plugin):
            return ({uid: entry} for pods in classes for uid, entry in pods.items())
        return iter(classes)

    def _named(self, scheduler: str, plugin: str, keys: Iterable[str]) -> dict[ClassKey, dict[str, Entry]]:
        classes: dict[ClassKey, dict[str, Entry]] = {}
        for key in sorted(keys):
            entry = self._pool.named(scheduler, plugin, key)
            if entry is not None:
                classes.setdefault(entry.class_key, {})[entry.pod.uid] = entry
        return classes

    def worth_retrying(self, entry: Entry, event: ClusterEvent, old: Any, new: Any) -> Retry:
        """The same question for one pod: its own update, or an event that it missed while in flight."""
        if not entry.rejectors:
            return Retry.AFTER_BACKOFF
        # Pods in flight share one list of missed events, and some of them are about one pod only.
        if _is_itself(entry, event, old, new):
            return Retry.SKIP
        is_about_one_pod = new is not None and (event.is_wildcard or event.resource is Resource.TARGET_POD)
        if is_about_one_pod and new.uid != entry.pod.uid:
            return Retry.SKIP
        if event.is_wildcard:
            return Retry.AFTER_BACKOFF
        best = Retry.SKIP
        for plugin, hints in self._hints.judges(entry.pod.spec.scheduler_name, event).items():
            if plugin not in entry.rejectors:
                continue
            if self._hints.ask(plugin, hints, entry.pod, old, new) is Hint.QUEUE:
                best = max(best, _retry(entry, plugin))
        return best


def _is_itself(entry: Entry, event: ClusterEvent, old: Any, new: Any) -> bool:
    """Is it the pod itself that took or gave up a place? That makes room for others, never for itself."""
    subject = new if old is None else old
    return event.resource is Resource.ASSIGNED_POD and isinstance(subject, Pod) and subject.uid == entry.pod.uid


def _retry(entry: Entry, plugin: str) -> Retry:
    return Retry.IMMEDIATELY if plugin in entry.pending else Retry.AFTER_BACKOFF


def _may_open(entry: Entry, keys: Mapping[str, Keys]) -> bool:
    """Only events that its gate registered for can open it, and only for the pods that the gate says they concern."""
    gate = entry.gated_by
    if gate not in keys:
        return False
    named = keys[gate]
    # Most events concern nobody at the gate, and then no name need be made up.
    return named is None or (bool(named) and entry.pod.key in named)
