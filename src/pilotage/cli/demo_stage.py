"""The demo's cluster and what is played in it: one workload after the other, until nothing changes any more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pilotage.clock import Clock
from pilotage.sandbox.embedded import EmbeddedCluster, EmbeddedOptions
from pilotage.sandbox.life.kubelet import KubeletSettings
from pilotage.sandbox.manifests import read_manifests
from pilotage.sandbox.seeding import seed

WORKLOADS: Final = Path(__file__).parent / "demo_workloads"
_NODES: Final = WORKLOADS / "nodes.yaml"
_PAUSE_SECONDS: Final = 0.6
_STILL_SECONDS: Final = 1.5
_FAR_SECONDS: Final = 5.0
_KUBELET: Final = KubeletSettings(start_seconds=0.2, start_jitter_seconds=0.6, manages_all_nodes=True)


def stage_options(nodes: int, *, is_served: bool) -> EmbeddedOptions:
    return EmbeddedOptions(nodes=nodes, node_templates=[_NODES], port=0 if is_served else None, kubelet=_KUBELET)


def acts() -> Sequence[Path]:
    """The files of workloads, in the order in which they are played."""
    return sorted(path for path in WORKLOADS.glob("*.yaml") if path != _NODES)


class Play:
    """Creates the workloads and knows when everything has come to rest."""

    def __init__(self, cluster: EmbeddedCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._is_over = False
        self._revision = -1
        self._still_since = clock.monotonic()

    async def perform(self) -> None:
        for act in acts():
            await self._clock.sleep(_PAUSE_SECONDS)
            seed(self._cluster.api, read_manifests([act]))
        self._is_over = True

    def is_still(self) -> bool:
        """Everything has been created, nothing was written for a while, and no pod is about to start or end."""
        now, revision = self._clock.monotonic(), self._cluster.api.store.revision
        due = self._cluster.life.next_due
        if not self._is_over or revision != self._revision or (due is not None and due < now + _FAR_SECONDS):
            self._revision, self._still_since = revision, now
            return False
        return now - self._still_since >= _STILL_SECONDS
