"""How much CPU a sandbox takes in which nothing happens.

    .venv/bin/python benchmarks/idle_sandbox.py [--nodes 50000] [--seconds 60]

Starts `pilotage sandbox`, waits until it has come to rest, and then looks at the CPU time of its process. The goal:
less than 2 % of a core.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GOAL = 0.02
_IS_AT_REST = 0.1
"""Of a core, over a second."""
_PATIENCE_SECONDS = 300


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        command = [Path(sys.executable).with_name("pilotage"), "sandbox", "--nodes", str(options.nodes)]
        command += ["--kubeconfig", str(Path(directory, "kubeconfig"))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sandbox:
            try:
                assert sandbox.stdout is not None
                while (line := sandbox.stdout.readline()) and "nodes" not in line:
                    pass
                begin = time.monotonic()
                while share_of_a_core(sandbox.pid, 1.0) > _IS_AT_REST:
                    if time.monotonic() > begin + _PATIENCE_SECONDS:
                        print(f"{options.nodes:,} nodes: not at rest after {_PATIENCE_SECONDS} s")
                        return 1
                share = share_of_a_core(sandbox.pid, options.seconds)
            finally:
                sandbox.terminate()
    print(f"{options.nodes:,} nodes, idle for {options.seconds:g} s: {share:.2%} of a core (goal: {GOAL:.0%})")
    return int(share >= GOAL)


def share_of_a_core(pid: int, seconds: float) -> float:
    before = cpu_seconds(pid)
    time.sleep(seconds)
    return (cpu_seconds(pid) - before) / seconds


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
