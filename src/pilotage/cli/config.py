"""`pilotage config`: look at a configuration without running it."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from pilotage.assembly import SchedulerOptions, catalog_for
from pilotage.cli.errors import bad_input
from pilotage.cli.options import common_options
from pilotage.cli.output import show
from pilotage.cli.scheduler_flags import SchedulerFlags, profile_warnings
from pilotage.config.feature_gates import FeatureGateError, FeatureGates
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.config.load import default_configuration, examine_configuration, read_text
from pilotage.config.problems import ConfigError, Problem
from pilotage.config.render import render
from pilotage.framework.plugin_files import LoadedPlugin, installed_plugins
from pilotage.framework.profile_spec import examine_profiles
from pilotage.jobs.configuration.load import is_queueing_text, parse_queueing, unserved_queueing, without_effect
from pilotage.model.durations import go_duration
from pilotage.serve.complete_configuration import with_profiles

log = logging.getLogger(__name__)

_EPILOG = """\b
Examples:
  pilotage config check scheduler.yaml
  pilotage config check kueue.yaml
  pilotage config defaults > scheduler.yaml
"""


@click.group(epilog=_EPILOG)
@common_options
def config() -> None:
    """Check configuration files, or print the default one."""


@config.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="F",
    help="A Python file with plugins.",
)
@common_options
def check(file: Path, plugins: tuple[Path, ...]) -> None:
    """Say everything that is wrong with a configuration file.

    Fields, values, plugin names, plugin arguments and feature gates are checked as `pilotage run` would, without a
    cluster; also the Configuration file of workload queueing. All problems are shown at once with their lines. Exits
    with 2 if there are any.
    """
    try:
        text = read_text(file)
        if is_queueing_text(text):
            _check_queueing(file, text)
            return
        configuration, problems = examine_configuration(text, str(file))
        loaded = SchedulerFlags(file, plugins).loaded(configuration)
        problems += _plugin_problems(configuration, loaded)
    except ConfigError as error:
        raise bad_input(error.lines) from error
    if problems:
        raise bad_input(ConfigError(str(file), problems).lines)
    names = [profile.scheduler_name for profile in configuration.scheduler.profiles]
    show(f"{file} is valid: {len(names)} profile{'s' if len(names) > 1 else ''} ({', '.join(names)})")


def _check_queueing(file: Path, text: str) -> None:
    readiness = parse_queueing(text, str(file)).wait_for_pods_ready
    if problems := unserved_queueing(text):
        raise bad_input(ConfigError(str(file), problems).lines)
    if idle := without_effect(text):
        show(f"{file}: without effect, as only Kueue's own manager has a use for them: {', '.join(idle)}")
    waits = "off" if readiness is None else f"after {go_duration(readiness.timeout)}"
    show(f"{file} is valid: workload queueing, eviction of workloads that are not ready {waits}")


@config.command()
@common_options
def defaults() -> None:
    """Print the complete default configuration.

    It is what applies without a configuration file: every field, the plugins in their order with the weights of their
    scores, and the arguments of the plugins.
    """
    show(render(with_profiles(default_configuration(), SchedulerOptions())).removesuffix("\n"))


def _plugin_problems(configuration: SchedulerConfiguration, loaded: list[LoadedPlugin]) -> list[Problem]:
    problems = []
    try:
        gates = FeatureGates(configuration.additions.feature_gates)
    except FeatureGateError as error:
        problems += [Problem(0, "featureGates", problem) for problem in error.problems]
        gates = FeatureGates()
    catalog = catalog_for(configuration, loaded, gates, installed_plugins())
    recipes, found = examine_profiles(configuration, catalog)
    for warning in (*gates.without_effect(), *profile_warnings(recipes, gates)):
        log.warning("%s", warning)
    return [*problems, *found]
