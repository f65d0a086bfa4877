"""Several traces side by side in one.

Each trace is read twice: first for the names of its namespaces and of what is in no namespace, then for its records,
which are merged by time as they are read. A name that an earlier trace has for something else gets a prefix, in the
object and in all that name it. What two traces have in common to the last field (a priority class, say) is put once.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from pilotage.lab.trace.content import OBSERVED_BOUND_AT
from pilotage.lab.trace.finishing import open_trace
from pilotage.lab.trace.format import ObjectName, TraceHeader, TraceRecord
from pilotage.lab.trace.renaming import rename, renamed_object

_OF_NODES: Final = frozenset({"Node", "CSINode", "ResourceSlice", "CSIStorageCapacity"})
_NAMED_BY_ALL: Final = "CSIDriver"
"""Its name is the program's: the same one in every cluster."""
_OF_THE_INSTANCE: Final = ("uid", "creationTimestamp")
Alignment = Literal["start", "clock"]


class _Own(msgspec.Struct):
    """What a trace has names for beyond its namespaces: (kind, name) -> what its first record says."""

    namespaces: set[str] = set()
    cluster_scoped: dict[tuple[str, str], bytes] = {}


class Merge:
    """Merges the traces at `paths`; TraceError if one of them cannot be read."""

    def __init__(
        self, paths: Sequence[Path], alignment: Alignment, *, shares_nodes: bool = False, allow_cut: bool = False
    ) -> None:
        """`alignment`: all begin at second 0, or each at its time of day. `shares_nodes`: those of the first trace
        are the nodes of all, and nodes of others are left out."""
        self._paths = paths
        self._shares_nodes = shares_nodes
        self._allow_cut = allow_cut
        headers = [open_trace(path, allow_cut=allow_cut)[0] for path in paths]
        first = min(headers, key=lambda header: header.start_time) if alignment == "clock" else headers[0]
        self.header = TraceHeader(pilotage_trace=first.pilotage_trace, start=first.start, source="merge")
        later = [header.start_time - first.start_time for header in headers]
        self._delays = later if alignment == "clock" else [0.0] * len(paths)
        self.renamed = 0
        """Names that clashed."""

    def records(self) -> Iterator[TraceRecord]:
        clashes = self._clashes()
        self.renamed = sum(map(len, clashes))
        streams = [self._stream(number, names) for number, names in enumerate(clashes)]
        put: dict[ObjectName, bytes] = {}
        for record in heapq.merge(*streams, key=lambda record: record.at):
            name = record.name
            if name is not None and not name.namespace and name.kind != "Pod":
                digest = _digest(record) if record.puts else b""
                if put.get(name) == digest:
                    continue
                put[name] = digest
            yield record

    def _clashes(self) -> list[set[tuple[str, str]]]:
        """By trace, what needs another name."""
        taken: dict[tuple[str, str], bytes] = {}
        namespaces: set[str] = set()
        found = []
        for number, path in enumerate(self._paths):
            own = self._own_names(path)
            clashing = {("Namespace", name) for name in own.namespaces & namespaces}
            for key, digest in own.cluster_scoped.items():
                is_node = key[0] in _OF_NODES
                if is_node and self._shares_nodes and number:
                    continue
                if key[0] != _NAMED_BY_ALL and key in taken and (is_node or taken[key] != digest):
                    clashing.add(("Node", key[1]) if key[0] == "CSINode" else key)
            found.append(clashing)
            taken |= own.cluster_scoped
            namespaces |= own.namespaces
        return found

    def _own_names(self, path: Path) -> _Own:
        own = _Own()
        for record in open_trace(path, allow_cut=self._allow_cut)[1]:
            name = record.name
            if name is None:
                continue
            if name.namespace:
                own.namespaces.add(name.namespace)
            elif record.puts and name.kind != "Namespace":
                own.cluster_scoped.setdefault((name.kind, name.name), _digest(record))
        return own

    def _stream(self, number: int, clashes: set[tuple[str, str]]) -> Iterator[TraceRecord]:
        names = _Prefixed(f"t{number + 1}-", clashes)
        delay = self._delays[number]
        for record in open_trace(self._paths[number], allow_cut=self._allow_cut)[1]:
            name = record.name
            if number and self._shares_nodes and name is not None and name.kind in _OF_NODES:
                continue
            yield _moved(_renamed(record, names) if clashes else record, delay)


class _Prefixed:
    def __init__(self, prefix: str, clashes: set[tuple[str, str]]) -> None:
        self._prefix = prefix
        self._clashes = clashes

    def name(self, kind: str, name: str) -> str:
        kind = "Node" if kind == "CSINode" else kind
        return f"{self._prefix}{name}" if (kind, name) in self._clashes else name

    def key(self, key: str) -> str:
        return key

    def value(self, key: str, value: str) -> str:
        return value

    def other(self, what: str, text: str) -> str:
        return text


def _renamed(record: TraceRecord, names: _Prefixed) -> TraceRecord:
    if record.delete is not None:
        return replace(record, delete=renamed_object(record.delete, names))
    if record.gap is not None:
        return record
    obj: dict[str, Any] = rename(record.put_object(), names)
    return replace(record, put=msgspec.Raw(msgspec.json.encode(obj)))


def _moved(record: TraceRecord, delay: float) -> TraceRecord:
    if not delay:
        return record
    moved = replace(record, at=round(record.at + delay, 6))
    if OBSERVED_BOUND_AT.encode() not in bytes(record.put):
        return moved
    obj = record.put_object()
    annotations = obj["metadata"].get("annotations") or {}
    if OBSERVED_BOUND_AT in annotations:
        annotations[OBSERVED_BOUND_AT] = f"{float(annotations[OBSERVED_BOUND_AT]) + delay:.3f}"
    return replace(moved, put=msgspec.Raw(msgspec.json.encode(obj)))


def _digest(record: TraceRecord) -> bytes:
    """Equal for equal objects, whenever and wherever each was made."""
    obj = record.put_object()
    obj["metadata"] = {key: value for key, value in obj["metadata"].items() if key not in _OF_THE_INSTANCE}
    return blake2b(msgspec.json.encode(obj, order="sorted"), digest_size=8).digest()
