"""The workloads of the experiment as traces, and what was published about them.

Data: https://github.com/hkust-adsl/kubernetes-scheduler-simulator (Apache-2.0), as tables: `nodes.csv.gz` (name,
cpu_milli, memory_mib, gpu, model), `workloads.csv.gz` (trace, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec,
count) and `published.csv.gz` (trace, policy, seed, arrived_pct, unallocated_pct, frag_of_total_pct, frag_of_idle_pct).
"""

from __future__ import annotations

import csv
import gzip
import random
from collections import Counter, defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from gpu_books import GPUS, GROUP, MODEL

from pilotage.lab.trace.format import TraceHeader, Writer

STEP = 1 / 1024
"""Seconds between two arrivals: a number that adds up without error."""
TUNE = 1.3
COVERED = 0.95

Json = dict[str, Any]


class Request(NamedTuple):
    """What a pod asks for."""

    cpu: int
    memory: int
    count: int
    milli: int
    models: str

    @property
    def gpu(self) -> int:
        return self.count * self.milli


def table(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def nodes(data: Path) -> list[Json]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": row["name"], "labels": {MODEL: row["model"]}},
            "status": {
                "allocatable": {
                    "cpu": f"{row['cpu_milli']}m",
                    "memory": f"{row['memory_mib']}Mi",
                    "pods": "1000",
                    GPUS: row["gpu"],
                }
            },
        }
        for row in table(data / "nodes.csv.gz")
    ]


def workload(data: Path, name: str) -> list[Request]:
    """All pods of a list."""
    found: list[Request] = []
    for row in table(data / "workloads.csv.gz"):
        if row["trace"] == name:
            amounts = (int(row[column]) for column in ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli"))
            found += [Request(*amounts, row["gpu_spec"])] * int(row["count"])
    if not found:
        raise SystemExit(f"{data}: there is no list {name!r}")
    return found


def typical(pods: list[Request]) -> dict[str, float]:
    """The most frequent requests, until they cover nearly all pods, as FGD wants them."""
    counts = Counter((pod.cpu, pod.count, pod.milli, pod.models) for pod in pods)
    chosen, covered = [], 0
    for shape, count in counts.most_common():
        if covered >= COVERED * len(pods):
            break
        chosen.append((shape, count))
        covered += count
    return {" ".join(map(str, shape)).strip(): count / covered for shape, count in chosen}


def arrivals(pods: list[Request], total_gpu: int, rng: random.Random) -> list[Request]:
    """All pods in random order, and some of them again (or fewer) so that they want 130 % of the GPUs."""
    order, most = list(pods), TUNE * total_gpu
    rng.shuffle(order)
    wanted = sum(pod.gpu for pod in order)
    while wanted > most:
        wanted -= order.pop().gpu
    if wanted + max(pod.milli for pod in pods) <= most:
        while True:
            drawn = rng.choice(pods)
            if wanted + drawn.milli > most:
                break
            order.append(drawn)
            wanted += drawn.gpu
    return order


class Arrivals(NamedTuple):
    """What one run was asked for."""

    gpu: list[int]
    """Of each pod, in the order in which they came."""
    total: int
    """What the cluster has."""


def arrivals_of(data: Path, name: str, rng: random.Random) -> Arrivals:
    total = 1000 * sum(int(row["gpu"]) for row in table(data / "nodes.csv.gz"))
    return Arrivals([pod.gpu for pod in arrivals(workload(data, name), total, rng)], total)


def write_trace(path: Path, cluster: list[Json], pods: list[Request]) -> None:
    with Writer(path, TraceHeader(pilotage_trace=1, start="2023-07-01T00:00:00Z", source="openb")) as trace:
        for node in cluster:
            trace.put(0, node)
        for number, pod in enumerate(pods, 1):
            trace.put(number * STEP, _pod(number, pod))


def _pod(number: int, pod: Request) -> Json:
    said = {f"{GROUP}/gpu-count": str(pod.count), f"{GROUP}/gpu-milli": str(pod.milli)}
    if pod.models:
        said[f"{GROUP}/gpu-card-model"] = pod.models
    requests = {"cpu": f"{pod.cpu}m", "memory": f"{pod.memory}Mi"}
    container = {"name": "main", "image": "any", "resources": {"requests": requests}}
    metadata = {"name": f"pod-{number:05}", "namespace": "default", "annotations": said if pod.count else {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


Published = dict[tuple[str, str, int], tuple[float, float, float]]
"""Means over seeds (unallocated, fragments of all GPUs, fragments of idle ones) by list, policy and arrived percent."""


def published(data: Path) -> Published:
    columns = ("unallocated_pct", "frag_of_total_pct", "frag_of_idle_pct")
    values: defaultdict[tuple[str, str, int], list[tuple[float, ...]]] = defaultdict(list)
    for row in table(data / "published.csv.gz"):
        key = (row["trace"], row["policy"], int(float(row["arrived_pct"])))
        values[key].append(tuple(float(row[column] or "nan") for column in columns))
    return {key: tuple(map(fmean, zip(*rows, strict=True))) for key, rows in values.items()}  # type: ignore[misc]
