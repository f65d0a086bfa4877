"""What the demo shows: a live view on a terminal, and the summary that stays when it is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from pilotage.cli.demo_picture import DrawnPod, Picture
from pilotage.cli.demo_tables import Painter

_WIDEST_BAR: Final = 24
_RECENT: Final = 6
_PENDING_SHOWN: Final = 4
_WIDTH_FOR_TWO: Final = 96
_HEIGHT_FOR_WORKLOADS: Final = 30
_TABLE_HEADER: Final = 1


@dataclass(frozen=True, slots=True)
class Moment:
    """Everything that one frame is drawn from."""

    picture: Picture
    placements: tuple[DrawnPod, ...]
    elapsed_seconds: float
    changed_seconds: float
    """When the picture was last another one."""
    footer: str = ""


class DemoView:
    """Draws moments on a console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._painter = Painter(is_unicode=console.encoding.lower().startswith("utf"))

    def frame(self, moment: Moment) -> RenderableType:
        """The whole screen; the table of nodes takes the lines that the rest leaves."""
        picture = moment.picture
        below: list[RenderableType] = []
        if self.console.height >= _HEIGHT_FOR_WORKLOADS:
            below += [Text(), self._work(moment)]
        if picture.pending:
            below += [Text(), self._painter.pending(picture.pending, _PENDING_SHOWN)]
        if moment.footer:
            below += [Text(), Text(moment.footer, "bright_black")]
        above = [self._title(moment), self._progress(picture), Text()]
        taken = sum(self._height(part) for part in (*above, *below)) + _TABLE_HEADER
        nodes = self._painter.nodes(picture.nodes, self._bar_width(), max(self.console.height - taken, 2))
        return Group(*above, nodes, *below)

    def summary(self, moment: Moment) -> None:
        """Print what came out: the answer first, then the evidence."""
        with self.console.capture() as captured:
            self._print_summary(moment)
        text = captured.get()
        if not self.console.is_terminal:
            text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
        self.console.file.write(text)
        self.console.file.flush()

    def _print_summary(self, moment: Moment) -> None:
        picture, console = moment.picture, self.console
        console.print(headline(moment), style="bold", soft_wrap=True)
        console.print()
        console.print(self._painter.nodes(picture.nodes, self._bar_width()))
        console.print()
        console.print(self._painter.workloads(picture.workloads, with_nodes=True))
        for line in picture.pending:
            console.print()
            console.print(f"Pending: {line.key}", style="yellow")
            # In a file the sentence stays on one line, so that it can be searched for.
            console.print(line.reason or "not looked at yet", soft_wrap=not console.is_terminal)

    def _title(self, moment: Moment) -> Text:
        nodes = len(moment.picture.nodes)
        return Text.assemble(
            ("Pilotage demo", "bold"), (f"   {nodes} nodes   {moment.elapsed_seconds:.1f} s", "bright_black")
        )

    def _progress(self, picture: Picture) -> Text:
        share = picture.placed / picture.pods if picture.pods else 0.0
        bar = self._painter.bar(share, min(self.console.width // 3, 40))
        bar.stylize("cyan")
        counts = (
            f"  {picture.placed} of {picture.pods} pods placed, {len(picture.pending)} pending, {picture.finished} done"
        )
        return Text.assemble(bar, counts)

    def _work(self, moment: Moment) -> RenderableType:
        """What there is to do, and beside it what was done last."""
        workloads = self._painter.workloads(moment.picture.workloads, with_nodes=False)
        if self.console.width < _WIDTH_FOR_TWO or not moment.placements:
            return workloads
        latest = moment.placements[: -_RECENT - 1 : -1]
        lines = [Text.assemble(item.pod, (" -> ", "bright_black"), (item.node, "cyan")) for item in latest]
        side_by_side = Table.grid(padding=(0, 6, 0, 0))
        side_by_side.add_row(workloads, Group(Text("LAST PLACED", "bold"), *lines))
        return side_by_side

    def _height(self, part: RenderableType) -> int:
        return len(self.console.render_lines(part, pad=False))

    def _bar_width(self) -> int:
        """Three bars (the last of half the width) beside the columns of text."""
        return min(max((self.console.width - 74) * 2 // 5, 4), _WIDEST_BAR)


def headline(moment: Moment) -> str:
    """`26 of 27 pods placed on 5 nodes in 7.1 s, 1 pending.`"""
    picture = moment.picture
    pending = f"{len(picture.pending)} pending" if picture.pending else "none pending"
    placed = f"{picture.placed} of {picture.pods} pods placed on {len(picture.nodes)} nodes"
    return f"{placed} in {moment.changed_seconds:.3g} s, {pending}."
