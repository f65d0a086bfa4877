"""`pilotage`: finds the command, runs it, turns what went wrong into a line and an exit code.

Commands are imported when they are called, so that `pilotage --help` does not wait for NumPy, and a command does not
pay for what only another one needs.
"""

from __future__ import annotations

import gc
import importlib
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import Final, NamedTuple

import click

from pilotage import __version__
from pilotage.cli.errors import ExitCode, exit_code_of
from pilotage.cli.logs import set_up_logging
from pilotage.cli.options import common_options
from pilotage.escaping import visible_text


class _CommandEntry(NamedTuple):
    """Where a command is, and the line that the overview shows of it."""

    module: str
    name: str
    summary: str


# A cluster's state lives long and has no cycles; the few that there are, of tasks and errors, can wait. With Python's
# own thresholds a busy scheduler spends up to a tenth of its time on looking for them.
_COLLECTOR: Final = (10_000, 20, 20)

_COMMANDS: Final = {
    "demo": _CommandEntry("pilotage.cli.demo", "demo", "Watch pods being placed in an embedded cluster."),
    "sandbox": _CommandEntry(
        "pilotage.cli.sandbox", "sandbox", "Run an embedded cluster for kubectl and other clients."
    ),
    "run": _CommandEntry("pilotage.cli.run", "run", "Schedule the pods of any cluster."),
    "explain": _CommandEntry("pilotage.cli.explain", "explain", "Say why a pod is where it is, and what would help."),
    "queue": _CommandEntry("pilotage.cli.queue", "queue", "Show which pods wait in the scheduler, and for what."),
    "console": _CommandEntry("pilotage.cli.console", "console", "Look at a cluster and its scheduler in a browser."),
    "top": _CommandEntry("pilotage.cli.top", "top", "Watch queues, reasons and nodes of a cluster in the terminal."),
    "queues": _CommandEntry("pilotage.cli.queues", "queues", "Show the quota of cluster queues, and who uses it."),
    "jobs": _CommandEntry("pilotage.cli.jobs", "jobs", "Show queued workloads, their order, and what they wait for."),
    "bench": _CommandEntry("pilotage.cli.bench", "bench", "Measure pods per second, latency, CPU and memory."),
    "config": _CommandEntry("pilotage.cli.config", "config", "Check configuration files, or print the default one."),
    "plugin": _CommandEntry("pilotage.cli.plugin", "plugin", "List plugins, start a new one, check a plugin file."),
    "scenario": _CommandEntry("pilotage.cli.scenario", "scenario", "Play scenarios in virtual time, and compare."),
    "record": _CommandEntry("pilotage.cli.record", "record", "Record what happens in a cluster into a trace."),
    "trace": _CommandEntry("pilotage.cli.trace", "trace", "Show, cut, scale, merge, make and import traces."),
    "simulate": _CommandEntry("pilotage.cli.simulate", "simulate", "Replay a trace of a cluster in virtual time."),
    "sweep": _CommandEntry("pilotage.cli.sweep", "sweep", "Simulate many configurations, seeds and traces."),
    "plan": _CommandEntry("pilotage.cli.plan", "plan", "Say what fits, how many nodes are needed, which can go."),
    "capture": _CommandEntry("pilotage.cli.capture", "capture", "Keep one decision, with the cluster around it."),
    "compare": _CommandEntry(
        "pilotage.cli.compare", "compare_results", "Compare simulations: waiting, use, cost, fairness."
    ),
    "conformance": _CommandEntry("pilotage.cli.conformance", "conformance", "Compare decisions with kube-scheduler's."),
}

_HELP: Final = """A Kubernetes scheduler that can be programmed in Python, asked why, and replayed.

It brings a cluster of its own: an embedded API server with simulated nodes that unmodified kubectl works with. Nothing
needs to be installed or running to try it.

\b
First steps:
  pilotage demo                    see pods being placed, and why one is not
  pilotage sandbox --nodes 10      a cluster for kubectl until Ctrl-C
  pilotage run --kubeconfig FILE   schedule the pods of an existing cluster
"""
_EPILOG: Final = (
    "Every command explains itself with -h. Exit codes: 0 done, 1 failed, 2 wrong input, 3 cannot reach or serve."
)


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = _COMMANDS.get(cmd_name)
        if entry is not None:
            return _imported(entry)
        if cmd_name.startswith("-"):
            return None
        from difflib import get_close_matches

        close = get_close_matches(cmd_name, _COMMANDS, 1)
        hint = f'did you mean "{close[0]}"?' if close else f"there are: {', '.join(_COMMANDS)}"
        raise click.UsageError(f'no command "{cmd_name}" ({hint})', ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview from the table: importing every command for its first line would take a second."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in _COMMANDS.items()])


def _imported(entry: _CommandEntry) -> click.Command:
    """The command. What its modules consist of stays until the end: the collector, off until here if this is the
    first command of the process, never has to look through it."""
    command = getattr(importlib.import_module(entry.module), entry.name)
    assert isinstance(command, click.Command)
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
    return command


@click.group(
    cls=_LazyGroup,
    help=_HELP,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="pilotage", message="%(prog)s %(version)s")
@common_options
@click.pass_context
def cli(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main() -> None:
    """The entry point of the installed command."""
    sys.excepthook = _show_uncaught
    gc.set_threshold(*_COLLECTOR)
    gc.disable()
    sys.exit(call(sys.argv[1:]))


def kubectl_plugin() -> None:
    """The entry point of `kubectl pilotage`, which kubectl finds as kubectl-pilotage."""
    sys.excepthook = _show_uncaught
    sys.exit(call(sys.argv[1:], "kubectl pilotage"))


def _show_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Python's traceback; what an object says in the message of the error is not obeyed."""
    click.echo(visible_text("".join(traceback.format_exception(error))), nl=False, err=True)


def call(arguments: Sequence[str], program: str = "pilotage") -> int:
    """Run a command line; returns the exit code. `program` is what help texts call it."""
    set_up_logging()

    def work() -> int:
        outcome = cli.main(list(arguments), prog_name=program, standalone_mode=False)
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else ExitCode.OK

    return exit_code_of(work)
