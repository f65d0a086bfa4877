"""`pilotage conformance`: are our decisions those of kube-scheduler?"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import click
import msgspec
from rich.table import Table

from pilotage.cli.terminal import PlainConsole
from pilotage.conformance.cases import ConformanceCase, ConformanceCaseError, load_cases
from pilotage.conformance.compare import shown
from pilotage.conformance.replay import ANSWERERS, ConformanceResult, replay

_SHOWN_CASES = 5
_SHOWN_DIFFERENCES = 6
_EPILOG = """\b
Examples:
  pilotage conformance recorded/*.jsonl.gz
  pilotage conformance recorded/mixed.jsonl.gz -x --answers answers.jsonl
"""


@click.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--answers", type=click.Path(path_type=Path), help="Write our answer to every case to this file.")
@click.option("--theme", "themes", multiple=True, help="Only cases of this theme, e.g. affinity; may be repeated.")
@click.option("-x", "stop_at_first", is_flag=True, help="Stop at the first difference.")
def conformance(files: tuple[Path, ...], answers: Path | None, themes: tuple[str, ...], stop_at_first: bool) -> None:
    """Replay recorded decisions of the real kube-scheduler and compare ours with them.

    Exits with 1 if any answer differs.
    """
    counts: Counter[tuple[str, bool]] = Counter()
    different: list[ConformanceResult] = []
    unanswered: Counter[str] = Counter()
    try:
        with ExitStack() as stack:
            out = stack.enter_context(answers.open("wb")) if answers is not None else None
            for result in replay(_wanted(files, themes, unanswered)):
                _write(out, result)
                counts[result.case.theme, result.is_equal] += 1
                if not result.is_equal:
                    different.append(result)
                    if stop_at_first:
                        break
    except ConformanceCaseError as error:
        raise click.UsageError(str(error)) from error
    _print(counts, different, unanswered)
    if different or unanswered:
        sys.exit(1)


def _wanted(files: tuple[Path, ...], themes: tuple[str, ...], unanswered: Counter[str]) -> Iterator[ConformanceCase]:
    for path in files:
        for case in load_cases(path):
            if themes and case.theme not in themes:
                continue
            if case.kind in ANSWERERS:
                yield case
            else:
                unanswered[case.theme] += 1


def _write(out: BinaryIO | None, result: ConformanceResult) -> None:
    if out is not None:
        line = {"name": result.case.name, "expected": result.answer}
        out.write(msgspec.json.encode(line) + b"\n")


def _print(counts: Counter[tuple[str, bool]], different: list[ConformanceResult], unanswered: Counter[str]) -> None:
    console = PlainConsole()
    table = Table("THEME")
    for name in ("CASES", "EQUAL", "DIFFERENT"):
        table.add_column(name, justify="right")
    for theme in sorted({theme for theme, _ in counts} | set(unanswered)):
        equal, other = counts[theme, True], counts[theme, False] + unanswered[theme]
        table.add_row(theme, f"{equal + other:,}", f"{equal:,}", f"{other:,}")
    console.print(table)
    for theme, count in unanswered.items():
        console.print(f"{theme}: {count} cases of a kind that is not answered yet")
    for result in different[:_SHOWN_CASES]:
        console.print(f"\n{result.case.name}: {len(result.differences)} differences", style="bold")
        for path, expected, actual in result.differences[:_SHOWN_DIFFERENCES]:
            console.print(f"  {path}\n    recorded  {shown(expected)}\n    ours      {shown(actual)}")
