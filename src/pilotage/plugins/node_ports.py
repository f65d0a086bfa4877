"""NodePorts: a host port can be taken once per node, protocol and address."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
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
    NodeTable,
    NodeView,
    Plugin,
    Reason,
    Reject,
    Rejection,
    Resource,
    VectorFilter,
    on_event,
)
from pilotage.api.points import NothingBeforeFilter
from pilotage.model import Pod, PodSpec
from pilotage.plugins.fragments import fragment_of

_ANY_ADDRESS = "0.0.0.0"
_TAKEN = Reason("HostPortTaken", "node(s) didn't have free ports for the requested pod ports")

HostPort = tuple[str, int, str]
"""Protocol, port and address."""


class NodePorts(Plugin, NothingBeforeFilter, Filter, VectorFilter):
    name = "NodePorts"
    pure_hints = True
    always_queue_on = (ClusterEvent(Resource.NODE, Action.ADD),)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def may_filter(self, pod: Pod) -> bool:
        return bool(host_ports(pod.spec))

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        for other in node.pods:
            state.budget.spend(1 + len(host_ports(other.spec)) // 4)
            if _conflict(pod.spec, other.spec):
                return Reject(_TAKEN)
        return None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        used = self._handle.index(UsedPorts)
        names: set[str] = set()
        for port in host_ports(pod.spec):
            state.budget.spend()
            for users in used.users_of(port):
                state.budget.spend(len(users) // 16)
                names.update(users)
        if names:
            yield nodes.rows_of(frozenset(names)), _TAKEN

    def sign(self, pod: Pod) -> Hashable | None:
        return fragment_of(host_ports(pod.spec))

    @on_event(Resource.ASSIGNED_POD, Action.DELETE)
    def after_pod_left(self, pod: Pod, old: Pod, new: Any) -> Hint:
        if not old.node_name and not old.status.nominated_node_name:
            return Hint.SKIP
        return Hint.QUEUE if _conflict(pod.spec, old.spec) else Hint.SKIP


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
            by_address = self._users[protocol, port]
            users = by_address[address]
            users[node_name] -= 1
            if not users[node_name]:
                del users[node_name]
            if not users:
                del by_address[address]
            if not by_address:
                del self._users[protocol, port]

    def users_of(self, wanted: HostPort) -> Iterator[Collection[str]]:
        """Nodes on which this port cannot be taken any more, in groups."""
        protocol, port, address = wanted
        by_address = self._users.get((protocol, port))
        if by_address is None:
            return
        if address == _ANY_ADDRESS:
            yield from by_address.values()
            return
        for other in (address, _ANY_ADDRESS):
            if other in by_address:
                yield by_address[other]


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


def _conflict(wanted: PodSpec, used: PodSpec) -> bool:
    """Whether both want one port, on the same address or on any."""
    if not (ports := host_ports(used)):
        return False
    by_port = _addresses_by_port(wanted)
    for protocol, port, address in ports:
        addresses = by_port.get((protocol, port))
        if addresses and (address == _ANY_ADDRESS or address in addresses or _ANY_ADDRESS in addresses):
            return True
    return False


def _addresses_by_port(spec: PodSpec) -> Mapping[tuple[str, int], Collection[str]]:
    known: dict[tuple[str, int], set[str]] | None = spec.memo.get(_addresses_by_port)
    if known is None:
        known = spec.memo[_addresses_by_port] = {}
        for protocol, port, address in host_ports(spec):
            known.setdefault((protocol, port), set()).add(address)
    return known
