"""Reproduce the table of a paper: Weng et al., "Beware of Fragmentation", USENIX ATC 2023.

    python examples/research/fragmentation/reproduce.py DATA --lists all --jobs 2  # 23 lists, six policies, ten seeds
    python examples/research/fragmentation/reproduce.py DATA --lists published     # those whose results are known
    python examples/research/fragmentation/reproduce.py DATA                       # `default`
    python examples/research/fragmentation/reproduce.py DATA --lists gpushare40,cpu050 --policies FGD --seeds 3 --jobs 2

DATA is a directory with the tables that `openb.py` names; the environment variable OPENB_DATA may name it too. Each run
is one list, one policy and one seed on an empty cluster: pods come one after the other and are placed or not, for good.
Results are kept (`--out`), so that what was run once is not run again.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

HERE = Path(__file__).parent
sys.path.append(str(HERE))

import openb  # noqa: E402
from fgd import Typical  # noqa: E402
from gpu_books import WHOLE, GpuBooks  # noqa: E402

from pilotage.cluster.state import Cluster  # noqa: E402
from pilotage.library import Result, ResultError, simulate  # noqa: E402

FILES = {
    "Random": "random_node.py",
    "DotProd": "dot_prod.py",
    "BestFit": "best_fit.py",
    "GpuPacking": "gpu_packing.py",
    "GpuClustering": "gpu_clustering.py",
    "FGD": "fgd.py",
}
FIRST_SEED = 42
SEEDS = 10
NEAR = 0.3
POINTS = (80, 90, 95, 100, 110, 120, 130)


class Run(NamedTuple):
    """One line of one experiment."""

    data: Path
    out: Path
    name: str
    policy: str
    seed: int

    @property
    def directory(self) -> Path:
        return self.out / f"{self.name}-{self.policy}-{self.seed}"


class Fragmentation:
    """Asked after every pod: GPUs allocated, and the fragmentation of the cluster, in thousandths of a GPU."""

    def __init__(self, typical: Typical) -> None:
        self._typical = typical
        self._of_node = np.zeros(0)

    def __call__(self, cluster: Cluster) -> dict[str, float]:
        books, nodes = cluster.index(GpuBooks), cluster.nodes
        rows = np.arange(len(books.count))
        if len(self._of_node) != len(rows):
            self._of_node = np.zeros(len(rows))
            self._of_node[:] = self._measure(books, nodes, rows)
        # A pod without GPUs changes what is free as well: nodes whose CPU changed are measured again, too.
        changed = self._changed(books, nodes)
        if len(changed):
            self._of_node[changed] = self._measure(books, nodes, changed)
        books.changed.clear()
        total = float(books.count.sum() * WHOLE)
        return {"allocated": total - float(books.left.sum()), "fragments": float(self._of_node.sum())}

    def _changed(self, books: GpuBooks, nodes: Any) -> Any:
        mark, self._mark = getattr(self, "_mark", nodes.mark), nodes.mark
        touched = {books.row_of[nodes.names[row]] for row in nodes.changed_since(mark) or ()}
        return np.array(sorted(touched | books.changed), dtype=np.int64)

    def _measure(self, books: GpuBooks, nodes: Any, rows: Any) -> Any:
        free = np.zeros(len(books.count), dtype=np.int64)
        free[books.rows(nodes, nodes)] = nodes.free("cpu")
        return self._typical.fragments(books.left[rows], free[rows], books.model[rows], books.models)


def perform(run: Run) -> Result:
    """Run it, unless that was done before."""
    try:
        known = Result(run.directory)
        if known.totals["complete"]:
            return known
    except ResultError:
        pass
    rng = random.Random(f"{run.name} {run.seed}")
    pods, cluster = openb.workload(run.data, run.name), openb.nodes(run.data)
    total = WHOLE * sum(int(node["status"]["allocatable"][openb.GPUS]) for node in cluster)
    typical = openb.typical(pods)
    with tempfile.TemporaryDirectory() as folder:
        trace, config = Path(folder) / "openb.jsonl", Path(folder) / "scheduler.yaml"
        arrivals = openb.arrivals(pods, total, rng)
        openb.write_trace(trace, cluster, arrivals)
        config.write_text(configuration(run.policy, typical))
        result = simulate(
            trace,
            run.directory,
            config=config,
            seed=run.seed,
            every=openb.STEP,
            until=len(arrivals) * openb.STEP,
            ties="random" if run.policy == "Random" else "first",
            probe=Fragmentation(Typical(typical)),
        )
    return checked(result)


def checked(result: Result) -> Result:
    """SystemExit if a plugin failed: whoever was rejected for that says nothing of the policy."""
    failed = [reason for reason in result.rejections["reason"].tolist() if reason.startswith("running ")]
    if failed:
        raise SystemExit(f"{result.directory}: {failed[0]}")
    return result


def configuration(policy: str, typical: dict[str, float]) -> str:
    args: list[openb.Json] = [{"name": policy, "args": {"typicalPods": typical}}] if policy == "FGD" else []
    text = (HERE / "scheduler.yaml").read_text()
    text = text.replace("FILE", str(HERE / FILES[policy])).replace("{name: POLICY}", f"{{name: {policy}}}")
    return text.replace("ARGS", msgspec.json.encode(args).decode())


def curves(run: Run, result: Result) -> dict[int, tuple[float, float, float]]:
    """By percent of the GPUs that were asked for: not allocated, fragments of all, fragments of what is idle."""
    wanted = openb.arrivals_of(run.data, run.name, random.Random(f"{run.name} {run.seed}"))
    total = wanted.total
    arrived = 100 * np.cumsum(wanted.gpu) / total
    allocated = result.series["allocated"][1 : len(arrived) + 1]
    fragments = result.series["fragments"][1 : len(arrived) + 1]
    idle = np.maximum(total - allocated, 1)
    columns = 100 * (total - allocated) / total, 100 * fragments / total, 100 * fragments / idle
    at = np.rint(arrived)
    found = {}
    for percent in np.unique(at).astype(int).tolist():
        rows = at == percent
        found[percent] = tuple(float(column[rows].mean()) for column in columns)
    return found


def mean_curves(runs: list[tuple[Run, Result]]) -> dict[tuple[str, str, int], tuple[float, ...]]:
    gathered: dict[tuple[str, str, int], list[tuple[float, ...]]] = {}
    for run, result in runs:
        for percent, values in curves(run, result).items():
            gathered.setdefault((run.name, run.policy, percent), []).append(values)
    return {key: tuple(np.mean(values, axis=0).tolist()) for key, values in gathered.items()}


def report(
    ours: dict[tuple[str, str, int], tuple[float, ...]], theirs: openb.Published, seeds: dict[tuple[str, str], int]
) -> Iterator[str]:
    """Means over the seeds, beside those of the paper."""
    titles = ("GPUs not allocated", "fragments, of all GPUs", "fragments, of idle GPUs")
    points = {0: POINTS, 1: (20, 40, 60, 80, 90, 100), 2: (20, 40, 60, 80, 90, 100)}
    for which, title in enumerate(titles):
        yield f"{title}, percent: ours, published, difference"
        for name, policy in dict.fromkeys(key[:2] for key in ours):
            cells = []
            for percent in points[which]:
                mine = ours.get((name, policy, percent), (np.nan,) * 3)[which]
                known = theirs.get((name, policy, percent), (np.nan,) * 3)[which]
                cell = (
                    f"{mine:6.2f} {known:6.2f} {mine - known:+5.2f}" if known == known else f"{mine:6.2f} {'':6} {'':5}"
                )
                cells.append(f"{percent:3}%: {cell}")
            yield f"  {name:11} {policy:13} {'  '.join(cells)}"
    known = {key: ours[key][0] - theirs[key][0] for key in ours if key in theirs and key[2] == 100}
    if known:
        near, worst = sum(abs(found) <= NEAR for found in known.values()), max(known, key=lambda key: abs(known[key]))
        yield (
            f"at 100 %, unallocated: {near} of {len(known)} published cells within {NEAR} points, "
            f"worst {known[worst]:+.2f} ({worst[0]}, {worst[1]})"
        )
    fewer = [f"{name} {policy} ({count})" for (name, policy), count in seeds.items() if count < SEEDS]
    if fewer:
        yield f"not ten seeds: {', '.join(fewer)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=os.environ.get("OPENB_DATA"))
    parser.add_argument("--lists", default="default", help="all, published, or names with commas between them")
    parser.add_argument("--policies", default=",".join(FILES))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--known", action="store_true", help="run nothing, report what is there")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("fragmentation.results"))
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the data is: DATA, or OPENB_DATA in the environment")
    unknown = [policy for policy in given.policies.split(",") if policy not in FILES]
    if unknown:
        parser.error(f"unknown policies {', '.join(unknown)}; there are {', '.join(FILES)}")
    runs = [
        Run(Path(given.data), given.out, name, policy, FIRST_SEED + number)
        for name in lists(Path(given.data), given.lists)
        for policy in given.policies.split(",")
        for number in range(given.seeds)
    ]
    if given.known:
        runs = [run for run in runs if (run.directory / "totals.json").exists()]
    results = []
    with ProcessPoolExecutor(given.jobs) as processes:
        for done, result in enumerate(processes.map(perform, runs), 1):
            results.append((runs[done - 1], result))
            print(f"\r{done} of {len(runs)} runs", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    seeds = dict(Counter((run.name, run.policy) for run in runs))
    print("\n".join(report(mean_curves(results), openb.published(Path(given.data)), seeds)))


def lists(data: Path, wanted: str) -> list[str]:
    """The names of the lists."""
    if wanted == "published":
        return list(dict.fromkeys(name for name, _, _ in openb.published(data)))
    if wanted == "all":
        return list(dict.fromkeys(row["trace"] for row in openb.table(data / "workloads.csv.gz")))
    return wanted.split(",")


if __name__ == "__main__":
    main()
