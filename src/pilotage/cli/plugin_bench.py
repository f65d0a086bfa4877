"""`pilotage plugin bench`: what does a plugin cost?"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import click
import uvloop
from msgspec.structs import replace
from rich.table import Table

from pilotage.bench.catalog import WORKLOADS
from pilotage.bench.plugin_cost import DEFAULT_TURNS, PluginCost, PluginCostBench
from pilotage.bench.stage import Stalled
from pilotage.bench.workloads import SCHEDULING_BASIC
from pilotage.cli.errors import bad_input
from pilotage.cli.options import common_options
from pilotage.cli.output import show_json
from pilotage.cli.scheduler_flags import SchedulerFlags
from pilotage.cli.terminal import PlainConsole
from pilotage.clock import SystemClock
from pilotage.framework.errors import ProfileError
from pilotage.framework.plugin_files import load_plugin_file
from pilotage.framework.profile_spec import ProfileRecipe
from pilotage.rng import seeded

_EPILOG = """\b
Examples:
  pilotage plugin bench sunny_nodes.py
  pilotage plugin bench sunny_nodes.py --workload SchedulingPodAntiAffinity --nodes 1000
"""


@click.command("bench", epilog=_EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--config", type=click.Path(path_type=Path), metavar="F", help="A configuration with the arguments.")
@click.option(
    "--workload",
    "workload_name",
    type=click.Choice([name for name, workload in WORKLOADS.items() if workload.pods_fit], case_sensitive=False),
    default=SCHEDULING_BASIC.name,
    show_default=True,
    metavar="W",
    help="What to schedule.",
)
@click.option("--nodes", type=click.IntRange(min=1), metavar="N", help="Number of nodes.")
@click.option("--init-pods", type=click.IntRange(min=0), metavar="N", help="Pods that are there before.")
@click.option("--pods", type=click.IntRange(min=1), metavar="N", help="Pods that are measured, in all.")
@click.option("--turns", type=click.IntRange(min=1), default=DEFAULT_TURNS, show_default=True, help="Turns of each.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of everything random.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@common_options
def plugin_bench(
    file: Path,
    config: Path | None,
    workload_name: str,
    nodes: int | None,
    init_pods: int | None,
    pods: int | None,
    turns: int,
    seed: int,
    output: str,
) -> None:
    """Measure what the plugins of a file add to the cost of a pod.

    One scheduler has two profiles, without and with them, which take turns on the same cluster: a machine that is busy
    with other things slows both. The ratio is the median over pairs of turns.
    """
    workload = WORKLOADS[workload_name].sized(nodes, init_pods, pods)
    options = SchedulerFlags(config, (file,)).options()
    names = {plugin.plugin_name() for plugin in load_plugin_file(file)}
    having = _profile_with(names, options.profiles, file)
    try:
        bench = PluginCostBench(workload, SystemClock(), seeded(seed), options, _without(names, having), having, turns)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
            cost = loop.run(bench.run())
    except ProfileError as error:
        raise bad_input(f"{file}: {error}") from error
    except Stalled as error:
        raise click.ClickException(str(error)) from error
    if output == "json":
        show_json(cost.as_json())
    else:
        _print_table(cost, sorted(names))


def _profile_with(names: set[str], profiles: Mapping[str, ProfileRecipe], file: Path) -> ProfileRecipe:
    """The first profile in which a plugin of the file runs."""
    for recipe in profiles.values():
        if any(choice.name in names for choice in recipe.plugins):
            return recipe
    raise bad_input(f"no profile of the configuration runs a plugin of {file}: enable {', '.join(sorted(names))}")


def _without(names: set[str], recipe: ProfileRecipe) -> ProfileRecipe:
    points = recipe.points
    if points is not None:
        points = {point: tuple(name for name in served if name not in names) for point, served in points.items()}
    return replace(
        recipe, plugins=tuple(choice for choice in recipe.plugins if choice.name not in names), points=points
    )


def _print_table(cost: PluginCost, names: list[str]) -> None:
    table = Table(title=f"{cost.workload}, {cost.nodes:,} nodes, {cost.turns_in_words()}", title_justify="left")
    table.add_column(style="bold")
    for heading in ("without", f"with {', '.join(names)}", "ratio"):
        table.add_column(heading, justify="right")
    rows = [("pods/s", "pods_per_second", ""), ("CPU per pod", "cpu_micros", " us")]
    for title, figure, unit in [*rows, ("scheduler's own CPU per pod", "own_micros", " us")]:
        found = cost.contrast(figure)
        table.add_row(title, f"{found.without:,.0f}{unit}", f"{found.having:,.0f}{unit}", f"{found.ratio:.3f}")
    PlainConsole().print(table)
