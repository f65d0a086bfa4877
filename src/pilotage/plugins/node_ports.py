"""NodePorts: a host port can be taken once per node, protocol and address."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from pilotage.api import (
    Action,
    ClusterEvent,
    ClusterIndex,
    CycleState,
    Filter,
    Handle,
    Hint,
    Mask,
    NodeNames,
    NodeTable,
    NodeView,
    Plugin,
    PreFilter,
    Reason,
    Refusal,
    Reject,
    Resource,
    Skip,
    VectorFilter,
    on_event,
)
from pilotage.api.results import SKIP
from pilotage.model import Pod, PodSpec

_ANY_ADDRESS = "0.0.0.0"
_TAKEN = Reason("HostPortTaken", "node(s) didn't have free ports for the requested pod ports")

HostPort = tuple[str, int, str]
"""Protocol, port and address."""


class NodePorts(Plugin, PreFilter, Filter, VectorFilter):
    name = "NodePorts"
    always_queue_on = (ClusterEvent(Resource.NODE, Action.ADD),)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> NodeNames | Skip | Refusal | None:
        return None if host_ports(pod.spec) else SKIP

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Refusal | None:
        wanted = host_ports(pod.spec)
        if any(_conflict(wanted, host_ports(other.spec)) for other in node.pods):
            return Reject(_TAKEN)
        return None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        used = self._handle.index(UsedPorts)
        names = frozenset(name for port in host_ports(pod.spec) for name in used.nodes_that_use(port))
        if names:
            yield nodes.rows_of(names), _TAKEN

    def sign(self, pod: Pod) -> Hashable | None:
        return host_ports(pod.spec)

    @on_event(Resource.ASSIGNED_POD, Action.DELETE)
    def after_pod_left(self, pod: Pod, old: Pod, new: Any) -> Hint:
        if not old.node_name and not old.status.nominated_node_name:
            return Hint.SKIP
        return Hint.QUEUE if _conflict(host_ports(pod.spec), host_ports(old.spec)) else Hint.SKIP


class UsedPorts(ClusterIndex):
    """Which nodes use which host ports, and how many pods do so there."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, int], dict[str, dict[str, int]]] = {}

    def pod_added(self, pod: Pod, node_name: str) -> None:
        for protocol, port, address in host_ports(pod.spec):
            users = self._users.setdefault((protocol, port), {}).setdefault(address, {})
            users[node_name] = users.get(node_name, 0) + 1

    def pod_removed(self, pod: Pod, node_name: str) -> None:
        for protocol, port, address in host_ports(pod.spec):
            users = self._users[protocol, port][address]
            users[node_name] -= 1
            if not users[node_name]:
                del users[node_name]

    def nodes_that_use(self, wanted: HostPort) -> Iterator[str]:
        """Nodes on which this port cannot be taken any more."""
        protocol, port, address = wanted
        for other, users in self._users.get((protocol, port), {}).items():
            if _addresses_meet(address, other):
                yield from users


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """The host ports that a pod takes: those of its containers and sidecars."""
    known: tuple[HostPort, ...] | None = spec.memo.get(host_ports)
    if known is None:
        containers = [*spec.containers, *(c for c in spec.init_containers if c.is_sidecar)]
        ports = {
            (port.protocol or "TCP", port.host_port, port.host_ip or _ANY_ADDRESS)
            for container in containers
            for port in container.ports
            if port.host_port > 0
        }
        known = spec.memo[host_ports] = tuple(sorted(ports))
    return known


def _conflict(wanted: tuple[HostPort, ...], used: tuple[HostPort, ...]) -> bool:
    return any(w[:2] == u[:2] and _addresses_meet(w[2], u[2]) for w in wanted for u in used)


def _addresses_meet(one: str, other: str) -> bool:
    return one == other or _ANY_ADDRESS in (one, other)
