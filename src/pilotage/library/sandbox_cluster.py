"""A cluster for tests: API server, simulated nodes, controllers and the scheduler, started in milliseconds.

    with SandboxCluster(nodes=5) as cluster:
        cluster.apply("deployment.yaml")
        cluster.wait("deployment/web", "Available")

It runs in a thread of its own, so that tests and the clients that they try out need no event loop. Any client reaches
it over HTTPS by the kubeconfig; the methods here go to the same server without a socket. With `virtual_time` time
stands still until `advance` or `wait` moves it: an hour of cluster life takes milliseconds, and is the same each time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
import uvloop

from pilotage.api.plugin import Plugin
from pilotage.assembly import SchedulerOptions, SchedulerProcess
from pilotage.clock import SystemClock
from pilotage.explain.engine import thinking_engines
from pilotage.explain.group_text import render_group
from pilotage.explain.inquiry import Inquiry, Witnesses, answered
from pilotage.explain.render import render
from pilotage.explain.report import GroupReport
from pilotage.explain.subject import UnknownSubject
from pilotage.kube.client import MERGE_PATCH, KubeClient
from pilotage.kube_yaml import documents
from pilotage.library.configured import configured
from pilotage.model.queue_admission import FRAMEWORKS
from pilotage.model.suggestions import suggestion
from pilotage.rng import fresh_seed, seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.sandbox.faults import parse_fault
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.life.node_templates import make_nodes
from pilotage.sandbox.manifests import read_manifests
from pilotage.sandbox.storage.records import Key, Record
from pilotage.tasks import sole_error
from pilotage.testing.virtual_clock import VirtualClock

Object: TypeAlias = dict[str, Any]
Objects: TypeAlias = list[Object]
Lines: TypeAlias = list[str]
Until: TypeAlias = str | Callable[[Object], object]
_Result = TypeVar("_Result")

_LONGEST_START_SECONDS: Final = 60.0
_MOST_EVENTS_SHOWN: Final = 10
_GONE: Final = "gone"


class ConditionNotMet(AssertionError):
    """What was waited for did not come in time; the text has the object, its Events and why its pods wait."""


class NoSuchKind(LookupError):
    """The cluster serves no such kind."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What can be chosen about a cluster for tests."""

    nodes: int = 3
    virtual_time: bool = False
    https: bool = True
    """Whether clients reach it by a socket, too."""
    scheduler: bool = True
    queueing: bool = False
    """Whether Jobs and pods that name a queue wait for quota (workload queueing)."""
    config: Path | str | None = None
    """A KubeSchedulerConfiguration."""
    plugins: Sequence[type[Plugin]] = ()
    manifests: Sequence[Path | str] = ()
    faults: Sequence[str] = ()
    """What goes wrong between clients and the server, as `pilotage sandbox --fault` has it; `reset` leaves it."""
    seed: int | None = None
    """None: another one each time; 0 with virtual time."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All objects of a cluster, as they were at one moment."""

    records: Mapping[Key, Record] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Running:
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event
    cluster: EmbeddedCluster
    process: SchedulerProcess | None

    @property
    def api(self) -> Api:
        return self.cluster.api


