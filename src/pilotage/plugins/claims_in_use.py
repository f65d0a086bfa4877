"""Which nodes have pods that mount a claim, and how often: kept as pods come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pilotage.api import ClusterIndex
from pilotage.model import Pod
from pilotage.plugins.pod_volumes import claims_of


class ClaimsInUse(ClusterIndex):
    def __init__(self) -> None:
        self._nodes: dict[str, Counter[str]] = {}

    def pod_added(self, pod: Pod, node_name: str) -> None:
        for claim in claims_of(pod):
            self._nodes.setdefault(claim.key(pod), Counter())[node_name] += 1

    def pod_removed(self, pod: Pod, node_name: str) -> None:
        for claim in claims_of(pod):
            nodes = self._nodes[claim.key(pod)]
            nodes[node_name] -= 1
            if nodes[node_name] <= 0:
                del nodes[node_name]
            if not nodes:
                del self._nodes[claim.key(pod)]

    def nodes_of(self, claim_key: str) -> Mapping[str, int]:
        """Node name -> number of mounts of this claim ("namespace/name")."""
        return self._nodes.get(claim_key, {})
