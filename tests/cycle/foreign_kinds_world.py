"""A cluster with a kind of somebody else's, and plugins that watch it, in virtual time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar

from pilotage.api import (
    Action,
    Affected,
    ApiObject,
    ClusterIndex,
    CycleState,
    Filter,
    Handle,
    Hint,
    Kind,
    NodeView,
    Plugin,
    Reason,
    Reject,
    Rejection,
    Shape,
    narrows,
    on_event,
)
from pilotage.assembly import SchedulerProcess, options_from_configuration
from pilotage.config.load import configuration_of
from pilotage.kube.client import KubeClient
from pilotage.model import Pod
from pilotage.rng import seeded
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.testing import VirtualClock

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
TICKETS = "tickets.example.com"


class TicketSpec(Shape, frozen=True):
    is_open: bool = False


class Ticket(ApiObject, frozen=True):
    spec: TicketSpec = TicketSpec()


TICKET = Kind(TICKETS, "v1", Ticket)


class OpenTickets(ClusterIndex):
    kinds: ClassVar[frozenset[Kind]] = frozenset({TICKET})

    def __init__(self) -> None:
        self.names: set[str] = set()

    def object_put(self, kind: str, old: Ticket | None, new: Ticket) -> None:
        assert kind == TICKET.name
        self.names.discard(new.key)
        if new.spec.is_open:
            self.names.add(new.key)

    def object_removed(self, kind: str, obj: Ticket) -> None:
        self.names.discard(obj.key)


class Tickets(Plugin, Filter):
    """A pod runs if there is an open ticket of its name."""

    watches = (TICKET,)

    def __init__(self, handle: Handle) -> None:
        self.tickets = handle.objects(TICKET)
        self.open = handle.index(OpenTickets)
        self.asked: list[str] = []

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        ticket = self.tickets.get(pod.key)
        assert (ticket is not None and ticket.spec.is_open) == (pod.key in self.open.names)
        return None if pod.key in self.open.names else Reject(Reason("NoTicket", "no open ticket", unresolvable=True))

    @on_event(TICKETS, Action.ADD | Action.UPDATE)
    def after_ticket(self, pod: Pod, old: Ticket | None, new: Ticket) -> Hint:
        self.asked.append(pod.name)
        return Hint.QUEUE if new.spec.is_open else Hint.SKIP

    @narrows(TICKETS, Action.ADD | Action.UPDATE)
    def concerned(self, old: Ticket | None, new: Ticket) -> Affected:
        return Affected.pods([new.key])


class PlainTickets(Plugin, Filter):
    """The same with dicts."""

    watches = (Kind("tickets.v1.example.com"),)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        ticket = self._handle.objects(self.watches[0]).get(pod.key)
        is_open = ticket is not None and ticket["spec"]["isOpen"]
        return None if is_open else Reject(Reason("NoTicket", "no open ticket in plain words"))

    @on_event("tickets.v1.example.com", Action.ALL)
    def after_ticket(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE if new is not None and new["spec"]["isOpen"] else Hint.SKIP


def definition(plural: str = "tickets", version: str = "v1", group: str = "example.com") -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].capitalize()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }


def ticket(name: str, is_open: object = True) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Ticket",
        "metadata": {"name": name},
        "spec": {"isOpen": is_open},
    }


class World:
    def __init__(self, cluster: EmbeddedCluster, process: SchedulerProcess, clock: VirtualClock) -> None:
        self.api = cluster.api
        self.process = process
        self.scheduler = process.scheduler
        self.clock = clock

    async def after(self, seconds: float) -> None:
        await self.clock.advance(seconds)
        self.scheduler.queue.check()
        self.scheduler.cluster.check()

    def plugin(self, name: str) -> Any:
        profile = self.scheduler.cycle.engines["default-scheduler"].profile
        return next(plugin for plugin in profile.plugins if plugin.plugin_name() == name)

    def pod(self, name: str) -> None:
        spec = {"containers": [{"name": "c", "image": "i"}]}
        self.api.create("pods", "default", {"metadata": {"name": name}, "spec": spec})

    def put(self, obj: dict[str, Any]) -> None:
        """Replace a ticket."""
        name = obj["metadata"]["name"]
        self.api.update(TICKETS, "default", name, {**self.api.get(TICKETS, "default", name), "spec": obj["spec"]})

    def node_of(self, name: str) -> str:
        return str(self.api.get("pods", "default", name)["spec"].get("nodeName", ""))


@asynccontextmanager
async def world(*plugins: type[Plugin], installed: bool = True, disabled: str = "") -> AsyncIterator[World]:
    """A scheduler with these plugins on a cluster of one node; the kind of tickets is `installed` from the start."""
    clock, rng = VirtualClock(), seeded(1)
    document: dict[str, Any] = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    if disabled:
        document["profiles"] = [{"plugins": {"multiPoint": {"disabled": [{"name": disabled}]}}}]
    # Nothing is swept: a pod that no event wakes is to be seen.
    options = replace(
        options_from_configuration(configuration_of(document), plugins),
        max_wait_seconds=1e6,
        cycle_budget_seconds=math.inf,
    )
    async with EmbeddedCluster.running(EmbeddedOptions(nodes=1, port=None), clock, rng) as cluster:
        if installed:
            cluster.api.create(CRDS, "", definition())
        process = SchedulerProcess(KubeClient(cluster.transport()), clock, rng, options)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(process.run())
            made = World(cluster, process, clock)
            await made.after(1)
            yield made
            running.cancel()
