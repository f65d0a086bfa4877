"""Who waits, grouped by reason and owner, oldest first, with what would help."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from pilotage.api.budget import Budget, BudgetExceeded
from pilotage.console.source import ConsoleSource, Waiting, without_numbers
from pilotage.console.view import PageView
from pilotage.explain.subject import UnknownSubject
from pilotage.serve.console_door import Sight
from pilotage.serve.page import PageRequest

_MOST_ROWS: Final = 200
_FEWEST_ROWS: Final = 3
"""Of each reason, however many there are."""
_MOST_REASONS: Final = 60
_ADVISED_REASONS: Final = 6
_ADVICE_SECONDS: Final = 0.1
_BY_OWNER: Final = "owner"
_OF_PREEMPTION: Final = " preemption: "
"""From there on a message says what became of preemption, which the page of the pod draws."""


class WaitingReason(Struct, frozen=True):
    """Everybody who waits for the same."""

    title: str
    pods: int
    seconds: float
    rows: tuple[Waiting, ...]
    hidden: int
    """Rows that are left out."""
    message: str = ""
    """What is said of all of them; "" if it differs in more than numbers."""
    helps: str | None = None
    """A change that was tried out; None if that was not looked for."""


def waiting(source: ConsoleSource, sight: Sight, request: PageRequest) -> PageView:
    namespace, search = request.first("namespace"), request.first("search").strip().lower()
    by = request.first("by", "reason")
    everybody = source.waiting(sight)
    found = [one for one in everybody if _matches(one, namespace, search)]
    reasons = _grouped(found, by)
    room = max(_FEWEST_ROWS, _MOST_ROWS // max(1, min(len(reasons), _MOST_REASONS)))
    shown = [_shown(source, sight, at, *reason, room) for at, reason in enumerate(reasons[:_MOST_REASONS])]
    namespaces = sorted({one.namespace for one in everybody} | ({namespace} if namespace else set()))
    values = {
        "reasons": shown,
        "pods": sum(one.pods for one in found),
        "hidden": len(reasons) - len(shown),
        "is_filtered": bool(namespace or search),
        "by": by,
    }
    controls = {
        "sees_all": sight.namespaces is None,
        "namespaces": namespaces,
        "namespace": namespace,
        "search": request.first("search"),
        "by": by,
    }
    return PageView("Waiting", {"waiting": ("waiting.html", values)}, ("waiting_controls.html", controls))


def _matches(one: Waiting, namespace: str, search: str) -> bool:
    if namespace and one.namespace != namespace:
        return False
    text = f"{one.namespace}/{one.owner} {one.example} {' '.join(one.plugins)} {one.message}".lower()
    return search in text


def _grouped(rows: list[Waiting], by: str) -> list[tuple[str, list[Waiting]]]:
    """By title; the oldest first, in a group and of the groups."""

    def key(one: Waiting) -> str:
        if by == _BY_OWNER:
            return f"{one.namespace}/{one.owner}"
        if one.plugins:
            return ", ".join(one.plugins)
        if one.home in ("active", "in flight"):
            return "Waits for its turn"
        return "Its members do not fit together" if one.kind == "PodGroup" and one.message else one.home.capitalize()

    groups: dict[str, list[Waiting]] = {}
    for one in rows:
        groups.setdefault(key(one), []).append(one)
    return sorted(groups.items(), key=lambda group: (-group[1][0].seconds, group[0]))


def _shown(source: ConsoleSource, sight: Sight, at: int, title: str, rows: list[Waiting], room: int) -> WaitingReason:
    rows = [replace(one, message=one.message.partition(_OF_PREEMPTION)[0]) for one in rows]
    is_same = len({without_numbers(one.message) for one in rows}) == 1
    return WaitingReason(
        title=title,
        pods=sum(one.pods for one in rows),
        seconds=rows[0].seconds,
        rows=tuple(rows[:room]),
        hidden=max(0, len(rows) - room),
        message=rows[0].message if is_same else "",
        helps=what_helps(source, sight, rows[0]) if at < _ADVISED_REASONS else None,
    )


def what_helps(source: ConsoleSource, sight: Sight, one: Waiting) -> str | None:
    """The smallest single change after which the pod that waits longest fits; "" if none was found."""
    if one.home in ("active", "in flight", "gated"):
        return None
    subject, budget = f"{one.kind.lower()}/{one.example}", Budget(_ADVICE_SECONDS)
    try:
        report = source.answered(subject, one.namespace, sight, budget, with_queue=False)
    except (UnknownSubject, BudgetExceeded):
        return None
    if report.fits:
        return "it fits now, and is tried again when its turn comes"
    return report.would_fit_if[0].change if report.would_fit_if else ""
