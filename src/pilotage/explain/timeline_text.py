"""The story of a pod for people: first line is where it is now, then a line per step."""

from __future__ import annotations

from pilotage.clock import rfc3339_micro
from pilotage.escaping import visible_lines
from pilotage.queue.timeline import Timeline, TimelineItem

_DATE_AND_T = len("2026-11-15T")
_MILLISECONDS = len("20:19:00.123")


def render_timeline(timeline: Timeline) -> str:
    """Times of day are in UTC; the second column is the time since the first step."""
    first = timeline.items[0].time
    lines = [f"{timeline.pod}: {_state(timeline)}", ""]
    for item in timeline.items:
        lines.append(f"{_time_of_day(item.time)}  {item.time - first:>+10.3f}s  {_sentence(item)}")
    return visible_lines(lines)


def _state(timeline: Timeline) -> str:
    attempts = sum(item.what == "tried" for item in timeline.items)
    told = f"{attempts} attempt{'' if attempts == 1 else 's'}"
    last = next(item for item in reversed(timeline.items) if item.what in ("moved", "tried", "bound", "left"))
    match last.what:
        case "bound":
            return f"bound to {last.detail} after {told}"
        case "left":
            return f"left the queue after {told}"
        case "tried":
            return f"in its attempt number {last.detail}"
        case _:
            return f"{last.detail} after {told}"


def _sentence(item: TimelineItem) -> str:
    match item.what:
        case "moved":
            text = f"to {item.detail}: {item.why}"
        case "tried":
            text = f"attempt {item.detail}"
        case "rejected":
            text = f"rejected by {', '.join(item.detail.split(','))}"
            text += f": {item.why}" if item.why else ""
        case "failed":
            text = f"failed: {item.why}"
        case "asked":
            plugin, _, answer = item.detail.partition(": ")
            text = f"{item.why}: {plugin} says {answer}"
        case "bound":
            text = f"bound to {item.detail}"
        case _:
            text = "left the queue"
    return text if item.times == 1 else f"{text} ({item.times} times within a second)"


def _time_of_day(seconds: float) -> str:
    return rfc3339_micro(seconds)[_DATE_AND_T:][:_MILLISECONDS]
