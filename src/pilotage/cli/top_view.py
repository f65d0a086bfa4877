"""What `pilotage top` shows: numbers, queues, nodes, and who waits; or the report on one of those."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pilotage.console.pictures import rates
from pilotage.console.source import ConsoleSource, Waiting
from pilotage.escaping import visible
from pilotage.pictures import amount, duration
from pilotage.serve.console_door import Sight

_EVERYTHING: Final = Sight()
_RATE_SAMPLES: Final = 5
_MOST_QUEUES: Final = 3
_MOST_REASONS: Final = 3
_RESOURCES: Final = ("cpu", "memory", "pods")
_FULL: Final = 0.95
_COUNT: Final = re.compile(r"(^|, )\d+ ")
_SHORT: Final = {"ReplicaSet": "rs", "StatefulSet": "sts", "DaemonSet": "ds", "ReplicationController": "rc"}
SORTS: Final[dict[str, tuple[str, Callable[[Waiting], tuple[object, ...]]]]] = {
    "w": ("waits longest", lambda one: (-one.seconds, one.namespace, one.owner)),
    "p": ("most pods", lambda one: (-one.pods, -one.seconds)),
    "r": ("priority", lambda one: (-one.priority, -one.seconds)),
    "n": ("name", lambda one: (one.namespace, one.owner)),
}
"""By key: what comes first."""


class Screen(Struct, frozen=True):
    """What the viewer has chosen."""

    sort: str = "w"
    chosen: int = 0
    opened: tuple[str, str] | None = None
    """Namespace and subject (`pod/NAME`, `podgroup/NAME`) of the report that is open."""
    scrolled: int = 0

    def first_of(self, lines: int, height: int) -> int:
        """The line of a report that is at the top: never so far that less than a page is left."""
        return min(self.scrolled, max(0, lines - _room(height)))

    def after(self, key: str, rows: Sequence[Waiting], height: int) -> Screen:
        """The next screen."""
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -height, "page down": height}
        if key in steps:
            if self.opened is not None:
                return replace(self, scrolled=max(0, self.scrolled + steps[key]))
            return replace(self, chosen=min(max(0, self.chosen + steps[key]), max(0, len(rows) - 1)))
        if self.opened is not None:
            return replace(self, opened=None, scrolled=0) if key in ("escape", "enter") else self
        if key in SORTS:
            return replace(self, sort=key, chosen=0)
        if key == "enter" and rows:
            row = rows[min(self.chosen, len(rows) - 1)]
            return replace(self, opened=(row.namespace, f"{row.kind.lower()}/{row.example}"), scrolled=0)
        return self


def _room(height: int) -> int:
    """For a report, above its footer."""
    return max(1, height - 2)


def wrapped(text: str, width: int) -> list[str]:
    """Lines of a report that fit beside each other; what is longer goes on in the next line, set in as it was."""
    lines: list[str] = []
    for line in map(visible, text.split("\n")):
        inset = " " * (len(line) - len(line.lstrip()) + 2)
        lines += textwrap.wrap(line, width, subsequent_indent=inset, drop_whitespace=True) or [""]
    return lines


class TopView:
    """Draws what a source knows."""

    def __init__(self, source: ConsoleSource, title: str) -> None:
        self._source = source
        self._title = visible(title)

    def rows(self, sort: str) -> list[Waiting]:
        """Who waits, in this order."""
        return sorted(self._source.waiting(_EVERYTHING), key=SORTS[sort][1])

    def whole(self, sort: str) -> RenderableType:
        """Everything, for paper."""
        rows = self.rows(sort)
        return Group(*self._summary(rows), Text(), _table(rows, 0, len(rows), None))

    def frame(self, screen: Screen, rows: Sequence[Waiting], height: int) -> RenderableType:
        """So much as fits."""
        above = self._summary(rows)
        room = max(1, height - len(above) - 3)
        first = max(0, screen.chosen - room + 1)
        hidden = len(rows) - min(len(rows), first + room)
        keys = f"w p r n sort ({SORTS[screen.sort][0]})   up down Enter open   q quit"
        footer = Text(f"{keys}   {hidden} more below" if hidden else keys, "bright_black", no_wrap=True)
        return Group(*above, Text(), _table(rows, first, first + room, screen.chosen), footer)

    def report(self, screen: Screen, lines: Sequence[str], height: int) -> RenderableType:
        """The lines of a report that fit, from where the viewer has scrolled to."""
        room = _room(height)
        first = screen.first_of(len(lines), height)
        shown = [Text(line, no_wrap=True) for line in lines[first : first + room]]
        footer = f"lines {first + 1} to {first + len(shown)} of {len(lines)}   up down scroll   Escape back   q quit"
        return Group(*shown, *[Text()] * (room - len(shown)), Text(footer, "bright_black", no_wrap=True))

    def _summary(self, rows: Sequence[Waiting]) -> list[Text]:
        source = self._source
        away = source.process.seconds_without_server()
        title = Text(self._title, "bold", no_wrap=True, overflow="ellipsis")
        if away:
            title = Text(f"no contact with the API server for {duration(round(away))}: {self._title}", "bold red")
            title.no_wrap, title.overflow = True, "ellipsis"
        return [title, *(_line(name, text) for name, text in self._facts(rows) if text)]

    def _facts(self, rows: Sequence[Waiting]) -> list[tuple[str, str]]:
        source = self._source
        places: Counter[str] = Counter()
        reasons: Counter[str] = Counter()
        for row in rows:
            places[row.home] += row.pods
            reasons[why(row)] += row.pods
        samples = list(source.samples)[-_RATE_SAMPLES:]
        rate = rates([one.time for one in samples], [float(one.bound) for one in samples])
        speed = f", {amount(sum(rate[1:]) / len(rate[1:]))} more per second" if len(rate) > 1 else ""
        waiting = ", ".join(f"{amount(count)} {place}" for place, count in places.most_common())
        return [
            ("pods", f"{amount(source.cluster.placed_count)} on nodes{speed}"),
            ("waiting", amount(sum(places.values())) + (f": {waiting}" if waiting else "")),
            ("reasons", "; ".join(f"{reason}: {amount(n)}" for reason, n in reasons.most_common(_MOST_REASONS))),
            ("nodes", self._nodes()),
            *(("queue", text) for text in self._queues()),
        ]

    def _nodes(self) -> str:
        nodes = self._source.cluster.nodes
        if not len(nodes):
            return "none"
        parts = []
        for resource in _RESOURCES:
            used = nodes.pod_count if resource == "pods" else nodes.requested(resource)
            have = np.maximum(nodes.allocatable(resource), 1)
            full = int((used / have >= _FULL).sum())
            parts.append(f"{resource} {100 * used.sum() / have.sum():.0f} %" + (f" ({full} full)" if full else ""))
        cordoned = int(np.count_nonzero(nodes.unschedulable))
        more = f", {cordoned} cordoned" if cordoned else ""
        return f"{amount(len(nodes))}{more}; requested {', '.join(parts)}"

    def _queues(self) -> list[str]:
        queueing = self._source.process.queueing
        engine = None if queueing is None else queueing.controller.view()
        if engine is None:
            return []
        queues = sorted(engine.cluster_queues(), key=lambda one: (-one.pending, one.name))
        texts = [
            f"{one.name}: {amount(one.pending)} wait, {amount(one.admitted)} admitted"
            + "".join(f", {quota.resource} {_share(quota.used, quota.nominal)}" for quota in one.quotas[:_MOST_QUEUES])
            for one in queues[:_MOST_QUEUES]
        ]
        return [*texts, f"and {len(queues) - len(texts)} more: pilotage queues"] if len(queues) > len(texts) else texts


def _share(used: int, nominal: int) -> str:
    return f"{100 * used / nominal:.0f} % of quota" if nominal else f"{amount(used)} without quota"


def why(row: Waiting) -> str:
    """For what it waits, in few words: plugins, or what another scheduler wrote of it."""
    if row.plugins:
        return ", ".join(row.plugins)
    said = row.message.partition(". preemption:")[0].rpartition("nodes are available: ")[2].rstrip(".")
    return _COUNT.sub(r"\1", said) or "waits for its turn"


def who(row: Waiting) -> str:
    """Namespace and owner, with the kind as kubectl shortens it."""
    kind, _, name = row.owner.partition("/")
    return f"{row.namespace}/{_SHORT.get(kind, kind.lower())}/{name}"


def _line(name: str, text: str) -> Text:
    line = Text(f"{name:<9}", "bright_black", no_wrap=True, overflow="ellipsis")
    return line.append(visible(text), "default")


def _table(rows: Sequence[Waiting], first: int, end: int, chosen: int | None) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), expand=True, header_style="bold")
    table.add_column("PODS", justify="right", no_wrap=True)
    table.add_column("WAITS", no_wrap=True)
    has_priorities = len({row.priority for row in rows}) > 1
    if has_priorities:
        table.add_column("PRIORITY", justify="right", no_wrap=True)
    table.add_column("WHO", no_wrap=True, overflow="ellipsis", ratio=3)
    table.add_column("WHY", no_wrap=True, overflow="ellipsis", ratio=2)
    for at, row in enumerate(rows[first:end], first):
        priority = (str(row.priority),) if has_priorities else ()
        reason = f"{why(row)}: {row.message}" if row.plugins and row.message else why(row)
        cells = (amount(row.pods), duration(round(row.seconds)), *priority, who(row), reason)
        table.add_row(*(Text(visible(cell)) for cell in cells), style="reverse" if at == chosen else None)
    if not rows:
        table.add_row("", "", Text("no pod waits", "bright_black"), "")
    return table
