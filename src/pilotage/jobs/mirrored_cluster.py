"""The cluster once more, for workload queueing: what the scheduler believes, and besides the pods that are to come.

An index of the scheduler's cluster keeps it up to date, pod by pod and node by node, so that places can be kept in it
without the scheduler seeing any of it. It also knows which pods belong to which workload: those on nodes, and those
that wait for one. It is made when the first workload asks for nodes, and shares all objects with the original.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from pilotage.api.indexes import ClusterIndex
from pilotage.api.kinds import Kind
from pilotage.cluster.state import Cluster
from pilotage.jobs.adapters import marks
from pilotage.model import Node, Pod

_NO_PODS: Final[Mapping[str, Pod]] = {}
_UNSCHEDULABLE: Final = "Unschedulable"

OnPod = Callable[[Pod], None]


def workload_of(pod: Pod) -> str:
    """The key of the workload that the pod was started for; "" if it was for none."""
    name = pod.annotations.get(marks.WORKLOAD)
    return f"{pod.namespace}/{name}" if name else ""


class MirroredCluster(ClusterIndex):
    """Use `mirror_of`: the kinds that it mirrors are those of the original."""

    keeps_more = True
    original: ClassVar[Cluster]
    keys: ClassVar[Mapping[str, str]]
    """Of the kinds, by the names under which an index hears of them."""

    def __init__(self) -> None:
        self.cluster = Cluster(kinds=self.original.kinds)
        self.cluster.nominations = self.original.nominations
        self._on_nodes: dict[str, dict[str, Pod]] = {}
        self._troubled: dict[str, dict[str, Pod]] = {}
        self.placed: OnPod = lambda pod: None
        """Called when a pod of a workload is on a node."""
        self.left: OnPod = lambda pod: None
        """Called when any pod has left its node."""
        self.node_changed: Callable[[str], None] = lambda name: None
        self.node_came_or_went: Callable[[str], None] = lambda name: None
        self.trouble_changed: Callable[[str], None] = lambda key: None
        """Called with the key of a workload of which other pods than before fit nowhere."""

    def on_nodes(self, key: str) -> Mapping[str, Pod]:
        """The pods of a workload that are on nodes, by UID."""
        return self._on_nodes.get(key, _NO_PODS)

    def workloads_on_nodes(self) -> list[str]:
        return list(self._on_nodes)

    def troubled(self, key: str) -> Mapping[str, Pod]:
        """The pods of a workload that fit on no node, by UID."""
        return self._troubled.get(key, _NO_PODS)

    # --- what the original hears of ------------------------------------------------------------------------------

    def node_put(self, old: Node | None, new: Node) -> None:
        self.cluster.put_node(new)
        if old is None:
            self.node_came_or_went(new.name)
        self.node_changed(new.name)

    def node_removed(self, node: Node) -> None:
        self.cluster.remove_node(node.name)
        self.node_came_or_went(node.name)

    def pod_added(self, pod: Pod, node_name: str) -> None:
        self.cluster.put_pod(pod)
        if key := workload_of(pod):
            self._on_nodes.setdefault(key, {})[pod.uid] = pod
            self._take(self._troubled, key, pod.uid)
            self.placed(pod)

    def pod_removed(self, pod: Pod, node_name: str) -> None:
        self.cluster.remove_pod(pod.uid)
        if key := workload_of(pod):
            self._take(self._on_nodes, key, pod.uid)
        self.left(pod)

    def object_put(self, kind: str, old: Any | None, new: Any) -> None:
        if kind != "Pod":
            self.cluster.put_object(self.keys[kind], new)
            return
        key = workload_of(new)
        if key and not new.node_name and (reason := new.status.condition("PodScheduled")) is not None:
            if reason.status == "False" and reason.reason == _UNSCHEDULABLE:
                self._troubled.setdefault(key, {})[new.uid] = new
                self.trouble_changed(key)
        elif key and self._take(self._troubled, key, new.uid):
            self.trouble_changed(key)

    def object_removed(self, kind: str, obj: Any) -> None:
        if kind != "Pod":
            self.cluster.remove_object(self.keys[kind], obj.key)
        elif (key := workload_of(obj)) and self._take(self._troubled, key, obj.uid):
            self.trouble_changed(key)

    @staticmethod
    def _take(pods: dict[str, dict[str, Pod]], key: str, uid: str) -> bool:
        known = pods.get(key)
        if known is None or known.pop(uid, None) is None:
            return False
        if not known:
            del pods[key]
        return True


def mirror_of(cluster: Cluster) -> MirroredCluster:
    by_key = {key: kind for kind, key in cluster.kinds.names.items() if key != "Node"}
    names = {kind.name if isinstance(kind, Kind) else kind: key for key, kind in by_key.items()}
    fields = {"original": cluster, "keys": names, "kinds": frozenset(by_key.values())}
    return cluster.index(type("MirrorOfACluster", (MirroredCluster,), fields))
