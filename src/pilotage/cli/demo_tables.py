"""Tables and bars of the demo, shared by the live view and the closing summary.

Meaning is never carried by colour alone: every bar has its numbers beside it. Bars are drawn with eighths of a block
where the terminal can show them, and with plain signs where it cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from pilotage.cli.demo_picture import NodeLine, NodeUse, PendingLine, WorkloadLine

_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_GIB: Final = 1 << 30


class Painter:
    """Draws for one terminal; `is_unicode` says whether it can show more than ASCII."""

    def __init__(self, *, is_unicode: bool) -> None:
        self._is_unicode = is_unicode

    def bar(self, share: float, width: int) -> Text:
        """`width` cells, filled from the left."""
        share = min(max(share, 0.0), 1.0)
        if not self._is_unicode:
            filled = round(share * width)
            return Text("#" * filled + "." * (width - filled))
        full, eighths = divmod(round(share * width * 8), 8)
        blocks = "█" * full + (_EIGHTHS[eighths] if eighths else "")
        return Text.assemble((blocks, _colour(share)), ("░" * (width - len(blocks)), "bright_black"))

    def nodes(self, lines: Sequence[NodeLine], bar_width: int, most: int | None = None) -> Table:
        """A row per node; with `most`, the rest is only counted."""
        table = _table("NODE", "CPU", "MEMORY", "PODS", "TAINTS", last_wraps=True)
        shown = lines if most is None or len(lines) <= most else lines[: max(most - 1, 0)]
        for line in shown:
            table.add_row(
                line.name,
                self._use(line.cpu, bar_width, f"{line.cpu.requested / 1000:g}/{line.cpu.allocatable / 1000:g}", 9),
                self._use(line.memory, bar_width, _gibibytes(line.memory), 9),
                self._use(line.pods, bar_width // 2, f"{line.pods.requested}/{line.pods.allocatable}", 7),
                Text(", ".join(line.notes), "yellow"),
            )
        if len(shown) < len(lines):
            table.add_row(Text(f"and {len(lines) - len(shown)} more", "bright_black"))
        return table

    def workloads(self, lines: Iterable[WorkloadLine], *, with_nodes: bool) -> Table:
        headers = ["WORKLOAD", "PRIORITY", "PLACED", "RUNNING", "DONE", *(["NODES"] if with_nodes else [])]
        table = _table(*headers, last_wraps=with_nodes)
        for line in lines:
            placed = Text(f"{line.placed}/{line.pods}", "green" if line.placed == line.pods else "yellow")
            row: list[Text | str] = [line.name, f"{line.priority}", placed, str(line.running), str(line.finished)]
            table.add_row(*row, *([_nodes_of(line)] if with_nodes else []))
        return table

    def pending(self, lines: Sequence[PendingLine], most: int) -> Table:
        """The first pods that wait, with the whole reason."""
        table = _table("PENDING", "PRIORITY", "WHY", last_wraps=True)
        for line in lines[:most]:
            table.add_row(Text(line.key, "yellow"), str(line.priority), line.reason or "not looked at yet")
        if len(lines) > most:
            table.add_row(Text(f"and {len(lines) - most} more", "bright_black"))
        return table

    def _use(self, use: NodeUse, width: int, numbers: str, numbers_width: int) -> Text:
        return Text.assemble(self.bar(use.share, width), " ", numbers.rjust(numbers_width))


def _table(*headers: str, last_wraps: bool) -> Table:
    """Columns in capitals as kubectl has them; only the last one gives way when the terminal is narrow."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for header in headers:
        table.add_column(header, no_wrap=not last_wraps or header is not headers[-1])
    return table


def _colour(share: float) -> str:
    if share < 0.7:
        return "green"
    return "yellow" if share < 0.9 else "red"


def _gibibytes(use: NodeUse) -> str:
    return f"{use.requested / _GIB:.3g}/{use.allocatable / _GIB:.3g}Gi"


def _nodes_of(line: WorkloadLine) -> str:
    """`worker-1 x3, disk-1` with the fullest first."""
    ranked = sorted(line.nodes.items(), key=lambda item: (-item[1], item[0]))
    shown = [name if count == 1 else f"{name} x{count}" for name, count in ranked[:6]]
    return ", ".join([*shown, f"and {len(ranked) - 6} more"] if len(ranked) > 6 else shown)
