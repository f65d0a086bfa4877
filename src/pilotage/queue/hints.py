"""Queueing hints: which plugins are asked about an event, and which waiting pods it requeues.

Every plugin that registered for an event is asked about the pods that it rejected: about all of them, or about those
that its narrowing named. A plugin with pure hints is asked once for all pods of a class, unless it then looks at
something that may differ between them. What another plugin says of the same event makes no difference to it.

Errors in a hint count as Queue, and errors in a narrowing
as "all pods": a pod that is retried in vain costs little, a pod that is forgotten costs a lot. For the same reason a
plugin that can reject a pod but registers nothing hears of nearly every event.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pilotage.api import points
from pilotage.api.events import Action, ClusterEvent, Hint, Resource
from pilotage.api.kinds import WatchedKinds
from pilotage.api.plugin import RAISED, Affected, HintFunction, NarrowFunction, Plugin, Registration
from pilotage.clock import Clock
from pilotage.model import Pod
from pilotage.model.pod_stand_in import StandIn
from pilotage.observe.decision_log import DecisionLog, shorten
from pilotage.observe.metrics import Metrics
from pilotage.observe.plugin_errors import PluginErrors
from pilotage.observe.verbosity import HINT_ANSWERS
from pilotage.queue.sub_queues import Alike, Group, QueuedPodInfo, UnschedulablePods, group_of

log = logging.getLogger(__name__)


class Retry(IntEnum):
    """What an event means for a waiting pod; the larger answer wins."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


Hints = Sequence[HintFunction | None]
"""Of one plugin for one event; None among them means that the event alone is enough."""
HintsByPlugin = Mapping[str, Hints]
Keys = frozenset[str] | None
"""Of the pods that an event can concern; None: all."""
_NO_KEYS: Keys = frozenset()
_NO_JUDGES: HintsByPlugin = MappingProxyType({})

