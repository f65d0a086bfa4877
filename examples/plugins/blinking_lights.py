"""Prefer the node with the most blinking lights: the example of KEP-624 for Score and NormalizeScore.

    pilotage sandbox --plugin examples/plugins/blinking_lights.py -f examples/plugins/blinking_lights.yaml
    kubectl get pods -o wide        # all of them are on the node "disco"

How many lights a node has is said by its label example.com/blinking-lights.
"""

from __future__ import annotations

from pilotage.api import CycleState, NodeView, NormalizeScore, Plugin, Pod, Score, Scores

LABEL = "example.com/blinking-lights"
MOST_POINTS = 100


class BlinkingLights(Plugin, Score, NormalizeScore):
    """More lights, more points."""

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        """The number of lights, which may be any number; `normalize` makes points of it."""
        lights = node.labels.get(LABEL, "")
        return int(lights) if lights.isdecimal() else 0

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        """The brightest of the feasible nodes gets all points, the others their share."""
        highest = scores.max(initial=0)
        return scores * MOST_POINTS // highest if highest else scores

    def sign(self, pod: Pod) -> tuple[()]:
        """Nothing of the pod matters, so that all pods share the answers and only changed nodes are asked about."""
        return ()
