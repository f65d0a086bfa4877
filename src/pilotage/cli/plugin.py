"""`pilotage plugin`: which plugins run where, a file to start from, and is a file all right, and what does it cost?"""

from __future__ import annotations

import keyword
import re
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Final

import click

from pilotage.assembly import (
    SchedulerOptions,
    build_profiles,
    catalog_for,
    options_from_configuration,
    watched_kinds,
)
from pilotage.cli.columns import columns
from pilotage.cli.errors import bad_input
from pilotage.cli.options import common_options
from pilotage.cli.output import show, show_json
from pilotage.cli.plugin_bench import plugin_bench
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags
from pilotage.clock import SystemClock
from pilotage.cluster.state import Cluster
from pilotage.config.problems import ConfigError
from pilotage.cycle.handle import FrameworkHandle
from pilotage.framework.errors import ProfileError
from pilotage.framework.extension_points import SERVED_BY, serves
from pilotage.framework.plugin_files import LoadedPlugin, installed_plugins
from pilotage.framework.profile_spec import ProfileRecipe, recipes_of
from pilotage.plugins import DEFAULT_PLUGINS
from pilotage.rng import seeded
from pilotage.testing.plugin_check import DEFAULT_WORLDS, PluginCheckFailed, check_plugin

_EPILOG = """\b
Examples:
  pilotage plugin new SunnyNodes
  pilotage plugin check sunny_nodes.py
  pilotage plugin bench sunny_nodes.py
  pilotage plugin list --plugin sunny_nodes.py --config scheduler.yaml
"""
_HEADINGS: Final = ("PROFILE", "POINT", "ORDER", "PLUGIN", "WEIGHT", "ORIGIN", "SHA256")
_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_BUILT_IN: Final = ("built-in", "")
_SHOWN_DIGITS: Final = 12


@click.group(epilog=_EPILOG)
@common_options
def plugin() -> None:
    """List plugins, start a new one, check a plugin file, measure what it costs."""


plugin.add_command(plugin_bench)


@plugin.command("list")
@scheduler_flags
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@common_options
def list_plugins(flags: SchedulerFlags, output: str) -> None:
    """Show which plugins run at which extension point.

    In the order in which they are called, with the weights of their scores, where they come from, and the hash of
    the file. Plugins that are known but run nowhere are listed at the end.
    """
    try:
        rows = _rows(flags)
    except ConfigError as error:
        raise bad_input(error.lines) from error
    if output == "json":
        names = [heading.lower() for heading in _HEADINGS]
        show_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        show(columns(_HEADINGS, [(*row[:-1], row[-1][:_SHOWN_DIGITS] or "-") for row in rows]))


@plugin.command()
@click.argument("name")
@click.option(
    "--directory", type=click.Path(path_type=Path), default=Path(), metavar="D", help="Where to write.  [default: here]"
)
@common_options
def new(name: str, directory: Path) -> None:
    """Write a plugin that works, with comments, and a test of it.

    NAME is the plugin's name in configurations, in CamelCase. The file is called after it: SunnyNodes is in
    sunny_nodes.py.
    """
    if not _NAME.fullmatch(name):
        raise bad_input(f'"{name}" cannot be the name of a plugin: write it in CamelCase, such as {_camel_case(name)}')
    if name in {cls.plugin_name() for cls, _ in DEFAULT_PLUGINS}:
        raise bad_input(f'a plugin named "{name}" already exists (built-in); choose another name')
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    words = {"name": name, "module": f"{module}_plugin" if keyword.iskeyword(module) else module}
    words["file"] = f"{words['module']}.py"
    _write({directory / words["file"]: "plugin.txt", directory / f"test_{words['file']}": "test.txt"}, words)
    path = directory / words["file"]
    show(f"wrote {path} and {path.parent / ('test_' + path.name)}")
    show(f"next: pilotage plugin check {path}", err=True)


