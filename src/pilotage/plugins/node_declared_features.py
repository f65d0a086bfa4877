"""NodeDeclaredFeatures: a pod that needs a feature of the kubelet goes to nodes that declare it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from pilotage.api import (
    Action,
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
    Sees,
    VectorFilter,
    on_event,
)
from pilotage.api.points import NothingBeforeFilter
from pilotage.model import Node, Pod, PodSpec

_MISSING = Reason("FeatureMissing", "node(s) didn't match Pod's required features", unresolvable=True)


class NodeDeclaredFeatures(Plugin, NothingBeforeFilter, Filter, VectorFilter):
    name = "NodeDeclaredFeatures"
    filter_sees = Sees.NODE
    pure_hints = True

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def may_filter(self, pod: Pod) -> bool:
        return bool(required_features(pod.spec))

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return None if required_features(pod.spec) <= set(node.node.status.declared_features) else Reject(_MISSING)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        declared = self._handle.index(DeclaredFeatures)
        having_all = set.intersection(*(declared.nodes_with(feature) for feature in required_features(pod.spec)))
        yield ~nodes.rows_of(frozenset(having_all)), _MISSING

    def sign(self, pod: Pod) -> Hashable | None:
        return required_features(pod.spec)

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        changed = old is None or old.status.declared_features != new.status.declared_features
        return Hint.QUEUE if changed else Hint.SKIP

    @on_event(Resource.TARGET_POD, Action.UPDATE)
    def after_own_change(self, pod: Pod, old: Pod, new: Pod) -> Hint:
        changed = required_features(old.spec) != required_features(new.spec)
        return Hint.QUEUE if changed else Hint.SKIP


class DeclaredFeatures(ClusterIndex):
    """Which nodes declare which feature."""

    def __init__(self) -> None:
        self._nodes: dict[str, set[str]] = {}

    def nodes_with(self, feature: str) -> set[str]:
        return self._nodes.get(feature, set())

    def node_put(self, old: Node | None, new: Node) -> None:
        if old is not None:
            self.node_removed(old)
        for feature in new.status.declared_features:
            self._nodes.setdefault(feature, set()).add(new.name)

    def node_removed(self, node: Node) -> None:
        for feature in node.status.declared_features:
            declaring = self._nodes.get(feature, set())
            declaring.discard(node.name)
            if not declaring:
                self._nodes.pop(feature, None)


def required_features(spec: PodSpec) -> frozenset[str]:
    """What the pod's spec needs the kubelet to be able to do."""
    known: frozenset[str] | None = spec.memo.get(required_features)
    if known is None:
        known = spec.memo[required_features] = frozenset(_inferred(spec))
    return known


def _inferred(spec: PodSpec) -> Iterator[str]:
    containers = (*spec.containers, *spec.init_containers)
    if any(rule.action == "RestartAllContainers" for c in containers for rule in c.restart_policy_rules):
        yield "RestartAllContainersOnContainerExits"
    if spec.host_network and spec.host_users is False:
        yield "UserNamespacesHostNetworkSupport"
    if any(mount.bind_mount_options for c in (*containers, *spec.ephemeral_containers) for mount in c.volume_mounts):
        yield "VolumeBindMountOptions"
