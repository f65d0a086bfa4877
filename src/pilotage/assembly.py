"""The composition root: configuration, client and clock in, a running scheduler out."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pilotage.api.calls import ApiWriter
from pilotage.api.plugin import Plugin
from pilotage.api.points import QueueSort
from pilotage.api.views import QueuedPod
from pilotage.calls.call_meter import CallMeter, read_call_gauges
from pilotage.calls.dispatcher import Dispatcher, DispatcherSettings
from pilotage.calls.in_place import CallsInPlace
from pilotage.calls.retry import DEFAULT_POLICIES, POLICIES_IN_PLACE
from pilotage.clock import Clock
from pilotage.cluster.state import Cluster
from pilotage.config.feature_gates import FeatureGates
from pilotage.config.kinds import PluginRef, SchedulerConfiguration
from pilotage.cycle.handle import SchedulerHandle
from pilotage.cycle.live_gauges import read_live_gauges
from pilotage.cycle.placement import ProfileEngine
from pilotage.cycle.scheduler import Scheduler
from pilotage.cycle.scheduler_parts import SchedulerParts
from pilotage.framework.diagnosis import refusal_text
from pilotage.framework.node_walk import NodeWalk
from pilotage.framework.plugin_files import LoadedPlugin, given_plugins, refuse_duplicates
from pilotage.framework.plugin_meter import PluginMeter
from pilotage.framework.plugin_sets import Catalog
from pilotage.framework.profile import Profile, build_profile, name_of
from pilotage.framework.recipes import ProfileRecipe, recipes_of
from pilotage.framework.registry import Registry
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.kube.client import KubeClient
from pilotage.kube.reflector import Reflector
from pilotage.model import KINDS, Pod
from pilotage.model.kinds import KindInfo
from pilotage.observe.facts import tell_facts
from pilotage.observe.metrics import Metrics
from pilotage.plugins import DEFAULT_PLUGINS, GATED_PLUGINS, NOT_BUILT_YET
from pilotage.plugins.args import ARGS_OF_DEFAULT_PLUGINS, GATED_ARGS
from pilotage.queue.backoff import BackoffPolicy
from pilotage.queue.entry import INCOMING_NAMES
from pilotage.queue.heaps import SortKey
from pilotage.queue.hints import HintSwitches, HintTable
from pilotage.queue.scheduling_queue import DEFAULT_MAX_WAIT_SECONDS, Gatekeeper, SchedulingQueue
from pilotage.rng import seeded
from pilotage.workload_queueing import QueueingProcess

log = logging.getLogger(__name__)

WATCHED = (
    "nodes",
    "pods",
    "namespaces",
    "services",
    "replicationcontrollers",
    "replicasets",
    "statefulsets",
    "poddisruptionbudgets",
    "persistentvolumes",
    "persistentvolumeclaims",
    "storageclasses",
    "csinodes",
    "csidrivers",
    "csistoragecapacities",
    "volumeattachments",
    "resourceclaims",
    "resourceslices",
    "deviceclasses",
    "devicetaintrules",
)
_UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


def catalog_for(
    configuration: SchedulerConfiguration,
    plugins: Sequence[LoadedPlugin],
    gates: FeatureGates,
    installed: Sequence[LoadedPlugin] = (),
) -> Catalog:
    """The plugins that a configuration can name."""
    built_in = [LoadedPlugin(cls, "built-in") for cls, _ in DEFAULT_PLUGINS]
    refuse_duplicates([*built_in, *installed, *plugins])
    named = _named_plugins(configuration)
    off = [name for name, gate in GATED_PLUGINS.items() if not gates[gate]]
    return Catalog(
        Registry(plugin.cls for plugin in (*built_in, *installed, *plugins)),
        [PluginRef(cls.plugin_name(), weight) for cls, weight in DEFAULT_PLUGINS if cls.plugin_name() not in off],
        added=[PluginRef(plugin.name) for plugin in plugins if plugin.name not in named],
        not_built_yet=frozenset(NOT_BUILT_YET),
        args_types=ARGS_OF_DEFAULT_PLUGINS,
        switched_off={
            plugin: {name: gate for name, needed in fields.items() for gate in needed if not gates[gate]}
            for plugin, fields in GATED_ARGS.items()
        },
    )


def _named_plugins(configuration: SchedulerConfiguration) -> set[str]:
    sets = [profile.plugin_set(point) for profile in configuration.scheduler.profiles for point in profile.plugins]
    return {ref.name for lists in sets for ref in (*lists.enabled, *lists.disabled)}


def default_recipes() -> dict[str, ProfileRecipe]:
    configuration = SchedulerConfiguration()
    return recipes_of(configuration, catalog_for(configuration, (), FeatureGates()))


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """Everything that can be chosen about a scheduler; the defaults are kube-scheduler's."""

    profiles: Mapping[str, ProfileRecipe] = field(default_factory=default_recipes)
    extra_plugins: Sequence[type[Plugin]] = ()
    backoff: BackoffPolicy = field(default_factory=BackoffPolicy)
    max_wait_seconds: float = DEFAULT_MAX_WAIT_SECONDS
    feature_gates: FeatureGates = field(default_factory=FeatureGates)
    kinds: Mapping[str, KindInfo] = field(default_factory=lambda: KINDS)
    queueing: QueueingConfiguration | None = None
    """Queue workloads too, as this says; None: only schedule pods."""
    calls_per_second: float = 0.0
    """Client-side limit of API calls; 0 for none."""
    call_burst: int = 1
    reports_gated_pods: bool = True
    """Write into the status of a pod that PreEnqueue holds it back; kube-scheduler does not."""


