"""`pilotage scenario`: play scenario files in virtual time and say what is not as they expect."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from pathlib import Path

import click

from pilotage.cli.errors import ExitCode, bad_input
from pilotage.cli.logs import is_verbose
from pilotage.cli.options import common_options
from pilotage.cli.output import show
from pilotage.escaping import visible, visible_lines
from pilotage.framework.plugin_files import PluginFileError, load_plugin_files, named_files
from pilotage.simulate.scenario_file import ScenarioError
from pilotage.simulate.scenario_run import (
    AnyScenario,
    ScenarioOutcome,
    load_any,
    reject_unplayable,
    run_scenario,
    with_plugins,
)

_EPILOG = """\b
Examples:
  pilotage scenario requeue.yaml
  pilotage scenario scenarios/*.yaml -k uncordon
  pilotage scenario queues.yaml -k borrow
  pilotage scenario sunny.yaml --plugin sunny_nodes.py
"""


@click.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "-k", "wanted", multiple=True, metavar="ID", help="Only scenarios with this in their id; may be repeated."
)
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="F",
    help="A Python file with plugins, for every scenario of scheduling; may be repeated.",
)
@common_options
def scenario(files: tuple[Path, ...], wanted: tuple[str, ...], plugins: tuple[Path, ...]) -> None:
    """Play scenarios: a cluster, what happens to it, and what is expected of the scheduler.

    The real scheduler, or workload queueing, runs on an API server in memory and in virtual time, so that minutes pass
    in milliseconds. Shows for every scenario whether it passed, and if not the first difference. Exits with 1 if one
    failed, with 2 if a file cannot be used.
    """
    chosen = _chosen(files, wanted, plugins)
    if not is_verbose():
        # What goes wrong in a scenario is meant to: only its outcome is of interest.
        logging.disable(logging.CRITICAL)
    outcomes = [_played(item) for item in chosen]
    show(_summary(outcomes))
    if not all(outcome.passed for outcome in outcomes):
        sys.exit(ExitCode.FAILED)


def _chosen(files: tuple[Path, ...], wanted: tuple[str, ...], plugins: tuple[Path, ...]) -> list[AnyScenario]:
    """Everything is read and checked before anything runs."""
    try:
        loaded = load_plugin_files(named_files((), Path(), plugins))
        known = [with_plugins(item, loaded) for path in files for item in load_any(path)]
        chosen = [item for item in known if not wanted or any(part in item.id for part in wanted)]
        for item in chosen:
            reject_unplayable(item)
    except PluginFileError as error:
        raise bad_input(error.lines) from error
    except ScenarioError as error:
        raise bad_input(str(error)) from error
    if not chosen:
        raise bad_input(f"none of {len(known)} scenarios has {' or '.join(wanted) or 'an id'} in its id")
    return chosen


def _played(item: AnyScenario) -> ScenarioOutcome:
    outcome = run_scenario(item)
    show(f"{'pass' if outcome.passed else 'FAIL'}  {visible(item.id)}")
    if not outcome.passed:
        show(visible_lines([f"      {item.title}", f"      {outcome.difference}"]))
    return outcome


def _summary(outcomes: list[ScenarioOutcome]) -> str:
    played = Counter(outcome.scenario.tier for outcome in outcomes)
    passed = Counter(outcome.scenario.tier for outcome in outcomes if outcome.passed)
    tiers = ", ".join(f"{tier} {passed[tier]}/{count}" for tier, count in played.items() if tier)
    return f"{passed.total()} of {played.total()} passed" + (f" ({tiers})" if tiers else "")
