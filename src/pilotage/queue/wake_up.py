"""Which waiting pods an event may help.

Every plugin that registered for an event is asked about the pods that it rejected: about all of them, or about those
that its narrowing named. A plugin with pure hints is asked once for all pods of a class, unless it then looks at
something that may differ between them. What another plugin says of the same event makes no difference to it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pilotage.api.events import ClusterEvent, Hint, Resource
from pilotage.clock import Clock
from pilotage.model import Pod
from pilotage.observe.decision_log import DecisionLog, shorten
from pilotage.observe.verbosity import HINT_ANSWERS
from pilotage.queue.hints import Hints, HintTable, Retry, Route
from pilotage.queue.sub_queues import QueuedPodInfo
from pilotage.queue.unschedulable_pods import Alike, Group, UnschedulablePods, group_of

log = logging.getLogger(__name__)

Keys = frozenset[str] | None
"""Of the pods that an event can concern; None: all."""
_NOBODY: Keys = frozenset()


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
        if event.is_wildcard:
            named = self._pool if new is None else filter(None, [self._pool.get(new.uid)])
            return [(entry, Retry.AFTER_BACKOFF) for entry in named]
        pods_to_requeue: dict[str, tuple[QueuedPodInfo, Retry]] = {}
        for route in routes:
            rejecting = self._pool.rejecting(route.scheduler)
            if not rejecting and not route.narrowed:
                continue
            # Narrowings are asked, and counted, even if nobody waits: they may keep books of their own.
            keys = self._hints.concerned(route, event, old, new)
            if not rejecting:
                continue
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
        named = keys.get(gate, _NOBODY)
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
    """Is it the pod itself that came, went, or has another place? That may help others, never itself."""
    if event.resource is not Resource.ASSIGNED_POD and event.resource is not Resource.UNSCHEDULED_POD:
        return False
    subject = new if old is None else old
    return isinstance(subject, Pod) and subject.uid == entry.pod.uid


def _retry(entry: QueuedPodInfo, plugin: str) -> Retry:
    return Retry.IMMEDIATELY if plugin in entry.pending else Retry.AFTER_BACKOFF
