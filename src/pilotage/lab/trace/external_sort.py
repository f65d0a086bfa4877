"""Records in the order of time, however many: what does not fit into memory waits in temporary files."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import attrgetter
from typing import IO, Final

import msgspec

from pilotage.lab.trace.format import TraceRecord

_IN_MEMORY: Final = 50_000
"""Records that are sorted at once; a tenth of a gigabyte."""
_by_time = attrgetter("at")
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(TraceRecord)


def in_order(records: Iterable[TraceRecord], in_memory: int = _IN_MEMORY) -> Iterator[TraceRecord]:
    """The same records by time; those of one moment stay as they are."""
    source = iter(records)
    runs: list[IO[bytes]] = []
    try:
        while True:
            part = sorted(islice(source, in_memory), key=_by_time)
            if len(part) < in_memory:
                yield from heapq.merge(*map(_read, runs), part, key=_by_time)
                return
            runs.append(_spilled(part))
    finally:
        for run in runs:
            run.close()


def _spilled(part: list[TraceRecord]) -> IO[bytes]:
    file: IO[bytes] = tempfile.TemporaryFile(prefix="pilotage-trace-")  # noqa: SIM115
    file.writelines(_encoder.encode(record) + b"\n" for record in part)
    file.seek(0)
    return file


def _read(file: IO[bytes]) -> Iterator[TraceRecord]:
    return map(_decoder.decode, file)
