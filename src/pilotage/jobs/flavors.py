"""Check if a flavor suits a pod set. Labels, required node affinity, taints."""

from __future__ import annotations

from pilotage.jobs.shapes import PodSetNeed
from pilotage.model.kueue import ResourceFlavor
from pilotage.model.node import Taint
from pilotage.model.selectors import NodeSelectorTerm

_MOST_REMEMBERED = 8192


class Flavor:
    """A ResourceFlavor, with what is already known about whom it suits."""

    __slots__ = ("_known", "name", "spec")

    def __init__(self, flavor: ResourceFlavor) -> None:
        self.name = flavor.name
        self.spec = flavor.spec
        self._known: dict[PodSetNeed, str] = {}

    def objection(self, need: PodSetNeed) -> str:
        """Why pods of this pod set cannot run on the flavor's nodes; "" if they can."""
        known = self._known.get(need)
        if known is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            known = self._known[need] = self._object(need)
        return known

    def _object(self, need: PodSetNeed) -> str:
        labels = self.spec.node_labels
        for key, value in need.node_selector.items():
            # What the flavor does not speak of may differ from node to node.
            if key in labels and labels[key] != value:
                return f"flavor {self.name} doesn't match node selector {key}={value}"
        if need.affinity and not any(self._satisfies(term) for term in need.affinity):
            return f"flavor {self.name} doesn't match node affinity"
        for taint in self.spec.node_taints:
            if taint.effect in ("NoSchedule", "NoExecute") and not self._is_tolerated(taint, need):
                return f"untolerated taint {taint.key}={taint.value}:{taint.effect} in flavor {self.name}"
        return ""

    def _satisfies(self, term: NodeSelectorTerm) -> bool:
        labels = self.spec.node_labels
        return all(one.matches(labels) for one in term.match_expressions if one.key in labels)

    def _is_tolerated(self, taint: Taint, need: PodSetNeed) -> bool:
        return any(one.tolerates(taint) for one in (*need.tolerations, *self.spec.tolerations))
