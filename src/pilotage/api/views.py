"""What plugins see of the running scheduler: one node, the pod in the queue, the rejected nodes, the handle."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pilotage.api.calls import ApiCall, ApiWriter, OnOutcome
from pilotage.api.conditions import PodCondition
from pilotage.api.indexes import ClusterIndex, PodClass
from pilotage.api.preemption import Eviction, OnEvicted, VictimSearch
from pilotage.api.results import Refusal
from pilotage.api.state import CycleState
from pilotage.api.table import NodeTable, Rows, Scores
from pilotage.clock import Clock
from pilotage.model import Node, Pod
from pilotage.model.node import Taint

IndexT = TypeVar("IndexT", bound=ClusterIndex)


class NodeView(Protocol):
    """One node with the pods on it, as of this cycle."""

    @property
    def name(self) -> str: ...
    @property
    def node(self) -> Node: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def taints(self) -> Sequence[Taint]: ...
    @property
    def unschedulable(self) -> bool: ...
    @property
    def pods(self) -> Sequence[Pod]: ...
    @property
    def pod_count(self) -> int: ...
    def allocatable(self, resource: str) -> int: ...
    def requested(self, resource: str) -> int: ...
    def scored_request(self, resource: str) -> int: ...


@dataclass(frozen=True, slots=True)
class QueuedPod:
    """A pod as QueueSort sees it."""

    pod: Pod
    timestamp: float
    attempts: int


class RejectedNodes(Protocol):
    """Why no node was feasible, node by node: what PostFilter works with."""

    def resolvable(self) -> Sequence[str]:
        """Names of the nodes where evicting pods might help."""

    def resolvable_rows(self) -> Rows:
        """The same nodes as rows of `handle.nodes`, ascending."""

    def refusal(self, node_name: str) -> Refusal:
        """The refusal of one node."""


class HeldPod(Protocol):
    """A pod that waits for permission."""

    @property
    def pod(self) -> Pod: ...
    @property
    def pending_plugins(self) -> Sequence[str]:
        """Plugins that have not allowed the pod yet."""

    def allow(self, plugin: str) -> None:
        """This plugin lets the pod go; it goes when nobody holds it any more."""

    def reject(self, plugin: str, message: str) -> bool:
        """Send the pod back; True if this is what ended the wait."""


class HeldPods(Protocol):
    """All pods that wait for permission."""

    def __iter__(self) -> Iterator[HeldPod]: ...
    def get(self, uid: str) -> HeldPod | None: ...
    def reject(self, uid: str, message: str = ...) -> bool: ...


class Handle(Protocol):
    """What a plugin may use of the scheduler. Valid for the plugin's whole life."""

    @property
    def clock(self) -> Clock: ...
    @property
    def rng(self) -> random.Random: ...
    @property
    def nodes(self) -> NodeTable:
        """All nodes; only inside a scheduling cycle."""

    def node(self, name: str) -> NodeView | None:
        """One node by name; only inside a scheduling cycle."""

    @property
    def waiting_pods(self) -> HeldPods:
        """Pods that Permit plugins hold back."""

    def objects(self, kind: str) -> Mapping[str, Any]:
        """Objects of a watched kind ("PersistentVolumeClaim") by their key ("namespace/name")."""

    def index(self, cls: type[IndexT]) -> IndexT:
        """An index over nodes and pods, made on first use and kept up to date."""

    def count_pods(self, key: Hashable, wanted: Callable[[PodClass], bool]) -> Scores:
        """Per node of `nodes`, how many pods are of wanted classes; equal keys must mean equal questions."""

    def nominated_pods(self, node_name: str) -> Sequence[Pod]:
        """Pending pods that are promised this node."""

    def nominated_node(self, pod: Pod) -> str:
        """The node that is promised to a pending pod, also if the API server does not know yet; "" if there is none."""

    def withdraw_nominations(self, pods: Iterable[Pod]) -> None:
        """These pending pods are not promised their node any more; the API server is told."""

    def search_victims(self, state: CycleState, pod: Pod, rows: Rows, wanted: int) -> VictimSearch:
        """On which of these nodes (rows of `nodes`, tried in the order given) the pod would fit if others went.

        Ends when `wanted` candidates are found, one of which violates no disruption budget. Changes nothing. Only
        inside a scheduling cycle, with the state that PreFilter has filled for this pod.
        """

    def evict(self, eviction: Eviction, on_evicted: OnEvicted) -> None:
        """Make a pod go, and record an event about it.

        A pod that waits for permission or is in PreBind is sent back to the queue; any other is marked as a target of
        disruption and deleted through the API server. Nobody waits: `on_evicted` is called between two later cycles.
        """

    def submit(self, call: ApiCall, on_outcome: OnOutcome | None = ...) -> None:
        """Send an API call without waiting for it; `on_outcome`, if given, is told once what became of it."""

    async def perform(self, call: ApiCall) -> None:
        """Send an API call and return when it is done; raises what went wrong."""

    def patch_status(self, pod: Pod, *conditions: PodCondition, nomination: str | None = ...) -> Pod:
        """Write conditions and the nominated node ("" clears it, None leaves it) into a pod's status.

        Everybody sees the change at once; it is sent in the background, together with others for the same pod, and
        taken back if that fails. Returns the pod as it is seen now.
        """

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod to the node through the API server; returns when it is done, raises what went wrong.

        The pod counts on its node at once; if the binding fails, it does not any more.
        """

    @property
    def client(self) -> ApiWriter:
        """The API server itself, for what no call type does; use it from coroutines (PreBind, Bind, PostBind) only."""

    def record_event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Write an Event about the pod ("Normal" or "Warning"), in the background."""

    def count(self, name: str, *labels: str, amount: int = 1) -> None:
        """Add to a counter: one of the scheduler's by its full name and labels (`docs/metrics.md`), or one of your own.

        Yours has any other name, such as `my_plugin_refusals_total`, and no labels; it is shown as
        `pilotage_plugin_counter_total{name="my_plugin_refusals_total"}`.
        """

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Add a value to one of the scheduler's histograms, by its full name and labels."""

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move these pods to the active queue without waiting for their backoff."""

    def recheck_gates(self, pods: Iterable[Pod]) -> None:
        """Ask PreEnqueue again about these pods if they are gated; those let in wait for what may help them."""
