"""KubeSchedulerConfiguration v1 and our own PilotageConfiguration: fields, defaults, and what values are allowed.

The classes mirror the files field by field. Plugin names and plugin arguments are only collected here, with the places
where they stand: what they mean depends on which plugins there are (see `pilotage.framework.plugin_sets`).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, cast, get_args
from urllib.parse import urlsplit

from pilotage.config.decode import FieldPlace
from pilotage.config.located import Located
from pilotage.config.obsolete import API_VERSION, REMOVED_PLUGINS
from pilotage.model.durations import Duration, go_duration
from pilotage.model.names import is_extended_resource, label_name_problem

KIND: Final = "KubeSchedulerConfiguration"
PILOTAGE_API_VERSION: Final = "config.pilotage.dev/v1alpha1"
_DEFAULT_QPS: Final = 50.0
_DEFAULT_BURST: Final = 100
_DEFAULT_EXTENDER_SECONDS: Final = 5.0
PILOTAGE_KIND: Final = "PilotageConfiguration"
DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"
EVERYTHING: Final = "*"

Point = Literal[
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    "multiPoint",
    "placementGenerate",
    "placementScore",
    "podGroupPostFilter",
]
POINTS: Final[tuple[str, ...]] = get_args(Point)
_UNCHECKED_POINTS: Final = frozenset({"multiPoint", "placementGenerate", "placementScore"})

Problems = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class PluginRef:
    """A plugin named in a list; weight 0 means that none was given."""

    name: str
    weight: int = 0
    place: FieldPlace = field(default=FieldPlace(), compare=False)


@dataclass(frozen=True, slots=True)
class PluginSet:
    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


@dataclass(frozen=True, slots=True)
class PluginArguments:
    """An entry of `pluginConfig`; the arguments are decoded by the plugin that they are for."""

    name: str
    args: Located | None = None
    place: FieldPlace = field(default=FieldPlace(), compare=False)


@dataclass(frozen=True, slots=True)
class ProfileConfiguration:
    scheduler_name: str = ""
    percentage_of_nodes_to_score: int | None = None
    plugins: Mapping[Point, PluginSet | tuple[PluginRef, ...]] = field(default_factory=dict)
    """As written: a set, or the plain list of KEP-624, which replaces the default list of its point."""
    plugin_config: tuple[PluginArguments, ...] = ()
    place: FieldPlace = field(default=FieldPlace(), compare=False)

    def plugin_set(self, point: str) -> PluginSet:
        given = self.plugins.get(cast(Point, point), PluginSet())
        return given if isinstance(given, PluginSet) else PluginSet(given, (PluginRef(EVERYTHING),))

    def problems(self) -> Problems:
        if self.percentage_of_nodes_to_score is not None:
            yield from _percentage_problems(self.percentage_of_nodes_to_score)
        for point in self.plugins:
            yield from self._list_problems(point)
        yield from self._argument_problems()

    def _list_problems(self, point: str) -> Problems:
        for ref in self.plugin_set(point).enabled:
            where = ref.place.path[len(self.place.path) :].lstrip(".")
            if ref.name in REMOVED_PLUGINS and point not in _UNCHECKED_POINTS:
                yield where, _removed(ref.name)
            if ref.weight < 0:
                yield f"{where}.weight", f"Invalid value: {ref.weight}: must not be negative"
            if ref.name == EVERYTHING:
                yield where, '"*" can only be disabled, not enabled'
        if point == "queueSort" and len(self.plugin_set(point).enabled) > 1:
            yield "plugins.queueSort.enabled", "only one queue sort plugin can be enabled"

    def _argument_problems(self) -> Problems:
        seen: set[str] = set()
        for at, entry in enumerate(self.plugin_config):
            if entry.name in seen:
                yield f"pluginConfig[{at}]", f'Duplicate value: "{entry.name}"'
            seen.add(entry.name)
            if entry.name in REMOVED_PLUGINS:
                yield f"pluginConfig[{at}]", _removed(entry.name)


@dataclass(frozen=True, slots=True)
class LeaderElection:
    leader_elect: bool = True
    lease_duration: Duration = 15.0
    renew_deadline: Duration = 10.0
    retry_period: Duration = 2.0
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"

    def problems(self) -> Problems:
        if not self.leader_elect:
            return
        durations = (
            ("leaseDuration", self.lease_duration),
            ("renewDeadline", self.renew_deadline),
            ("retryPeriod", self.retry_period),
        )
        for name, seconds in durations:
            if seconds <= 0:
                yield name, f'Invalid value: "{go_duration(seconds)}": must be greater than zero'
        if self.lease_duration <= self.renew_deadline:
            value = go_duration(self.lease_duration)
            yield "leaseDuration", f'Invalid value: "{value}": LeaseDuration must be greater than RenewDeadline'
        if self.resource_lock != "leases":
            yield "resourceLock", f'Invalid value: "{self.resource_lock}": resourceLock value must be "leases"'
        for name, text in (("resourceName", self.resource_name), ("resourceNamespace", self.resource_namespace)):
            if not text:
                yield name, f"Required value: {name} is required"


@dataclass(frozen=True, slots=True)
class ClientConnection:
    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float | None = None
    burst: int | None = None
    """None: not given. Without either there is no limit: lanes follow what the API server can take."""

    @property
    def calls_per_second(self) -> float:
        """What the scheduler may send; 0 for no limit. With a burst alone it is kube-scheduler's default."""
        if self.qps is None:
            return 0.0 if self.burst is None else _DEFAULT_QPS
        return max(self.qps, 0.0)

    @property
    def calls_at_once(self) -> int:
        return _DEFAULT_BURST if self.burst is None else self.burst

    def problems(self) -> Problems:
        if self.burst is not None and self.burst < 0:
            yield "burst", f"Invalid value: {self.burst}: must be non-negative"