class SandboxCluster:
    """A cluster in this process, for as long as its context lasts.

    Things are named as for kubectl: `pod/web-1`, `deploy/web`, `nodes`; the namespace is an argument.
    """

    def __init__(self, options: ClusterOptions | None = None, **changes: Any) -> None:
        """Takes the fields of ClusterOptions by name. Nothing runs before the context is entered."""
        self.options = replace(options or ClusterOptions(), **changes)
        self._virtual = VirtualClock() if self.options.virtual_time else None
        self._clock = self._virtual or SystemClock()
        self._scheduler_options = _scheduler_options(self.options)
        self._started: Future[_Running] = Future()
        self._thread = threading.Thread(target=self._run, name="pilotage-cluster", daemon=True)

    def __enter__(self) -> SandboxCluster:
        self._thread.start()
        self._started.result(_LONGEST_START_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        running = self._running
        running.loop.call_soon_threadsafe(running.stop.set)
        self._thread.join()

    @property
    def kubeconfig(self) -> Path:
        """For clients of this process and of others; ValueError without `https`."""
        path = self._running.cluster.kubeconfig
        if path is None:
            raise ValueError("this cluster has no kubeconfig: it was started with https=False")
        return path

    # --- objects -----------------------------------------------------------------------------------------------

    def apply(self, *sources: Path | str | Object, namespace: str = "default") -> Objects:
        """Create objects, or change those that are there. A source is a path, a YAML text of several lines, or a dict.

        ManifestError names file and document, ApiError says what the server rejects.
        """
        objects = [obj for source in sources for obj in _objects_of(source)]
        return self._call(lambda running: [_applied(running.api, obj, namespace) for obj in objects])

    def nodes(self, count: int) -> None:
        """Have so many nodes: simulated ones are added, or the last ones are removed."""

        def change(running: _Running) -> None:
            names = [record.key.name for record in running.api.store.list("nodes")]
            wanted = list(make_nodes(count))
            for node in wanted[len(names) :]:
                running.api.create("nodes", "", node)
            for name in names[count:]:
                running.api.delete("nodes", "", name)

        self._call(change)

    def get(self, what: str, *, namespace: str = "default") -> Object:
        """The object of `kind/name`; ApiError 404 if there is none."""
        kind, _, name = what.partition("/")

        def read(running: _Running) -> Object:
            resource = _resource(running.api, kind)
            return running.api.get(resource.storage, namespace if resource.namespaced else "", name)

        return self._call(read)

    def list(self, kind: str, *, namespace: str | None = "default", labels: str = "", fields: str = "") -> Objects:
        """The objects of a kind, by name; of all namespaces if that is None."""

        def read(running: _Running) -> Objects:
            resource = _resource(running.api, kind)
            return running.api.list(resource.storage, namespace if resource.namespaced else None, labels, fields)

        return self._call(read)

    def patch(self, what: str, patch: Object, *, namespace: str = "default", subresource: str = "") -> Object:
        """A JSON merge patch."""
        kind, _, name = what.partition("/")

        def write(running: _Running) -> Object:
            resource, body = _resource(running.api, kind), msgspec.json.encode(patch)
            place = namespace if resource.namespaced else ""
            return running.api.patch(resource.storage, place, name, body, MERGE_PATCH, subresource)

        return self._call(write)

    def delete(self, what: str, *, namespace: str = "default") -> Object:
        """As kubectl does; what belongs to it goes too, as time passes."""
        kind, _, name = what.partition("/")

        def write(running: _Running) -> Object:
            resource = _resource(running.api, kind)
            return running.api.delete(resource.storage, namespace if resource.namespaced else "", name)

        return self._call(write)

    # --- time --------------------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Let virtual time pass; ValueError if time is real."""
        if self._virtual is None:
            raise ValueError("time is real here: wait() for something, or start the cluster with virtual_time=True")
        self._await(self._virtual.advance(seconds))

    def wait(self, what: str, until: Until = "", *, namespace: str = "default", seconds: float = 60.0) -> Object:
        """Wait until an object is as wanted, and return it; ConditionNotMet if it is not within so many seconds.

        `until` is the name of a condition that must be True (`Ready`, `Available`, `Complete`), "gone", or a function
        of the object; without it the object must exist. With virtual time, time passes here.
        """
        return self._await(self._wait(what, until, namespace, seconds))

    # --- all objects at once -----------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """All objects, to come back to."""
        return self._call(lambda running: Snapshot(_records(running.api)))

    def reset(self, snapshot: Snapshot) -> None:
        """Have the objects of a snapshot again, and no others. Clients that watch see what changes; time goes on."""

        def restore(running: _Running) -> None:
            store, wanted = running.api.store, snapshot.records
            for key, record in _records(running.api).items():
                if key not in wanted:
                    store.delete(key)
                elif wanted[key].revision != record.revision:
                    store.update(key, wanted[key].object())
            for key, record in wanted.items():
                if store.get(key) is None:
                    store.create(key, record.object())

        self._call(restore)

    # --- why ---------------------------------------------------------------------------------------------------

    def explain(self, what: str, *, namespace: str = "default") -> str:
        """What `pilotage explain` says of a pod, of a workload that makes pods, or of a pod group."""
        return self._call(lambda running: self._explanation(running, what, namespace))

    def events(self, name: str = "", *, namespace: str = "default") -> Lines:
        """`Reason: message` of the Events about objects of this name, oldest first."""
        return self._call(lambda running: _events(running.api, name, namespace))

    # --- inside of the thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        factory = asyncio.new_event_loop if self._virtual is not None else uvloop.new_event_loop
        try:
            with sole_error(), asyncio.Runner(loop_factory=factory) as runner:
                runner.run(self._live())
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _live(self) -> None:
        options = self.options
        seed = options.seed if options.seed is not None else 0 if options.virtual_time else fresh_seed()
        rng, clock, stop = seeded(seed), self._clock, asyncio.Event()
        embedded = EmbeddedOptions(
            nodes=options.nodes,
            manifests=[Path(path) for path in options.manifests],
            port=0 if options.https else None,
            tls=options.https,
            queued=FRAMEWORKS if options.queueing and options.scheduler else frozenset(),
            mounts_tokens=True,
            faults=[parse_fault(text) for text in options.faults],
        )
        async with EmbeddedCluster.running(embedded, clock, rng) as cluster, asyncio.TaskGroup() as tasks:
            process = None
            if options.scheduler:
                process = SchedulerProcess(KubeClient(cluster.transport()), clock, rng, self._scheduler_options)
                scheduling = tasks.create_task(process.run(), name="scheduler")
            self._started.set_result(_Running(asyncio.get_running_loop(), stop, cluster, process))
            await stop.wait()
            if process is not None:
                scheduling.cancel()

    @property
    def _running(self) -> _Running:
        if not self._started.done():
            raise ValueError("the cluster runs inside of its context only: with SandboxCluster() as cluster: ...")
        return self._started.result()

    def _call(self, function: Callable[[_Running], _Result]) -> _Result:
        async def call() -> _Result:
            return function(self._running)

        return self._await(call())

    def _await(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        running = self._running
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a plugin must not wait for the cluster that it is part of")
        if not self._thread.is_alive():
            work.close()
            raise RuntimeError("the cluster has ended")
        return asyncio.run_coroutine_threadsafe(self._at_rest(work), running.loop).result()

    async def _at_rest(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """With virtual time it must not matter when the caller's thread comes: all others have come to rest by then."""
        if self._virtual is not None:
            await self._virtual.settle()
        return await work

    async def _wait(self, what: str, until: Until, namespace: str, seconds: float) -> Object:
        running, deadline = self._running, self._clock.monotonic() + seconds
        kind, _, name = what.partition("/")
        resource = _resource(running.api, kind)
        key = Key(resource.storage, namespace if resource.namespaced else "", name)
        async with _changes(running, resource.storage) as changed:
            while True:
                changed.clear()
                record = running.api.store.get(key)
                obj = None if record is None else record.object()
                if _is_met(obj, until):
                    return obj or {}
                if not await self._time_passes(changed, deadline):
                    raise ConditionNotMet(self._complaint(running, what, until, obj, namespace, seconds))

    async def _time_passes(self, changed: asyncio.Event, deadline: float) -> bool:
        """Until something changed; False if the deadline came first."""
        left = deadline - self._clock.monotonic()
        if self._virtual is None:
            try:
                async with asyncio.timeout(max(left, 0)):
                    await changed.wait()
            except TimeoutError:
                return False
            return True
        await self._virtual.settle()
        if not changed.is_set():
            if left <= 0:
                return False
            next_wake = self._virtual.next_wake
            pause = left if next_wake is None else min(left, next_wake - self._clock.monotonic())
            await self._virtual.advance(max(pause, 0))
        return True

    def _complaint(
        self, running: _Running, what: str, until: Until, obj: Object | None, namespace: str, seconds: float
    ) -> str:
        wanted = f" {until}" if isinstance(until, str) and until else " as wanted" if until else " there"
        lines = [f"{what} in namespace {namespace} is not{wanted} after {seconds:g} s"]
        if obj is not None:
            lines.append(f"status: {msgspec.json.encode(obj.get('status')).decode()}")
        lines += _events(running.api, what.partition("/")[2], namespace)[-_MOST_EVENTS_SHOWN:]
        with suppress(UnknownSubject, ValueError):  # What has no pods cannot be explained.
            lines.append(self._explanation(running, what, namespace))
        return "\n".join(lines)

    def _explanation(self, running: _Running, what: str, namespace: str) -> str:
        if running.process is None:
            raise ValueError("this cluster was started without a scheduler")
        loop, options = running.process.scheduler, self._scheduler_options
        has_own_policy = options.feature_gates["PodGroupPreemptionPolicy"]
        engines = thinking_engines(loop.cluster, self._clock, options)
        report = answered(Inquiry(what, namespace), loop.cluster, Witnesses(engines, has_own_policy=has_own_policy))
        return render_group(report) if isinstance(report, GroupReport) else render(report)


def _scheduler_options(options: ClusterOptions) -> SchedulerOptions:
    scheduler = configured(options.config, options.plugins)[1]
    if not options.queueing:
        return scheduler
    # A cluster that queues no workloads does without the whole package.
    from pilotage.jobs.configuration.kinds import QueueingConfiguration

    return replace(scheduler, queueing=QueueingConfiguration())


def _objects_of(source: Path | str | Object) -> Objects:
    if isinstance(source, dict):
        return [msgspec.json.decode(msgspec.json.encode(source))]
    if isinstance(source, str) and "\n" in source:
        return [document.value for document in documents(source.encode())]
    return [manifest.obj for manifest in read_manifests([Path(source)])]


def _applied(api: Api, obj: Object, namespace: str) -> Object:
    api_version, kind, metadata = str(obj.get("apiVersion")), str(obj.get("kind")), obj.get("metadata") or {}
    resource = api.registry.for_kind(api_version, kind)
    if resource is None:
        near = suggestion(kind, sorted({one.kind for one in api.registry}))
        raise NoSuchKind(f'there is no kind "{kind}" in version "{api_version}"{near}')
    place = str(metadata.get("namespace") or namespace) if resource.namespaced else ""
    name = metadata.get("name")
    if name is None or api.store.get(Key(resource.storage, place, name)) is None:
        return api.verbs.create(resource, place, obj).object()
    return api.patch(resource.storage, place, name, msgspec.json.encode(obj), MERGE_PATCH)


def _resource(api: Api, word: str) -> ResourceType:
    """What `pod`, `pods` or `po` means, `deployments.apps` too."""
    lower = word.lower()
    types = list(api.registry)
    for one in types:
        if lower in (one.plural, one.singular, one.qualified, *one.short_names):
            return api.registry.of(one.storage)
    near = suggestion(lower, sorted({one.singular for one in types}))
    raise NoSuchKind(f'there is no kind "{word}"{near}')


def _records(api: Api) -> dict[Key, Record]:
    return {record.key: record for resource in api.store.resources() for record in api.store.list(resource)}


def _events(api: Api, name: str, namespace: str) -> list[str]:
    about = [
        event for event in api.list("events", namespace) if not name or event["involvedObject"].get("name") == name
    ]
    about.sort(key=lambda event: event["metadata"]["creationTimestamp"])
    return [f"{event.get('reason')}: {event.get('message')}" for event in about]


def _is_met(obj: Object | None, until: Until) -> bool:
    if until == _GONE:
        return obj is None
    if obj is None:
        return False
    if callable(until):
        return bool(until(obj))
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return not until or any(one.get("type") == until and one.get("status") == "True" for one in conditions)


@asynccontextmanager
async def _changes(running: _Running, resource: str) -> AsyncIterator[asyncio.Event]:
    """An event that is set when an object of the resource changes."""
    changed = asyncio.Event()
    unsubscribe = running.api.store.subscribe(resource, lambda change: changed.set())
    try:
        yield changed
    finally:
        unsubscribe()
