"""How much CPU a command takes before it does anything: Python itself, imports, and what is built from them.

    .venv/bin/python benchmarks/imports.py [RUNS]

Each command runs in a process of its own, several times; the median of user and system time is printed. `run` is given
an API server that does not answer and is ended as soon as it says that it waits for it: by then both of its processes
are complete and the pages are served. Compiled modules must be cached: the first run of each command is not counted.
Goal: 0.15 s for `--version`, and for `run` half of the 1.1 s of November 2026, before imports were looked at. NumPy and
`cryptography` (for the certificate of the pages) take a quarter of what is left, a hundred dataclasses a tenth.
"""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import sys

COMMANDS = (
    ("--version",),
    ("--help",),
    ("config", "--help"),
    ("explain", "--help"),
    ("queue", "--help"),
    ("sandbox", "--help"),
    ("run", "--help"),
)
WAITS = b"waiting for the API server"


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for command in COMMANDS:
        show(" ".join(command), [cpu_of(*command) for _ in range(runs + 1)])
    show("run", [cpu_of_run() for _ in range(runs + 1)])


def show(name: str, seconds: list[float]) -> None:
    counted = seconds[1:]
    print(
        f"{name:16} {statistics.median(counted):5.2f} s of CPU ({min(counted):.2f} to {max(counted):.2f})", flush=True
    )


def started(*arguments: str) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "pilotage", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)


def cpu_of(*arguments: str) -> float:
    with started(*arguments) as process:
        return ended(process)


def cpu_of_run() -> float:
    with socket.socket() as nobody, socket.socket() as pages:
        # Bound and not listening: whoever connects is refused.
        nobody.bind(("127.0.0.1", 0))
        pages.bind(("127.0.0.1", 0))
        server, port = (f"127.0.0.1:{one.getsockname()[1]}" for one in (nobody, pages))
        pages.close()
        with started("run", "--master", f"http://{server}", *serving(port)) as process:
            assert process.stderr is not None
            assert any(WAITS in line for line in process.stderr), "it ended before it was ready"
            process.send_signal(signal.SIGTERM)
            return ended(process)


def serving(address: str) -> tuple[str, ...]:
    host, _, port = address.partition(":")
    return "--bind-address", host, "--secure-port", port


def ended(process: subprocess.Popen[bytes]) -> float:
    """Seconds of the process and of the processes that it has waited for."""
    assert process.stderr is not None
    process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
