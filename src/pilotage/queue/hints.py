"""Who wants to hear of which event, and what they answer.

A `HintTable` has the plugins of all profiles. Errors in a hint count as Queue, and errors in a narrowing
as "all pods": a pod that is retried in vain costs little, a pod that is forgotten costs a lot. For the same reason a
plugin that can reject a pod but registers nothing hears of nearly every event.
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
from pilotage.api.kinds import WatchedKinds
from pilotage.api.plugin import RAISED, Affected, HintFunction, NarrowFunction, Plugin, Registration
from pilotage.model import Pod
from pilotage.model.pod_stand_in import StandIn
from pilotage.observe.metrics import Metrics
from pilotage.observe.plugin_errors import PluginErrors

log = logging.getLogger(__name__)


class Retry(IntEnum):
    """What an event means for a waiting pod; the larger answer wins."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


Hints = Sequence[HintFunction | None]
"""Of one plugin for one event; None among them means that the event alone is enough."""
HintsByPlugin = Mapping[str, Hints]
_NO_JUDGES: HintsByPlugin = MappingProxyType({})

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
    judges: HintsByPlugin
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
        kinds: WatchedKinds | None = None,
    ) -> None:
        """`kinds` are those whose events come, of plugins that watch some of their own."""
        self._switches, self._kinds = switches or HintSwitches(), kinds or WatchedKinds()
        self._registrations: dict[str, list[tuple[str, Registration]]] = {}
        self._pure: dict[str, frozenset[str]] = {}
        self.profiles = self._registrations.keys()
        """The scheduler names that are served; always up to date."""
        self.metrics = metrics
        self._errors = PluginErrors(metrics)
        self.failures = 0
        """How many hints have raised so far."""
        self._routes: dict[ClusterEvent, tuple[Route, ...]] = {}
        for name, plugins in profiles.items():
            self.add(name, plugins)

    def add(self, name: str, plugins: Sequence[Plugin], outsiders: Sequence[str] = ()) -> None:
        """One more profile; `outsiders` reject pods too, and hear of what plugins hear of that register nothing."""
        self._routes.clear()
        self._registrations[name] = [
            (p.plugin_name(), _switched(r, self._switches))
            for p in plugins
            for r in _registrations(name, p, self._kinds)
        ]
        self._registrations[name] += [(who, Registration(event, None)) for who in outsiders for event in UNREGISTERED]
        self._pure[name] = frozenset(p.plugin_name() for p in plugins if p.pure_hints)

    def routes(self, event: ClusterEvent) -> Sequence[Route]:
        """The profiles in which plugins registered for an event."""
        known = self._routes.get(event)
        if known is None:
            routes = (self._route(name, event) for name in self._registrations)
            known = self._routes[event] = tuple(route for route in routes if route.judges)
        return known

    def judges(self, scheduler_name: str, event: ClusterEvent) -> HintsByPlugin:
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

    def has_pure_hints(self, scheduler_name: str, plugin: str) -> bool:
        """May one answer of this plugin hold for all pods that are equal in what its hints have read?"""
        return plugin in self._pure.get(scheduler_name, ())

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
            keys = _keys_of(narrow(old, new))
        except RAISED as error:
            self.metrics.queueing_hint_errors_total.add(plugin)
            self._errors.note(plugin, "PreQueueingHint", error)
            return None
        self.metrics.pre_queueing_hint_evaluations_total.add(plugin, "all_pods" if keys is None else "narrowed")
        if keys is not None and log.isEnabledFor(logging.DEBUG):
            log.debug("PreQueueingHint narrowed pod set: plugin=%s event=%s pods=%d", plugin, event.label, len(keys))
        return keys

    # --- what they say -----------------------------------------------------------------------------------------

    def ask(self, plugin: str, hints: Hints, pod: Pod, old: Any, new: Any) -> Hint:
        """One plugin's answer for one pod."""
        try:
            return _answer(hints, pod, old, new)
        except RAISED as error:
            return self._failed(plugin, error, pod)

    def ask_once(self, plugin: str, hints: Hints, alike: StandIn, old: Any, new: Any) -> Hint | None:
        """One plugin's answer for all pods of a class; None if it has to be asked for each of them.

        It must be, whenever this very question made the plugin look at something that may differ between the pods.
        """
        answer: Hint | None = None
        try:
            answer = _answer(hints, alike, old, new)
        except AttributeError:
            pass  # Perhaps it is only the stand-in that does not have this: a pod will show.
        except RAISED as error:
            if not alike.noted:
                answer = self._failed(plugin, error, alike.example)
        if alike.noted:
            alike.noted.clear()
            return None
        return answer

    def _failed(self, plugin: str, error: BaseException, pod: Pod) -> Hint:
        """A pod that is tried in vain costs little; one that is not tried may wait for ever."""
        self.failures += 1
        self.metrics.queueing_hint_errors_total.add(plugin)
        self._errors.note(plugin, "QueueingHint", error, pod.key)
        return Hint.QUEUE


def _answer(hints: Hints, pod: Pod, old: Any, new: Any) -> Hint:
    """Queue if one of the hints says so."""
    for hint in hints:
        if hint is None:
            return Hint.QUEUE
        answer: object = hint(pod, old, new)
        if answer is Hint.QUEUE:
            return Hint.QUEUE
        if answer is not Hint.SKIP:
            raise TypeError(f"expected Hint.QUEUE or Hint.SKIP, got {answer!r:.200}")
    return Hint.SKIP


def _keys_of(affected: object) -> frozenset[str] | None:
    """The keys of the pods that an event can concern; None: all."""
    if isinstance(affected, Affected) and isinstance(affected.keys, frozenset | None):
        return affected.keys
    raise TypeError(f"expected Affected.all() or Affected.pods(...), got {affected!r:.200}")


def _switched(registration: Registration, switches: HintSwitches) -> Registration:
    return replace(
        registration,
        hint=registration.hint if switches.hints else None,
        narrowings=registration.narrowings if switches.narrowing else (),
    )


def _registrations(profile: str, plugin: Plugin, kinds: WatchedKinds) -> list[Registration]:
    own = {kind.name: kinds.key(kind) for kind in plugin.watches}
    found = [_keyed(registration, own) for registration in plugin.registrations()] if own else plugin.registrations()
    says_so_itself = type(plugin).registrations is not Plugin.registrations
    if found or says_so_itself or not isinstance(plugin, _CAN_REFUSE):
        return found
    log.warning(
        'plugin "%s" of profile "%s" registers no events: every event retries the pods it rejected',
        plugin.plugin_name(),
        profile,
    )
    events = [*UNREGISTERED, *(ClusterEvent(key, Action.ALL) for key in own.values())]
    return [Registration(event, None) for event in events]


def _keyed(registration: Registration, keys: Mapping[str, str]) -> Registration:
    """With the keys of the plugin's own kinds instead of their names: two plugins may mean different types by one."""

    def keyed(event: ClusterEvent) -> ClusterEvent:
        return replace(event, resource=keys.get(event.resource, event.resource))

    narrowings = tuple(replace(one, event=keyed(one.event)) for one in registration.narrowings)
    return replace(registration, event=keyed(registration.event), narrowings=narrowings)
