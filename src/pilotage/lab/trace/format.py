"""Traces: what happened to a cluster, one JSON object per line, in order of time.

    {"pilotageTrace": 1, "start": "2026-11-16T00:00:00Z", "source": "openb"}
    {"at": 0.0, "put": {"apiVersion": "v1", "kind": "Node", ...}}
    {"at": 12.5, "put": {"apiVersion": "v1", "kind": "Pod", ...}, "runs": 540.0}
    {"at": 20.0, "delete": {"apiVersion": "v1", "kind": "Node", "name": "a"}}
    {"at": 100.0, "gap": {"seconds": 30.0, "reason": "the API server did not answer"}}

`at` is seconds since `start`. `put` creates or changes an object. `runs` is how long a pod lives, counted from the
moment it runs; without it, it lives until it is deleted. A pod that is put with `spec.nodeName` runs already. A gap
says that nobody watched until now. Files whose name ends in `.gz` are compressed. A file is read line by line, whatever
its size.
"""

from __future__ import annotations

import errno
import gzip
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import msgspec

from pilotage.clock import parse_rfc3339
from pilotage.model.kinds import kind_of

VERSION: Final = 1
MAX_LINE: Final = 16 * 2**20
"""Bytes of one line; etcd takes no object above 1.5 MiB."""
_EXAMPLE: Final = '{"pilotageTrace": 1, "start": "2026-11-16T00:00:00Z"}'
_COMPRESSION: Final = 6
_CHUNK: Final = 2**16
_PACKED: Final = 2**13
"""What is read at once of a compressed file: how far it is shall be known in small steps."""
_GZIP: Final = 16 + zlib.MAX_WBITS
_RUNNING: Final = ("Pod", "Workload")
NOTHING: Final = msgspec.Raw()


class TraceError(Exception):
    """A trace that cannot be read or written: where, why, and what can be done about it."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        self.path = path
        self.line = line
        self.problem = problem
        super().__init__(f"{path}:{line}: {problem}" if line else f"{path}: {problem}")


class TraceHeader(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The first line. Fields that are not known are ignored."""

    pilotage_trace: int
    start: str
    """What `at` counts from, as RFC 3339."""
    source: str = ""
    """Where it comes from, in a word or two."""
    recording: bool = False
    """Written while it happened: lifetimes are still to be worked out (`finishing.open_trace` does so)."""

    @property
    def start_time(self) -> float:
        """Seconds since the epoch."""
        return parse_rfc3339(self.start)


