"""What the commands about traces share: options, progress, and an output that is complete or not there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
import msgspec

from pilotage.cli.durations import short_duration
from pilotage.cli.errors import CommandError, ExitCode, bad_input
from pilotage.cli.logs import say
from pilotage.cli.status_line import StatusLine
from pilotage.clock import SystemClock
from pilotage.lab.trace.format import TraceError, TraceHeader, TraceRecord, Writer
from pilotage.lab.trace.renaming import MalformedObject
from pilotage.model.errors import DecodeError

FILE: Final = click.Path(path_type=Path)
OUTPUT: Final = click.option(
    "-o", "--output", required=True, type=FILE, metavar="FILE", help="Where to: *.jsonl.gz or *.jsonl."
)
ALLOW_CUT: Final = click.option(
    "--allow-cut", is_flag=True, help="Take a file that is cut off as if it ended with its last whole line."
)
_LOOK_EVERY: Final = 1_000
"""Records between two looks at the clock."""


class Reading:
    """Shows how far a trace has been read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._status = StatusLine(SystemClock())
        self.line = 1
        """How far the trace has been read."""

    def watched(self, records: Iterable[TraceRecord]) -> Iterator[TraceRecord]:
        for number, record in enumerate(records, start=1):
            self.line = number + 1
            if number % _LOOK_EVERY == 0 and self._status.is_due:
                self._status.show(f"{self._path}: {number:,} records, {short_duration(record.at)} into the trace")
            yield record

    def clear(self) -> None:
        self._status.clear()


@contextmanager
def explained(path: Path) -> Iterator[Reading]:
    """Errors about traces as lines for people."""
    reading = Reading(path)
    try:
        yield reading
    except TraceError as error:
        raise bad_input(str(error)) from error
    except (DecodeError, MalformedObject, msgspec.ValidationError) as error:
        hint = f"`pilotage trace validate {path}` shows all such lines"
        raise bad_input(f"{path}: up to line {reading.line}: {error}; {hint}") from error
    except KeyboardInterrupt:
        raise CommandError(ExitCode.FAILED, "interrupted; nothing was written") from None
    finally:
        reading.clear()


def write_trace(output: Path, sources: Sequence[Path], header: TraceHeader, records: Iterable[TraceRecord]) -> None:
    """Write all or nothing: the file gets its name when it is complete."""
    check_name(output)
    if any(source.exists() and output.exists() and source.samefile(output) for source in sources):
        raise bad_input(f"{output}: is what is being read; choose another name")
    count, last = 0, 0.0
    part = output.with_name(f".{output.stem}.part{output.suffix}")
    try:
        with Writer(part, header) as out:
            for record in records:
                out.write(record)
                count, last = count + 1, record.at
        os.replace(part, output)
    finally:
        part.unlink(missing_ok=True)
    say(f"{output}: {count:,} records, {short_duration(last)}")


def check_name(output: Path) -> None:
    if output.suffixes[-1:] != [".jsonl"] and output.suffixes[-2:] != [".jsonl", ".gz"]:
        raise bad_input(f"{output}: a trace is called *.jsonl.gz (compressed) or *.jsonl")