@dataclass(frozen=True, slots=True)
class ExtenderTLSConfig:
    """How an extender is trusted, and what is shown to it; data (in base64) goes before files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = field(default="", repr=False)
    ca_data: str = ""

    def problems(self) -> Problems:
        for name, text in (("certData", self.cert_data), ("keyData", self.key_data), ("caData", self.ca_data)):
            if not _is_base64(text):
                yield name, "Invalid value: is not base64"
        has_certificate, has_key = bool(self.cert_file or self.cert_data), bool(self.key_file or self.key_data)
        if has_certificate != has_key:
            missing = "keyFile" if has_certificate else "certFile"
            yield missing, "Required value: a client certificate and its key come together"
        if self.insecure and (self.ca_file or self.ca_data):
            yield (
                "insecure",
                "Invalid value: true: specifying a root certificates file with the insecure flag is not allowed",
            )


@dataclass(frozen=True, slots=True)
class ExtenderManagedResource:
    """A resource that an extender looks after."""

    name: str
    ignored_by_scheduler: bool = False
    """NodeResourcesFit does not look whether a node has enough of it."""


@dataclass(frozen=True, slots=True)
class ExtenderConfiguration:
    """An HTTP server that is asked about pods; a verb that is empty is not offered."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, metadata={"name": "enableHTTPS"})
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = 0.0
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False

    @property
    def timeout_seconds(self) -> float:
        """Of one call; 0 in the file means kube-scheduler's 5 s."""
        return self.http_timeout or _DEFAULT_EXTENDER_SECONDS

    def problems(self) -> Problems:
        if not _is_http(self.url_prefix):
            # A name and a password before the host are not to be shown.
            shown = self.url_prefix.rpartition("@")[2]
            yield "urlPrefix", f'Invalid value: "{shown}": must be a URL such as http://127.0.0.1:8888/scheduler'
        if self.prioritize_verb and self.weight <= 0:
            yield "weight", f"Invalid value: {self.weight}: must have a positive weight applied to it"
        if self.http_timeout < 0:
            yield "httpTimeout", f'Invalid value: "{go_duration(self.http_timeout)}": must not be negative'
        if self.tls_config is not None:
            yield from _below("tlsConfig", self.tls_config.problems())