class ObjectName(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which object: what a record that deletes says of it."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""


class Gap(msgspec.Struct, frozen=True, omit_defaults=True):
    """Nobody watched for so long, until the time of the record."""

    seconds: float
    reason: str = ""


class TraceRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """Any other line: exactly one of `put`, `delete` and `gap` is set."""

    at: float
    put: msgspec.Raw = NOTHING
    """The object as JSON, to be decoded by who needs it; `put_object` makes a dict of it. Empty if nothing is put."""
    runs: float | None = None
    delete: ObjectName | None = None
    gap: Gap | None = None

    @property
    def name(self) -> ObjectName | None:
        """Which object is put or deleted; None for a gap."""
        return name_of(self.put) if self.puts else self.delete

    @property
    def puts(self) -> bool:
        """Does it create or change an object?"""
        return bool(bytes(self.put))

    def put_object(self) -> dict[str, Any]:
        """The object that is put."""
        made: dict[str, Any] = msgspec.json.decode(self.put)
        return made


class _Metadata(msgspec.Struct):
    name: str
    namespace: str | None = None


class _Head(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    metadata: _Metadata


_head = msgspec.json.Decoder(_Head)
_header = msgspec.json.Decoder(TraceHeader)
_record = msgspec.json.Decoder(TraceRecord)

Known = Callable[[str, str], bool]
"""Is there such a kind? Asked with apiVersion and kind."""


def name_of(put: msgspec.Raw | bytes) -> ObjectName:
    """Which object this JSON is; ValidationError if it says neither kind nor name."""
    head = _head.decode(put)
    return ObjectName(head.api_version, head.kind, head.metadata.name, head.metadata.namespace or "")


def is_built_in(api_version: str, kind: str) -> bool:
    """Is it one of the kinds of `pilotage.model`, whatever its version?"""
    found = kind_of(kind)
    return found is not None and found.group == api_version.rpartition("/")[0]


def any_kind(api_version: str, kind: str) -> bool:
    """Every kind is known: for those who only pass objects on."""
    return True


def read(
    path: Path | str, *, known: Known = is_built_in, allow_cut: bool = False, in_any_order: bool = False
) -> tuple[TraceHeader, Records]:
    """The header, and the records one by one as they are asked for; record n is on line n + 2.

    TraceError at once if it is no trace, and from the iterator where a line is wrong. With `allow_cut`, a file that
    ends in the middle of a line (or of its compression) is as good as one that ends before it.
    """
    path = Path(path)
    records = Records(path, known, allow_cut, in_any_order)
    return records.header, records


def read_on(path: Path | str, *, known: Known = is_built_in) -> Iterator[tuple[int, TraceRecord | TraceError]]:
    """Every line after the header with its number: the record, or what is wrong with it.

    TraceError at once if it is no trace. What cannot be read on is the last one.
    """
    return Records(Path(path), known, allow_cut=False, in_any_order=False).and_problems()


class Records(Iterator[TraceRecord]):
    """One pass over a file."""

    def __init__(self, path: Path, known: Known, allow_cut: bool, in_any_order: bool) -> None:
        self._path = path
        self._known = known
        self._allow_cut = allow_cut
        self._in_any_order = in_any_order
        self._known_kinds: set[tuple[str, str]] = set()
        self._line = 0
        self._before = 0.0
        try:
            self._file: IO[bytes] = path.open("rb")
            self._size = path.stat().st_size
        except OSError as error:
            raise TraceError(path, 0, f"cannot be read: {error.strerror or error}") from error
        self._lines = _lines(_unpacked(self._file) if path.suffix == ".gz" else _plain(self._file))
        try:
            self.header = self._read_header()
        except BaseException:
            self._file.close()
            raise

    def __next__(self) -> TraceRecord:
        line = None if self._file.closed else self._next_line()
        if line is None:
            self._file.close()
            raise StopIteration
        record = self._checked(line, self._before)
        self._before = record.at
        return record

    @property
    def line(self) -> int:
        """The number of the line that was read last."""
        return self._line

    @property
    def fraction_read(self) -> float:
        """How much of the file was read."""
        return 1.0 if self._file.closed else self._file.tell() / max(1, self._size)

    def and_problems(self) -> Iterator[tuple[int, TraceRecord | TraceError]]:
        """The same, with the number of each line and what is wrong with it."""
        while True:
            try:
                record = next(self)
            except StopIteration:
                return
            except TraceError as error:
                # After what cannot be read on there is nothing more.
                yield self._line, error
            else:
                yield self._line, record

    def _error(self, problem: str) -> TraceError:
        return TraceError(self._path, self._line, problem)

    def _next_line(self) -> bytes | None:
        """None at the end of the file, or where it is cut off if that is allowed."""
        self._line += 1
        try:
            return next(self._lines, None)
        except _CutOff as error:
            if self._allow_cut and self._line > 1:
                return None
            if self._line == 1:
                raise self._error(f"is no trace, or cut off ({error}); a trace begins with {_EXAMPLE}") from error
            raise self._error(f"the file is cut off: {error}; --allow-cut takes the lines before it") from error
        except zlib.error as error:
            raise self._error(f"cannot be unpacked: it is damaged, or no gzip file at all ({error})") from error
        except OSError as error:
            raise self._error(f"cannot be read: {error.strerror or error}") from error
        except ValueError as error:
            raise self._error(str(error)) from error

    def _read_header(self) -> TraceHeader:
        line = self._next_line()
        if line is None:
            raise TraceError(self._path, 0, f"is empty; a trace begins with {_EXAMPLE}")
        try:
            header = _header.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._error(f"is no trace ({error}); a trace begins with {_EXAMPLE}") from error
        if header.pilotage_trace != VERSION:
            problem = f"is a trace of version {header.pilotage_trace}; this program reads version {VERSION}"
            raise self._error(f"{problem}: use a newer one" if header.pilotage_trace > VERSION else problem)
        try:
            _ = header.start_time
        except (ValueError, OverflowError):
            raise self._error(f"start: {header.start!r} is no time such as 2026-11-16T00:00:00Z") from None
        return header

    def _checked(self, line: bytes, before: float) -> TraceRecord:
        try:
            record = _record.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._error(f"is no record of a trace: {error}") from error
        if record.puts + (record.delete is not None) + (record.gap is not None) != 1:
            raise self._error("a record has one of put, delete and gap")
        if not 0 <= record.at < math.inf:
            raise self._error(f"at: {record.at:g} is no number of seconds since the start")
        if record.at < before and not self._in_any_order:
            problem = f"at: {record.at:g} is before the {before:g} of an earlier line; records are in order of time"
            raise self._error(f"{problem} (pilotage trace sort puts them in order)")
        self._check_object(record)
        return record

    def _check_object(self, record: TraceRecord) -> None:
        try:
            name = record.name
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._error(f"put: an object has apiVersion, kind and metadata.name: {error}") from error
        if record.runs is not None and (name is None or name.kind not in _RUNNING or not record.puts):
            raise self._error("runs: only pods and workloads that are put run")
        if record.runs is not None and not 0 <= record.runs < math.inf:
            raise self._error(f"runs: {record.runs:g} is no number of seconds")
        if name is None or (name.api_version, name.kind) in self._known_kinds:
            return
        if not self._known(name.api_version, name.kind):
            what = f'unknown kind "{name.kind}" of {name.api_version}'
            way_out = "give the plugin that watches it with --plugin, or leave it out (pilotage trace cut --without)"
            raise self._error(f"{what}: {way_out}")
        self._known_kinds.add((name.api_version, name.kind))


class _CutOff(Exception):
    """The file ends before its end."""


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Complete lines; ValueError if one is too long, _CutOff if the last one is not complete."""
    rest = b""
    for chunk in chunks:
        *complete, rest = (rest + chunk).split(b"\n")
        yield from complete
        if len(rest) > MAX_LINE:
            raise ValueError(f"the line is longer than {MAX_LINE // 2**20} MiB: no Kubernetes object is that large")
    if rest and not _is_json(rest):
        raise _CutOff("its last line has no end")
    if rest:
        yield rest


def _plain(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _unpacked(file: IO[bytes]) -> Iterator[bytes]:
    """What the members of a gzip file say, as far as they go; _CutOff if the last one has no end."""
    unpacker = zlib.decompressobj(_GZIP)
    data = b""
    while data or (data := file.read(_PACKED)):
        if unpacker.eof:
            unpacker = zlib.decompressobj(_GZIP)
        yield unpacker.decompress(data, _CHUNK)
        data = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
    yield unpacker.flush()
    if not unpacker.eof:
        raise _CutOff("its compressed data has no end")


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


class Writer:
    """Writes a trace; equal records give equal bytes. Use it in a `with` statement, or call `close`.

    TraceError whenever the file cannot be written, such as on a full disk.
    """

    def __init__(self, path: Path | str, header: TraceHeader) -> None:
        self._path = Path(path)
        self._before = 0.0
        self._line = 1
        self._encoder = msgspec.json.Encoder()
        with self._explained():
            self._raw: IO[bytes] = self._path.open("wb")
        # Neither time nor name in the header of the compressed file: they would differ between equal traces.
        is_packed = self._path.suffix == ".gz"
        packed = gzip.GzipFile("", "wb", _COMPRESSION, self._raw, mtime=0) if is_packed else None
        self._packed: gzip.GzipFile | IO[bytes] = packed or self._raw
        self._pending = bytearray()
        self._write(self._encoder.encode(header))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def put(self, at: float, obj: Mapping[str, Any] | msgspec.Raw, runs: float | None = None) -> None:
        """Create or change an object; a pod that ends by itself `runs` so many seconds."""
        raw = obj if isinstance(obj, msgspec.Raw) else msgspec.Raw(self._encoder.encode(obj))
        self.write(TraceRecord(at, put=raw, runs=runs))

    def delete(self, at: float, name: ObjectName) -> None:
        self.write(TraceRecord(at, delete=name))

    def gap(self, at: float, seconds: float, reason: str = "") -> None:
        """Nobody watched for so long, until now."""
        self.write(TraceRecord(at, gap=Gap(seconds, reason)))

    def write(self, record: TraceRecord) -> None:
        """TraceError if the record is earlier than the one before."""
        self._line += 1
        if record.at < self._before:
            raise TraceError(self._path, self._line, f"at: {record.at:g} comes after {self._before:g}")
        self._before = record.at
        self._write(self._encoder.encode(record))

    @property
    def size(self) -> int:
        """Bytes in the file so far."""
        return self._raw.tell()

    def flush(self) -> None:
        """Everything that was written so far can be read, should the program die now."""
        self._pass_on()
        with self._explained():
            self._packed.flush()
            self._raw.flush()

    def close(self) -> None:
        if self._raw.closed:
            return
        try:
            self._pass_on()
            with self._explained():
                if self._packed is not self._raw:
                    self._packed.close()
                self._raw.flush()
        finally:
            with suppress(OSError):
                self._raw.close()

    def _write(self, line: bytes) -> None:
        self._pending += line
        self._pending += b"\n"
        if len(self._pending) > _CHUNK:
            self._pass_on()

    def _pass_on(self) -> None:
        pending, self._pending = self._pending, bytearray()
        with self._explained():
            self._packed.write(pending)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            way_out = "; make room and try again" if error.errno == errno.ENOSPC else ""
            raise TraceError(self._path, 0, f"cannot be written: {error.strerror or error}{way_out}") from error
