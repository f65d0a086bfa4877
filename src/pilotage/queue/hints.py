"""Who wants to hear of which event, and what they answer.

A `HintTable` is built once from the plugins of all profiles. Errors in a hint count as Queue: a pod that is retried
in vain costs little, a pod that is forgotten costs a lot. For the same reason a plugin that can refuse a pod but
registers nothing hears of every event.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from pilotage.api import points
from pilotage.api.events import ClusterEvent, Hint, wildcard
from pilotage.api.plugin import HintFunction, NarrowFunction, Plugin, Registration
from pilotage.model import Pod

log = logging.getLogger(__name__)


class Retry(IntEnum):
    """What an event means for a waiting pod; the larger answer wins."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


Judges = Mapping[str, Sequence[HintFunction | None]]

_CAN_REFUSE = (
    points.PreEnqueue,
    points.PreFilter,
    points.Filter,
    points.VectorFilter,
    points.Reserve,
    points.Permit,
)


class HintTable:
    """The events that the plugins registered for, by scheduler name."""

    def __init__(self, profiles: Mapping[str, Sequence[Plugin]], on_hint_error: Callable[[str], None]) -> None:
        self._registrations = {
            name: [(p.plugin_name(), r) for p in plugins for r in _registrations(name, p)]
            for name, plugins in profiles.items()
        }
        self._on_hint_error = on_hint_error
        self._judges: dict[tuple[str, ClusterEvent], Judges] = {}
        self._narrows: dict[tuple[str, str, ClusterEvent], Sequence[NarrowFunction | None]] = {}

    def judges(self, scheduler_name: str, event: ClusterEvent) -> Judges:
        """Plugins that registered for an event, each with its hints; empty if none did."""
        key = (scheduler_name, event)
        known = self._judges.get(key)
        if known is None:
            found: dict[str, list[HintFunction | None]] = {}
            for plugin, registration in self._registrations.get(scheduler_name, ()):
                if registration.event.covers(event):
                    found.setdefault(plugin, []).append(registration.hint)
            known = self._judges[key] = found
        return known

    def concerned(
        self, scheduler_name: str, event: ClusterEvent, old: Any, new: Any, plugin: str
    ) -> frozenset[str] | None:
        """Keys of the pods that the event can concern in the eyes of one plugin; None: it does not say, so all."""
        keys: frozenset[str] = frozenset()
        for narrow in self._narrowings(scheduler_name, plugin, event):
            affected = self._narrowed(plugin, narrow, old, new)
            if affected is None:
                return None
            keys |= affected
        return keys

    def _narrowings(self, scheduler_name: str, plugin: str, event: ClusterEvent) -> Sequence[NarrowFunction | None]:
        key = (scheduler_name, plugin, event)
        known = self._narrows.get(key)
        if known is None:
            known = self._narrows[key] = [
                registration.narrow
                for name, registration in self._registrations.get(scheduler_name, ())
                if name == plugin and registration.event.covers(event)
            ]
        return known

    def _narrowed(self, plugin: str, narrow: NarrowFunction | None, old: Any, new: Any) -> frozenset[str] | None:
        try:
            return None if narrow is None else narrow(old, new).keys
        except Exception:
            self._on_hint_error(plugin)
            log.exception("narrowing of an event failed, all pods are asked: plugin=%s", plugin)
            return None

    def scheduler_names(self) -> Sequence[str]:
        return list(self._registrations)

    def wants(self, event: ClusterEvent) -> bool:
        """Did any plugin of any profile register for it?"""
        return event.is_wildcard or any(self.judges(name, event) for name in self._registrations)

    def ask(self, plugin: str, hints: Sequence[HintFunction | None], pod: Pod, old: Any, new: Any) -> Hint:
        """One plugin's answer; None among its hints means that the event alone is enough."""
        for hint in hints:
            if hint is None or self._ask_one(plugin, hint, pod, old, new) is Hint.QUEUE:
                return Hint.QUEUE
        return Hint.SKIP

    def _ask_one(self, plugin: str, hint: HintFunction, pod: Pod, old: Any, new: Any) -> Hint:
        try:
            return hint(pod, old, new)
        except Exception:
            self._on_hint_error(plugin)
            log.exception("queueing hint failed, pod is retried: plugin=%s pod=%s", plugin, pod.key)
            return Hint.QUEUE


def _registrations(profile: str, plugin: Plugin) -> list[Registration]:
    found = plugin.registrations()
    if found or not isinstance(plugin, _CAN_REFUSE):
        return found
    log.warning(
        'plugin "%s" of profile "%s" registers no events: every event retries the pods it refused',
        plugin.plugin_name(),
        profile,
    )
    return [Registration(wildcard("Unregistered"), None)]
