"""Where a pod would go: the pure heart of the scheduler.

`place` is the same for the live scheduler, the simulator, `explain` and dry runs: no clock, no network, no effect
outside the cycle state that it is given.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.api.results import Nominate
from pilotage.api.state import CycleState
from pilotage.cluster.node_table import NodeTable
from pilotage.framework.choice import choose
from pilotage.framework.diagnosis import Diagnosis
from pilotage.framework.evaluation import Evaluator
from pilotage.framework.profile import Profile
from pilotage.framework.runner import PreFilterOutcome, Runner
from pilotage.model import Pod


@dataclass(frozen=True, slots=True)
class Placed:
    """The pod fits; this is the best node."""

    node_name: str
    score: int


@dataclass(frozen=True, slots=True)
class Unplaced:
    """No node fits, and what PostFilter made of it."""

    diagnosis: Diagnosis
    nomination: Nominate


class NoNodes(Exception):
    """There is no node at all: nothing that a plugin could be blamed for."""

    def __init__(self) -> None:
        super().__init__("no nodes available to schedule pods")


class ProfileEngine:
    """A profile together with what runs it over the nodes."""

    def __init__(self, profile: Profile, nodes: NodeTable) -> None:
        self.profile = profile
        self.nodes = nodes
        self.runner = Runner(profile, nodes)
        self.evaluator = Evaluator(profile, nodes)


def place(engine: ProfileEngine, state: CycleState, pod: Pod) -> Placed | Unplaced:
    """Filter, score and choose; if nothing fits, say why and ask PostFilter."""
    nodes = engine.nodes
    if not len(nodes):
        raise NoNodes
    outcome = engine.runner.pre_filter(state, pod)
    if outcome.refused is not None:
        return _unplaced(engine, state, pod, outcome)
    engine.evaluator.pre_score(state, pod)
    totals = engine.evaluator.totals(state, pod, outcome.allowed)
    row = choose(totals, nodes)
    if row is None:
        return _unplaced(engine, state, pod, outcome)
    return Placed(nodes.names[row], int(totals[row]))


def _unplaced(engine: ProfileEngine, state: CycleState, pod: Pod, outcome: PreFilterOutcome) -> Unplaced:
    diagnosis = Diagnosis(node_names=tuple(engine.nodes.names))
    if outcome.refused is not None:
        engine.runner.refused_everywhere(diagnosis, outcome.refused, outcome.restricting)
    else:
        engine.runner.note_restriction(diagnosis, outcome)
        engine.evaluator.diagnose(state, pod, diagnosis, outcome.allowed)
    # Without a PostFilter plugin nobody can keep a nomination alive.
    nomination = Nominate("") if not engine.profile.post_filter else engine.runner.post_filter(state, pod, diagnosis)
    return Unplaced(diagnosis, nomination)
