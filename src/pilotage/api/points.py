"""The extension points, in the order in which a pod meets them.

Inherit the classes of the points that you serve. Each has one abstract method, so a misspelt one fails when the
scheduler starts, not when the first pod arrives. Points up to and including Permit are synchronous; PreBind, Bind and
PostBind are coroutines, because they talk to the API server.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pilotage.api.pod_groups import GroupAttempt, NominateMembers, Placement, ProposedPlacement
from pilotage.api.results import SKIP, Detail, NodeNames, Nominate, PreFlight, Reason, Rejection, Skip, Wait
from pilotage.api.state import CycleState
from pilotage.api.table import Mask, NodeTable, Scores
from pilotage.api.views import NodeView, QueuedPod, RejectedNodes
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup


class PreEnqueue(ABC):
    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        """None lets the pod into the queue; a rejection gates it. Must be cheap: no cycle state, no nodes."""


class QueueSort(ABC):
    @abstractmethod
    def sort_key(self, queued: QueuedPod) -> tuple[float, ...]:
        """Pods with smaller keys are scheduled first. Exactly one plugin serves this point."""


class PreFilter(ABC):
    @abstractmethod
    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> NodeNames | Skip | Rejection | None:
        """Prepare the filter, restrict the nodes, skip this plugin's filter, or reject the pod altogether."""


class NothingBeforeFilter(PreFilter):
    """Serves PreFilter and has nothing to prepare, so that it is not asked: `Plugin.may_filter` says all there is."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> NodeNames | Skip | Rejection | None:
        plugin: Any = self
        return None if plugin.may_filter(pod) else SKIP


class PreFilterExtensions(ABC):
    """For filters whose state depends on the pods on the nodes: keep it right when pods come and go in a dry run."""

    @abstractmethod
    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> None:
        """As if `added` ran on `node`."""

    @abstractmethod
    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> None:
        """As if `removed` did not run on `node`."""


class Filter(ABC):
    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        """None if the pod can run on this node."""


class Details(ABC):
    """For filters whose reason does not say all, such as which device was rejected by which rule."""

    @abstractmethod
    def details(self, state: CycleState, pod: Pod, node: NodeView) -> Iterable[Detail]:
        """More about a node that this plugin's filter has just rejected. Asked by `explain` only; bound the number."""


class VectorFilter(ABC):
    @abstractmethod
    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        """Yield (mask, reason): the nodes where the mask is True are rejected for that reason.

        A node may be rejected for several reasons. Must look at one node at a time: the framework also calls it with
        a table of just the nodes that changed.
        """


class PostFilter(ABC):
    @abstractmethod
    def post_filter(self, state: CycleState, pod: Pod, rejected: RejectedNodes) -> Nominate | Rejection:
        """No node was feasible: can something be done about it?"""


class PreScore(ABC):
    @abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | None:
        """Prepare the score, or skip it for this pod."""


class NothingBeforeScore(PreScore):
    """The same of PreScore and `Plugin.may_score`."""

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | None:
        plugin: Any = self
        return None if plugin.may_score(pod) else SKIP


class Score(ABC):
    @abstractmethod
    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        """How good this node is for the pod: 0 to 100, unless this plugin also normalises."""


class VectorScore(ABC):
    @abstractmethod
    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        """How good each node is for the pod, as an int64 array: 0 to 100, unless this plugin also normalises."""


class NormalizeScore(ABC):
    @abstractmethod
    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        """Scores of the feasible nodes brought to 0..100; returns a new array."""


class Reserve(ABC):
    @abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        """Take what the pod needs on the node, in memory."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Give it back. Must be idempotent, and harmless if `reserve` was never called."""


class Permit(ABC):
    @abstractmethod
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Wait | Rejection | None:
        """Approve, reject, or hold the pod until a plugin allows it."""


class PreBind(ABC):
    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreFlight | Skip:
        """Will this plugin have work to do in PreBind, and may it run beside others? Called before the wait for Permit.

        A plugin that does not allow others beside it parts those before it from those after it, even if it skips.
        """
        return PreFlight()

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        """Do what must be done before the pod is bound, e.g. bind its volumes."""


class Bind(ABC):
    @abstractmethod
    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Skip | Rejection | None:
        """Bind the pod, or Skip to leave it to the next bind plugin."""


class PostBind(ABC):
    @abstractmethod
    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """The pod is bound; clean up."""


class PlacementGenerate(ABC):
    """At most one plugin of a profile."""

    @abstractmethod
    def generate_placements(self, state: CycleState, group: PodGroup, nodes: NodeTable) -> Sequence[Placement]:
        """The sets of nodes that may take the group, each as a whole. The group is tried in every one of them."""


class PlacementScore(ABC):
    @abstractmethod
    def score_placement(self, state: CycleState, group: PodGroup, proposed: ProposedPlacement, nodes: NodeTable) -> int:
        """How good a placement is in which the group fits: 0 to 100."""


class VectorPlacementScore(ABC):
    @abstractmethod
    def score_placements(
        self, state: CycleState, group: PodGroup, proposed: Sequence[ProposedPlacement], nodes: NodeTable
    ) -> Scores:
        """The same for all placements in which the group fits, as an int64 array: 0 to 100 each."""


class PodGroupPostFilter(ABC):
    """For members of a group it takes the place of PostFilter."""

    @abstractmethod
    def pod_group_post_filter(self, attempt: GroupAttempt) -> NominateMembers | Rejection:
        """The group does not fit: can something be done about it?"""


ALL_POINTS: Sequence[type] = (
    PreEnqueue,
    QueueSort,
    PreFilter,
    Filter,
    VectorFilter,
    PostFilter,
    PreScore,
    Score,
    VectorScore,
    NormalizeScore,
    Reserve,
    Permit,
    PreBind,
    Bind,
    PostBind,
    PlacementGenerate,
    PlacementScore,
    VectorPlacementScore,
    PodGroupPostFilter,
)
