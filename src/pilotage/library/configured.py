"""What a configuration file asks for, with plugins that a program brings along."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pilotage.api.plugin import Plugin
from pilotage.assembly import SchedulerOptions, options_from_configuration
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.config.load import default_configuration, load_configuration
from pilotage.framework.plugin_files import installed_plugins, load_plugin_files, named_files


def configured(
    config: Path | str | None, plugins: Sequence[type[Plugin]]
) -> tuple[SchedulerConfiguration, SchedulerOptions]:
    """The configuration, and the scheduler that it asks for with the plugins of its `pluginFiles` and the given ones.

    ConfigError or PluginFileError with every problem, its line and the way out.
    """
    configuration = default_configuration() if config is None else load_configuration(config)
    folder = Path() if config is None else Path(config).parent
    files = load_plugin_files(named_files(configuration.additions.plugin_files, folder))
    return configuration, options_from_configuration(configuration, [*files, *plugins], installed=installed_plugins())
