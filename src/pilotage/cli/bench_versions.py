"""`pilotage bench --compare REF`: this version of the project and another one, measured in turn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.table import Table

from pilotage.bench.checkouts import (
    FIGURES,
    CheckoutFailed,
    ComparedRound,
    Ratio,
    in_turn,
    own_checkout,
    ratios_of,
    unpack,
)
from pilotage.bench.progress import ProgressLine
from pilotage.cli.output import show, show_json
from pilotage.cli.terminal import PlainConsole
from pilotage.clock import SystemClock


def bench_versions(
    ref: str, workload: str, arguments: Sequence[str], *, rounds: int, output: str, sizes: str = ""
) -> None:
    """Measure and print; the JSON object is the last line of stdout."""
    progress, done = ProgressLine(SystemClock()), list[ComparedRound]()
    with TemporaryDirectory(prefix="pilotage-bench-") as folder:
        try:
            ours, theirs = own_checkout(), unpack(ref, Path(folder))
            for one in in_turn(lambda: ours.measure(arguments), lambda: theirs.measure(arguments), rounds):
                done.append(one)
                progress.show("rounds", len(done), rounds)
        except CheckoutFailed as error:
            raise click.ClickException(str(error)) from error
    progress.finish(f"rounds: {rounds}")
    found = ratios_of(done)
    if output == "json":
        show_json(
            {
                "workload": workload,
                "comparedWith": ref,
                "rounds": [{"ours": one.ours, "theirs": one.theirs} for one in done],
                "ratios": {ratio.figure: ratio.as_json() for ratio in found},
            }
        )
        return
    _print_table(ref, f"{workload} in {rounds} rounds{sizes and f': {sizes}'}", found)


def _print_table(ref: str, title: str, found: Sequence[Ratio]) -> None:
    table = Table(title=title, title_justify="left")
    for heading in ("FIGURE", "HERE", ref, "RATIO", "LEAST", "MOST"):
        table.add_column(heading, justify="left" if heading == "FIGURE" else "right", no_wrap=True)
    for ratio in found:
        table.add_row(
            FIGURES.get(ratio.figure, ratio.figure),
            f"{ratio.ours:,.3f}" if ratio.ours < 10 else f"{ratio.ours:,.0f}",
            f"{ratio.theirs:,.3f}" if ratio.theirs < 10 else f"{ratio.theirs:,.0f}",
            f"{ratio.median:.3f}",
            f"{ratio.least:.3f}",
            f"{ratio.most:.3f}",
        )
    PlainConsole().print(table)
    show("Ratios are of one round each, here divided by there: their median, the least and the most.")
