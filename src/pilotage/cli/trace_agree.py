"""`pilotage trace agree`: would this scheduler have decided as the one that was recorded?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from pilotage.cli.columns import columns
from pilotage.cli.durations import short_duration
from pilotage.cli.errors import ExitCode, bad_input
from pilotage.cli.options import common_options
from pilotage.cli.output import show, show_json
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags
from pilotage.cli.status_line import StatusLine
from pilotage.cli.trace_writing import ALLOW_CUT, FILE, explained
from pilotage.clock import SystemClock
from pilotage.framework.errors import ProfileError
from pilotage.lab.agreement import OTHER, SAME, TIED, ObservedDecision, judged
from pilotage.lab.starts.pod_history import HistoryTooLong, history_of_trace
from pilotage.lab.trace.finishing import open_trace

_HEADINGS = ("AT", "POD", "OBSERVED", "OURS", "WHY")


@click.command("agree")
@click.argument("path", type=FILE, metavar="TRACE")
@scheduler_flags
@click.option("--most", type=click.IntRange(min=0), default=20, show_default=True, help="Differences that are shown.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@ALLOW_CUT
@common_options
def agree(path: Path, flags: SchedulerFlags, most: int, output: str, allow_cut: bool) -> int:
    """Compare the decisions that were recorded with those of this scheduler, each in the state that it met.

    A node that was taken is the same, or tied (another one would be taken, but this one has the same score), or another
    one is better by our rules: then it is said why. Exits with 1 if there is such a difference.
    """
    line = StatusLine(SystemClock())
    found: list[ObservedDecision] = []
    try:
        with explained(path) as reading:
            header, records = open_trace(path, allow_cut=allow_cut)
            history = history_of_trace(header.start_time, reading.watched(records))
            for one in judged(history, flags.options(), SystemClock()):
                found.append(one)
                if line.is_due:
                    line.show(f"{path}: {len(found):,} decisions")
    except (HistoryTooLong, ProfileError) as error:
        raise bad_input(f"{path}: {error}") from error
    finally:
        line.clear()
    counts = Counter(one.verdict for one in found)
    others = [one for one in found if one.verdict == OTHER]
    if output == "json":
        show_json({"decisions": len(found), **{name: counts[name] for name in (SAME, TIED, OTHER)}, "others": others})
    elif not found:
        show(f"{path}: no decision was observed; a trace has them if `pilotage record` wrote it")
    else:
        text = f"{path}: {len(found):,} decisions: {counts[SAME]:,} the same, {counts[TIED]:,} tied"
        show(f"{text}, {counts[OTHER]:,} others")
        if shown := others[:most]:
            show(columns(_HEADINGS, [_cells(one) for one in shown]))
    return ExitCode.FAILED if others else ExitCode.OK


def _cells(one: ObservedDecision) -> tuple[str, ...]:
    return short_duration(one.at), one.pod, one.observed, one.ours or "-", one.why
