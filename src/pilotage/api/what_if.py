"""Ask, without changing anything, if a pod would fit, and how good a node would be, if other pods came or went.

    what_if = self._handle.what_if(pod)
    node = what_if.on("node-1")
    node.remove(batch_pod)
    if node.rejection() is None:
        scores = what_if.scores([node, what_if.on("node-2")])

The filters and scores are those of the plugin's own profile, its own among them: asking from one's own Filter about the
same pod would never end. The answers hold until the next `await`, or the end of the method that asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pilotage.api.results import Rejection
from pilotage.api.views import NodeView
from pilotage.model import Pod


class HypotheticalNode(Protocol):
    """A node on which pods are imagined to come and go; as it is to begin with."""

    @property
    def name(self) -> str:
        """The node's name."""

    @property
    def view(self) -> NodeView:
        """The node as it would be."""

    def add(self, pod: Pod) -> None:
        """As if this pod ran here too; ValueError if it does already."""

    def remove(self, pod: Pod) -> None:
        """As if this pod, which runs here or was added, did not; ValueError if it is not here."""

    def rejection(self) -> tuple[str, Rejection] | None:
        """The first plugin that rejects the node as it would be, and why; None if the pod fits.

        Pods of the same or a higher priority that are nominated to the node count as if they ran there, as they do in
        a scheduling cycle. The plugin is "" if the node is not among those that PreFilter plugins left.
        """


class WhatIf(Protocol):
    """What the filters and scores of a profile say about one pod."""

    @property
    def pod(self) -> Pod:
        """The pod that is asked about."""

    @property
    def rejection(self) -> tuple[str, Rejection] | None:
        """The PreFilter plugin that rejects the pod whatever the node, and why; None if none does."""

    def on(self, node_name: str) -> HypotheticalNode:
        """A node to imagine things on, each time a new one; KeyError if there is no such node."""

    def scores(self, nodes: Sequence[HypotheticalNode]) -> Mapping[str, int]:
        """Total scores by node name: normalised over these nodes and weighted, as in a scheduling cycle.

        Each node once; whether the pod fits is not asked. What a plugin counts over the whole cluster (the spread of
        pods, for instance) is as it is: only what it looks at on the node itself is as it would be.
        """