def options_from_configuration(
    configuration: SchedulerConfiguration,
    plugins: Sequence[type[Plugin] | LoadedPlugin] = (),
    gates: FeatureGates | None = None,
    installed: Sequence[LoadedPlugin] = (),
) -> SchedulerOptions:
    """What a configuration asks for; ConfigError with everything that is wrong with it.

    `plugins` run in every profile unless the configuration says where; `installed` ones only where it names them.
    """
    gates = gates if gates is not None else FeatureGates(configuration.additions.feature_gates)
    scheduler, loaded = configuration.scheduler, given_plugins(plugins)
    return SchedulerOptions(
        profiles=recipes_of(configuration, catalog_for(configuration, loaded, gates, installed)),
        extra_plugins=tuple(plugin.cls for plugin in (*loaded, *installed)),
        backoff=BackoffPolicy(
            scheduler.pod_initial_backoff_seconds,
            scheduler.pod_max_backoff_seconds,
            whole_seconds=gates["SchedulerPopFromBackoffQ"],
        ),
        feature_gates=gates,
        calls_per_second=scheduler.client_connection.calls_per_second,
        call_burst=scheduler.client_connection.calls_at_once,
    )


class SchedulerProcess:
    """A scheduler with its watches on one API server."""

    def __init__(
        self,
        client: KubeClient,
        clock: Clock,
        rng: random.Random,
        options: SchedulerOptions,
        writer: ApiWriter | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """`writer` is what writes go through, if not the client itself."""
        self.scheduler = build_scheduler(writer or client, clock, rng, options, metrics)
        self.reflectors = [
            Reflector(
                client,
                options.kinds[resource],
                self.scheduler.intake,
                clock,
                rng,
                field_selector=_UNFINISHED if resource == "pods" else "",
            )
            for resource in WATCHED
        ]
        self.scheduler.metrics.undecodable_objects_total.read_from(self._undecodable)
        self.queueing: QueueingProcess | None = None
        if options.queueing is not None:
            self.queueing = QueueingProcess(client, self.scheduler.dispatcher, clock, rng, options.queueing)

    def _undecodable(self) -> dict[tuple[str, ...], float]:
        skipped = {(one.kind.plural,): float(one.undecodable.skipped_total) for one in self.reflectors}
        return {labels: count for labels, count in skipped.items() if count}

    async def run(self) -> None:
        """Watch and schedule until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self.watch(tasks)
            await self.wait_synced()
            tasks.create_task(self.lead(), name="scheduler")

    async def lead(self, role: str = "standalone") -> None:
        """Schedule, and queue workloads if that was asked for, until the scheduler ends or it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            queueing = None if self.queueing is None else tasks.create_task(self.queueing.run(role), name="queueing")
            await self.scheduler.run()
            if queueing is not None:
                queueing.cancel()

    async def follow(self) -> None:
        """Keep up to date without deciding anything, until cancelled: what a standby does."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.scheduler.follow(), name="standby scheduler")
            if self.queueing is not None:
                tasks.create_task(self.queueing.follow(), name="standby queueing")

    def watch(self, tasks: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Start the watches; what they see waits in the inbox until the scheduler takes it."""
        own = [tasks.create_task(one.run(), name=f"watch {one.kind.plural}") for one in self.reflectors]
        return own if self.queueing is None else [*own, *self.queueing.watch(tasks)]

    async def wait_synced(self) -> None:
        for reflector in self.reflectors:
            await reflector.wait_synced()

    @property
    def has_synced(self) -> bool:
        return all(reflector.has_synced for reflector in self.reflectors)


def metrics_for(options: SchedulerOptions) -> Metrics:
    """The metrics of such a scheduler; made apart from it where the client counts its requests in them too."""
    return Metrics(options.feature_gates.__getitem__)


def build_scheduler(
    client: ApiWriter,
    clock: Clock,
    rng: random.Random,
    options: SchedulerOptions,
    metrics: Metrics | None = None,
) -> Scheduler:
    """Put the parts together; nothing runs yet."""
    metrics = metrics or metrics_for(options)
    cluster = Cluster()
    gates = options.feature_gates
    dispatcher = _dispatcher(client, clock, rng, options, metrics)
    handle = SchedulerHandle(cluster, dispatcher, clock, rng, metrics)
    in_place = None if gates["SchedulerAsyncAPICalls"] else CallsInPlace(dispatcher)
    handle.calls = in_place or dispatcher
    profiles = build_profiles(options, handle)
    walk = NodeWalk(cluster.nodes)
    engines = {name: ProfileEngine(profile, cluster, walk) for name, profile in profiles.items()}
    handle.engines = engines
    meters = {name: PluginMeter(one.profile, one.runner, metrics, clock) for name, one in engines.items()}
    queue = _queue(clock, options, engines, _gatekeeper(engines, meters, handle, options.reports_gated_pods), metrics)
    scheduler = Scheduler(
        SchedulerParts(
            clock,
            cluster,
            queue,
            engines,
            dispatcher,
            handle.waiting_pods,
            metrics,
            meters,
            announces_places=gates["NominatedNodeNameForExpectation"],
            calls_in_place=in_place,
            waits_for_victims=not gates["SchedulerAsyncPreemption"],
        )
    )
    handle.scheduler = scheduler
    read_live_gauges(metrics, queue, cluster)
    tell_facts(metrics, options.feature_gates.states())
    return scheduler


def _dispatcher(
    client: ApiWriter, clock: Clock, rng: random.Random, options: SchedulerOptions, metrics: Metrics
) -> Dispatcher:
    is_async = options.feature_gates["SchedulerAsyncAPICalls"]
    settings = DispatcherSettings(
        policies=DEFAULT_POLICIES if is_async else POLICIES_IN_PLACE,
        calls_per_second=options.calls_per_second,
        burst=options.call_burst,
    )
    # Its own copy: that a call was tried again must not change what is decided.
    own = seeded(0)
    own.setstate(rng.getstate())
    dispatcher = Dispatcher(client, clock, own, settings, CallMeter(metrics).executed)
    read_call_gauges(metrics, dispatcher)
    return dispatcher


def _gatekeeper(
    engines: Mapping[str, ProfileEngine], meters: Mapping[str, PluginMeter], handle: SchedulerHandle, reports: bool
) -> Gatekeeper:
    """Asks the PreEnqueue plugins, and lets people know of a refusal if it `reports`."""

    def gatekeeper(pod: Pod) -> tuple[str, str] | None:
        name = pod.spec.scheduler_name
        refused = meters[name].gate(engines[name].runner.pre_enqueue, pod)
        if refused is None:
            return None
        message = refusal_text(refused.refusal)
        if reports:
            handle.note_gated(pod)
        return refused.plugin, message

    return gatekeeper


def build_profiles(options: SchedulerOptions, handle: SchedulerHandle) -> dict[str, Profile]:
    registry = Registry([*(cls for cls, _ in DEFAULT_PLUGINS), *options.extra_plugins])
    return {name: build_profile(name, recipe, registry, handle) for name, recipe in options.profiles.items()}


def _queue(
    clock: Clock,
    options: SchedulerOptions,
    engines: Mapping[str, ProfileEngine],
    gatekeeper: Gatekeeper,
    metrics: Metrics,
) -> SchedulingQueue:
    gates = options.feature_gates
    hints = HintTable(
        {name: engine.profile.plugins for name, engine in engines.items()},
        metrics,
        HintSwitches(gates["SchedulerQueueingHints"], gates["SchedulerPreQueueingHints"]),
    )
    first = next(iter(engines.values())).profile
    queue = SchedulingQueue(
        clock,
        sort_key=contained(first.queue_sort[0], metrics),
        gatekeeper=gatekeeper,
        hints=hints,
        backoff=options.backoff,
        max_wait_seconds=options.max_wait_seconds,
        pops_backoff=gates["SchedulerPopFromBackoffQ"],
    )
    queue.tell_moves(lambda entry, why: metrics.queue_incoming_pods_total.add(INCOMING_NAMES[entry.home], why))
    return queue


def contained(plugin: QueueSort, metrics: Metrics) -> SortKey:
    """The plugin's order; a pod for which it raises is sorted as PrioritySort would, and the error is counted."""
    name = name_of(plugin)

    def sort_key(queued: QueuedPod) -> tuple[float, ...]:
        try:
            return plugin.sort_key(queued)
        except Exception:
            metrics.plugin_errors_total.add(name)
            log.exception("plugin failed, pod is sorted by priority: plugin=%s pod=%s", name, queued.pod.key)
            return (-queued.pod.priority, queued.timestamp)

    return sort_key
