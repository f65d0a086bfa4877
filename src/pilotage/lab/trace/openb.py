"""The CSV form of Alibaba's GPU cluster traces ("openb"): files of nodes, and files of pods.

Pods ask for CPU and memory in the ordinary way, and for GPUs, which may be parts of one, in annotations; nodes say in a
label which model they have, and in extended resources, which no pod asks for, how many and how much. A plugin has to do
the rest, as in the experiments that these traces were made for.

| annotation, label or resource | where | means |
|---|---|---|
| `openb.pilotage.dev/gpu-count` | annotation of a pod; resource of a node | devices |
| `openb.pilotage.dev/gpu-milli` | annotation of a pod; resource of a node | thousandths of each device; of all |
| `openb.pilotage.dev/gpu-card-model` | annotation of a pod (allowed ones, joined by a bar); label of a node | model |
| `openb.pilotage.dev/qos` | label of a pod | its class of service in the original |
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from pilotage.lab.trace.external_sort import in_order
from pilotage.lab.trace.format import VERSION, TraceHeader, TraceRecord
from pilotage.lab.trace.pod_facts import GPU_COUNT, GPU_MILLI, GPU_MODEL

QOS: Final = "openb.pilotage.dev/qos"
_START: Final = "2023-01-01T00:00:00Z"
_NODE_COLUMNS: Final = ("cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS: Final = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")
_TIMES: Final = ("creation_time", "deletion_time")
_Row = Mapping[str, str]


class ImportProblem(Exception):
    """A file that cannot be imported: which line, what is wrong, and the way out."""


def openb_header() -> TraceHeader:
    return TraceHeader(pilotage_trace=VERSION, start=_START, source="openb")


def openb_records(files: Iterable[Path], workload: str = "") -> Iterator[TraceRecord]:
    """The records of node files, pod files, and workload files (of which `workload` is the list to take)."""
    return in_order(chain.from_iterable(_file_records(path, workload) for path in files))


def _file_records(path: Path, workload: str) -> Iterator[TraceRecord]:
    with _opened(path) as file:
        rows = csv.DictReader(file)
        try:
            columns = set(rows.fieldnames or ())
            if columns.issuperset(_NODE_COLUMNS) and "num_gpu" not in columns:
                yield from (_node(path, line, row) for line, row in _whole_rows(path, rows))
            elif columns.issuperset((*_POD_COLUMNS, *_TIMES)):
                yield from (_pod(path, line, row) for line, row in _whole_rows(path, rows))
            elif columns.issuperset((*_POD_COLUMNS, "trace", "count")):
                yield from _workload(path, rows, workload)
            else:
                raise ImportProblem(
                    f"{path}:1: is no openb file: nodes have {', '.join(_NODE_COLUMNS)}; pods have "
                    f"{', '.join((*_POD_COLUMNS, *_TIMES))}; workloads have trace and count"
                )
        except (UnicodeDecodeError, csv.Error) as error:
            raise ImportProblem(f"{path}:{rows.line_num + 1}: is no CSV text: {error}") from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ImportProblem(f"{path}:{rows.line_num + 1}: the compressed file is broken: {error}") from error


def _opened(path: Path) -> IO[str]:
    try:
        return io.TextIOWrapper(gzip.open(path) if path.suffix == ".gz" else path.open("rb"), newline="")
    except OSError as error:
        raise ImportProblem(f"{path}: cannot be read: {error.strerror or error}") from error


def _whole_rows(path: Path, rows: Iterable[dict[str, str]]) -> Iterator[tuple[int, _Row]]:
    for line, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise ImportProblem(f"{path}:{line}: has more or fewer cells than there are columns")
        yield line, row


def _node(path: Path, line: int, row: _Row) -> TraceRecord:
    numbers = _Numbers(path, line, row)
    name, gpus = _name(path, line, row), numbers.whole("gpu")
    labels = {"kubernetes.io/hostname": name}
    amounts = {"cpu": f"{numbers.whole('cpu_milli')}m", "memory": f"{numbers.whole('memory_mib')}Mi", "pods": "1000"}
    if gpus:
        labels[GPU_MODEL] = row["model"]
        amounts |= {GPU_COUNT: str(gpus), GPU_MILLI: str(gpus * 1000)}
    status = {"capacity": amounts, "allocatable": amounts}
    return _put(
        0.0, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}
    )


def _pod(path: Path, line: int, row: _Row) -> TraceRecord:
    numbers = _Numbers(path, line, row)
    created, deleted = numbers.whole("creation_time"), numbers.whole("deletion_time")
    bound = numbers.whole("scheduled_time") if row.get("scheduled_time") else created
    if deleted < created:
        raise ImportProblem(f"{path}:{line}: deletion_time: {deleted} is before creation_time {created}")
    pod = _pod_object(_name(path, line, row), row, numbers)
    return TraceRecord(float(created), put=_raw(pod), runs=float(max(deleted - bound, 0)))


def _workload(path: Path, rows: Iterable[dict[str, str]], wanted: str) -> Iterator[TraceRecord]:
    """Counts of equal requests, one list of several: a pod each second, that runs until it is deleted."""
    names: set[str] = set()
    second = 0
    for line, row in _whole_rows(path, rows):
        names.add(row["trace"])
        if row["trace"] != wanted:
            continue
        numbers = _Numbers(path, line, row)
        for _ in range(numbers.whole("count")):
            yield TraceRecord(float(second), put=_raw(_pod_object(f"pod-{second:06}", row, numbers)))
            second += 1
    if not second:
        given = f'"{wanted}" is not among them' if wanted else "say which one with --workload"
        raise ImportProblem(f"{path}: has the lists {', '.join(sorted(names))}: {given}")


def _pod_object(name: str, row: _Row, numbers: _Numbers) -> dict[str, Any]:
    requests = {"cpu": f"{numbers.whole('cpu_milli')}m", "memory": f"{numbers.whole('memory_mib')}Mi"}
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": name}
    if gpus := numbers.whole("num_gpu"):
        metadata["annotations"] = {GPU_COUNT: str(gpus), GPU_MILLI: str(numbers.whole("gpu_milli"))}
        if row["gpu_spec"]:
            metadata["annotations"][GPU_MODEL] = row["gpu_spec"]
    if row.get("qos"):
        metadata["labels"] = {QOS: row["qos"]}
    container = {"name": "main", "image": "main", "resources": {"requests": requests}}
    spec = {"schedulerName": "default-scheduler", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


class _Numbers:
    """The numbers of a row."""

    def __init__(self, path: Path, line: int, row: _Row) -> None:
        self._path = path
        self._line = line
        self._row = row

    def whole(self, column: str) -> int:
        """0 for an empty cell."""
        text = self._row.get(column) or "0"
        try:
            number = int(float(text))
        except (ValueError, OverflowError):
            number = -1
        if not 0 <= number < 2**53:
            raise ImportProblem(f'{self._path}:{self._line}: {column}: "{text[:40]}" is no number from 0 on')
        return number


def _name(path: Path, line: int, row: _Row) -> str:
    """The original calls the column of nodes `sn`."""
    name = row.get("name") or row.get("sn")
    if not name:
        raise ImportProblem(f"{path}:{line}: name: is empty")
    return name


def _put(at: float, obj: dict[str, Any]) -> TraceRecord:
    return TraceRecord(at, put=_raw(obj))


def _raw(obj: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(obj))