@plugin.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--config", type=click.Path(path_type=Path), metavar="F", help="A configuration with the arguments.")
@click.option(
    "--worlds",
    type=click.IntRange(min=0),
    default=DEFAULT_WORLDS,
    show_default=True,
    metavar="N",
    help="Random clusters to try it on; 0 only loads it.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the random clusters.")
@common_options
def check(file: Path, config: Path | None, worlds: int, seed: int) -> None:
    """Load a plugin file as the scheduler would, try it on random clusters, and say what is wrong with it.

    Syntax, imports, missing methods, parameters, arguments, the constructor; then what the framework relies on: scores
    from 0 to 100, inputs left alone, equal answers to equal questions, honest signatures, hints that wake its pods.
    Exits with 2 if there are problems.
    """
    flags = SchedulerFlags(config, (file,))
    try:
        configuration = flags.configuration()
        loaded = flags.loaded(configuration)
        options = options_from_configuration(configuration, loaded, installed=installed_plugins())
        clock = SystemClock()
        build_profiles(options, FrameworkHandle(Cluster(kinds=watched_kinds(options)), clock, seeded(0)))
    except ConfigError as error:
        raise bad_input(error.lines) from error
    except ProfileError as error:
        raise bad_input(f"{file}: {error}") from error
    for found in loaded:
        _try_out(found, options, worlds, seed)
        show(f"{found.origin}: {found.name} is all right: {_served(found)}")


def _try_out(found: LoadedPlugin, options: SchedulerOptions, worlds: int, seed: int) -> None:
    """With its arguments in the first profile that has it."""
    choices = [choice for recipe in options.profiles.values() for choice in recipe.plugins]
    args = next((choice.args for choice in choices if choice.name == found.name), None)
    try:
        check_plugin(found.cls, args=args, worlds=worlds, seed=seed)
    except PluginCheckFailed as error:
        show(str(error), err=True)
        names = ", ".join(finding.check for finding in error.findings)
        raise bad_input(f"{found.origin}: {found.name} does not meet requirements: {names}") from error


def _rows(flags: SchedulerFlags) -> list[tuple[str, ...]]:
    configuration = flags.configuration()
    loaded, installed = flags.loaded(configuration), installed_plugins()
    catalog = catalog_for(configuration, loaded, flags.gates(configuration), installed)
    origins = {plugin.name: (plugin.origin, plugin.sha256) for plugin in (*installed, *loaded)}
    rows: list[tuple[str, ...]] = []
    for profile, recipe in recipes_of(configuration, catalog).items():
        rows += [(profile, *row, *origins.get(row[2], _BUILT_IN)) for row in _point_rows(recipe)]
        serving = {row[3] for row in rows if row[0] == profile}
        rows += [
            (profile, "-", "-", name, "-", *origins.get(name, _BUILT_IN))
            for name in catalog.registry
            if name not in serving
        ]
    return rows


def _point_rows(recipe: ProfileRecipe) -> list[tuple[str, str, str, str]]:
    weights = {choice.name: str(choice.weight) for choice in recipe.plugins}
    return [
        (point, str(at), name, weights[name] if point == "score" else "-")
        for point, names in (recipe.points or {}).items()
        for at, name in enumerate(names, 1)
    ]


def _served(found: LoadedPlugin) -> str:
    served = [point for point in SERVED_BY if serves(found.cls, point)]
    watched = f", and watches {', '.join(kind.name for kind in found.cls.watches)}" if found.cls.watches else ""
    return f"it serves {', '.join(served)}{watched}"


def _write(targets: dict[Path, str], words: dict[str, str]) -> None:
    for path in targets:
        if path.exists():
            raise bad_input(f"{path} already exists; choose another name or --directory, or delete it")
    for path, template in targets.items():
        text = (files("pilotage.cli") / "plugin_templates" / template).read_text(encoding="utf-8")
        try:
            path.write_text(Template(text).substitute(words), encoding="utf-8")
        except OSError as error:
            raise bad_input(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from error


def _camel_case(text: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", text)
    joined = "".join(word[:1].upper() + word[1:] for word in words).lstrip("0123456789")
    return joined[:1].upper() + joined[1:] or "SunnyNodes"
