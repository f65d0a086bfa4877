"""Everything that is wrong with a trace, line by line: what no reader takes, and what makes no sense."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from pilotage.lab.trace.finishing import LivingPods, pod_seen
from pilotage.lab.trace.format import ObjectName, TraceError, TraceRecord, any_kind, is_built_in, read_on
from pilotage.model.errors import DecodeError
from pilotage.model.kinds import kind_of

Severity = Literal["error", "warning"]
_LARGE_JUMP: Final = 30 * 86_400.0


class TraceProblem(msgspec.Struct, frozen=True):
    """An error keeps a program from reading the line; a warning is what hardly anybody means."""

    line: int
    severity: Severity
    text: str


def problems(path: Path) -> Iterator[TraceProblem]:
    """What is wrong with the lines of a trace, in their order; TraceError if it is no trace."""
    checking = _Checking()
    for line, found in read_on(path, known=any_kind):
        if isinstance(found, TraceError):
            yield TraceProblem(line, "error", found.problem)
        else:
            for severity, text in checking.check(found):
                yield TraceProblem(line, severity, text)


_Found = Iterator[tuple[Severity, str]]


class _Checking:
    def __init__(self) -> None:
        self._there: set[ObjectName] = set()
        self._nodes: set[str] = set()
        self._living = LivingPods()
        self._ended: set[ObjectName] = set()
        self._unknown_kinds: set[tuple[str, str]] = set()
        self._before = 0.0

    def check(self, record: TraceRecord) -> _Found:
        if record.at - self._before > _LARGE_JUMP and self._before > 0:
            days = (record.at - self._before) / 86_400
            yield "warning", f"at: {record.at:g} is {days:,.0f} days after the line before"
        self._before = record.at
        name = record.name
        if record.gap is not None:
            if not 0 <= record.gap.seconds <= record.at:
                yield "warning", f"gap: seconds: {record.gap.seconds:g} is not between 0 and the time of the record"
        elif name is not None:
            yield from self._check_kind(name)
            yield from self._check_put(name, record) if record.puts else self._check_delete(name)

    def _check_kind(self, name: ObjectName) -> _Found:
        key = (name.api_version, name.kind)
        if not is_built_in(*key) and key not in self._unknown_kinds:
            self._unknown_kinds.add(key)
            way_out = "simulate needs a plugin that watches it, or `pilotage trace cut --without`"
            yield "warning", f'kind "{name.kind}" of {name.api_version} is not known: {way_out}'

    def _check_put(self, name: ObjectName, record: TraceRecord) -> _Found:
        info = kind_of(name.kind)
        if info is not None and info.group == name.api_version.rpartition("/")[0]:
            try:
                info.decode(bytes(record.put))
            except DecodeError as error:
                yield "error", f"put: {error}"
                return
            if info.namespaced is not bool(name.namespace):
                word = "needs a" if info.namespaced else "has no"
                yield "error", f"put: {name.kind} {name.name}: {word} metadata.namespace"
        if name.kind == "Node":
            self._nodes.add(name.name)
        if name.kind == "Pod":
            yield from self._check_pod(name, record)
        else:
            self._there.add(name)

    def _check_pod(self, name: ObjectName, record: TraceRecord) -> _Found:
        node = pod_seen(record).spec.node_name
        if node and node not in self._nodes:
            yield "warning", f"put: Pod {name.namespace}/{name.name}: its node {node} is not there"
        if self._living.has_come(name, record) and record.runs is not None:
            self._there.discard(name)
        else:
            self._there.add(name)

    def _check_delete(self, name: ObjectName) -> _Found:
        life = self._living.delete(name) if name.kind == "Pod" else None
        if name.kind == "Node":
            self._nodes.discard(name.name)
        if name in self._there:
            self._there.discard(name)
        elif life is None and name.kind != "Pod":
            shown = f"{name.namespace}/{name.name}" if name.namespace else name.name
            yield "warning", f"delete: {name.kind} {shown} is not there"
