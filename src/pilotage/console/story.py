"""What happened to a pod: its lanes over time, and the same as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from pilotage.console import pictures
from pilotage.console.source import ConsoleSource, reason_of
from pilotage.model import Pod
from pilotage.pictures import duration
from pilotage.queue.timeline import TimelineItem, timeline
from pilotage.serve.console_door import Sight

_WHOLE_QUEUE: Final = 1_000_000
_LANE_OF: Final = {
    "moved": "queue",
    "left": "queue",
    "bound": "queue",
    "tried": "attempts",
    "rejected": "attempts",
    "failed": "attempts",
    "asked": "hints",
}
_LANES: Final = ("queue", "attempts", "hints", "API calls")
_OF_EVENTS: Final = frozenset({"moved", "asked"})
"""Items of which `why` is an event, with the object that it is about behind it."""


def pod_story(source: ConsoleSource, sight: Sight, pod: Pod) -> dict[str, Any]:
    """Everything that is remembered of a pod that is there."""
    story = timeline(source.queue, pod.key)
    entry = source.queue.entry(pod.uid)
    said = "" if entry is None else reason_of(entry)[1]
    return _timeline(sight, (*(() if story is None else story.items), *_calls(source, pod.uid)), said)


def ended_story(source: ConsoleSource, sight: Sight, key: str) -> dict[str, Any] | None:
    """What is remembered of a pod that has gone; None if nothing is."""
    story = timeline(source.queue, key)
    return None if story is None else _timeline(sight, (*story.items, *_calls(source, story.uid)))


def _calls(source: ConsoleSource, uid: str) -> Iterable[TimelineItem]:
    """Calls to the API server about the pod: those that have ended not long ago, and those on their way."""
    dispatcher, now = source.scheduler.dispatcher, source.clock.time()
    for call in dispatcher.ended_of(uid):
        what = "failed call" if call.error else "call"
        detail = f"{call.kind}: {'failed' if call.error else 'done'} after {duration(call.seconds)}"
        yield TimelineItem(call.time, what, detail, call.error)
    for one in dispatcher.report(_WHOLE_QUEUE).calls:
        if one.object == uid:
            yield TimelineItem(now - one.waiting_seconds, "call", f"{one.kind}: {one.state}", f"tries: {one.tries}")


def _timeline(sight: Sight, items: Sequence[TimelineItem], said: str = "") -> dict[str, Any]:
    everything = [_as_seen(sight, item) for item in sorted(items, key=lambda item: item.time)]
    marks: dict[str, list[tuple[float, str, str]]] = {lane: [] for lane in _LANES}
    begin = everything[0].time if everything else 0.0
    for item in everything:
        after = duration(item.time - begin)
        title = f"{item.what} {item.detail} {item.why} after {after}"
        marks[_LANE_OF.get(item.what, "API calls")].append((item.time, f"mark {css_of(item)}", title))
    picture = pictures.lanes("What happened to the pod", [(lane, found) for lane, found in marks.items() if found])
    rows = [(duration(item.time - begin), css_of(item), item) for item in everything]
    return {"picture": picture, "rows": rows, "said": said}


def css_of(item: TimelineItem) -> str:
    """The colour of an item, in the lanes and in the table."""
    if item.what == "asked":
        return "woken" if item.detail.endswith(": Queue") else "asked"
    return item.what.replace(" ", "-")


def _as_seen(sight: Sight, item: TimelineItem) -> TimelineItem:
    """Events are about objects of others too, whose names this visitor may not see."""
    event, _, subject = item.why.partition(" ")
    if item.what not in _OF_EVENTS or not subject:
        return item
    namespace, is_namespaced, _ = subject.partition("/")
    if sight.sees(namespace) if is_namespaced else sight.nodes:
        return item
    return replace(item, why=f"{event} (an object that you may not list)")
