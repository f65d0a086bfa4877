"""`--workload-queueing` and `--queueing-config`: whether workloads are queued, and as which configuration says."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pilotage.cli.errors import bad_input
from pilotage.config.problems import ConfigError

if TYPE_CHECKING:
    from pilotage.jobs.configuration.kinds import QueueingConfiguration

_FILE = click.Path(path_type=Path)


def queueing_flags(*, is_on: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options to a command, which gets `queueing`: a configuration, or None if workloads are not queued."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--workload-queueing/--no-workload-queueing",
            default=is_on,
            help=f"Queue workloads: Jobs and pods that name a queue.  [default: {'on' if is_on else 'off'}]",
        )
        @click.option("--queueing-config", type=_FILE, metavar="F", help="Kueue's Configuration for it.")
        @functools.wraps(command)
        def with_flags(workload_queueing: bool, queueing_config: Path | None, **others: Any) -> Any:
            if queueing_config is not None and not workload_queueing:
                raise bad_input("--queueing-config needs --workload-queueing")
            return command(queueing=queueing_configuration(queueing_config) if workload_queueing else None, **others)

        return with_flags

    return decorate


def admitted_frameworks(queueing: QueueingConfiguration | None) -> frozenset[str]:
    """The integrations whose objects a sandbox admits to their queues."""
    return frozenset() if queueing is None else queueing.admitted_frameworks


def queueing_configuration(path: Path | None) -> QueueingConfiguration:
    """What a file says, or the defaults; CommandError if the file cannot be used."""
    # Nothing of workload queueing is imported by commands that do without it.
    from pilotage.jobs.configuration.kinds import QueueingConfiguration
    from pilotage.jobs.configuration.load import load_queueing

    if path is None:
        return QueueingConfiguration()
    try:
        return load_queueing(path)
    except ConfigError as error:
        raise bad_input(error.lines) from error
