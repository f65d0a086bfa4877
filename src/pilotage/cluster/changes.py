"""From two versions of an object to the cluster events that their difference means.

A node update may be several events (labels *and* taints), or none at all (a heartbeat). A pod update is at least the
generic one. The order is part of the contract: a pod is moved by the first event that helps it. A change of a
DeviceTaintRule is a change of the slices whose devices it taints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from msgspec.structs import replace

from pilotage.api.events import Action, ClusterEvent, Resource
from pilotage.cluster.node_resources import node_allocatable
from pilotage.model import Node, Pod
from pilotage.model.pod_resources import assigned_requests
from pilotage.model.resource import Device, DeviceTaintRule, ResourceSlice


def node_events(old: Node, new: Node) -> Iterator[ClusterEvent]:
    """The events of a node update, in kube-scheduler's order."""
    if old.spec.unschedulable and not new.spec.unschedulable:
        yield _node(Action.UPDATE_NODE_TAINT)
    if node_allocatable(old) != node_allocatable(new):
        yield _node(Action.UPDATE_NODE_ALLOCATABLE)
    if old.labels != new.labels:
        yield _node(Action.UPDATE_NODE_LABEL)
    if old.spec.taints != new.spec.taints:
        yield _node(Action.UPDATE_NODE_TAINT)
    if _condition_states(old) != _condition_states(new):
        yield _node(Action.UPDATE_NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        yield _node(Action.UPDATE_NODE_ANNOTATION)
    if old.status.declared_features != new.status.declared_features:
        yield _node(Action.UPDATE_NODE_DECLARED_FEATURE)


def pod_events(old: Pod, new: Pod, resource: Resource) -> list[ClusterEvent]:
    """The events of a pod update; the generic one if nothing precise can be said."""
    return [_event(resource, action) for action in _pod_actions(old, new)] or [_event(resource, Action.UPDATE)]


def _pod_actions(old: Pod, new: Pod) -> Iterator[Action]:
    if old.labels != new.labels:
        yield Action.UPDATE_POD_LABEL
    before, after = assigned_requests(old), assigned_requests(new)
    if before is not after:
        if _lost(before, after):
            yield Action.UPDATE_POD_SCALE_DOWN
        if _lost(after, before):
            yield Action.UPDATE_POD_SCALE_UP
    if old.spec is not new.spec:
        if old.spec.scheduling_gates and not new.spec.scheduling_gates:
            yield Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        if len(old.spec.tolerations) != len(new.spec.tolerations):
            yield Action.UPDATE_POD_TOLERATION
    if old.status is not new.status and _generated_claims(old) != _generated_claims(new):
        yield Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM


def slices_tainted_anew(
    old: DeviceTaintRule | None, new: DeviceTaintRule | None, slices: Iterable[ResourceSlice]
) -> Iterator[tuple[ResourceSlice, ResourceSlice]]:
    """Each slice that a rule makes look different now, as the rule made it look before and as it does now."""
    if old is not None and new is not None and old.spec == new.spec:
        return
    for published in slices:
        before, after = _tainted(published, old), _tainted(published, new)
        if before is not after and before.spec.devices != after.spec.devices:
            yield before, after


def _tainted(published: ResourceSlice, rule: DeviceTaintRule | None) -> ResourceSlice:
    """The slice with the taint of the rule on the devices that it selects; the slice itself if it selects none."""
    spec = published.spec
    if rule is None or not any(rule.selects(spec.driver, spec.pool.name, device.name) for device in spec.devices):
        return published

    def tainted(device: Device) -> Device:
        is_selected = rule.selects(spec.driver, spec.pool.name, device.name)
        return replace(device, taints=(*device.taints, rule.spec.taint)) if is_selected else device

    return replace(published, spec=replace(spec, devices=tuple(map(tainted, spec.devices))))


def _lost(before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    """Whether something is smaller, or not named any more, even if it was 0."""
    return any(resource not in after or after[resource] < amount for resource, amount in before.items())


def _generated_claims(pod: Pod) -> tuple[object, object]:
    return pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status


def _condition_states(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def _node(action: Action) -> ClusterEvent:
    return _event(Resource.NODE, action)


_event = cache(ClusterEvent)
