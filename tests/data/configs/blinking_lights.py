"""Prefer the node with the most blinking lights."""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.api import CycleState, NodeView, Plugin, Score
from pilotage.model import Pod


@dataclass(frozen=True)
class BlinkingLightsArgs:
    label: str = "example.com/blinking-lights"


class BlinkingLights(Plugin, Score):
    name = "BlinkingLights"
    args_type = BlinkingLightsArgs

    def __init__(self, args: BlinkingLightsArgs) -> None:
        self.label = args.label

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return int(node.labels.get(self.label, 0))
