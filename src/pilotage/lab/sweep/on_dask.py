"""Runs on a Dask cluster: the extra `pilotage[dask]`. Nothing else imports Dask.

The workers see the files of the spec and the directory of the results under the same paths. A worker that dies costs
what it was computing: Dask gives that to another one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pilotage.lab.sweep.processes import OnDone
from pilotage.lab.sweep.run import is_done, perform
from pilotage.lab.sweep.spec import Run

_TIMEOUT: Final = "10s"


class DaskError(Exception):
    """There is no Dask, or no cluster at the address."""


def perform_on_dask(runs: Iterable[Run], directory: Path, address: str, on_done: OnDone) -> None:
    """All runs, as many at a time as there are workers; DaskError if it cannot begin."""
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise DaskError(f"--dask needs Dask, which is not installed ({error}): pip install 'pilotage[dask]'") from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=_TIMEOUT, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError) as error:
        raise DaskError(f"no Dask scheduler answers at {address}: {error}") from error
    with client, client.as_current():
        by_key = {f"pilotage-{run.digest}": run for run in runs}
        where = str(directory.absolute())
        futures = [client.submit(_work, run, where, key=key, pure=True) for key, run in by_key.items()]
        for future in as_completed(futures):  # type: ignore[no-untyped-call]
            run = by_key[future.key]
            problem = future.result() if future.status == "finished" else f"Dask: {future.exception()}"
            if problem is None and not is_done(directory, run.digest):
                problem = f"the worker wrote its result where it cannot be seen from here: share {where} with it"
            on_done(run, problem)
            future.release()


def _work(run: Run, directory: str) -> str | None:
    """In a worker."""
    from distributed import get_worker

    if get_worker().state.nthreads > 1:
        return "the worker has several threads, and a simulation needs a process: dask worker --nthreads 1"
    logging.getLogger("pilotage").setLevel(logging.ERROR)
    return perform(run, Path(directory))
