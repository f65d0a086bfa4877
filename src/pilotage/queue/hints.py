"""Who wants to hear of which event, and what they answer.

A `HintTable` is built once from the plugins of all profiles. Errors in a hint count as Queue, and errors in a narrowing
as "all pods": a pod that is retried in vain costs little, a pod that is forgotten costs a lot. For the same reason a
plugin that can refuse a pod but registers nothing hears of nearly every event.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from pilotage.api import points
from pilotage.api.events import Action, ClusterEvent, Hint, Resource
from pilotage.api.plugin import HintFunction, NarrowFunction, Plugin, Registration
from pilotage.model import Pod
from pilotage.observe.metrics import Metrics

log = logging.getLogger(__name__)


class Retry(IntEnum):
    """What an event means for a waiting pod; the larger answer wins."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


Judges = Mapping[str, Sequence[HintFunction | None]]
_NO_JUDGES: Judges = MappingProxyType({})

_CAN_REFUSE = (
    points.PreEnqueue,
    points.PreFilter,
    points.Filter,
    points.VectorFilter,
    points.Reserve,
    points.Permit,
)
UNREGISTERED = tuple(
    ClusterEvent(resource, Action.ALL)
    for resource in (
        Resource.ASSIGNED_POD,
        Resource.UNSCHEDULED_POD,
        Resource.TARGET_POD,
        Resource.NODE,
        Resource.PERSISTENT_VOLUME,
        Resource.PERSISTENT_VOLUME_CLAIM,
        Resource.CSI_NODE,
        Resource.CSI_DRIVER,
        Resource.CSI_STORAGE_CAPACITY,
        Resource.STORAGE_CLASS,
        Resource.RESOURCE_CLAIM,
        Resource.DEVICE_CLASS,
    )
)
"""What a plugin hears of that registers nothing; kube-scheduler's list."""


class Route(NamedTuple):
    """Whom an event is told in one profile."""

    scheduler: str
    judges: Judges
    narrowed: Mapping[str, Sequence[NarrowFunction]]
    """For each plugin that narrows the event down: how."""


@dataclass(frozen=True, slots=True)
class HintSwitches:
    """The feature gates of requeueing."""

    hints: bool = True
    """SchedulerQueueingHints; if off, a registered event is enough and nobody is asked."""
    narrowing: bool = True
    """SchedulerPreQueueingHints; if off, every event concerns all pods."""


class HintTable:
    """The events that the plugins registered for, by scheduler name."""

    def __init__(
        self,
        profiles: Mapping[str, Sequence[Plugin]],
        metrics: Metrics,
        switches: HintSwitches | None = None,
    ) -> None:
        switches = switches or HintSwitches()
        self._registrations = {
            name: [(p.plugin_name(), _switched(r, switches)) for p in plugins for r in _registrations(name, p)]
            for name, plugins in profiles.items()
        }
        self._per_pod = {
            name: frozenset(p.plugin_name() for p in plugins if p.hints_per_pod) for name, plugins in profiles.items()
        }
        self.metrics = metrics
        self.failures = 0
        """How many hints have raised so far."""
        self._routes: dict[ClusterEvent, tuple[Route, ...]] = {}

    def routes(self, event: ClusterEvent) -> Sequence[Route]:
        """The profiles in which plugins registered for an event."""
        known = self._routes.get(event)
        if known is None:
            routes = (self._route(name, event) for name in self._registrations)
            known = self._routes[event] = tuple(route for route in routes if route.judges)
        return known

    def judges(self, scheduler_name: str, event: ClusterEvent) -> Judges:
        """Plugins that registered for an event, each with its hints; empty if none did."""
        for route in self.routes(event):
            if route.scheduler == scheduler_name:
                return route.judges
        return _NO_JUDGES

    def _route(self, scheduler_name: str, event: ClusterEvent) -> Route:
        judges: dict[str, list[HintFunction | None]] = {}
        for plugin, registration in self._registrations[scheduler_name]:
            if registration.event.covers(event):
                judges.setdefault(plugin, []).append(registration.hint)
        narrowings = {plugin: self._narrowings(scheduler_name, plugin, event) for plugin in judges}
        return Route(scheduler_name, judges, {plugin: narrows for plugin, narrows in narrowings.items() if narrows})

    def _narrowings(self, scheduler_name: str, plugin: str, event: ClusterEvent) -> tuple[NarrowFunction, ...]:
        """Empty if one of the plugin's registrations for the event is not narrowed: it then concerns all pods."""
        covering = [
            [n.narrow for n in registration.narrowings if n.event.covers(event)]
            for name, registration in self._registrations[scheduler_name]
            if name == plugin and registration.event.covers(event)
        ]
        each_once = dict.fromkeys(narrow for narrows in covering for narrow in narrows)
        return tuple(each_once) if all(covering) else ()

    # --- which pods --------------------------------------------------------------------------------------------

    def asks_per_pod(self, scheduler_name: str, plugin: str) -> bool:
        """Must this plugin be asked for every pod, even for equal ones?"""
        return plugin in self._per_pod.get(scheduler_name, ())

    def concerned(self, route: Route, event: ClusterEvent, old: Any, new: Any) -> dict[str, frozenset[str] | None]:
        """For each plugin that registered for the event, keys of the pods that it can concern; None: all.

        Each plugin speaks for itself only. Several narrowings of one plugin add up, and "all" of one of them is all.
        """
        keys: dict[str, frozenset[str] | None] = dict.fromkeys(route.judges)
        if old is not None or new is not None:
            for plugin, (first, *others) in route.narrowed.items():
                named = self._narrowed(plugin, first, event, old, new)
                for narrow in others:
                    more = self._narrowed(plugin, narrow, event, old, new)
                    named = None if named is None or more is None else named | more
                keys[plugin] = named
        return keys

    def _narrowed(
        self, plugin: str, narrow: NarrowFunction, event: ClusterEvent, old: Any, new: Any
    ) -> frozenset[str] | None:
        try:
            keys = narrow(old, new).keys
        except Exception:
            self.metrics.queueing_hint_errors_total.add(plugin)
            log.exception("narrowing of an event failed, all pods are asked: plugin=%s event=%s", plugin, event.label)
            return None
        self.metrics.pre_queueing_hint_evaluations_total.add(plugin, "all_pods" if keys is None else "narrowed")
        if keys is not None and log.isEnabledFor(logging.DEBUG):
            log.debug("PreQueueingHint narrowed pod set: plugin=%s event=%s pods=%d", plugin, event.label, len(keys))
        return keys

    # --- what they say -----------------------------------------------------------------------------------------

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
            self.failures += 1
            self.metrics.queueing_hint_errors_total.add(plugin)
            log.exception("queueing hint failed, pod is retried: plugin=%s pod=%s", plugin, pod.key)
            return Hint.QUEUE


def _switched(registration: Registration, switches: HintSwitches) -> Registration:
    return replace(
        registration,
        hint=registration.hint if switches.hints else None,
        narrowings=registration.narrowings if switches.narrowing else (),
    )


def _registrations(profile: str, plugin: Plugin) -> list[Registration]:
    found = plugin.registrations()
    says_so_itself = type(plugin).registrations is not Plugin.registrations
    if found or says_so_itself or not isinstance(plugin, _CAN_REFUSE):
        return found
    log.warning(
        'plugin "%s" of profile "%s" registers no events: every event retries the pods it refused',
        plugin.plugin_name(),
        profile,
    )
    return [Registration(event, None) for event in UNREGISTERED]