@dataclass(frozen=True, slots=True)
class KubeSchedulerConfiguration:
    parallelism: int = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    profiles: tuple[ProfileConfiguration, ...] = (ProfileConfiguration(DEFAULT_SCHEDULER_NAME),)
    extenders: tuple[ExtenderConfiguration, ...] = ()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    delay_cache_until_active: bool = False

    def __post_init__(self) -> None:
        if self.enable_contention_profiling is None:
            object.__setattr__(self, "enable_contention_profiling", self.enable_profiling)

    def problems(self) -> Problems:
        if self.parallelism <= 0:
            yield "parallelism", f"Invalid value: {self.parallelism}: should be an integer value greater than zero"
        yield from _percentage_problems(self.percentage_of_nodes_to_score)
        initial, longest = self.pod_initial_backoff_seconds, self.pod_max_backoff_seconds
        if initial <= 0:
            yield "podInitialBackoffSeconds", f"Invalid value: {initial}: must be greater than 0"
        if longest < initial:
            problem = "must be greater than or equal to PodInitialBackoffSeconds"
            yield "podMaxBackoffSeconds", f"Invalid value: {longest}: {problem}"
        yield from _below("leaderElection", self.leader_election.problems())
        yield from _below("clientConnection", self.client_connection.problems())
        yield from self._profile_problems()
        yield from self._extender_problems()

    def _extender_problems(self) -> Problems:
        managed: set[str] = set()
        for at, extender in enumerate(self.extenders):
            yield from _below(f"extenders[{at}]", extender.problems())
            for place, resource in enumerate(extender.managed_resources):
                path = f"extenders[{at}].managedResources[{place}].name"
                yield from ((path, message) for message in _managed_name_problems(resource.name))
                if resource.name in managed:
                    yield path, f'Invalid value: "{resource.name}": duplicate extender managed resource name'
                managed.add(resource.name)
        binders = sum(bool(extender.bind_verb) for extender in self.extenders)
        if binders > 1:
            found = f"found {binders} extenders implementing bind"
            yield "extenders", f'Invalid value: "{found}": only one extender can implement bind'

    def _profile_problems(self) -> Problems:
        seen: set[str] = set()
        for at, profile in enumerate(self.profiles):
            path = f"profiles[{at}]"
            if not profile.scheduler_name:
                yield f"{path}.schedulerName", "Required value"
            elif profile.scheduler_name in seen:
                yield f"{path}.schedulerName", f'Duplicate value: "{profile.scheduler_name}"'
            seen.add(profile.scheduler_name)
            yield from _below(path, profile.problems())


@dataclass(frozen=True, slots=True)
class PilotageConfiguration:
    """What KubeSchedulerConfiguration has no field for."""

    plugin_files: tuple[str, ...] = ()
    """Python files with plugins; relative paths start from the directory of the configuration file."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    cycle_budget: Duration = 0.5
    """CPU time that one scheduling cycle may take before the pod has to back off."""
    gang_reservation_after: Duration = 300.0
    """How long a gang waits in vain until room is kept for it; 0: no room is ever kept."""
    gang_reservation_lasts: Duration = 600.0
    """How long room is kept for a gang."""

    def problems(self) -> Problems:
        if self.gang_reservation_after < 0:
            found = go_duration(self.gang_reservation_after)
            yield "gangReservationAfter", f"Invalid value: {found}: must be greater than or equal to 0"
        if self.gang_reservation_lasts <= 0:
            found = go_duration(self.gang_reservation_lasts)
            yield "gangReservationLasts", f"Invalid value: {found}: must be greater than 0"
        if self.cycle_budget <= 0:
            yield "cycleBudget", f"Invalid value: {go_duration(self.cycle_budget)}: must be greater than 0"


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """Everything that was read from one configuration file."""

    scheduler: KubeSchedulerConfiguration = KubeSchedulerConfiguration()
    additions: PilotageConfiguration = PilotageConfiguration()
    source: str = ""
    """The file's name, for messages."""


def _below(path: str, problems: Problems) -> Problems:
    for field_path, message in problems:
        yield f"{path}.{field_path}" if field_path else path, message


def _managed_name_problems(name: str) -> Iterator[str]:
    problem = label_name_problem(name)
    if problem is not None:
        yield f'Invalid value: "{name}": {problem}'
    elif not is_extended_resource(name):
        yield f'Invalid value: "{name}": is an invalid extended resource name'


def _is_http(url: str) -> bool:
    try:
        address = urlsplit(url)
        return address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        return False


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode("".join(text.split()), validate=True)
    except ValueError:
        return False
    return True


def _percentage_problems(percentage: int) -> Problems:
    if not 0 <= percentage <= 100:
        yield "percentageOfNodesToScore", f"Invalid value: {percentage}: not in valid range [0-100]"


def _removed(name: str) -> str:
    return (
        f'Invalid value: "{name}": was invalid in version "{API_VERSION}" '
        f'(KubeSchedulerConfiguration is version "{API_VERSION}")'
    )
