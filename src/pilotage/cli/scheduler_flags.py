"""`--config`, `--plugin`, `--feature-gates` and more: options that say which scheduler to run."""

from __future__ import annotations

import functools
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from pilotage.api.calls import ApiWriter
from pilotage.assembly import SchedulerOptions, SchedulerProcess, options_from_configuration
from pilotage.cli.errors import bad_input
from pilotage.clock import Clock
from pilotage.config.feature_gates import FeatureGateError, FeatureGates, parse_feature_gates
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.config.load import default_configuration, load_configuration
from pilotage.config.problems import ConfigError
from pilotage.extenders.http_transport import HttpExtender
from pilotage.framework.errors import ProfileError
from pilotage.framework.plugin_files import LoadedPlugin, installed_plugins, load_plugin_files, named_files
from pilotage.framework.profile_spec import ProfileRecipe
from pilotage.kube.client import KubeClient
from pilotage.kube.http_transport import Fence
from pilotage.model.durations import parse_duration
from pilotage.observe.metrics import Metrics

log = logging.getLogger(__name__)

_FILE = click.Path(path_type=Path)
_MAX_WAIT = "--pod-max-in-unschedulable-pods-duration"


class SchedulerFlags(Struct, frozen=True):
    """What was said on the command line."""

    config: Path | None = None
    plugins: tuple[Path, ...] = ()
    feature_gates: str = ""
    max_wait: str = ""
    """How long a pod that nothing wakes waits at most, as a duration."""

    def options(self) -> SchedulerOptions:
        """The scheduler that is asked for; CommandError if the files cannot be used."""
        return self.load()[1]

    def load(self) -> tuple[SchedulerConfiguration, SchedulerOptions]:
        """The configuration and the scheduler that it asks for; CommandError if the files cannot be used."""
        configuration = self.read()
        return configuration, self.options_of(configuration)

    def read(self) -> SchedulerConfiguration:
        """The configuration alone, without a look at the plugins; CommandError if it cannot be used."""
        try:
            return self.configuration()
        except ConfigError as error:
            raise bad_input(error.lines) from error

    def options_of(self, configuration: SchedulerConfiguration) -> SchedulerOptions:
        """The scheduler that a configuration asks for, with the plugins of the files; CommandError."""
        try:
            gates = self.gates(configuration)
            loaded = self.loaded(configuration)
            options = options_from_configuration(configuration, loaded, gates, installed_plugins())
            for warning in (*gates.without_effect(), *profile_warnings(options.profiles, gates)):
                log.warning("%s", warning)
            for one in options.origins:
                log.info("plugin loaded: plugin=%s origin=%s sha256=%s", one.name, one.origin, one.sha256)
            return replace(options, max_wait_seconds=self.max_wait_seconds(options.max_wait_seconds))
        except ConfigError as error:
            raise bad_input(error.lines) from error

    def max_wait_seconds(self, default: float) -> float:
        if not self.max_wait:
            return default
        try:
            seconds = parse_duration(self.max_wait)
        except ValueError as error:
            raise bad_input(f"{_MAX_WAIT}: {error}") from error
        if seconds <= 0:
            raise bad_input(f"{_MAX_WAIT}: {self.max_wait} is not longer than nothing; the default is 5m")
        return seconds

    def configuration(self) -> SchedulerConfiguration:
        return default_configuration() if self.config is None else load_configuration(self.config)

    def gates(self, configuration: SchedulerConfiguration) -> FeatureGates:
        """The gates of the file, and over them those of the command line."""
        try:
            return FeatureGates({**configuration.additions.feature_gates, **parse_feature_gates(self.feature_gates)})
        except FeatureGateError as error:
            raise bad_input([f"feature gates: {problem}" for problem in error.problems]) from error

    def loaded(self, configuration: SchedulerConfiguration) -> list[LoadedPlugin]:
        """The plugins of the files that the configuration and the command line name."""
        return load_plugin_files(self.plugin_paths(configuration))

    def plugin_paths(self, configuration: SchedulerConfiguration) -> list[Path]:
        """The files that the configuration and the command line name, each once."""
        folder = Path(".") if self.config is None else self.config.parent
        return named_files(configuration.additions.plugin_files, folder, self.plugins)

    def arguments(self) -> list[str]:
        """The same flags for another process."""
        config = [] if self.config is None else ["--config", str(self.config)]
        gates = ["--feature-gates", self.feature_gates] if self.feature_gates else []
        wait = [_MAX_WAIT, self.max_wait] if self.max_wait else []
        return [*config, *(part for path in self.plugins for part in ("--plugin", str(path))), *gates, *wait]


def scheduler_process(
    client: KubeClient,
    clock: Clock,
    rng: random.Random,
    options: SchedulerOptions,
    writer: ApiWriter | None = None,
    metrics: Metrics | None = None,
    fence: Fence | None = None,
) -> SchedulerProcess:
    """The scheduler, put together; CommandError if a plugin or the way to an extender cannot be made."""
    try:
        connect = partial(HttpExtender, fence=fence)
        return SchedulerProcess(client, clock, rng, options, writer, metrics, connect)
    except ProfileError as error:
        raise bad_input(str(error)) from error


def scheduler_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets them as one `flags`."""

    @click.option("--config", type=_FILE, metavar="F", help="A KubeSchedulerConfiguration.")
    @click.option("--plugin", "plugins", multiple=True, type=_FILE, metavar="F", help="A Python file with plugins.")
    @click.option("--feature-gates", default="", metavar="A=true,...", help="Feature gates to turn on or off.")
    @click.option(
        _MAX_WAIT,
        "max_wait",
        default="",
        metavar="D",
        help="Try pods again that nothing woke for so long.  [default: 5m]",
    )
    @functools.wraps(command)
    def with_flags(
        config: Path | None, plugins: tuple[Path, ...], feature_gates: str, max_wait: str, **others: Any
    ) -> Any:
        return command(flags=SchedulerFlags(config, plugins, feature_gates, max_wait), **others)

    return with_flags


def profile_warnings(recipes: Mapping[str, ProfileRecipe], gates: FeatureGates) -> list[str]:
    """A sentence for each profile that places groups of pods without the plugin that waits for their members."""
    return [
        f'profile "{name}": GangScheduling is disabled: gangs are still placed all or nothing, but are tried in vain '
        "until minCount of their pods are there (the feature gate GenericWorkload=false switches groups off)"
        for name, recipe in recipes.items()
        if gates["GenericWorkload"] and not any(choice.name == "GangScheduling" for choice in recipe.plugins)
    ]
