"""The laboratory for notebooks and programs: replay a trace, and read results as columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pilotage.api.plugin import Plugin
from pilotage.lab.comparison import Comparison, Group
from pilotage.lab.comparison import compare as compare_groups
from pilotage.lab.figures import figures as figures_of
from pilotage.lab.prices import Prices
from pilotage.lab.replay import Probe, ReplaySettings
from pilotage.lab.report import report as report_of
from pilotage.lab.results import Result
from pilotage.lab.simulation import TraceInput
from pilotage.lab.simulation import simulate as replay
from pilotage.library.configured import configured
from pilotage.pictures import standalone


def simulate(
    trace: Path | str,
    directory: Path | str,
    *,
    config: Path | str | None = None,
    plugins: Sequence[type[Plugin]] = (),
    nodes: Sequence[Mapping[str, Any]] | None = None,
    seed: int = 0,
    until: float = math.inf,
    every: float = 60.0,
    ties: str = "scheduler",
    probe: Probe | None = None,
) -> Result:
    """Replay a trace in virtual time and leave the result in a directory: what `pilotage simulate` does.

    `ties` says which of equally good nodes is taken: as the "scheduler" does it, a "random" one, or the "first" in an
    order of all nodes that is drawn once. `probe` takes the place of the measures of the series: it is asked with the
    scheduler's cluster every so many seconds. ConfigError, ProfileError, TraceError or ResultError say what is wrong.
    """
    _, options = configured(config, plugins)
    settings = ReplaySettings(seed=seed, until=until, every=every, ties=ties)
    given = TraceInput(Path(trace), None if nodes is None else [dict(node) for node in nodes])
    return replay(given, options, settings, Path(directory), probe=probe)


def compare(runs: Mapping[str, Sequence[Result]], prices: Prices | None = None) -> Comparison:
    """Compare runs by name: each name has the results of a configuration, one per seed; the first is compared with.

    compare({"today": [...], "packing": [...]}).row("wait p99").cells[1].p says how often chance alone makes such a
    difference. ValueError if a name has no results.
    """
    empty = [name for name, results in runs.items() if not results]
    if empty or not runs:
        raise ValueError(f"nothing to compare: no results of {', '.join(empty) or 'any run'}")
    return compare_groups([Group(name, list(results)) for name, results in runs.items()], prices)


def figures(result: Result) -> dict[str, str]:
    """The pictures of a run as SVG documents, by name: utilisation, queues, waiting and so on."""
    return {name: standalone(figure.picture) for name, figure in figures_of(result).items()}


def report(comparison: Comparison, *, title: str = "") -> str:
    """The page that `pilotage compare --report` writes."""
    return report_of(comparison, title=title)
