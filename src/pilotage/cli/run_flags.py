"""The flags of the table as options of a command, and what `pilotage run` makes of them and the configuration."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import click
from click.core import ParameterSource
from msgspec import Struct

from pilotage.cli.errors import bad_input
from pilotage.cli.flag_table import FLAGS, NOT_WITH_CONFIG, FlagValues
from pilotage.cli.logs import log_as_json, set_up_logging
from pilotage.cli.scheduler_flags import SchedulerFlags
from pilotage.config.kinds import ClientConnection, KubeSchedulerConfiguration, LeaderElection, SchedulerConfiguration
from pilotage.kube.election import ElectionTiming, LeaseName
from pilotage.observe.verbosity import level_of

_VERBOSE: Final = "4"


def kube_scheduler_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add all flags of the table; the command gets them as one `values`."""

    @functools.wraps(command)
    def with_values(**parameters: Any) -> Any:
        context = click.get_current_context()
        given = {}
        for flag in FLAGS:
            value = parameters.pop(flag.parameter)
            if context.get_parameter_source(flag.parameter) is not ParameterSource.DEFAULT:
                given[flag.name] = str(value)
        return command(values=FlagValues(given), **parameters)

    decorated: Callable[..., Any] = with_values
    for flag in reversed(FLAGS):
        shown = flag.help + (f"  [default: {flag.default}]" if flag.default and "[default" not in flag.help else "")
        option: Any = functools.partial(click.option, f"--{flag.name}", flag.parameter, default=flag.default)
        hidden = bool(flag.ignored or flag.refused)
        if flag.is_bool:
            decorated = option(is_flag=False, flag_value="true", metavar="BOOL", help=shown, hidden=hidden)(decorated)
        else:
            decorated = option(metavar="V", help=shown, hidden=hidden)(decorated)
    return decorated


def verbosity(command: Callable[..., Any]) -> Callable[..., Any]:
    """`-v`, `-v=4`, `--v=4`: takes effect while the command line is read."""
    option = click.option(
        "-v",
        "--v",
        "--verbose",
        "verbosity",
        is_flag=False,
        flag_value=_VERBOSE,
        default="0",
        metavar="[N]",
        is_eager=True,
        expose_value=False,
        callback=_set_verbosity,
        help="0: what an operator acts on; 2: each attempt; 4 or no number: queue moves; 5: hint answers.",
    )
    return option(command)


def _set_verbosity(context: click.Context, parameter: click.Parameter, value: str) -> None:
    text = value.removeprefix("=")
    if not text.isdigit():
        raise bad_input(f'-v: "{text}" is no number; write -v=4 for the moves of pods in the queue')
    # `pilotage -v run` was there first.
    if not logging.getLogger().isEnabledFor(logging.DEBUG):
        set_up_logging(level_of(int(text)))


def choose_log_format(values: FlagValues) -> None:
    """What `--logging-format` says."""
    chosen = values.text("logging-format")
    if chosen not in ("text", "json"):
        raise bad_input(f'--logging-format: "{chosen}" is neither text nor json')
    if chosen == "json":
        log_as_json()


class RunSettings(Struct, frozen=True):
    """Configuration file and flags put together as kube-scheduler does."""

    configuration: SchedulerConfiguration
    values: FlagValues
    has_queueing: bool = False

    @property
    def needs_supervisor(self) -> bool:
        """Whether there is a lease to keep, or a port to answer on."""
        ports = (self.values.port("secure-port"), self.values.port("insecure-port"))
        return self.configuration.scheduler.leader_election.leader_elect or any(ports)

    @property
    def lease(self) -> LeaseName:
        election = self.configuration.scheduler.leader_election
        return LeaseName(election.resource_namespace, election.resource_name)

    @property
    def timing(self) -> ElectionTiming:
        election = self.configuration.scheduler.leader_election
        return ElectionTiming(election.lease_duration, election.renew_deadline, election.retry_period)

    def flags(self, kubeconfig: str | None, flags: SchedulerFlags) -> dict[str, str]:
        """Every flag with its value, for /flagz."""
        return self.values.all() | {
            "config": "" if flags.config is None else str(flags.config),
            "kubeconfig": kubeconfig or "",
            "feature-gates": flags.feature_gates,
            "pod-max-in-unschedulable-pods-duration": flags.max_wait or "5m0s",
        }


def settings_of(configuration: SchedulerConfiguration, values: FlagValues, *, has_file: bool) -> RunSettings:
    """Flags of leader election override the file; deprecated flags count only without one."""
    scheduler = configuration.scheduler
    election = _overridden(scheduler.leader_election, values)
    problems = [f"leader election: {path}: {message}" for path, message in election.problems()]
    if problems:
        raise bad_input(problems)
    scheduler = replace(scheduler, leader_election=election)
    if not has_file:
        scheduler = _from_deprecated(scheduler, values)
    return RunSettings(replace(configuration, scheduler=scheduler), values)


def _overridden(election: LeaderElection, values: FlagValues) -> LeaderElection:
    readers: dict[str, tuple[str, Callable[[str], Any]]] = {
        "leader-elect": ("leader_elect", values.boolean),
        "leader-elect-lease-duration": ("lease_duration", values.seconds),
        "leader-elect-renew-deadline": ("renew_deadline", values.seconds),
        "leader-elect-retry-period": ("retry_period", values.seconds),
        "leader-elect-resource-lock": ("resource_lock", values.text),
        "leader-elect-resource-name": ("resource_name", values.text),
        "leader-elect-resource-namespace": ("resource_namespace", values.text),
    }
    changes = {field: read(name) for name, (field, read) in readers.items() if values.is_given(name)}
    return replace(election, **changes)


def _from_deprecated(scheduler: KubeSchedulerConfiguration, values: FlagValues) -> KubeSchedulerConfiguration:
    if not any(values.is_given(name) for name in NOT_WITH_CONFIG):
        return scheduler
    connection: ClientConnection = replace(
        scheduler.client_connection,
        qps=values.number("kube-api-qps") if values.is_given("kube-api-qps") else None,
        burst=int(values.number("kube-api-burst")) if values.is_given("kube-api-burst") else None,
    )
    problems = [f"--kube-api-{path}: {message}" for path, message in connection.problems()]
    if problems:
        raise bad_input(problems)
    return replace(
        scheduler,
        client_connection=connection,
        enable_profiling=values.boolean("profiling"),
        enable_contention_profiling=None,
    )
