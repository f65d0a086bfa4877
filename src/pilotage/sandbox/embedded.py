"""The composition root of the sandbox: options in, a running cluster out.

    data directory -> store -> Api -> nodes and manifests -> Life (kubelets, controllers) -> HTTP -> kubeconfig

    async with EmbeddedCluster.running(options, clock, rng) as cluster:
        client = KubeClient(cluster.transport())

The cluster may be used at once: everything that was asked for is stored (and on disk, with a data
directory) and the kubeconfig is written last, when the server answers. Files are read and judged before anything is
opened, so that a wrong one leaves no trace. On the way out the server stops first, then life, then the journal.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pilotage.clock import Clock, rfc3339
from pilotage.rng import fresh_token, seeded
from pilotage.sandbox.api import Api
from pilotage.sandbox.faults import FaultRule, Faults
from pilotage.sandbox.http.admission_webhooks import AdmissionWebhooks
from pilotage.sandbox.http.asgi import serve
from pilotage.sandbox.http.audit_log import AuditLog
from pilotage.sandbox.http.exchange import Request
from pilotage.sandbox.http.inprocess import InProcessTransport
from pilotage.sandbox.http.kubeconfig import NamedUser, write_kubeconfig
from pilotage.sandbox.http.server import ApiServer
from pilotage.sandbox.http.tls import Tls, make_tls
from pilotage.sandbox.life.controllers.controller import MOST_PODS
from pilotage.sandbox.life.controllers.provisioner import standard_storage_class
from pilotage.sandbox.life.kubelet import KubeletSettings
from pilotage.sandbox.life.loop import Life
from pilotage.sandbox.life.node_templates import NodeTemplate, load_node_template, make_nodes, nodes_from_templates
from pilotage.sandbox.life.pod_rules import PodRule, load_pod_rules
from pilotage.sandbox.life.webhook_gate import WebhookGate
from pilotage.sandbox.manifests import Manifest, read_manifests
from pilotage.sandbox.rules.default_roles import default_roles
from pilotage.sandbox.seeding import Seeded, dry_run, publish_api_server, seed
from pilotage.sandbox.storage.journal import open_journal
from pilotage.sandbox.storage.store import Store
from pilotage.tasks import sole_error

DEFAULT_NODES: Final = 3
_HISTORY: Final = 100_000
_HOST: Final = "127.0.0.1"
# In a sandbox no one else plays the kubelet of a node that a user wrote by hand.
_KUBELET: Final = KubeletSettings(manages_all_nodes=True)


class OutputPathError(Exception):
    """A file cannot be written where it was asked for: the kubeconfig, or the audit log."""


@dataclass(frozen=True, slots=True)
class EmbeddedOptions:
    """What can be chosen about a sandbox."""

    nodes: int | None = None
    """None: as many as templates and manifests say; a few in a new sandbox for which they say nothing."""
    node_templates: Sequence[Path] = ()
    manifests: Sequence[Path] = ()
    data_dir: Path | None = None
    port: int | None = 0
    """0: any free one; None: no socket at all, only `transport()`."""
    tls: bool = True
    """False: plain HTTP, with the token in the path of the URL; some clients do not work with that."""
    kubeconfig: Path | None = None
    """None: at a place of its own, for as long as the cluster runs."""
    token: str | None = field(default=None, repr=False)
    """None: a new one."""
    kubelet: KubeletSettings = _KUBELET
    pod_rules: Path | None = None
    """What pods do whose annotations do not say."""
    most_pods: int = MOST_PODS
    """Controllers create none beyond: a Job may ask for two billion."""
    faults: Sequence[FaultRule] = ()
    """What goes wrong between clients and the API server."""
    fault_seed: int | None = None
    """Of faults by chance; None: from the source of chance of the cluster."""
    queued: frozenset[str] = frozenset()
    """Integrations of workload queueing: Jobs that name a queue are created suspended, pods gated, and so on."""
    mounts_tokens: bool = False
    """Pods get a volume with a token of their ServiceAccount."""
    users: Sequence[NamedUser] | None = None
    """Who may come beside the administrator; they may do what roles allow. None: no roles are asked."""
    audit_log: Path | None = None
    """Where requests from outside are recorded."""
    is_alive: bool = True
    """Kubelets and controllers run. False leaves an API server with objects that no controller acts upon."""


@dataclass(frozen=True, slots=True)
class EmbeddedCluster:
    """A cluster that runs. `url` and `kubeconfig` are None when it serves no socket."""

    api: Api
    server: ApiServer
    life: Life
    seeded: Seeded
    url: str | None = None
    kubeconfig: Path | None = None
    faults: Faults | None = None

    def transport(self) -> InProcessTransport:
        """A new way to the server without a socket."""
        return InProcessTransport(self.server, self.faults)

    @classmethod
    @asynccontextmanager
    async def running(
        cls, options: EmbeddedOptions, clock: Clock, rng: random.Random
    ) -> AsyncIterator[EmbeddedCluster]:
        """The cluster, until the context is left.

        Raises ManifestError, TemplateError, PodRulesError, DataDirError, JournalError, PortInUse or OutputPathError.
        """
        blueprint = _Blueprint.read(options)
        with sole_error():
            async with AsyncExitStack() as stack:
                store = _open_store(options, stack)
                objects = list(blueprint.objects(rfc3339(clock.time()), is_new=store.revision == 0))
                api = Api(store, clock=clock, rng=rng, queued=options.queued, mounts_tokens=options.mounts_tokens)
                if options.data_dir is not None:
                    dry_run(api, objects, clock)
                seeded = seed(api, objects)
                await store.durable(store.revision)
                if options.users is not None:
                    make_default_roles(api)
                audit = _audit_log(options, clock, stack)
                users = None if options.users is None else {user.token: user.info() for user in options.users}
                own_place = None if options.port is None else _own_place(stack)
                tls = make_tls(own_place) if own_place is not None and options.tls else None
                authority = tls.authority.decode() if tls is not None else ""
                kubelet = replace(options.kubelet, rules=[*options.kubelet.rules, *blueprint.pod_rules])
                webhooks = AdmissionWebhooks(api)

                async def respond(request: Request) -> object:
                    """Controllers write through the server, which has the kubelets write heartbeats that are read."""
                    return await server.respond_trusted(request)

                gate = WebhookGate(webhooks, respond)
                life = Life(
                    api,
                    clock,
                    rng,
                    kubelet=kubelet,
                    most_pods=options.most_pods,
                    authority=authority,
                    gate=gate,
                )
                server = ApiServer(
                    api,
                    token=options.token or fresh_token(),
                    clock=clock,
                    on_read=life.on_read,
                    users=users,
                    audit=audit,
                    webhooks=webhooks,
                )
                await stack.enter_async_context(_background(server, life, options))
                faults = _faults(options, clock, rng)
                url, kubeconfig = None, None
                if own_place is not None:
                    url, kubeconfig = await _serve(server, options, stack, _Front(own_place, tls, faults))
                publish_api_server(api, url)
                yield cls(api, server, life, seeded, url, kubeconfig, faults)


@dataclass(frozen=True, slots=True)
class _Blueprint:
    """What the files and numbers of the options ask for."""

    nodes: int | None
    templates: Sequence[NodeTemplate]
    template_names: str
    manifests: Sequence[Manifest]
    pod_rules: Sequence[PodRule]

    @classmethod
    def read(cls, options: EmbeddedOptions) -> _Blueprint:
        templates = [template for path in options.node_templates for template in load_node_template(path)]
        names = ", ".join(map(str, options.node_templates))
        rules = [] if options.pod_rules is None else load_pod_rules(options.pod_rules)
        return cls(options.nodes, templates, names, read_manifests(options.manifests), rules)

    def objects(self, now: str, *, is_new: bool) -> Iterator[Manifest]:
        """Everything to be created; what a user removed from a sandbox that lives on does not come back by itself."""
        if is_new and not self._has("StorageClass"):
            yield Manifest("storage class", standard_storage_class())
        if self.templates:
            nodes = nodes_from_templates(self.templates, self.nodes, now=now)
        else:
            few = DEFAULT_NODES if is_new and not self._has("Node") else 0
            nodes = make_nodes(few if self.nodes is None else self.nodes, now=now)
        for node in nodes:
            yield Manifest(self.template_names or "--nodes", node)
        yield from self.manifests

    def _has(self, kind: str) -> bool:
        return any(manifest.kind == kind for manifest in self.manifests)


def _open_store(options: EmbeddedOptions, stack: AsyncExitStack) -> Store:
    if options.data_dir is None:
        return Store(history=_HISTORY)
    journal = open_journal(options.data_dir)
    stack.callback(journal.close)
    return Store(history=_HISTORY, journal=journal)


@asynccontextmanager
async def _background(server: ApiServer, life: Life, options: EmbeddedOptions) -> AsyncIterator[None]:
    """Kubelets and controllers and, where no HTTP server does it, the timers of watches."""
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(life.run(), name="sandbox-life")] if options.is_alive else []
        if options.port is None:
            running.append(tasks.create_task(server.run(), name="sandbox-watch-timers"))
        try:
            yield
        finally:
            server.watches.close()
            for task in running:
                task.cancel()


def make_default_roles(api: Api) -> None:
    """Those that are missing."""
    for resource, obj in default_roles():
        if api.find(resource, "", obj["metadata"]["name"]) is None:
            api.create(resource, "", obj)


def _audit_log(options: EmbeddedOptions, clock: Clock, stack: AsyncExitStack) -> AuditLog | None:
    if options.audit_log is None:
        return None
    try:
        audit = AuditLog(options.audit_log, clock)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        text = f"audit log {options.audit_log}: cannot be written: {reason}; choose another place"
        raise OutputPathError(text) from error
    stack.callback(audit.close)
    return audit


def _faults(options: EmbeddedOptions, clock: Clock, rng: random.Random) -> Faults | None:
    if not options.faults:
        return None
    return Faults(options.faults, clock, rng if options.fault_seed is None else seeded(options.fault_seed))


def _own_place(stack: AsyncExitStack) -> Path:
    return Path(stack.enter_context(TemporaryDirectory(prefix="pilotage-")))


@dataclass(frozen=True, slots=True)
class _Front:
    """What stands between the server and its clients."""

    own_place: Path
    tls: Tls | None
    faults: Faults | None


async def _serve(server: ApiServer, options: EmbeddedOptions, stack: AsyncExitStack, front: _Front) -> tuple[str, Path]:
    tls = front.tls
    serving = await stack.enter_async_context(serve(server, _HOST, options.port or 0, tls, front.faults))
    path = options.kubeconfig or front.own_place / "kubeconfig"
    try:
        write_kubeconfig(path, serving.url, server.token, tls.authority if tls else None, options.users or ())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputPathError(f"kubeconfig {path}: cannot be written: {reason}; choose another place") from error
    return serving.url, path
