"""NUMA zones: a port of the plugin NodeResourceTopologyMatch of kubernetes-sigs/scheduler-plugins.

    pilotage sandbox --plugin examples/plugins/node_resource_topology.py \\
        -f examples/plugins/crds/noderesourcetopologies.yaml -f examples/plugins/node_resource_topology.yaml
    kubectl get pods -o wide        # aligned goes to whole: split has as many cores, but no zone with enough of them

An agent on each node reports its zones in a NodeResourceTopology of the node's name (noderesourcetopologies.
topology.node.k8s.io): what each zone has, and what is available there now. If the kubelet's topology manager has the
policy single-numa-node, a Guaranteed pod whose containers fit into no zone would be rejected by the kubelet; this
plugin does not send it there.

- Filter: every container (or the pod as a whole, by the topology manager's scope) fits into one zone. Of pods that are
  not Guaranteed only devices are aligned, so only these are looked at. A node without a report is not judged.
- Score: the more is left in the best zone, the better (LeastAllocated).
- Reserve: reports are late. What was placed since the last one is taken from every zone, until the next report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pilotage.api import (
    Action,
    ApiObject,
    Container,
    CycleState,
    Filter,
    Handle,
    Hint,
    Kind,
    NodeView,
    Plugin,
    Pod,
    Quantity,
    Reason,
    Rejection,
    Reject,
    Reserve,
    Resource,
    Score,
    Shape,
    on_event,
    pod_requests,
    quantity_milli,
    quantity_value,
)

Amounts = dict[str, int]
"""By resource: cpu in thousandths, everything else in units."""

_SINGLE_ZONE: Final = "single-numa-node"
_OLD_POLICIES: Final = {"SingleNUMANodePodLevel": "pod", "SingleNUMANodeContainerLevel": "container"}


class ZoneResource(Shape, frozen=True):
    name: str = ""
    allocatable: Quantity = 0
    available: Quantity = 0


class Zone(Shape, frozen=True):
    name: str = ""
    type: str = ""
    resources: tuple[ZoneResource, ...] = ()


class Attribute(Shape, frozen=True):
    name: str = ""
    value: str = ""


class NodeResourceTopology(ApiObject, frozen=True):
    topology_policies: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    zones: tuple[Zone, ...] = ()

    @property
    def scope(self) -> str:
        """What must fit into one zone: "container", "pod", or "" if nothing has to."""
        attributes = {attribute.name: attribute.value for attribute in self.attributes}
        if attributes.get("topologyManagerPolicy") == _SINGLE_ZONE:
            return attributes.get("topologyManagerScope", "container")
        return next((_OLD_POLICIES[one] for one in self.topology_policies if one in _OLD_POLICIES), "")


TOPOLOGIES = Kind("noderesourcetopologies.topology.node.k8s.io", "v1alpha2", NodeResourceTopology, namespaced=False)


class Placed(NamedTuple):
    """A pod that the agent has not reported yet."""

    report: str
    """Version of the last report when it was placed."""
    requests: Mapping[str, int]


class NodeResourceTopologyMatch(Plugin, Filter, Score, Reserve):
    """Only nodes with a zone that has room."""

    watches = (TOPOLOGIES,)

    def __init__(self, handle: Handle) -> None:
        self._topologies = handle.objects(TOPOLOGIES)
        self._placed: dict[str, dict[str, Placed]] = {}
        """By node and UID of the pod."""

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        topology: NodeResourceTopology | None = self._topologies.get(node.name)
        if topology is None:
            return None
        what = misfit(pod, topology, self._unreported(node.name, topology))
        # Evicting pods cannot help: what that makes available is in the next report.
        return Reject(Reason("CannotAlign", f"cannot align {what}", unresolvable=True)) if what else None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        topology: NodeResourceTopology | None = self._topologies.get(node.name)
        if topology is None or not topology.scope:
            return 0
        wanted = _aligned(pod, pod_requests(pod.spec))
        taken = self._unreported(node.name, topology)
        return max((_left(zone, wanted, taken) for zone in topology.zones), default=0)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        topology: NodeResourceTopology | None = self._topologies.get(node_name)
        if topology is not None:
            known = self._placed.get(node_name, {})
            kept = {uid: one for uid, one in known.items() if one.report == topology.resource_version}
            self._placed[node_name] = {**kept, pod.uid: Placed(topology.resource_version, pod_requests(pod.spec))}
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        placed = self._placed.get(node_name, {})
        placed.pop(pod.uid, None)
        if not placed:
            self._placed.pop(node_name, None)

    @on_event(TOPOLOGIES, Action.ADD | Action.UPDATE)
    def after_report(self, pod: Pod, old: NodeResourceTopology | None, new: NodeResourceTopology) -> Hint:
        return Hint.SKIP if misfit(pod, new, {}) else Hint.QUEUE

    @on_event(TOPOLOGIES, Action.DELETE)
    @on_event(Resource.NODE, Action.ADD)
    @on_event(Resource.ASSIGNED_POD, Action.DELETE)
    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN)
    def after_change(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE

    def _unreported(self, node_name: str, topology: NodeResourceTopology) -> Amounts:
        """What was placed on the node since its last report."""
        placed = self._placed.get(node_name)
        total: Amounts = {}
        for one in placed.values() if placed else ():
            if one.report == topology.resource_version:
                _add(total, one.requests)
        return total


def misfit(pod: Pod, topology: NodeResourceTopology, taken: Mapping[str, int]) -> str:
    """What of the pod fits into no zone: "pod", "container NAME", or "" if all does."""
    scope = topology.scope
    if not scope or not topology.zones:
        return ""
    reported = {resource.name for zone in topology.zones for resource in zone.resources}
    zones = [_available(zone, taken) for zone in topology.zones]
    if scope == "pod":
        return "" if _take(zones, _aligned(pod, pod_requests(pod.spec)), reported) else "pod"
    for container in pod.spec.init_containers:
        # One after the other; what keeps running keeps its zone.
        rooms = zones if container.is_sidecar else [dict(zone) for zone in zones]
        if not _take(rooms, _aligned(pod, _requests(container)), reported):
            return f"container {container.name}"
    for container in pod.spec.containers:
        if not _take(zones, _aligned(pod, _requests(container)), reported):
            return f"container {container.name}"
    return ""


def _take(zones: list[Amounts], wanted: Mapping[str, int], reported: set[str]) -> bool:
    """Take it from the first zone that has it all. Resources that no zone reports are not of a zone."""
    needed = {name: amount for name, amount in wanted.items() if amount and name in reported}
    for zone in zones:
        if all(zone.get(name, 0) >= amount for name, amount in needed.items()):
            for name, amount in needed.items():
                zone[name] -= amount
            return True
    return not needed


def _left(zone: Zone, wanted: Mapping[str, int], taken: Mapping[str, int]) -> int:
    """What would be left in a zone, in percent of what it has; 0 if the pod does not fit into it."""
    available = _available(zone, taken)
    parts = []
    for resource in zone.resources:
        has, left = _amount(resource.name, resource.allocatable), available[resource.name]
        if resource.name in wanted and has > 0:
            left -= wanted[resource.name]
            if left < 0:
                return 0
            parts.append(min(100 * left // has, 100))
    return sum(parts) // len(parts) if parts else 0


def _available(zone: Zone, taken: Mapping[str, int]) -> Amounts:
    return {one.name: _amount(one.name, one.available) - taken.get(one.name, 0) for one in zone.resources}


def _aligned(pod: Pod, requests: Mapping[str, int]) -> Mapping[str, int]:
    """What the kubelet gives from one zone: all of a Guaranteed pod, of others the devices."""
    if is_guaranteed(pod):
        return requests
    return {name: amount for name, amount in requests.items() if "/" in name}


def is_guaranteed(pod: Pod) -> bool:
    """Every container has limits of cpu and memory, and requests just these."""
    return all(_is_guaranteed(container) for container in (*pod.spec.init_containers, *pod.spec.containers))


def _is_guaranteed(container: Container) -> bool:
    requests, limits = container.resources.requests, container.resources.limits
    return all(
        name in limits and _amount(name, requests.get(name, limits[name])) == _amount(name, limits[name]) > 0
        for name in ("cpu", "memory")
    )


def _requests(container: Container) -> Amounts:
    return {name: _amount(name, quantity) for name, quantity in container.resources.requests.items()}


def _amount(resource: str, quantity: Quantity) -> int:
    return quantity_milli(quantity) if resource == "cpu" else quantity_value(quantity)


def _add(total: Amounts, amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount
