"""The members of pod groups: which are still to be placed, and which have a node.

A member is a pod that names a group (`spec.schedulingGroup.podGroupName`), whether or not the group exists. Pods that
have finished are none any more; pods that are being deleted still are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from pilotage.api.indexes import ClusterIndex
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup

_Key = TypeVar("_Key")
_NO_PODS: Final[Mapping[str, Pod]] = MappingProxyType({})


def group_key(pod: Pod) -> str:
    """The key ("namespace/name") of the pod's group; "" if it has none."""
    group = pod.spec.scheduling_group
    return f"{pod.namespace}/{group.pod_group_name}" if group is not None and group.pod_group_name else ""


class PodGroups(ClusterIndex):
    """Groups by key, and their members by UID.

    A plugin gets it by `handle.index(PodGroups)`.
    """

    kinds = frozenset({"Pod", "PodGroup"})

    def __init__(self) -> None:
        self.objects: dict[str, PodGroup] = {}
        self.version = 0
        """Changes when a group comes, goes or becomes another one."""
        self._waiting: dict[str, dict[str, Pod]] = {}
        """By group: members without a node in the API server."""
        self._placed: dict[str, dict[str, Pod]] = {}
        self._unscheduled: dict[tuple[str, str], dict[str, Pod]] = {}
        """By group and scheduler: those who wait and are not assumed."""

    def waiting(self, key: str) -> Mapping[str, Pod]:
        """Members without a node in the API server; those that are being bound are among them."""
        return self._waiting.get(key, _NO_PODS)

    def scheduled(self, key: str) -> Mapping[str, Pod]:
        """Members that have a node, assumed or bound, by any scheduler."""
        return self._placed.get(key, _NO_PODS)

    def unscheduled(self, key: str, scheduler_name: str) -> Mapping[str, Pod]:
        """Members that this scheduler has to place."""
        return self._unscheduled.get((key, scheduler_name), _NO_PODS)

    def count(self, key: str, scheduler_names: Iterable[str]) -> int:
        """All members that count: those with a node, and those without that one of these schedulers serves."""
        return len(self.scheduled(key)) + sum(len(self.unscheduled(key, name)) for name in scheduler_names)

    def pod_added(self, pod: Pod, node_name: str) -> None:
        if pod.spec.scheduling_group is not None and (key := group_key(pod)):
            self._placed.setdefault(key, {})[pod.uid] = pod
            _take(self._unscheduled, (key, pod.spec.scheduler_name), pod.uid)

    def pod_removed(self, pod: Pod, node_name: str) -> None:
        if pod.spec.scheduling_group is not None and (key := group_key(pod)):
            _take(self._placed, key, pod.uid)
            waiting = self.waiting(key).get(pod.uid)
            if waiting is not None:
                self._unscheduled.setdefault((key, waiting.spec.scheduler_name), {})[pod.uid] = waiting

    def object_put(self, kind: str, old: Any | None, new: Any) -> None:
        if kind == "PodGroup":
            self.version += old is None or old.uid != new.uid or old.spec != new.spec
            self.objects[new.key] = new
            return
        if old is not None and old.spec.scheduling_group is not None:
            self.object_removed(kind, old)
        if new.spec.scheduling_group is not None and (key := group_key(new)) and not new.node_name:
            self._waiting.setdefault(key, {})[new.uid] = new
            if new.uid not in self.scheduled(key):
                self._unscheduled.setdefault((key, new.spec.scheduler_name), {})[new.uid] = new

    def object_removed(self, kind: str, obj: Any) -> None:
        if kind == "PodGroup":
            self.version += 1
            self.objects.pop(obj.key, None)
        elif obj.spec.scheduling_group is not None and (key := group_key(obj)):
            _take(self._waiting, key, obj.uid)
            _take(self._unscheduled, (key, obj.spec.scheduler_name), obj.uid)


def _take(members: dict[_Key, dict[str, Pod]], key: _Key, uid: str) -> None:
    known = members.get(key)
    if known is not None and known.pop(uid, None) is not None and not known:
        del members[key]
