"""Indexes over nodes and the pods on them, for plugins that need more than the columns.

An index is a small class that hears of every pod and node that comes or goes, and of other objects if it names their
kinds. It is created on first use, filled with what is there, and kept up to date from then on:
`handle.index(HostPorts)`.

An index that raises for an object is emptied and filled again without that object, which is tried again when it
changes: the index goes on for everything else. So what an index raises for is missing from its answers, nothing more.

Questions about *which* pods match a selector are asked of pod classes: `handle.count_pods(key, wanted)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pilotage.api.kinds import Kind
from pilotage.model import Node, Pod


@dataclass(slots=True)
class PodClass:
    """Pods that no selector can distinguish: equal namespace, labels and termination state."""

    namespace: str
    labels: Mapping[str, str]
    terminating: bool
    on_node: dict[str, int] = field(default_factory=dict)
    """Node name -> number of pods; never 0. Not to be changed."""


class ClusterIndex:
    """Override what you need. Pods are those on a known or unknown node, by node name."""

    kinds: ClassVar[frozenset[str | Kind] | frozenset[str] | frozenset[Kind]] = frozenset()
    """The kinds of other objects, e.g. "Service", that this index wants to hear of; also those of a plugin's `watches`.

    The methods below get the kind as it is named here, and the `name` of a `Kind`.
    """
    keeps_more: ClassVar[bool] = False
    """It keeps more than what it is given here, such as reservations or a log that others read on: it cannot be emptied
    and filled again, so an object that it raises for is only taken out of it by the methods below."""

    def pod_added(self, pod: Pod, node_name: str) -> None:
        """A pod is on a node now (assumed or confirmed)."""

    def pod_removed(self, pod: Pod, node_name: str) -> None:
        """The same object that was added is not on the node any more."""

    def node_put(self, old: Node | None, new: Node) -> None:
        """A node came (old is None) or changed."""

    def node_removed(self, node: Node) -> None:
        """A node went; its pods may still be there."""

    def object_put(self, kind: str, old: Any | None, new: Any) -> None:
        """An object of one of `kinds` came (old is None) or changed."""

    def object_removed(self, kind: str, obj: Any) -> None:
        """An object of one of `kinds` went; this is its last known state."""
