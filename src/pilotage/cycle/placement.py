"""Where a pod would go: the pure heart of the scheduler.

`place` is the same for the live scheduler, the simulator, `explain` and dry runs: no clock, no network, no effect
outside the cycle state that it is given.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.api.results import Nominate
from pilotage.api.state import CycleState
from pilotage.cluster.node_view import RowView
from pilotage.cluster.state import Cluster
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

    def __init__(self, profile: Profile, cluster: Cluster) -> None:
        self.profile = profile
        self.nodes = cluster.nodes
        self.runner = Runner(profile, cluster.nodes)
        self.evaluator = Evaluator(profile, cluster.nodes, cluster.nominations)


def place(engine: ProfileEngine, state: CycleState, pod: Pod) -> Placed | Unplaced:
    """Filter, score and choose; if nothing fits, say why and ask PostFilter."""
    nodes = engine.nodes
    if not len(nodes):
        raise NoNodes
    outcome = engine.runner.pre_filter(state, pod)
    if outcome.refused is not None:
        return _unplaced(engine, state, pod, outcome)
    if (promised := _promised_node(engine, state, pod, outcome)) is not None:
        return Placed(promised, 0)
    totals = engine.evaluator.totals(state, pod, outcome.allowed)
    row = choose(totals, nodes)
    if row is None:
        return _unplaced(engine, state, pod, outcome)
    return Placed(nodes.names[row], int(totals[row]))


def _promised_node(engine: ProfileEngine, state: CycleState, pod: Pod, outcome: PreFilterOutcome) -> str | None:
    """The pod's nominated node, if it fits there now: then nothing else is looked at."""
    name = pod.status.nominated_node_name
    row = engine.nodes.row(name) if name else None
    if row is None or (outcome.allowed is not None and not outcome.allowed[row]):
        return None
    dry_run = engine.evaluator.dry_run
    rivals = dry_run.contested_rows(pod).get(row, [])
    if rivals and dry_run.refusal_beside(state, pod, row, rivals) is not None:
        return None
    return name if dry_run.refusal_on(state, pod, RowView(engine.nodes, row)) is None else None


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
