"""What happened to one pod, put together on request: its own steps, and the rounds of hints it was part of.

A round says that a plugin was asked about an event for all pods that it had rejected. The pod was part of it if it was
waiting then, rejected by that plugin, and not left out by a narrowing; since a pod for which the answer is Queue has a
step of its own, the answer was to skip it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from pilotage.observe.decision_log import DecisionLog, Round, Step
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.queue.sub_queues import QueuedPodInfo, SubQueue

_WAITING = (SubQueue.UNSCHEDULABLE.value, SubQueue.GATED.value)


class TimelineItem(Struct, frozen=True):
    """One line of a pod's story."""

    time: float
    what: str
    """moved, tried, rejected, failed, asked, bound, left"""
    detail: str = ""
    """Where to, the number of the attempt, who rejected it, plugin and answer, the node."""
    why: str = ""
    """The event, or the message."""
    times: int = 1
    """How often in a row, within a second."""


class Timeline(Struct, frozen=True):
    """All that is remembered of a pod, oldest first."""

    pod: str
    uid: str
    items: tuple[TimelineItem, ...]


def timeline(queue: SchedulingQueue, key: str) -> Timeline | None:
    """Return the timeline of a pod by key ("namespace/name"), also if it left not long ago; None if it is unknown."""
    for entry in queue.entries():
        if entry.pod.key == key:
            return _timeline_of(entry, entry.history or entry.beginning(), queue.log)
    for ticket in queue.tickets():
        if ticket.pod.key == key:
            return _timeline_of(
                ticket.entry, ticket.entry.history or ticket.entry.beginning(ticket.popped_at), queue.log
            )
    for entry, popped_at, left_at, node_name in queue.ended():
        if entry.pod.key == key:
            steps = entry.history or entry.beginning(popped_at)
            end = TimelineItem(left_at, "bound" if node_name else "left", node_name)
            return _timeline_of(entry, steps, queue.log, end)
    return None


def _timeline_of(entry: QueuedPodInfo, steps: list[Step], log: DecisionLog, *end: TimelineItem) -> Timeline:
    own = [TimelineItem(time, what, str(detail), why) for time, what, detail, why in steps]
    until = end[0].time if end else float("inf")
    skipped = [item for item in _skips(entry, steps, log) if item.time <= until]
    # Stable: of what happened at the same time, the pod's own steps were noted in their order.
    items = sorted([*own, *skipped], key=lambda item: item.time)
    return Timeline(entry.pod.key, entry.pod.uid, (*items, *end))


def _skips(entry: QueuedPodInfo, steps: list[Step], log: DecisionLog) -> Iterator[TimelineItem]:
    for asked in log.rounds():
        if asked.scheduler == entry.pod.spec.scheduler_name and _was_part(entry, steps, asked):
            yield TimelineItem(asked.last, "asked", f"{asked.plugin}: QueueSkip", _event(asked), asked.times)


def _was_part(entry: QueuedPodInfo, steps: list[Step], asked: Round) -> bool:
    if asked.named is not None and entry.pod.key not in asked.named:
        return False
    before = [step for step in steps if step[0] <= asked.last]
    moves = [where for _, what, where, _ in before if what == "moved"]
    if not moves or moves[-1] not in _WAITING:
        return False
    rejected = [str(rejectors) for _, what, rejectors, _ in before if what == "rejected"]
    return asked.plugin in (rejected[-1].split(",") if rejected else [entry.gated_by])


def _event(asked: Round) -> str:
    return f"{asked.event} {asked.subject}".rstrip()
