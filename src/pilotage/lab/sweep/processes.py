"""Runs in processes of this machine, each in one of its own: what one does to its memory ends with it."""

from __future__ import annotations

import logging
import multiprocessing
import shutil
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Final

from pilotage.lab.sweep.run import failure_path, is_done, perform, result_path
from pilotage.lab.sweep.spec import Run

OnDone = Callable[[Run, str | None], None]
"""Called for every run that has ended, with why it failed if it did."""
_ATTEMPTS: Final = 2
"""A process that was killed is started once more."""


def perform_in_processes(runs: Iterable[Run], directory: Path, jobs: int, on_done: OnDone) -> None:
    """All runs, at most `jobs` at a time. Whatever ends it early, no process is left behind."""
    context = multiprocessing.get_context("forkserver")
    # Imported once: a process is then there in some milliseconds.
    context.set_forkserver_preload(["pilotage.lab.sweep.processes"])
    waiting = deque((run, 1) for run in runs)
    going: dict[int, tuple[ForkServerProcess, Run, int]] = {}
    try:
        while waiting or going:
            while waiting and len(going) < jobs:
                run, attempt = waiting.popleft()
                process = context.Process(target=_work, args=(run, directory), daemon=True)
                process.start()
                going[process.sentinel] = process, run, attempt
            for sentinel in wait(list(going)):
                process, run, attempt = going.pop(sentinel)  # type: ignore[arg-type]
                process.join()
                if (process.exitcode or 0) < 0 and attempt < _ATTEMPTS:
                    waiting.append((run, attempt + 1))
                else:
                    on_done(run, _problem(process.exitcode, run, directory))
    finally:
        for process, _, _ in going.values():
            process.kill()
        for process, run, _ in going.values():
            process.join()
            _clean(run, directory)


def _work(run: Run, directory: Path) -> None:
    """In the process. Ctrl-C is for its parent, who ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.getLogger("pilotage").setLevel(logging.ERROR)
    sys.exit(0 if perform(run, directory) is None else 1)


def _problem(exit_code: int | None, run: Run, directory: Path) -> str | None:
    if is_done(directory, run.digest):
        return None
    _clean(run, directory)
    note = failure_path(directory, run.digest)
    if exit_code == 1 and note.exists():
        return note.read_text(encoding="utf-8").strip()
    how = f"by {signal.Signals(-exit_code).name}" if exit_code is not None and exit_code < 0 else f"with {exit_code}"
    return f"its process ended {how}, {_ATTEMPTS} times; was there too little memory? --jobs takes less of it"


def _clean(run: Run, directory: Path) -> None:
    """What a killed process has left."""
    for partial in result_path(directory, run.digest).parent.glob(f".{run.digest}.*"):
        shutil.rmtree(partial, ignore_errors=True)
