"""`pilotage trace starts`: how good are the ranges that are stated for starts?"""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

import click

from pilotage.assembly import SchedulerOptions
from pilotage.cli.columns import columns
from pilotage.cli.errors import bad_input
from pilotage.cli.logs import is_verbose
from pilotage.cli.options import common_options
from pilotage.cli.output import show, show_json
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags
from pilotage.cli.status_line import StatusLine
from pilotage.cli.trace_writing import ALLOW_CUT, FILE, explained
from pilotage.clock import SystemClock
from pilotage.explain.expected_start import STATED, PastStarts, span_text
from pilotage.framework.errors import ProfileError
from pilotage.lab.replay import ReplaySettings
from pilotage.lab.simulation import TraceInput, simulate
from pilotage.lab.starts.pod_copies import Coverage, Effort, coverage, past_starts
from pilotage.lab.starts.pod_history import HistoryTooLong, PodHistory, history_of_trace, with_decisions
from pilotage.lab.trace.finishing import open_trace

_HEADINGS = ("TRACE", "RANGES", "STARTS", "WITHIN", "MIDDLE OFF BY")


@click.command("starts")
@click.argument("paths", nargs=-1, required=True, type=FILE, metavar="TRACE...")
@scheduler_flags
@click.option("--past", type=click.IntRange(min=4), default=60, show_default=True, help="Starts that are looked at.")
@click.option("--copies", type=click.IntRange(min=2), default=20, show_default=True, help="Copies for each of them.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="What chance is drawn from.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@ALLOW_CUT
@common_options
def starts(
    paths: tuple[Path, ...], flags: SchedulerFlags, past: int, copies: int, seed: int, output: str, allow_cut: bool
) -> None:
    """Check how good the ranges are that `pilotage explain` states for starts.

    Pods that had to wait are asked about when they came, or in the middle of their wait, with nothing known of what
    followed; that is compared with when they started. What happened is what was observed, or, if the trace was not
    recorded, what a simulation of it says. The earlier half of the starts teaches by how much ranges are to be widened;
    the later half shows how often starts are within them then.
    """
    options, effort = flags.options(), Effort(past=past, past_copies=copies, seed=seed)
    found = {str(path): _coverage(path, options, effort, allow_cut=allow_cut) for path in paths}
    if output == "json":
        show_json(found, indent=2)
        return
    rows = [row for path, one in found.items() for row in _rows(path, one)]
    show(columns(_HEADINGS, rows) if rows else "no pod of the trace had to wait: there is nothing to check")
    show(f"\n{STATED:.0%} are to be within; starts are those of the later half of all that were looked at")


def _coverage(path: Path, options: SchedulerOptions, effort: Effort, *, allow_cut: bool) -> Coverage:
    line = StatusLine(SystemClock())

    def on_look(number: int, count: int) -> None:
        if line.is_due:
            line.show(f"{path}: start {number} of {count}")

    try:
        return coverage(
            past_starts(_history(path, options, effort.seed, allow_cut=allow_cut), options, effort, on_look)
        )
    except (HistoryTooLong, ProfileError) as error:
        raise bad_input(f"{path}: {error}") from error
    finally:
        line.clear()


def _history(path: Path, options: SchedulerOptions, seed: int, *, allow_cut: bool) -> PodHistory:
    with explained(path) as reading:
        header, records = open_trace(path, allow_cut=allow_cut)
        history = history_of_trace(header.start_time, reading.watched(records))
        if history.is_observed:
            return history
        if not is_verbose():
            logging.getLogger("pilotage").setLevel(logging.ERROR)
        with tempfile.TemporaryDirectory(prefix="pilotage-starts-") as folder:
            result = simulate(TraceInput(path, allow_cut=allow_cut), options, ReplaySettings(seed=seed), Path(folder))
            return with_decisions(history, result.directory, result.totals["seconds"])


def _rows(path: str, found: Coverage) -> list[tuple[str, ...]]:
    widened = f"made {found.factor:.2g} times as wide"
    pairs = (("of the copies alone", found.copies_alone), (widened, found.put_right))
    return [(path, name, *_cells(fared)) for name, fared in pairs if fared is not None]


def _cells(fared: PastStarts) -> tuple[str, ...]:
    error = "never started" if fared.error_seconds is None else span_text(fared.error_seconds)
    return str(fared.starts), f"{fared.within:.0%}", error
