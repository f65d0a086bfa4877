"""One run of a sweep, in whatever process: its result is a directory that is there as a whole, or not at all.

DIR/results/DIGEST/     a result, as `pilotage simulate` leaves it
DIR/results/.DIGEST.*   one that is being made, or was interrupted
DIR/failed/DIGEST       why a run failed; it is tried again when the sweep goes on
"""

from __future__ import annotations

import math
import os
import shutil
import socket
from pathlib import Path

from pilotage.assembly import SchedulerOptions, options_from_configuration
from pilotage.config.load import parse_configuration
from pilotage.config.problems import ConfigError
from pilotage.framework.errors import ProfileError
from pilotage.framework.plugin_files import installed_plugins, load_plugin_files
from pilotage.lab.replay import ReplaySettings
from pilotage.lab.results import TOTALS, Result, ResultError
from pilotage.lab.simulation import TraceInput, simulate
from pilotage.lab.sweep.spec import Run
from pilotage.lab.trace.format import TraceError
from pilotage.model.durations import parse_duration
from pilotage.sandbox.manifests import ManifestError, read_manifests


def result_path(directory: Path, digest: str) -> Path:
    return directory / "results" / digest


def is_done(directory: Path, digest: str) -> bool:
    return (result_path(directory, digest) / TOTALS).exists()


def failure_path(directory: Path, digest: str) -> Path:
    return directory / "failed" / digest


def options_of(run: Run) -> SchedulerOptions:
    """The scheduler; ConfigError if its files cannot be used."""
    configuration = parse_configuration(run.config, run.label)
    return options_from_configuration(
        configuration, load_plugin_files(map(Path, run.plugins)), installed=installed_plugins()
    )


def perform(run: Run, directory: Path) -> str | None:
    """Make the result if there is none; returns why it could not be made, which is also noted there."""
    if is_done(directory, run.digest):
        return None
    target, note = result_path(directory, run.digest), failure_path(directory, run.digest)
    partial = target.with_name(f".{run.digest}.{socket.gethostname()}.{os.getpid()}")
    try:
        _simulate(run, partial)
        _move(partial, target)
    except (ConfigError, ManifestError, ProfileError, ResultError, TraceError, OSError) as error:
        problem = " ".join(str(error).split())
    except Exception as error:
        # Whatever a plugin does, the other runs go on.
        problem = f"{type(error).__name__}: {' '.join(str(error).split())}"
    else:
        note.unlink(missing_ok=True)
        return None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(f"{problem}\n", encoding="utf-8")
    return problem


def _simulate(run: Run, partial: Path) -> Result:
    nodes = [one.obj for one in read_manifests([Path(run.nodes)])] if run.nodes else None
    settings = ReplaySettings(
        seed=run.seed,
        until=parse_duration(run.until) if run.until else math.inf,
        every=parse_duration(run.every),
        ties=run.ties,
        resumes_evicted=run.evicted == "resume",
    )
    given = TraceInput(Path(run.trace_path), nodes)
    result = simulate(given, options_of(run), settings, partial, facts={"run": run.digest})
    if result.totals["trace"]["sha256"] != run.trace_sha256:
        raise ResultError(f"{run.trace_path}: is another file than when the sweep began; start it again")
    return result


def _move(partial: Path, target: Path) -> None:
    """Another process may have been faster; its result is the same."""
    try:
        partial.replace(target)
    except OSError:
        if not (target / TOTALS).exists():
            raise
