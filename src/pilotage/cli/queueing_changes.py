"""What users change about their queued jobs and queues: patches of single objects, with the rights of a namespace.

Only the workloads and LocalQueues of the namespace are read, and one object is patched. What the API server rejects
(rights, rules) is said in its own words.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

import click
import msgspec
from msgspec import Struct

from pilotage.api.kinds import Kind
from pilotage.cli.errors import CommandError, ExitCode, bad_input, unreachable
from pilotage.cli.event_loop import run as run_loop
from pilotage.cli.options import common_options
from pilotage.clock import SystemClock
from pilotage.jobs.adapters import marks
from pilotage.kube.client import KubeClient, ListOptions
from pilotage.kube.errors import ApiStatusError, KubeconfigError
from pilotage.kube.http_transport import HttpTransport
from pilotage.kube.kubeconfig import load_connection
from pilotage.kube.transport import TransportError
from pilotage.model import KINDS
from pilotage.model.kinds import KindInfo
from pilotage.model.kueue import LocalQueue, Workload
from pilotage.model.meta import OwnerReference
from pilotage.model.suggestions import suggestion

_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_PAGE: Final = 500

Patch = dict[str, Any]


class Reach(Struct, frozen=True):
    """Which cluster, and which namespace of it."""

    kubeconfig: str | None
    context: str | None
    namespace: str

    def run(self, work: Callable[[NamespaceClient], Coroutine[Any, Any, str]]) -> str:
        """What was done, as a sentence; CommandError if it was not."""
        try:
            connection = load_connection(self.kubeconfig, self.context, clock=SystemClock())
        except KubeconfigError as error:
            raise bad_input(str(error)) from error

        async def connected() -> str:
            transport = HttpTransport(connection)
            try:
                return await work(NamespaceClient(KubeClient(transport), self.namespace))
            finally:
                await transport.close()

        try:
            return run_loop(connected())
        except ApiStatusError as error:
            code = ExitCode.UNREACHABLE if error.code >= 500 else ExitCode.FAILED
            raise CommandError(code, str(error)) from error
        except TransportError as error:
            raise unreachable(f"{error} ({connection.origin})") from error


class NamespaceClient:
    """Reads and patches objects of one namespace."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self._client = client
        self.namespace = namespace

    async def objects(self, resource: str) -> list[Any]:
        kind, found, token = KINDS[resource], [], ""
        while True:
            options = ListOptions(limit=_PAGE, continue_token=token, namespace=self.namespace)
            page = await self._client.list_page(kind, options)
            found += page.items
            token = page.continue_token
            if not token:
                return found

    async def workload(self, name: str) -> Workload:
        """By its own name or that of its job; the newest, if the job had several."""
        known: list[Workload] = await self.objects("workloads")
        exact = [one for one in known if name in (one.name, one.labels.get(marks.GROUP_NAME))]
        owned = [one for one in known if (owner := one.metadata.controller) is not None and owner.name == name]
        found = exact or owned
        if not found:
            names = [one.name for one in known]
            names += [owner.name for one in known if (owner := one.metadata.controller) is not None]
            near = suggestion(name, names) or "; pilotage jobs shows those that there are"
            raise CommandError(ExitCode.BAD_INPUT, f'no workload "{name}" in namespace {self.namespace}{near}')
        newest = max(found, key=lambda one: one.metadata.creation_timestamp or "")
        if any(one.type == "Finished" and one.status == "True" for one in newest.status.conditions):
            raise CommandError(ExitCode.BAD_INPUT, f"{newest.name} has finished: there is nothing to change any more")
        return newest

    async def local_queue(self, name: str) -> LocalQueue:
        known: list[LocalQueue] = await self.objects("localqueues")
        for one in known:
            if one.name == name:
                return one
        near = suggestion(name, [one.name for one in known]) or "; pilotage queues shows those that there are"
        raise CommandError(ExitCode.BAD_INPUT, f'no local queue "{name}" in namespace {self.namespace}{near}')

    async def has_priority_class(self, name: str) -> bool:
        """True also if one may not look."""
        try:
            await self._client.get(KINDS["workloadpriorityclasses"], "", name)
        except ApiStatusError as error:
            if error.code == _NOT_FOUND:
                return False
            if error.code != _FORBIDDEN:
                raise
        return True

    async def patch(self, kind: KindInfo, name: str, patch: Patch) -> None:
        namespace = self.namespace if kind.namespaced else ""
        await self._client.patch(kind, namespace, name, msgspec.json.encode(patch))

    async def label_job_of(self, workload: Workload, label: str, value: str) -> str:
        """Label what the workload stands for: its job, or the pods of its group. What that was."""
        patch = {"metadata": {"labels": {label: value}}}
        owner, group = workload.metadata.controller, workload.labels.get(marks.GROUP_NAME)
        if owner is not None:
            await self.patch(_kind_of(owner), owner.name, patch)
            return f"{owner.kind.lower()}/{owner.name}"
        if not group:
            text = f"workload {workload.name} stands for no job; change its spec: kubectl edit workload {workload.name}"
            raise CommandError(ExitCode.BAD_INPUT, text)
        pods = [pod for pod in await self.objects("pods") if pod.labels.get(marks.GROUP_NAME) == group]
        for pod in pods:
            await self.patch(KINDS["pods"], pod.name, patch)
        return f"{len(pods)} pods of group {group}"


