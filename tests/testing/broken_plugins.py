"""Plugins with one defect each, as people write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from pilotage.api import (
    Action,
    Affected,
    CycleState,
    Filter,
    GroupAttempt,
    Handle,
    Hint,
    Mask,
    NodeTable,
    NodeView,
    NominateMembers,
    NormalizeScore,
    Permit,
    Placement,
    PlacementGenerate,
    PlacementScore,
    Plugin,
    PodGroup,
    PodGroupPostFilter,
    ProposedPlacement,
    QueuedPod,
    QueueSort,
    Reason,
    Reject,
    Rejection,
    Reserve,
    Resource,
    Score,
    Scores,
    VectorFilter,
    VectorPlacementScore,
    VectorScore,
    Wait,
    narrows,
    on_event,
)
from pilotage.model import Node, Pod

NO = Reject(Reason("No", "no"))


class WrongParameters(Plugin, Score):
    def score(self, pod: Pod, node: NodeView) -> int:  # type: ignore[override]
        return 0


class NotMade(Plugin, Score):
    def __init__(self) -> None:
        raise RuntimeError("no licence")

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 0


class RaisesToRefuse(Plugin, Filter):
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        if node.labels.get("example.com/lights"):
            raise ValueError("too bright")
        return None


class SaysTrue(Plugin, Filter):
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Any:
        return True


class HalfPoints(Plugin, VectorScore):
    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        return np.full(len(nodes), 0.5)


class WaitsForNothing(Plugin, Permit):
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Wait | Rejection | None:
        return Wait(0)


class SortsByName(Plugin, QueueSort):
    def sort_key(self, queued: QueuedPod) -> Any:
        return queued.pod.name


class WritesColumns(Plugin, VectorScore):
    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        scores = nodes.free("cpu")
        scores //= 1000
        return np.minimum(scores, 100)


class MarksNodes(Plugin, Filter):
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        node.node.labels["example.com/seen"] = "yes"
        return None


class TooMuchLight(Plugin, Score):
    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 50 * len(node.labels)


class NormalizesTooFar(Plugin, Score, NormalizeScore):
    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return len(node.labels)

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return scores * 101 // scores.max() if scores.max() else scores


class TwoOpinions(Plugin, Filter, VectorFilter):
    """At exactly the border its forms differ."""

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return NO if node.pod_count >= 2 else None

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        yield nodes.pod_count > 2, NO.reasons[0]


class ComparesNodes(Plugin, VectorScore):
    """Best of the table that it is given, which is not always the whole cluster."""

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        free = nodes.free("cpu")
        return (100 * (free == free.max())).astype(np.int64)


class Fickle(Plugin, Filter):
    def __init__(self) -> None:
        self._turn = 0

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        self._turn += 1
        return NO if self._turn % 3 == 0 else None


class SignsTooLittle(Plugin, Score):
    """Looks at the priority and does not say so."""

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return min(max(pod.priority, 0), 100)

    def sign(self, pod: Pod) -> tuple[()]:
        return ()


class SignsAndLooksAround(Plugin, Score):
    """Looks at all nodes and signs all the same."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return min(int(self._handle.nodes.pod_count.sum()), 100)

    def sign(self, pod: Pod) -> tuple[()]:
        return ()


class _Books(Plugin, Reserve):
    def __init__(self) -> None:
        self.held: dict[str, str] = {}

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        self.held[pod.uid] = node_name
        return None


class KeepsBooks(_Books):
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        pass


class UnreservesOnce(_Books):
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        del self.held[pod.uid]


class _Sunny(Plugin, Filter):
    """A filter without a defect; the hints are what differs."""

    wanted: ClassVar[str] = "sun"

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return None if node.labels.get("weather") == self.wanted else NO


class Sunny(_Sunny):
    """No defect at all."""

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        return Hint.QUEUE if new.labels.get("weather") == "sun" else Hint.SKIP


class HearsOfEverything(_Sunny):
    """No defect either."""


