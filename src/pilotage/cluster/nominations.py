"""Pods that are nominated to a node: they made room there by preemption and wait for it to become free."""

from __future__ import annotations

from collections.abc import Iterator

from pilotage.cluster.change_log import ChangeLog
from pilotage.model import Pod


class Nominations:
    """Nominated pods by node and by UID; a pod has at most one nomination."""

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}
        self._by_node: dict[str, dict[str, Pod]] = {}
        self.log: ChangeLog[str] = ChangeLog()
        """Names of the nodes whose nominations have changed."""

    def __len__(self) -> int:
        return len(self._node_of)

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Remember (or with "" forget) the nominated node of the pod."""
        if node_name and self._node_of.get(pod.uid) == node_name and self._is_renewal(pod, node_name):
            self._by_node[node_name][pod.uid] = pod
            return
        self.remove(pod.uid)
        if node_name:
            self._node_of[pod.uid] = node_name
            self._by_node.setdefault(node_name, {})[pod.uid] = pod
            self.log.touch(node_name)

    def _is_renewal(self, pod: Pod, node_name: str) -> bool:
        """Is this the pod that is nominated, with nothing new that filters could look at?"""
        known = self._by_node[node_name][pod.uid]
        return known.spec is pod.spec and known.labels == pod.labels

    def remove(self, uid: str) -> None:
        node_name = self._node_of.pop(uid, None)
        if node_name is None:
            return
        pods = self._by_node[node_name]
        del pods[uid]
        if not pods:
            del self._by_node[node_name]
        self.log.touch(node_name)

    def follow(self, old: Pod | None, new: Pod) -> None:
        """A pending pod changed: its status decides, unless only we know of its nomination yet."""
        before = "" if old is None else old.status.nominated_node_name
        after = new.status.nominated_node_name
        if not before and not after:
            after = self._node_of.get(new.uid, "")
            if not after:
                return
        self.nominate(new, after)

    def node_of(self, uid: str) -> str:
        return self._node_of.get(uid, "")

    def on(self, node_name: str) -> list[Pod]:
        return list(self._by_node.get(node_name, {}).values())

    def nodes(self) -> Iterator[str]:
        return iter(self._by_node)

    def check(self) -> None:
        """Verify the invariants; for tests."""
        filed = {uid: node for node, pods in self._by_node.items() for uid in pods}
        assert filed == self._node_of
        assert all(self._by_node.values())
