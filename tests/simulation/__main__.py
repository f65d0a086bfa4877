"""Run seeds: `python -m tests.simulation --seed 17 --log`, `python -m tests.simulation --seeds 0-1999 --jobs 2`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.simulation import simulate, summary


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one")
    parser.add_argument("--log", action="store_true", help="print everything that happened")
    parser.add_argument("--seeds", default="0-99", help="run all of these (default: 0-99)")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        return _one(arguments.seed, is_logged=arguments.log)
    first, _, last = arguments.seeds.partition("-")
    return _many(range(int(first), int(last or first) + 1), arguments.jobs)


def _one(seed: int, *, is_logged: bool) -> int:
    outcome = simulate(seed)
    if is_logged:
        print(outcome.history.text())
    if outcome.violations:
        print(outcome.report(), file=sys.stderr)
        return 1
    figures = ", ".join(f"{count} {what}" for what, count in sorted(outcome.figures.items()))
    print(f"seed {seed}: nothing violated; {figures}; log {outcome.history.digest()}")
    return 0


def _many(seeds: range, jobs: int) -> int:
    bad = 0
    sums: Counter[str] = Counter()
    with ProcessPoolExecutor(jobs) as pool:
        for done, (seed, report, figures) in enumerate(pool.map(summary, seeds), start=1):
            sums.update({what: count for what, count in figures.items() if not what.startswith("most")})
            if report:
                bad += 1
                print(report, flush=True)
            if done % 20 == 0 or done == len(seeds):
                print(f"{done} of {len(seeds)} seeds (up to {seed}), {bad} with violations; {dict(sums)}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
