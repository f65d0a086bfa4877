"""`pilotage run`: the scheduler against any API server."""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click
import msgspec

from pilotage import __version__
from pilotage.assembly import SchedulerOptions
from pilotage.cli.errors import CommandError, ExitCode, bad_input, exit_code_of, unreachable
from pilotage.cli.event_loop import run as run_loop
from pilotage.cli.flag_table import FlagValues
from pilotage.cli.options import no_color_option
from pilotage.cli.queueing_flags import queueing_flags
from pilotage.cli.run_flags import RunSettings, choose_log_format, kube_scheduler_flags, settings_of, verbosity
from pilotage.cli.running import Connections, Running
from pilotage.cli.scheduler_flags import SchedulerFlags, scheduler_flags
from pilotage.cli.supervising import Supervising
from pilotage.clock import Clock, SystemClock
from pilotage.config.kinds import SchedulerConfiguration
from pilotage.config.render import render
from pilotage.kube.connection import Connection
from pilotage.kube.credentials import StaticCredentials
from pilotage.kube.errors import KubeconfigError
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.preflight import Refused
from pilotage.kube.proxy import Proxies
from pilotage.kube.secrets import without_user_part
from pilotage.kube.tls import TlsSettings
from pilotage.serve.complete_configuration import complete_configuration
from pilotage.serve.listening import CannotListen, raise_file_limit
from pilotage.serve.service import LeadershipLost
from pilotage.serve.tls import CertificateError
from pilotage.supervise.scheduler_process import DUMP_SIGNAL, OwnEnd, start
from pilotage.supervise.supervisor import SchedulerEnded

if TYPE_CHECKING:
    from pilotage.jobs.configuration.kinds import QueueingConfiguration

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
@click.version_option(__version__, prog_name="pilotage", message="%(prog)s %(version)s")
def run(
    kubeconfig: str | None,
    context_name: str | None,
    queueing: QueueingConfiguration | None,
    flags: SchedulerFlags,
    values: FlagValues,
) -> int:
    """Schedule the pods of a cluster until interrupted.

    Takes the pods whose schedulerName is that of a profile (default-scheduler without a configuration). Several
    instances may run: the one that holds the lease schedules, the others stand by. Health, metrics and what the
    scheduler has in mind are served on port 10259. An API server that does not answer is waited for.
    """
    choose_log_format(values)
    settings = settings_of(flags.read(), values, has_file=flags.config is not None)
    settings = msgspec.structs.replace(settings, has_queueing=queueing is not None)

    def options() -> SchedulerOptions:
        connection = settings.configuration.scheduler.client_connection
        return dataclasses.replace(
            flags.options_of(settings.configuration),
            queueing=queueing,
            calls_per_second=connection.calls_per_second,
            call_burst=connection.calls_at_once,
        )

    for warning in values.warnings(with_config=flags.config is not None):
        log.warning("%s", warning)
    if values.text("write-config-to"):
        _write_configuration(
            _complete(settings, options(), flags, kubeconfig).configuration, Path(values.text("write-config-to"))
        )
        return ExitCode.OK
    raise_file_limit()
    clock = SystemClock()
    connections = _connections(settings, kubeconfig, context_name, clock)

    def running() -> Running:
        # Plugins are imported in the process that runs them: what they start there does not survive a fork.
        made = options()
        whole = _complete(settings, made, flags, kubeconfig)
        return Running(whole, made, connections.scheduler, clock, settings.flags(kubeconfig, flags))

    # Until there is a loop that listens, and in what exec plugins start: a signal that is too early must not end them.
    signal.signal(DUMP_SIGNAL, signal.SIG_IGN)
    with _explained(connections.scheduler.origin):
        if not settings.needs_supervisor:
            run_loop(running().run_alone())
            return ExitCode.OK
        child = start(lambda end: exit_code_of(lambda: _schedule(running, end, connections.scheduler.origin)))
        return run_loop(Supervising(settings, connections, clock).run(child))


def _complete(
    settings: RunSettings, options: SchedulerOptions, flags: SchedulerFlags, kubeconfig: str | None
) -> RunSettings:
    """With everything in the configuration that applies: what is shown, and written by --write-config-to."""
    configuration = settings.configuration
    file = os.path.abspath(kubeconfig) if kubeconfig else ""
    whole = complete_configuration(configuration, options, flags.plugin_paths(configuration), file)
    return msgspec.structs.replace(settings, configuration=whole)


def _schedule(running: Callable[[], Running], end: OwnEnd, origin: str) -> int:
    with _explained(origin):
        run_loop(running().run_supervised(end))
    return ExitCode.OK


@contextmanager
def _explained(origin: str) -> Iterator[None]:
    """What can go wrong as lines for people. `origin` is where the API server's address was configured."""
    try:
        yield
    except Refused as error:
        problems = (problem if origin in problem else f"{problem} ({origin})" for problem in error.problems)
        raise CommandError(ExitCode.UNREACHABLE, *problems) from error
    except LeadershipLost as error:
        raise CommandError(ExitCode.FAILED, f"leaderelection lost: {error}") from error
    except SchedulerEnded as error:
        raise CommandError(ExitCode.FAILED, str(error)) from error
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
    parts = urlsplit(server)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise bad_input(f"--master {without_user_part(master)}: write it as https://HOST:PORT")
    if path is None and context_name is None:
        return Connection(server, TlsSettings(), StaticCredentials(), "--master", proxies=Proxies(environ=os.environ))
    found = load_connection(path, context_name, clock=clock)
    return dataclasses.replace(found, server=server, origin=f"--master, {found.origin}")


def _write_configuration(configuration: SchedulerConfiguration, path: Path) -> None:
    try:
        path.write_text(render(configuration), encoding="utf-8")
    except OSError as error:
        raise unreachable(f"--write-config-to {path}: {(error.strerror or str(error)).lower()}") from error