_CAN_REJECT = (
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


def _unless_only_its_status(pod: Pod, old: Pod, new: Pod) -> Hint:
    """An extender's reason is written to the status: requeueing for that could go on for ever."""
    return Hint.SKIP if _but_for_conditions(old) == _but_for_conditions(new) else Hint.QUEUE


def _but_for_conditions(pod: Pod) -> tuple[object, ...]:
    claims = pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status
    return pod.spec, pod.labels, pod.annotations, claims


class Route(NamedTuple):
    """The hints that are asked about an event in one profile."""

    scheduler: str
    judges: HintsByPlugin
    narrowed: Mapping[str, Sequence[NarrowFunction]]
    """For each plugin that narrows the event down: how."""


class HintSwitches(Struct, frozen=True):
    """The feature gates of requeueing."""

    hints: bool = True
    """SchedulerQueueingHints; if off, a registered event is enough and no hint is asked."""
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
        self._registrations[name] += [
            (who, Registration(event, _unless_only_its_status if event.resource is Resource.TARGET_POD else None))
            for who in outsiders
            for event in UNREGISTERED
        ]
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
        """Whether one answer of this plugin may hold for all pods that are equal in what its hints have read."""
        return plugin in self._pure.get(scheduler_name, ())

    def concerned(self, route: Route, event: ClusterEvent, old: Any, new: Any) -> dict[str, Keys]:
        """For each plugin that registered for the event, keys of the pods that it can concern; None: all.

        Each plugin speaks for itself only. Several narrowings of one plugin add up, and "all" of one of them is all.
        """
        return {**dict.fromkeys(route.judges), **self.narrowed(route, event, old, new)}

    def narrowed(self, route: Route, event: ClusterEvent, old: Any, new: Any) -> dict[str, Keys]:
        """The same of those plugins only that narrow the event down."""
        keys: dict[str, Keys] = {}
        if old is not None or new is not None:
            for plugin, narrows in route.narrowed.items():
                for narrow in narrows:
                    more = self._narrowed(plugin, narrow, event, old, new)
                    if plugin in keys:
                        before = keys[plugin]
                        more = None if before is None or more is None else before | more
                    keys[plugin] = more
        return keys

    def _narrowed(self, plugin: str, narrow: NarrowFunction, event: ClusterEvent, old: Any, new: Any) -> Keys:
        try:
            affected: object = narrow(old, new)
            keys = affected.keys if type(affected) is Affected else None
            if type(keys) is not frozenset:
                keys = _keys_of(affected)
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


class _Answers(NamedTuple):
    """What one plugin says to one event."""

    asked: int
    """How many questions it took."""
    queue: int
    """How many of them were answered with Queue."""
    entries: Sequence[Collection[QueuedPodInfo]]
    """The pods for which it says so."""


class WakeUp:
    """Asks the hints about the pods of the pool."""

    def __init__(self, hints: HintTable, pool: UnschedulablePods, clock: Clock, log: DecisionLog) -> None:
        self._hints = hints
        self._pool = pool
        self._clock = clock
        self._log = log
        self._durations = hints.metrics.queueing_hint_execution_duration_seconds

    def pods_to_requeue(
        self, event: ClusterEvent, routes: Sequence[Route], old: Any, new: Any
    ) -> list[tuple[QueuedPodInfo, Retry]]:
        """The waiting pods that are worth a retry, each with the best answer that it got."""
        if not len(self._pool):
            # Narrowings are asked, and counted, even if no pod waits: they may keep books of their own.
            for route in routes:
                if route.narrowed:
                    self._hints.narrowed(route, event, old, new)
            return []
        if event.is_wildcard:
            named = self._pool if new is None else filter(None, [self._pool.get(new.uid)])
            return [(entry, Retry.AFTER_BACKOFF) for entry in named]
        pods_to_requeue: dict[str, tuple[QueuedPodInfo, Retry]] = {}
        for route in routes:
            rejecting = self._pool.rejecting(route.scheduler)
            if not rejecting and not route.narrowed:
                continue
            if not rejecting:
                self._hints.narrowed(route, event, old, new)
                continue
            keys = self._hints.concerned(route, event, old, new)
            for plugin, entry in self._queued(route, rejecting, keys, event, old, new):
                if _is_itself(entry, event, old, new):
                    continue
                retry = _retry(entry, plugin)
                uid = entry.pod.uid
                if uid not in pods_to_requeue or pods_to_requeue[uid][1] < retry:
                    pods_to_requeue[uid] = (entry, retry)
        return list(pods_to_requeue.values())

    def _queued(
        self, route: Route, rejecting: Collection[str], keys: dict[str, Keys], event: ClusterEvent, old: Any, new: Any
    ) -> Iterator[tuple[str, QueuedPodInfo]]:
        """Plugins that say Queue, with the pods for which they say it."""
        scheduler = route.scheduler
        for plugin, hints in route.judges.items():
            if plugin not in rejecting:
                continue
            groups = self._alike(scheduler, plugin, keys)
            if not groups:
                continue
            started, failures = self._clock.monotonic(), self._hints.failures
            answers = self._answers(scheduler, plugin, hints, groups, old, new)
            self._measure(plugin, event, started, answers.asked, answers.queue, self._hints.failures - failures)
            subject = _subject(old, new)
            if log.isEnabledFor(HINT_ANSWERS):
                _log_answers(plugin, event, subject, groups, answers.entries)
            if answers.queue < answers.asked:
                self._log.note_round(scheduler, plugin, event.label, subject, keys[plugin], self._clock.time())
            if not answers.queue:
                continue
            # Hundreds of pods may get the same answer: they share one note.
            note = self._answer_note(plugin, Hint.QUEUE, event, subject)
            for entries in answers.entries:
                for entry in entries:
                    _keep(entry, note)
                    yield plugin, entry

    def _answers(
        self, scheduler: str, plugin: str, hints: Hints, groups: Sequence[Alike], old: Any, new: Any
    ) -> _Answers:
        is_pure, ask, ask_once = self._hints.has_pure_hints(scheduler, plugin), self._hints.ask, self._hints.ask_once
        asked = queue = 0
        found: list[Collection[QueuedPodInfo]] = []
        for pods in groups:
            shared: Hint | None = None
            if is_pure and len(pods) > 1:
                try:
                    alike = pods.stand_in
                except AttributeError:
                    alike = pods.make_stand_in()
                shared = ask_once(plugin, hints, alike, old, new)
            if shared is Hint.SKIP:
                asked += 1
            elif shared is Hint.QUEUE:
                asked += 1
                queue += 1
                found.append(pods.values())
            else:
                asked += len(pods)
                entries = [each for each in pods.values() if ask(plugin, hints, each.pod, old, new) is Hint.QUEUE]
                queue += len(entries)
                found.append(entries)
        return _Answers(asked, queue, found)

    def _measure(self, plugin: str, event: ClusterEvent, started: float, asked: int, queued: int, failed: int) -> None:
        """All questions of a round took the same time on average; each question on its own would cost too much."""
        seconds, label, line = (self._clock.monotonic() - started) / asked, event.label, self._durations.child
        if times := queued - failed:
            line(plugin, label, "Queue").observe_alike(seconds * times, times)
        if times := asked - queued:
            line(plugin, label, "QueueSkip").observe_alike(seconds * times, times)
        if failed:
            line(plugin, label, "Error").observe_alike(seconds * failed, failed)

    def _answer_note(self, plugin: str, answer: Hint, event: ClusterEvent, subject: str) -> tuple[float, str, str, str]:
        said = "Queue" if answer is Hint.QUEUE else "QueueSkip"
        return self._clock.time(), "asked", f"{plugin}: {said}", f"{event.label} {subject}".rstrip()

    def _alike(self, scheduler: str, plugin: str, keys: Mapping[str, Keys]) -> list[Alike]:
        """The pods that the plugin rejected and the event can concern, by what they have in common."""
        named = keys[plugin]
        groups = self._pool.rejecting(scheduler)[plugin] if named is None else self._named(scheduler, plugin, named)
        return [
            part
            for (*_, gate), pods in groups.items()
            # What a gate says of its own pods, it has said already.
            if (part := pods if gate == plugin else self._let_in(gate, pods, keys))
        ]

    def _let_in(self, gate: str, pods: Alike, keys: Mapping[str, Keys]) -> Alike:
        """Only events that its gate registered for can open it, and only for the pods that the gate names."""
        if not gate:
            return pods
        named = keys.get(gate, _NO_KEYS)
        if named is None:
            return pods
        entries = filter(None, (self._pool.with_key(key) for key in sorted(named)))
        return Alike((entry.pod.uid, entry) for entry in entries if entry.pod.uid in pods)

    def _named(self, scheduler: str, plugin: str, keys: Iterable[str]) -> dict[Group, Alike]:
        groups: dict[Group, Alike] = {}
        for key in sorted(keys):
            entry = self._pool.named(scheduler, plugin, key)
            if entry is not None:
                groups.setdefault(group_of(entry), Alike())[entry.pod.uid] = entry
        return groups

    def worth_retrying(self, entry: QueuedPodInfo, event: ClusterEvent, old: Any, new: Any) -> Retry:
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
            started, failures = self._clock.monotonic(), self._hints.failures
            answer = self._hints.ask(plugin, hints, entry.pod, old, new)
            queued = answer is Hint.QUEUE
            self._measure(plugin, event, started, 1, queued, self._hints.failures - failures)
            if log.isEnabledFor(HINT_ANSWERS):
                alone = [{entry.pod.uid: entry}]
                _log_answers(plugin, event, _subject(old, new), alone, [[entry]] if queued else [])
            _keep(entry, self._answer_note(plugin, answer, event, _subject(old, new)))
            if queued:
                best = max(best, _retry(entry, plugin))
        return best


def _subject(old: Any, new: Any) -> str:
    """The object that changed."""
    key: str = getattr(old if new is None else new, "key", "")
    return key


def _log_answers(
    plugin: str,
    event: ClusterEvent,
    subject: str,
    groups: Iterable[Mapping[str, QueuedPodInfo]],
    queued: Iterable[Collection[QueuedPodInfo]],
) -> None:
    """For each group of equal pods a line per answer, with one of the pods and how many got it."""
    pods_to_requeue = {entry.pod.uid for entries in queued for entry in entries}
    for pods in groups:
        for hint, uids in (("Queue", pods.keys() & pods_to_requeue), ("QueueSkip", pods.keys() - pods_to_requeue)):
            if uids:
                pod = min(pods[uid].pod.key for uid in uids)
                text = "hint answered: plugin=%s event=%s object=%s hint=%s pod=%s pods=%d"
                log.log(HINT_ANSWERS, text, plugin, event.label, subject, hint, pod, len(uids))


def _keep(entry: QueuedPodInfo, note: tuple[float, str, str, str]) -> None:
    if entry.history is None:
        entry.history = entry.beginning()
    shorten(entry.history)
    entry.history.append(note)


def _is_itself(entry: QueuedPodInfo, event: ClusterEvent, old: Any, new: Any) -> bool:
    """Whether it is the pod itself that came, went, or has another place. That may help others, never itself."""
    if event.resource is not Resource.ASSIGNED_POD and event.resource is not Resource.UNSCHEDULED_POD:
        return False
    subject = new if old is None else old
    return isinstance(subject, Pod) and subject.uid == entry.pod.uid


def _retry(entry: QueuedPodInfo, plugin: str) -> Retry:
    return Retry.IMMEDIATELY if plugin in entry.pending else Retry.AFTER_BACKOFF


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


def _keys_of(affected: object) -> Keys:
    """The keys of the pods that an event can concern; None: all."""
    if isinstance(affected, Affected):
        keys: object = affected.keys
        if keys is None or isinstance(keys, frozenset):
            return keys
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
    if found or says_so_itself or not isinstance(plugin, _CAN_REJECT):
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
        return dataclasses.replace(event, resource=keys.get(event.resource, event.resource))

    narrowings = tuple(replace(one, event=keyed(one.event)) for one in registration.narrowings)
    return replace(registration, event=keyed(registration.event), narrowings=narrowings)
