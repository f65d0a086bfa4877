"""The composition root: configuration, client and clock in, a running scheduler out."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from pilotage.api.calls import ApiWriter
from pilotage.api.group_members import group_key
from pilotage.api.kinds import WatchedKinds
from pilotage.api.plugin import Plugin
from pilotage.calls.dispatcher import Dispatcher, DispatcherSettings
from pilotage.calls.recorder import EventRecorder, SilentRecorder
from pilotage.calls.report import CallMeter, read_call_gauges
from pilotage.calls.retry import DEFAULT_POLICIES, SYNCHRONOUS_POLICIES
from pilotage.calls.synchronous_calls import SynchronousCalls
from pilotage.clock import Clock, StoppedClock, thread_cpu_seconds
from pilotage.cluster.state import Cluster
from pilotage.config.feature_gates import FeatureGates
from pilotage.config.kinds import ExtenderConfiguration, PluginRef, SchedulerConfiguration
from pilotage.cycle.advised_placement import EXTENDER
from pilotage.cycle.attempts import Attempts
from pilotage.cycle.binding import BindingCycle, CycleResults
from pilotage.cycle.cluster_writes import HELD_BACK, ClusterWrites, DelayedGatedStatus
from pilotage.cycle.consultation import Consultation
from pilotage.cycle.cycle_budget import CycleBudgets, CycleGuard
from pilotage.cycle.eviction import Evictor
from pilotage.cycle.failure import FailureHandler
from pilotage.cycle.group_conditions import GatedGroups, GroupConditions, KeptNodes
from pilotage.cycle.group_cycle import GroupCycle, GroupSettings
from pilotage.cycle.group_reservation import ReservationSettings
from pilotage.cycle.handle import FrameworkHandle, SchedulerEffects
from pilotage.cycle.inbox import Inbox
from pilotage.cycle.intake import EventDurations, Intake
from pilotage.cycle.live_gauges import read_live_gauges, set_facts
from pilotage.cycle.observer import SchedulerObserver
from pilotage.cycle.placement import ProfileEngine, ProfileEngines
from pilotage.cycle.plugin_tasks import PluginTasks
from pilotage.cycle.pods_being_bound import PodsBeingBound
from pilotage.cycle.requeueing import Requeueing
from pilotage.cycle.scheduling_cycle import SchedulingCycle
from pilotage.cycle.scheduling_loop import BesideTheLoop, FollowUp, SchedulingLoop, Tick, Ticks
from pilotage.cycle.slow_plugins import SlowPlugins
from pilotage.extenders.extender import Extender, ExtenderTransport
from pilotage.extenders.extenders import Extenders
from pilotage.extenders.http_transport import HttpExtender
from pilotage.framework.errors import ProfileError
from pilotage.framework.node_sampling import NodeSampling
from pilotage.framework.plugin_files import LoadedPlugin, given_plugins, reject_duplicates
from pilotage.framework.plugin_sets import Catalog
from pilotage.framework.profile import Profile, build_profile
from pilotage.framework.profile_spec import ProfileRecipe, recipes_of
from pilotage.framework.registry import Registry
from pilotage.framework.shared_columns import HEAP, Ties
from pilotage.kube.client import KubeClient
from pilotage.kube.errors import CredentialsError, KubeconfigError
from pilotage.kube.reflector import Reflector, WatchedKind
from pilotage.model import KINDS, Node, Pod
from pilotage.model.kinds import POD_GROUPS, WATCHED, KindInfo
from pilotage.model.suggestions import suggestion
from pilotage.observe.instruments import Labels
from pilotage.observe.metrics import Metrics
from pilotage.observe.plugin_errors import PluginErrors
from pilotage.plugins import DEFAULT_PLUGINS, GATED_PLUGINS, NOT_BUILT_YET
from pilotage.plugins.args import ARGS_OF_DEFAULT_PLUGINS, GATED_ARGS, NodeResourcesFitArgs
from pilotage.queue.backoff import BackoffPolicy
from pilotage.queue.hints import HintSwitches, HintTable
from pilotage.queue.pod_groups import QueuedGroup
from pilotage.queue.scheduling_queue import DEFAULT_MAX_WAIT_SECONDS, OnMove, QueueSettings, SchedulingQueue
from pilotage.queue.sub_queues import INCOMING_NAMES, QueuedPodInfo, no_extenders
from pilotage.rng import seeded

if TYPE_CHECKING:
    from pilotage.jobs.configuration.kinds import QueueingConfiguration
    from pilotage.workload_queueing import QueueingProcess

log = logging.getLogger(__name__)

WRITTEN = frozenset({"pods", "resourceclaims", "persistentvolumes", "persistentvolumeclaims", "workloads"})
"""What a leader writes, and the next one has to know before it decides anything."""
LONGEST_CATCH_UP_SECONDS = 30.0
_UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


def catalog_for(
    configuration: SchedulerConfiguration,
    plugins: Sequence[LoadedPlugin],
    gates: FeatureGates,
    installed: Sequence[LoadedPlugin] = (),
) -> Catalog:
    """The plugins that a configuration can name."""
    built_in = [LoadedPlugin(cls, "built-in") for cls, _ in DEFAULT_PLUGINS]
    reject_duplicates([*built_in, *installed, *plugins])
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
    origins: Sequence[LoadedPlugin] = ()
    """Where these come from, as far as it is known."""
    backoff: BackoffPolicy = field(default_factory=BackoffPolicy)
    max_wait_seconds: float = DEFAULT_MAX_WAIT_SECONDS
    feature_gates: FeatureGates = field(default_factory=FeatureGates)
    kinds: Mapping[str, KindInfo] = field(default_factory=lambda: KINDS)
    queueing: QueueingConfiguration | None = None
    """Queue workloads too, as this says; None: only schedule pods."""
    extenders: tuple[ExtenderConfiguration, ...] = ()
    calls_per_second: float = 0.0
    """Client-side limit of API calls; 0 for none."""
    call_burst: int = 1
    gather_seconds: float = 0.0
    """How long an Event waits for others that are then sent with it in one piece."""
    cycle_budget_seconds: float = math.inf
    """CPU time that one scheduling cycle may take. In virtual time there is no limit: results must not depend on it."""
    group_reservation: ReservationSettings = field(default_factory=ReservationSettings)
    """When room is kept for a gang that waits in vain."""
    observer: SchedulerObserver = field(default_factory=SchedulerObserver)
    """Sees what the scheduler does, as it happens."""
    reports_gated_pods: bool = True
    """Write into the status of a pod or a pod group that PreEnqueue holds it back; kube-scheduler does not."""
    ties: Ties = HEAP
    """Which of equally good nodes is taken."""
    is_simulation: bool = False
    """Time is virtual and nobody looks on: no Events are recorded, and nothing is measured."""


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
    recipes = recipes_of(configuration, catalog_for(configuration, loaded, gates, installed))
    return SchedulerOptions(
        profiles=_ignoring(_ignored_resources(scheduler.extenders), recipes),
        extenders=scheduler.extenders,
        extra_plugins=tuple(plugin.cls for plugin in (*loaded, *installed)),
        origins=(*loaded, *installed),
        backoff=BackoffPolicy(
            scheduler.pod_initial_backoff_seconds,
            scheduler.pod_max_backoff_seconds,
            whole_seconds=gates["SchedulerPopFromBackoffQ"],
        ),
        feature_gates=gates,
        calls_per_second=scheduler.client_connection.calls_per_second,
        call_burst=scheduler.client_connection.calls_at_once,
        cycle_budget_seconds=configuration.additions.cycle_budget,
        group_reservation=ReservationSettings(
            configuration.additions.gang_reservation_after, configuration.additions.gang_reservation_lasts
        ),
    )


def _ignored_resources(extenders: Sequence[ExtenderConfiguration]) -> tuple[str, ...]:
    managed = [resource for extender in extenders for resource in extender.managed_resources]
    return tuple(resource.name for resource in managed if resource.ignored_by_scheduler)


def _ignoring(resources: tuple[str, ...], recipes: dict[str, ProfileRecipe]) -> dict[str, ProfileRecipe]:
    """The recipes with these ignoredResources of NodeResourcesFit, in place of what the file says of them."""
    if not resources:
        return recipes
    made = {}
    for name, recipe in recipes.items():
        plugins = tuple(
            replace(choice, args=replace(choice.args, ignored_resources=resources))
            if isinstance(choice.args, NodeResourcesFitArgs)
            else choice
            for choice in recipe.plugins
        )
        made[name] = structs.replace(recipe, plugins=plugins)
    return made


ConnectExtender = Callable[[ExtenderConfiguration, Clock], ExtenderTransport]
"""Makes the way to an extender; KubeconfigError or CredentialsError if there can be none."""


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
        connect_extender: ConnectExtender = HttpExtender,
    ) -> None:
        """`writer` is what writes go through, if not the client itself."""
        self._clock = clock
        self.scheduler = build_scheduler(writer or client, clock, rng, options, metrics, connect_extender)
        requeueing = self.scheduler.effects.requeueing
        self.reflectors = [
            Reflector(
                client,
                watched,
                self.scheduler.intake,
                clock,
                rng,
                on_contact=requeueing.note_pods_watch if watched.kind.plural == "pods" else None,
                skipped=self.scheduler.metrics.skipped,
            )
            for watched in _to_watch(self.scheduler.cluster.kinds)
        ]
        self.scheduler.metrics.watch_contact_age_seconds.read_from(self._contact_ages)
        self.queueing: QueueingProcess | None = None
        if options.queueing is not None:
            # A scheduler that queues no workloads does without the whole package: an eighth of what it would import.
            from pilotage.jobs.room_on_nodes import NodeRoom
            from pilotage.workload_queueing import QueueingProcess

            room = NodeRoom(self.scheduler.cluster, lambda mirror: thinking_engines(mirror, clock, options))
            self.queueing = QueueingProcess(
                client, self.scheduler.dispatcher, clock, rng, options.queueing, self.scheduler.metrics, room
            )

    def seconds_without_server(self) -> float:
        """Since when the API server does not let itself be watched; 0 while it does."""
        lost = [one for one in self.reflectors if one.is_served and not one.is_in_contact]
        return max((age for one in lost if (age := one.contact_age) is not None), default=0.0)

    def _contact_ages(self) -> dict[tuple[str, ...], float]:
        """Of each kind, the watch that was heard of longest ago: workload queueing watches some kinds again."""
        ages: dict[tuple[str, ...], float] = {}
        for one in (*self.reflectors, *(self.queueing.reflectors if self.queueing is not None else ())):
            if (age := one.contact_age) is not None:
                label = (one.kind.plural,)
                ages[label] = max(age, ages.get(label, 0.0))
        return ages

    async def run(self) -> None:
        """Watch and schedule until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self.watch(tasks)
            await self.wait_synced()
            tasks.create_task(self.lead(), name="scheduler")

    async def lead(self, role: str = "standalone") -> None:
        """Schedule, and queue workloads if that was asked for, until the scheduler ends or it is cancelled."""
        self.scheduler.drain_inbox()  # workloads are admitted by the nodes that there are
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

    async def catch_up(self) -> None:
        """List anew what schedulers write, and take it in: watches may lag behind what the last leader wrote.

        Without that, a place that it gave away in its last moment would be given away again. If the API server cannot
        say for too long, the watches have to do.
        """
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(self.follow(), name="catching up")
            listing = tasks.create_task(self._relist(), name="lists of a new leader")
            timer = tasks.create_task(self._clock.sleep(LONGEST_CATCH_UP_SECONDS), name="catching up for too long")
            await asyncio.wait([listing, timer], return_when=asyncio.FIRST_COMPLETED)
            if not listing.done():
                log.warning("leads without new lists, which take too long: seconds=%g", LONGEST_CATCH_UP_SECONDS)
            for task in (following, listing, timer):
                task.cancel()

    async def _relist(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for one in (*self.reflectors, *(self.queueing.reflectors if self.queueing is not None else ())):
                if one.kind.plural in WRITTEN:
                    tasks.create_task(one.relist(), name=f"list {one.kind.plural}")
        while not self.scheduler.inbox.is_empty:
            await self._clock.sleep(0)

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


def watched_kinds(options: SchedulerOptions) -> WatchedKinds:
    """What such a scheduler watches: its own kinds, and those of the plugins that some profile enables.

    Objects of its own kinds keep their JSON if a plugin asks for it. ProfileError if one asks for what is not watched.
    """
    classes = {cls.plugin_name(): cls for cls in options.extra_plugins}
    enabled = dict.fromkeys(choice.name for recipe in options.profiles.values() for choice in recipe.plugins)
    running = {name: classes[name] for name in enabled if name in classes}
    watched = (*WATCHED, POD_GROUPS) if options.feature_gates["GenericWorkload"] else WATCHED
    own = {resource: options.kinds[resource] for resource in watched}
    resources = {info.kind: resource for resource, info in own.items()}
    for name, cls in running.items():
        for kind in sorted(cls.raw_kinds):
            if kind not in resources:
                near = suggestion(kind, resources)
                raise ProfileError(f'plugin "{name}": raw_kinds: the scheduler does not watch "{kind}"{near}')
            own[resources[kind]] = options.kinds[resources[kind]].keeping_json()
    if options.extenders:
        # What is sent to them is what the API server said.
        own |= {resource: options.kinds[resource].keeping_json() for resource in ("pods", "nodes")}
    return WatchedKinds({name: cls.watches for name, cls in running.items()}, own)


def _to_watch(kinds: WatchedKinds) -> Iterator[WatchedKind]:
    """The scheduler's own kinds, and those that only plugins watch, whose absence is explained."""
    for resource, kind in kinds.own.items():
        unfinished = _UNFINISHED if resource == "pods" else ""
        yield WatchedKind(kind, field_selector=unfinished, explains_absence=resource == POD_GROUPS)
    for kind in kinds.foreign.values():
        yield WatchedKind(kind, explains_absence=True)


def metrics_for(options: SchedulerOptions) -> Metrics:
    """The metrics of such a scheduler; made apart from it where the client counts its requests in them too."""
    return Metrics(options.feature_gates.__getitem__)


def build_scheduler(
    client: ApiWriter,
    clock: Clock,
    rng: random.Random,
    options: SchedulerOptions,
    metrics: Metrics | None = None,
    connect_extender: ConnectExtender = HttpExtender,
) -> SchedulingLoop:
    """Put the parts together; nothing runs yet. ProfileError if an extender cannot be reached as it is configured."""
    metrics = metrics or metrics_for(options)
    gates = options.feature_gates
    cluster = Cluster(metrics.skipped, watched_kinds(options))
    inbox = Inbox(metrics.task_errors, clock)
    errors = PluginErrors(metrics)
    # What goes out.
    dispatcher = _dispatcher(client, clock, rng, options, metrics)
    in_place = None if gates["SchedulerAsyncAPICalls"] else SynchronousCalls(dispatcher)
    writes = ClusterWrites(cluster, in_place or dispatcher, dispatcher.queue, inbox, clock)
    recorder = (SilentRecorder if options.is_simulation else EventRecorder)(dispatcher, clock)
    gated = DelayedGatedStatus(writes, recorder)
    # What waits. Plugins order, gate and wake the pods of the queue, and act on it: their profiles are added below.
    switches = HintSwitches(gates["SchedulerQueueingHints"], gates["SchedulerPreQueueingHints"])
    hints = HintTable({}, metrics, switches, cluster.kinds)
    extenders = _extenders(options, cluster, metrics, clock, connect_extender)
    walk = NodeSampling(cluster.nodes, is_filtered_by_extenders=extenders.may_filter, ties=options.ties)
    measured_by = StoppedClock() if options.is_simulation else clock
    engines = ProfileEngines(cluster, hints, metrics, measured_by, walk, [EXTENDER] if extenders else [])
    listeners: list[OnMove] = [_count_moves(metrics, has_groups=gates["GenericWorkload"])]
    if type(options.observer).pod_moved is not SchedulerObserver.pod_moved:
        listeners.append(options.observer.pod_moved)
    kept_nodes = KeptNodes(cluster) if gates["GenericWorkload"] else None
    of_held_back = [gated.on_move] if options.reports_gated_pods else []
    if kept_nodes is not None:
        of_held_back.append(kept_nodes.on_move)
    listeners.append(_if_held_back(of_held_back))
    queue = SchedulingQueue(
        clock,
        sort_key=engines.sort_key,
        gatekeeper=engines.pre_enqueue_rejection,
        hints=hints,
        settings=QueueSettings(
            options.backoff,
            options.max_wait_seconds,
            pops_backoff=gates["SchedulerPopFromBackoffQ"],
            has_groups=gates["GenericWorkload"],
        ),
        listeners=listeners,
        line_of=extenders.line_of if extenders else no_extenders,
    )
    # What comes in, and what is done about it.
    being_bound = PodsBeingBound()
    intake = Intake(cluster, queue, inbox, dispatcher.queue, being_bound.waiting, EventDurations(metrics, clock))
    evictor = Evictor(dispatcher, inbox, intake, recorder, being_bound, clock)
    requeueing = Requeueing(queue, inbox, cluster.nominations, writes, clock)
    background = PluginTasks(clock, errors)
    effects = SchedulerEffects(writes, evictor, recorder, requeueing, being_bound.waiting, background)
    handle = FrameworkHandle(cluster, clock, rng, metrics, effects, engines)
    for profile in build_profiles(options, handle).values():
        engines.add(profile)
    # One attempt.
    attempts = Attempts(metrics, clock, recorder, errors)
    failures = FailureHandler(cluster, queue, writes, recorder, clock)
    announcer = writes if gates["NominatedNodeNameForExpectation"] else None
    binding = BindingCycle(queue, inbox, failures, attempts, being_bound, announcer, extenders)
    # To ask for it takes microseconds, and on some machines tens of them.
    cpu = StoppedClock().monotonic if options.is_simulation else thread_cpu_seconds
    budgets = CycleBudgets(options.cycle_budget_seconds, clock, metrics, cpu)
    guard = CycleGuard(budgets, SlowPlugins(clock, metrics, budgets.budget))
    consultation = Consultation(extenders, cluster, inbox, rng)
    results = CycleResults(queue, failures, attempts, binding, options.observer)
    groups = gated_groups = None
    if gates["GenericWorkload"]:
        conditions = GroupConditions(writes.calls, recorder, clock)
        gated_groups = GatedGroups(queue, engines, conditions) if options.reports_gated_pods else None
        settings = GroupSettings(gates["PodGroupPreemptionPolicy"], options.group_reservation)
        groups = GroupCycle(engines, results, guard, consultation, conditions, settings)
    cycle = SchedulingCycle(engines, results, guard, consultation, groups)
    # The loop, and what runs beside it.
    ticks = [
        Tick("events", 1, recorder.tick, recorder.quiet_seconds),
        Tick("evictions", 1, evictor.tick, evictor.quiet_seconds),
        Tick("view of pods", 1, requeueing.view_of_pods.tick, requeueing.view_of_pods.quiet_seconds),
        # A pod that waits for its claim to be made among thousands of others is not held back.
        Tick("gated pods", 3, gated.tick, gated.quiet_seconds),
        Tick("backoff", 1, requeueing.release_backoff, queue.quiet_backoff_seconds),
        Tick("flush of unschedulable pods", 30, requeueing.flush_unschedulable, queue.quiet_flush_seconds),
    ]
    if gated_groups is not None:
        ticks.insert(4, Tick("gated groups", 3, gated_groups.tick, gated_groups.quiet_seconds))
    if kept_nodes is not None:
        take_back = partial(kept_nodes.take_back, requeueing)
        ticks.append(Tick("nodes kept for groups", 1, take_back, kept_nodes.quiet_seconds))
    beside = BesideTheLoop(dispatcher, background, Ticks(ticks, metrics.task_errors), clock)
    waits_for_victims = not gates["SchedulerAsyncPreemption"]
    follow_up = FollowUp(evictor if waits_for_victims else None, in_place) if waits_for_victims or in_place else None
    read_live_gauges(metrics, queue, cluster)
    set_facts(metrics, gates.states())
    return SchedulingLoop(clock, metrics, intake, cycle, effects, beside, follow_up)


def _extenders(
    options: SchedulerOptions, cluster: Cluster, metrics: Metrics, clock: Clock, connect: ConnectExtender
) -> Extenders:
    def json_of(obj: Pod | Node) -> bytes:
        data = cluster.json_of(obj)
        assert data is not None, "pods and nodes keep their JSON if there are extenders"
        return data

    def pods_on(node_name: str) -> Sequence[Pod] | None:
        view = cluster.node_view(node_name)
        return None if view is None else view.pods

    try:
        made = [Extender(one, connect(one, clock), json_of, metrics, clock) for one in options.extenders]
    except (KubeconfigError, CredentialsError) as error:
        raise ProfileError(f"couldn't build extenders: {error}") from error
    return Extenders(made, metrics, pods_on)


def _if_held_back(listeners: Sequence[OnMove]) -> OnMove:
    """These hear only of pods that are held back: few moves are, and every pod moves several times."""

    def on_move(entry: QueuedPodInfo, why: str) -> None:
        if entry.home in HELD_BACK:
            for tell in listeners:
                tell(entry, why)

    return on_move


def _count_moves(metrics: Metrics, *, has_groups: bool) -> OnMove:
    """Pods are counted one by one, and a group with all of its members is one entity."""
    incoming, entities = metrics.queue_incoming_pods_total, metrics.queue_incoming_entities_total
    of_groups: Counter[Labels] = Counter()
    """Of these pods, those that came to their group, which is what waits."""

    def count(entry: QueuedPodInfo, why: str) -> None:
        part = INCOMING_NAMES[entry.home]
        if isinstance(entry, QueuedGroup):
            incoming.add(part, why, amount=entry.size)
            entities.add(part, why, "podgroup")
            of_groups[part, why] += entry.size
            return
        incoming.add(part, why)
        if has_groups and entry.pod.spec.scheduling_group is not None and group_key(entry.pod):
            of_groups[part, why] += 1

    def pods_by_themselves() -> dict[Labels, float]:
        """As entities; counted when asked for."""
        alone = {labels: value - of_groups[labels] for labels, value in incoming.values().items()}
        return {(*labels, "pod"): value for labels, value in alone.items() if value}

    entities.read_from(pods_by_themselves)
    return count


def _dispatcher(
    client: ApiWriter, clock: Clock, rng: random.Random, options: SchedulerOptions, metrics: Metrics
) -> Dispatcher:
    is_async = options.feature_gates["SchedulerAsyncAPICalls"]
    settings = DispatcherSettings(
        policies=DEFAULT_POLICIES if is_async else SYNCHRONOUS_POLICIES,
        calls_per_second=options.calls_per_second,
        burst=options.call_burst,
        gather_seconds=options.gather_seconds,
    )
    # Its own copy: that a call was tried again must not change what is decided.
    own = seeded(0)
    own.setstate(rng.getstate())
    dispatcher = Dispatcher(client, clock, own, settings, CallMeter(metrics).executed)
    read_call_gauges(metrics, dispatcher.queue, dispatcher.allowed)
    return dispatcher


def build_profiles(options: SchedulerOptions, handle: FrameworkHandle) -> dict[str, Profile]:
    registry = Registry([*(cls for cls, _ in DEFAULT_PLUGINS), *options.extra_plugins])
    return {
        name: build_profile(name, recipe, registry, partial(handle.for_plugin, name))
        for name, recipe in options.profiles.items()
    }


def thinking_engines(cluster: Cluster, clock: Clock, options: SchedulerOptions) -> dict[str, ProfileEngine]:
    """An engine per scheduler name that decides and never writes."""
    engines: dict[str, ProfileEngine] = {}
    handle = FrameworkHandle(cluster, clock, seeded(0), engines=engines)
    for name, profile in build_profiles(options, handle).items():
        engines[name] = ProfileEngine(profile, cluster)
    return engines