def _kind_of(owner: OwnerReference) -> KindInfo:
    known = next((info for info in KINDS.values() if info.kind == owner.kind), None)
    if known is not None:
        return known
    group, _, version = owner.api_version.rpartition("/")
    return Kind(f"{owner.kind.lower()}s.{group}", version).info


def change_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which cluster, which namespace: the command gets them as one `reach`."""

    @click.option("-n", "--namespace", default="default", show_default=True, metavar="N", help="Where it is.")
    @click.option(
        "--kubeconfig", metavar="F", help="Kubeconfig file.  [default: as kubectl: $KUBECONFIG, ~/.kube/config]"
    )
    @click.option("--context", metavar="C", help="Context in it.  [default: its current context]")
    @common_options
    @functools.wraps(command)
    def with_reach(namespace: str, kubeconfig: str | None, context: str | None, **others: Any) -> Any:
        return command(reach=Reach(kubeconfig, context, namespace), **others)

    return with_reach


class ShowingGroup(click.Group):
    """A command that shows something, with commands below it that change something. A name may follow, or one of these.

    Options may stand behind the name, as they may with every other command.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        takes_name = any(isinstance(parameter, click.Argument) for parameter in self.params)
        if args and args[0] in self.commands:
            return super().parse_args(ctx, ["", *args] if takes_name else args)
        ctx.allow_interspersed_args = True
        rest = super().parse_args(ctx, args)
        if ctx._protected_args or ctx.args:
            word = [*ctx._protected_args, *ctx.args][0]
            near = suggestion(word, list(self.commands))
            raise click.UsageError(f'unexpected "{word}"{near}; below {ctx.info_name} there are: {_listed(self)}', ctx)
        return rest


def _listed(group: click.Group) -> str:
    return ", ".join(group.commands)


# --- jobs -------------------------------------------------------------------------------------------------------------


async def set_active(client: NamespaceClient, names: Sequence[str], *, is_active: bool) -> str:
    said = []
    for name in names:
        workload = await client.workload(name)
        if workload.spec.active is is_active:
            said.append(f"{workload.name}: it is {'not stopped' if is_active else 'stopped already'}")
            continue
        await client.patch(KINDS["workloads"], workload.name, {"spec": {"active": is_active}})
        said.append(f"{workload.name}: {'queued again' if is_active else 'stopped; its quota is free for others'}")
    return "\n".join(said)


async def move(client: NamespaceClient, name: str, queue: str) -> str:
    workload, target = await client.workload(name), await client.local_queue(queue)
    if workload.spec.queue_name == target.name:
        return f"{workload.name} is in queue {target.name}"
    holding = any(one.type == "QuotaReserved" and one.status == "True" for one in workload.status.conditions)
    if holding:
        text = f"{workload.name} has quota in {workload.spec.queue_name}: pilotage jobs stop {name}, then move it"
        raise CommandError(ExitCode.BAD_INPUT, text)
    what = await client.label_job_of(workload, marks.QUEUE_NAME, target.name)
    stopped = "" if workload.spec.active else f"; it is stopped: pilotage jobs resume {name}"
    return f"{what} moved from {workload.spec.queue_name} to {target.name}{stopped}"


async def set_priority(client: NamespaceClient, name: str, priority_class: str) -> str:
    workload = await client.workload(name)
    if not await client.has_priority_class(priority_class):
        text = f'no WorkloadPriorityClass "{priority_class}": kubectl get workloadpriorityclasses shows those there are'
        raise CommandError(ExitCode.BAD_INPUT, text)
    what = await client.label_job_of(workload, marks.PRIORITY_CLASS, priority_class)
    return f"{what} has priority class {priority_class} now"


# --- queues -----------------------------------------------------------------------------------------------------------

STOP, DRAIN, RESUME = "Hold", "HoldAndDrain", "None"
_EFFECTS: Final = {
    STOP: "stopped: nothing more is admitted, what runs goes on",
    DRAIN: "drained: what runs is evicted and waits",
    RESUME: "open again",
}


async def set_stop_policy(client: NamespaceClient, name: str, policy: str, *, is_cluster_queue: bool) -> str:
    if is_cluster_queue:
        kind = KINDS["clusterqueues"]
    else:
        kind = KINDS["localqueues"]
        await client.local_queue(name)
    await client.patch(kind, name, {"spec": {"stopPolicy": policy}})
    return f"{'cluster queue' if is_cluster_queue else 'local queue'} {name} is {_EFFECTS[policy]}"