class MissesUpdates(_Sunny):
    @on_event(Resource.NODE, Action.ADD)
    def after_new_node(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        return Hint.QUEUE


class AsksTheOldNode(_Sunny):
    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        before = new if old is None else old
        return Hint.QUEUE if before.labels.get("weather") == "sun" else Hint.SKIP


class NarrowsToNobody(Sunny):
    @narrows(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    def concerned(self, old: Node | None, new: Node) -> Affected:
        return Affected.pods([])


class _Sunny(Plugin, Filter):
    """What those that follow have in common."""

    pure_hints = True

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return None if node.labels.get("example.com/weather") == "sun" else NO


class CountsItsCalls(_Sunny):
    def __init__(self) -> None:
        self._calls = 0

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        self._calls += 1
        return Hint.QUEUE if self._calls % 3 else Hint.SKIP


class ComparesTypes(_Sunny):
    @on_event(Resource.NODE, Action.ADD | Action.UPDATE)
    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> Hint:
        return Hint.QUEUE if type(pod) is Pod else Hint.SKIP


class ReadsAnnotations(_Sunny):
    """Without a defect: that it reads annotations is noticed."""

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return None if node.labels.get("example.com/weather") == pod.annotations.get("example.com/weather") else NO

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE)
    @on_event(Resource.TARGET_POD, Action.UPDATE)
    def after_change(self, pod: Pod, old: object, new: Node | Pod) -> Hint:
        if isinstance(new, Pod):
            return Hint.QUEUE
        wanted = pod.annotations.get("example.com/weather")
        return Hint.QUEUE if new.labels.get("example.com/weather") == wanted else Hint.SKIP


class OffersNothing(Plugin, PlacementGenerate):
    def generate_placements(self, state: CycleState, group: PodGroup, nodes: NodeTable) -> list[Placement]:
        return [Placement("none", nodes.everywhere(False))]


class OffersNames(Plugin, PlacementGenerate):
    def generate_placements(self, state: CycleState, group: PodGroup, nodes: NodeTable) -> Any:
        return list(nodes.names)


class OffersTwice(Plugin, PlacementGenerate):
    def generate_placements(self, state: CycleState, group: PodGroup, nodes: NodeTable) -> list[Placement]:
        return [Placement("all", nodes.everywhere(True)), Placement("all", nodes.everywhere(True))]


class OffersByNumbers(Plugin, PlacementGenerate):
    def generate_placements(self, state: CycleState, group: PodGroup, nodes: NodeTable) -> list[Placement]:
        return [Placement("first", np.array([0]))]


class OffersInTurn(Plugin, PlacementGenerate):
    def __init__(self) -> None:
        self.calls = 0

    def generate_placements(self, state: CycleState, group: PodGroup, nodes: NodeTable) -> list[Placement]:
        self.calls += 1
        return [Placement(f"turn-{self.calls}", nodes.everywhere(True))]


class PraisesPlacements(Plugin, PlacementScore):
    def score_placement(self, state: CycleState, group: PodGroup, proposed: ProposedPlacement, nodes: NodeTable) -> int:
        return 100 + proposed.member_count


class TwoOpinionsOfPlacements(Plugin, PlacementScore, VectorPlacementScore):
    def score_placement(self, state: CycleState, group: PodGroup, proposed: ProposedPlacement, nodes: NodeTable) -> int:
        return 1

    def score_placements(
        self, state: CycleState, group: PodGroup, proposed: Sequence[ProposedPlacement], nodes: NodeTable
    ) -> Scores:
        return np.full(len(proposed), 2, dtype=np.int64)


class HalfPointsForPlacements(Plugin, VectorPlacementScore):
    def score_placements(
        self, state: CycleState, group: PodGroup, proposed: Sequence[ProposedPlacement], nodes: NodeTable
    ) -> Any:
        return np.full(len(proposed), 0.5)


class CrossesOut(Plugin, PlacementScore):
    def score_placement(self, state: CycleState, group: PodGroup, proposed: ProposedPlacement, nodes: NodeTable) -> int:
        proposed.placement.rows[:] = False
        return 1


class NominatesStrangers(Plugin, PodGroupPostFilter):
    def pod_group_post_filter(self, attempt: GroupAttempt) -> NominateMembers:
        return NominateMembers({"somebody": "somewhere"})


class SaysNothingOfGroups(Plugin, PodGroupPostFilter):
    def pod_group_post_filter(self, attempt: GroupAttempt) -> Any:
        return None
