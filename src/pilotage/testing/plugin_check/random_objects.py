"""Random nodes and pods that differ in everything that scheduling looks at, and speak a plugin's own words."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

from pilotage.testing.builders import NodeBuilder, PodBuilder, node, pod
from pilotage.testing.plugin_check.vocabulary import Vocabulary

_EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")
_USUAL: Final = {"disk": ("ssd", "hdd"), "app": ("web", "db"), "topology.kubernetes.io/zone": ("z1", "z2")}
_GPU: Final = "example.com/gpu"


class RandomObjects:
    """Builders of nodes and pods; the author's own samples are among them, with variations."""

    def __init__(
        self, rng: random.Random, words: Vocabulary, nodes: Sequence[NodeBuilder], pods: Sequence[PodBuilder]
    ) -> None:
        self._rng = rng
        self._words = words
        self._nodes = nodes
        self._pods = pods

    def chance(self, likelihood: float) -> bool:
        return self._rng.random() < likelihood

    def label(self) -> tuple[str, str]:
        """A key and a value, mostly in the plugin's own words."""
        if self._words.keys and self.chance(0.7):
            return self._rng.choice(self._words.keys), self._rng.choice(self._words.values)
        key = self._rng.choice(sorted(_USUAL))
        return key, self._rng.choice(_USUAL[key])

    def node(self, name: str) -> NodeBuilder:
        if self._nodes and self.chance(0.5):
            built = NodeBuilder(renamed(self._rng.choice(self._nodes).json(), name))
        else:
            built = node(name).cpu(self._of(1, 2, 4)).memory(f"{self._of(1, 4)}Gi").pods(self._of(2, 3, 110))
        for _ in range(self._rng.randrange(4)):
            built = built.label(*self.label())
        for likelihood, change in ((0.3, self.tainted), (0.2, self.noted), (0.3, self.equipped)):
            if self.chance(likelihood):
                built = change(built)
        return built.unschedulable() if self.chance(0.15) else built

    def tainted(self, built: NodeBuilder) -> NodeBuilder:
        key, value = self.label()
        return built.taint(key, self._rng.choice(_EFFECTS), value if self.chance(0.5) else "")

    def noted(self, built: NodeBuilder) -> NodeBuilder:
        return built.annotation(*self.label())

    def equipped(self, built: NodeBuilder) -> NodeBuilder:
        return built.allocatable(self._rng.choice((_GPU, *self._words.resources)), self._of(1, 2))

    def pod(self, name: str) -> PodBuilder:
        name = self.pod_name(name)
        built = pod(name)
        if self._pods and self.chance(0.6):
            built = PodBuilder(renamed(self._rng.choice(self._pods).json(), name))
        if self.chance(0.7):
            built = built.requests(cpu=self._rng.choice(("200m", "1", "2")), memory=self._rng.choice(("64Mi", "1Gi")))
        for _ in range(self._rng.randrange(3)):
            built = built.label(*self.label())
        for likelihood, change in (
            (0.25, self.tolerant),
            (0.25, self.choosy),
            (0.15, self.fond),
            (0.2, self.listening),
            (0.2, self.noted_pod),
            (0.2, self.owned),
            (0.15, self.reported),
            (0.15, self.demanding),
            (0.2, self.near_others),
            (0.2, self.spread),
        ):
            if self.chance(likelihood):
                built = change(built)
        built = built.gate("example.com/gate") if self.chance(0.1) else built
        return built.priority(self._of(0, 1, 10))

    def tolerant(self, built: PodBuilder) -> PodBuilder:
        key, value = self.label()
        return built.tolerate(key, "", value) if self.chance(0.4) else built.tolerate(key if self.chance(0.7) else "")

    def choosy(self, built: PodBuilder) -> PodBuilder:
        key, value = self.label()
        return built.node_selector({key: value}) if self.chance(0.5) else built.node_affinity_in(key, [value, "x"])

    def fond(self, built: PodBuilder) -> PodBuilder:
        key, value = self.label()
        return built.prefer(key, [value], self._of(1, 50))

    def listening(self, built: PodBuilder) -> PodBuilder:
        port = {"containerPort": 80, "hostPort": self._of(80, 81)}
        container = {**built.json()["spec"]["containers"][0], "ports": [port]}
        return built.spec(containers=[container])

    def noted_pod(self, built: PodBuilder) -> PodBuilder:
        return built.annotation(*self.label())

    def owned(self, built: PodBuilder) -> PodBuilder:
        kind = self._rng.choice(("ReplicaSet", "StatefulSet"))
        return built.owner(kind, self._rng.choice(("web", "db", *self._words.names)))

    def reported(self, built: PodBuilder) -> PodBuilder:
        """Something stands in its status."""
        if self.chance(0.5):
            return built.nominated(f"node-{self._of(1, 2)}")
        unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        return built.status(conditions=[unschedulable], phase="Pending")

    def pod_name(self, name: str) -> str:
        """The name, at times after one of the plugin's own words."""
        words = self._words.names
        return f"{self._rng.choice(words)}-{name}" if words and self.chance(0.3) else name

    def demanding(self, built: PodBuilder) -> PodBuilder:
        return built.requests({self._rng.choice((_GPU, *self._words.resources)): 1})

    def near_others(self, built: PodBuilder) -> PodBuilder:
        kind = self._rng.choice(("podAffinity", "podAntiAffinity"))
        term = {"labelSelector": self._selector(), "topologyKey": self._topology()}
        affinity = dict(built.json()["spec"].get("affinity", {}))
        affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        return built.spec(affinity=affinity)

    def spread(self, built: PodBuilder) -> PodBuilder:
        how = self._rng.choice(("DoNotSchedule", "ScheduleAnyway"))
        constraint = {"maxSkew": 1, "topologyKey": self._topology(), "whenUnsatisfiable": how}
        return built.spec(topologySpreadConstraints=[{**constraint, "labelSelector": self._selector()}])

    def _selector(self) -> dict[str, Any]:
        key, value = self.label()
        return {"matchLabels": {key: value}}

    def _topology(self) -> str:
        return self._rng.choice(("topology.kubernetes.io/zone", "kubernetes.io/hostname"))

    def _of(self, *values: int) -> int:
        return self._rng.choice(values)


def renamed(obj: dict[str, Any], name: str) -> dict[str, Any]:
    """A sample under another name; a node's hostname label follows."""
    metadata = {**obj["metadata"], "name": name}
    if obj["kind"] == "Node":
        metadata["labels"] = {**metadata.get("labels", {}), "kubernetes.io/hostname": name}
    metadata.pop("uid", None)
    return {**obj, "metadata": metadata}
