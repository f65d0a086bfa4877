"""Spread or pack? Two ways to place pods, played on the same days, with the pictures and a page.

    python examples/research/comparison/spread_or_pack.py out

Makes a trace of one day (1,200 pods of five kinds on 20 nodes; from a seed, so that it is the same for everybody),
plays it with two configurations and five seeds each, prints what differs and leaves in the folder `out`:

    report.html        everything side by side
    *.svg              the pictures of one run, one by one
    waits.csv          the waiting time of each pod in each run, to be read by any program
"""

from __future__ import annotations

import argparse
import csv
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pilotage.api import CycleState, NodeView, Plugin, Pod, Score
from pilotage.lab.trace.format import TraceHeader, Writer
from pilotage.library import Prices, Result, compare, figures, report, simulate

KINDS = [(500, 1, 900.0), (1000, 2, 1800.0), (2000, 4, 3600.0), (4000, 8, 5400.0), (8000, 8, 7200.0)]
"""Thousandths of a core, GiB, and seconds that a pod of the kind runs on average."""
SHOWN = ["placed", "wait p50", "wait p99", "stranded_cpu mean", "nodes_used mean", "cost of nodes used"]


class Pack(Plugin, Score):
    """Prefers nodes that are full: large pods find empty nodes later on."""

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return min(100, node.requested("cpu") * 100 // max(1, node.allocatable("cpu")))


def write_trace(path: Path, pods: int, seed: int = 1) -> None:
    """A day: most pods come around noon."""
    rng = random.Random(seed)
    arrivals = sorted(min(86_399.0, max(1.0, rng.gauss(43_200, 14_400))) for _ in range(pods))
    with Writer(path, TraceHeader(pilotage_trace=1, start="2026-11-16T00:00:00Z", source="one day")) as trace:
        for number in range(20):
            trace.put(0, node_manifest(f"node-{number:02}"))
        for number, at in enumerate(arrivals):
            milli, gibi, mean = rng.choices(KINDS, weights=[8, 5, 3, 2, 1])[0]
            trace.put(at, pod_manifest(number, milli, gibi), runs=rng.expovariate(1 / mean))


def node_manifest(name: str) -> dict[str, object]:
    labels = {"node.kubernetes.io/instance-type": "general-8", "kubernetes.io/hostname": name}
    allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": allocatable}}


def pod_manifest(number: int, milli: int, gibi: int) -> dict[str, object]:
    requests = {"cpu": f"{milli}m", "memory": f"{gibi}Gi"}
    container = {"name": "main", "image": "app", "resources": {"requests": requests}}
    metadata = {"name": f"pod-{number:04}", "namespace": f"team-{number % 3}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def write_configuration(path: Path) -> None:
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- schedulerName: default-scheduler\n"
        "  plugins: {multiPoint: {enabled: [{name: Pack, weight: 100}]}}\n"
    )


def write_waits(path: Path, runs: dict[str, list[Result]]) -> None:
    """Columns are NumPy arrays: pandas.DataFrame(result.pods) and pyarrow.table(result.pods) take them as they are."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["run", "seed", "pod", "waited"])
        for name, results in runs.items():
            for result in results:
                waited = result.pods["bound"] - result.pods["arrived"]
                for row in np.flatnonzero(~np.isnan(waited)).tolist():
                    rows.writerow([name, result.totals["seed"], result.pods["pod"][row], f"{waited[row]:.3f}"])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Compare spreading with packing.")
    parser.add_argument("out", type=Path, help="the folder to write to")
    parser.add_argument("--pods", type=int, default=1200)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    trace, packing = given.out / "day.jsonl.gz", given.out / "packing.yaml"
    write_trace(trace, given.pods)
    write_configuration(packing)
    seeds = range(given.seeds)
    runs = {
        "spread": [simulate(trace, given.out / f"spread-{seed}", seed=seed, ties="random") for seed in seeds],
        "pack": [
            simulate(trace, given.out / f"pack-{seed}", config=packing, plugins=[Pack], seed=seed, ties="random")
            for seed in seeds
        ],
    }
    found = compare(runs, Prices(per_hour={"general-8": 0.4}, currency="USD"))
    for measure in SHOWN:
        spread, pack = found.row(measure).cells
        assert spread is not None and pack is not None
        chance = "" if pack.p is None else f"   p = {pack.p:.3f}"
        print(f"{measure:20} spread {spread.mean:10.4g}   pack {pack.mean:10.4g}{chance}")
    (given.out / "report.html").write_text(report(found, title="Spread or pack?"), encoding="utf-8")
    for name, picture in figures(runs["pack"][0]).items():
        (given.out / f"{name}.svg").write_text(picture, encoding="utf-8")
    write_waits(given.out / "waits.csv", runs)


if __name__ == "__main__":
    main()
