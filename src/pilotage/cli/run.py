"""`pilotage run`: the scheduler against any API server."""

from __future__ import annotations

import dataclasses
import logging
from importlib.metadata import version
from pathlib import Path

import click

from pilotage.cli.errors import CommandError, ExitCode, bad_input, unreachable
from pilotage.cli.event_loop import run as run_loop
from pilotage.cli.flag_table import FlagValues
from pilotage.cli.options import no_color_option
from pilotage.cli.queueing_flags import queueing_flags
from pilotage.cli.run_flags import RunSettings, choose_log_format, kube_scheduler_flags, settings_of, verbosity
from pilotage.cli.running import Connections, Running
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags
from pilotage.clock import Clock, SystemClock
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.config.render import render
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.kube.connection import Connection
from pilotage.kube.credentials import StaticCredentials
from pilotage.kube.errors import KubeconfigError
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.preflight import Refused
from pilotage.kube.tls import TlsSettings
from pilotage.serve.listening import CannotListen
from pilotage.serve.service import LeadershipLost
from pilotage.serve.tls import CertificateError

log = logging.getLogger(__name__)

_EPILOG = """\b
Examples:
  pilotage run --kubeconfig ~/.kube/config --context staging
  pilotage run --config scheduler.yaml --leader-elect-resource-name pilotage
  pilotage sandbox --no-scheduler --kubeconfig k.yaml & pilotage run --kubeconfig k.yaml
  pilotage run --workload-queueing --queueing-config kueue.yaml

Other flags of kube-scheduler are accepted too; those without a meaning here are named in a warning (see
docs/commands/run.md).
"""


@click.command(epilog=_EPILOG)
@click.option("--kubeconfig", metavar="F", help="Kubeconfig file.  [default: as kubectl: $KUBECONFIG, ~/.kube/config]")
@click.option("--context", "context_name", metavar="C", help="Context in it.  [default: its current context]")
@queueing_flags(is_on=False)
@scheduler_flags
@kube_scheduler_flags
@verbosity
@no_color_option
@click.version_option(version("pilotage"), prog_name="pilotage", message="%(prog)s %(version)s")
def run(
    kubeconfig: str | None,
    context_name: str | None,
    queueing: QueueingConfiguration | None,
    flags: SchedulerFlags,
    values: FlagValues,
) -> None:
    """Schedule the pods of a cluster until interrupted.

    Takes the pods whose schedulerName is that of a profile (default-scheduler without a configuration). Several
    instances may run: the one that holds the lease schedules, the others stand by. Health, metrics and what the
    scheduler has in mind are served on port 10259. An API server that does not answer is waited for.
    """
    choose_log_format(values)
    configuration, options = flags.load()
    options = dataclasses.replace(options, queueing=queueing)
    settings = settings_of(configuration, values, has_file=flags.config is not None)
    connection = settings.configuration.scheduler.client_connection
    options = dataclasses.replace(
        options, calls_per_second=connection.calls_per_second, call_burst=connection.calls_at_once
    )
    for warning in values.warnings(with_config=flags.config is not None):
        log.warning("%s", warning)
    if values.text("write-config-to"):
        _write_configuration(settings.configuration, Path(values.text("write-config-to")))
        return
    clock = SystemClock()
    connections = _connections(settings, kubeconfig, context_name, clock)
    _schedule(Running(settings, options, connections, clock, settings.flags(kubeconfig, flags)))


def _schedule(running: Running) -> None:
    try:
        run_loop(running.run())
    except Refused as error:
        origin = running.connections.scheduler.origin
        told = (problem if origin in problem else f"{problem} ({origin})" for problem in error.problems)
        raise CommandError(ExitCode.UNREACHABLE, *told) from error
    except LeadershipLost as error:
        raise CommandError(ExitCode.FAILED, f"leaderelection lost: {error}") from error
    except CannotListen as error:
        raise unreachable(error.strerror or str(error)) from error
    except CertificateError as error:
        raise bad_input(str(error)) from error


def _connections(settings: RunSettings, kubeconfig: str | None, context_name: str | None, clock: Clock) -> Connections:
    values = settings.values
    try:
        path = kubeconfig or settings.configuration.scheduler.client_connection.kubeconfig or None
        scheduler = _with_master(values.text("master"), path, context_name, clock)
        reviewing = [
            load_connection(values.text(name), None, clock=clock) if values.text(name) else scheduler
            for name in ("authentication-kubeconfig", "authorization-kubeconfig")
        ]
    except KubeconfigError as error:
        raise bad_input(str(error)) from error
    return Connections(scheduler, *reviewing)


def _with_master(master: str, path: str | None, context_name: str | None, clock: Clock) -> Connection:
    if not master:
        return load_connection(path, context_name, clock=clock)
    server = master.rstrip("/") if "://" in master else f"http://{master.rstrip('/')}"
    if path is None and context_name is None:
        return Connection(server, TlsSettings(), StaticCredentials(), "--master")
    return dataclasses.replace(load_connection(path, context_name, clock=clock), server=server)


def _write_configuration(configuration: SchedulerConfiguration, path: Path) -> None:
    try:
        path.write_text(render(configuration), encoding="utf-8")
    except OSError as error:
        raise unreachable(f"--write-config-to {path}: {(error.strerror or str(error)).lower()}") from error
