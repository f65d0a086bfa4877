"""`pilotage plan`: what still fits, how many nodes are needed, which nodes can go."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from pilotage.assembly import watched_kinds
from pilotage.cli.cluster_source import ClusterSource, cluster_options, objects_of
from pilotage.cli.columns import columns
from pilotage.cli.errors import ExitCode, bad_input
from pilotage.cli.options import common_options
from pilotage.cli.output import show, show_json
from pilotage.cli.plan_nodes import plan_nodes
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags
from pilotage.clock import Clock, SystemClock
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import ProfileEngine
from pilotage.explain.engine import thinking_engines
from pilotage.framework.errors import ProfileError
from pilotage.lab.plan.copies import FittingCopies, fit
from pilotage.lab.plan.draining import Draining, NodeDrain
from pilotage.lab.plan.workloads import Manifests
from pilotage.model import KINDS, DecodeError, Pod
from pilotage.model.suggestions import suggestion

_EPILOG: Final = """\b
Examples:
  pilotage plan fit -f cluster/ web.yaml
  pilotage plan fit --kubeconfig ~/.kube/config web.yaml
  pilotage plan drain -f cluster/
  helm template shop | pilotage plan nodes -f - --shape small.yaml --shape large.yaml --prices prices.yaml
"""
_OUTPUT = click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
_MOST_NODES_SHOWN: Final = 10
_MOST_PROBLEMS_SHOWN: Final = 2
_EVERY_SECONDS: Final = 2.0


@click.group(epilog=_EPILOG)
@common_options
def plan() -> None:
    """Say what still fits, how many nodes are needed, which nodes can go: by real placement."""


plan.add_command(plan_nodes)


@plan.command("fit")
@click.argument("pods", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="POD.yaml...")
@cluster_options
@click.option("--most", type=click.IntRange(1, 1_000_000), default=10_000, show_default=True, help="Copies to try.")
@_OUTPUT
@scheduler_flags
@common_options
def plan_fit(pods: tuple[Path, ...], source: ClusterSource, most: int, output: str, flags: SchedulerFlags) -> None:
    """Say how many more copies of a pod fit, and what stops the next one.

    POD.yaml holds a pod, or what has a template (Deployment, StatefulSet, Job, ...); - is standard input. Copies are
    placed one after the other, as the scheduler would, without preemption; each pod of the files by itself. Nothing is
    changed in the cluster.
    """
    templates = [one.pod for one in Manifests(objects_of(pods)).templates()]
    if not templates:
        raise bad_input("there is no pod in these files, and nothing that has a template of pods")
    cluster, engines = _cluster_and_engines(source, flags)
    progress = _Lines(SystemClock())
    found = [
        fit(cluster, engines, _pod(one), most, lambda n: progress.say(f"{n:,} copies placed")) for one in templates
    ]
    if output == "json":
        show_json(found, indent=2)
    else:
        show("\n\n".join(_fit_text(one) for one in found))


@plan.command("drain")
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@cluster_options
@_OUTPUT
@scheduler_flags
@common_options
def plan_drain(nodes: tuple[str, ...], source: ClusterSource, output: str, flags: SchedulerFlags) -> int:
    """Say which nodes can be drained or lost: all their pods fit elsewhere now.

    Without NODE all nodes are tried, each by itself; at the end those that can be away at the same time. Disruption
    budgets and pods without a controller are listed. Exits with 1 if a NODE that was named cannot be drained.
    """
    cluster, engines = _cluster_and_engines(source, flags)
    for name in nodes:
        if cluster.node(name) is None:
            raise bad_input(f'there is no node "{name}"{suggestion(name, cluster.nodes.names)}')
    names, progress = nodes or tuple(sorted(cluster.nodes.names)), _Lines(SystemClock())
    draining = Draining(cluster, engines)
    found = draining.departures(names, lambda done: progress.of(done, len(names)))
    together = draining.together(found)
    if output == "json":
        show_json({"nodes": found, "together": together}, indent=2)
    else:
        show(_departures_text(found, together))
    return ExitCode.FAILED if nodes and not all(one.can_drain for one in found) else ExitCode.OK


def _cluster_and_engines(source: ClusterSource, flags: SchedulerFlags) -> tuple[Cluster, Mapping[str, ProfileEngine]]:
    options = flags.options()
    try:
        cluster = source.cluster(watched_kinds(options))
        engines = thinking_engines(cluster, SystemClock(), options)
    except ProfileError as error:
        raise bad_input(str(error)) from error
    if not len(cluster.nodes):
        raise bad_input("there is no node in this cluster")
    return cluster, engines


def _pod(document: Mapping[str, Any]) -> Pod:
    metadata = document["metadata"]
    given = {"namespace": "default", "uid": f"Pod/{metadata.get('namespace', 'default')}/{metadata['name']}"}
    try:
        pod: Pod = KINDS["pods"].decode(msgspec.json.encode({**document, "metadata": {**given, **metadata}}))
    except DecodeError as error:
        raise bad_input(str(error)) from error
    return pod


def _fit_text(one: FittingCopies) -> str:
    rows = [[name, f"{count:,}"] for name, count in list(one.nodes.items())[:_MOST_NODES_SHOWN]]
    if len(one.nodes) > _MOST_NODES_SHOWN:
        rest = list(one.nodes.values())[_MOST_NODES_SHOWN:]
        rows.append([f"({len(rest):,} more nodes)", f"{sum(rest):,}"])
    more = "or more " if not one.stopped_by else ""
    lines = [f"{one.pod}: {one.copies:,} {more}more fit"]
    lines += ["", columns(["NODE", "COPIES"], rows)] if rows else []
    if one.stopped_by:
        lines += ["", f"the next one does not: {one.stopped_by}"]
    if one.report is not None:
        lines += [f"  would fit if {advice.change}" for advice in one.report.would_fit_if]
    return "\n".join(lines)


def _departures_text(found: list[NodeDrain], together: list[str]) -> str:
    rows = [
        [
            one.node,
            str(one.pods),
            ("in steps" if one.in_steps else "yes") if one.can_drain else "no",
            "yes" if one.can_be_lost else "no",
            _problems_text(one.problems),
        ]
        for one in found
    ]
    table = columns(["NODE", "PODS", "DRAIN", "LOSE", "WHY NOT"], rows)
    if not together:
        return f"{table}\n\nnone can be drained"
    return f"{table}\n\ncan be drained, and be away at the same time: {', '.join(together)}"


def _problems_text(problems: tuple[str, ...]) -> str:
    more = f" (and {len(problems) - _MOST_PROBLEMS_SHOWN} more)" if len(problems) > _MOST_PROBLEMS_SHOWN else ""
    return "; ".join(problems[:_MOST_PROBLEMS_SHOWN]) + more


class _Lines:
    """Now and then a line about how far it is."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = self._last = clock.monotonic()

    def say(self, text: str) -> None:
        now = self._clock.monotonic()
        if now - self._last >= _EVERY_SECONDS:
            self._last = now
            show(text, err=True)

    def of(self, done: int, total: int) -> None:
        elapsed = self._clock.monotonic() - self._began
        self.say(f"{done:,}/{total:,} nodes  {elapsed / done * (total - done):.0f} s left")
