"""What plugins see of the running scheduler: one node, the pod in the queue, the rejected nodes, the handle."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct

from pilotage.api.budget import UNLIMITED, Budget
from pilotage.api.calls import ApiCall, ApiWriter, OnOutcome
from pilotage.api.conditions import PodCondition
from pilotage.api.events import ClusterEvent
from pilotage.api.indexes import ClusterIndex, PodClass
from pilotage.api.kinds import Kind
from pilotage.api.metrics import PluginMetrics
from pilotage.api.preemption import Eviction, OnEvicted, VictimPolicy, VictimSearch
from pilotage.api.results import Rejection
from pilotage.api.state import CycleState
from pilotage.api.table import NodeTable, Rows, Scores
from pilotage.clock import Clock
from pilotage.model import Node, Pod
from pilotage.model.node import Taint

if TYPE_CHECKING:
    from pilotage.api.what_if import WhatIf

IndexT = TypeVar("IndexT", bound=ClusterIndex)


class NodeView(Protocol):
    """One node with the pods on it, as of this cycle."""

    @property
    def name(self) -> str:
        """The node's name."""

    @property
    def node(self) -> Node:
        """The Node object."""

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""

    @property
    def taints(self) -> Sequence[Taint]:
        """The node's taints."""

    @property
    def unschedulable(self) -> bool:
        """Whether the node is cordoned."""

    @property
    def pods(self) -> Sequence[Pod]:
        """The pods on the node, those that are still being bound included; a new list each time."""

    @property
    def pod_count(self) -> int:
        """How many pods that are."""

    def allocatable(self, resource: str) -> int:
        """What the node offers: cpu in milli-cores, everything else in units; 0 if it has none."""

    def requested(self, resource: str) -> int:
        """What the pods on the node have requested."""

    def non_zero_requested(self, resource: str) -> int:
        """What scoring counts as requested: cpu and memory with the defaults for containers that request nothing."""


class QueuedPod(Struct, frozen=True):
    """A pod as QueueSort sees it."""

    pod: Pod
    """The pod as it is now."""
    timestamp: float
    """When it came into the queue, or was last put back into it; on the clock of the wall."""
    attempts: int
    """How often it was tried so far."""
    first_attempt_at: float | None = None
    """When it could be tried for the first time; None as long as it never could."""


class RejectedNodes(Protocol):
    """Why no node was feasible, node by node: what PostFilter works with."""

    def resolvable(self) -> Sequence[str]:
        """Names of the nodes where evicting pods might help."""

    def resolvable_rows(self) -> Rows:
        """The same nodes as rows of `handle.nodes`, ascending."""

    def rejection(self, node_name: str) -> Rejection:
        """The rejection of one node."""


class HeldPod(Protocol):
    """A pod that waits for permission."""

    @property
    def pod(self) -> Pod: ...
    @property
    def pending_plugins(self) -> Sequence[str]:
        """Plugins that have not allowed the pod yet."""

    def allow(self, plugin: str) -> None:
        """This plugin lets the pod go; it goes when no plugin holds it any more."""

    def reject(self, plugin: str, message: str) -> bool:
        """Send the pod back; True if this is what ended the wait."""


class HeldPods(Protocol):
    """All pods that wait for permission."""

    def __iter__(self) -> Iterator[HeldPod]: ...
    def get(self, uid: str) -> HeldPod | None: ...
    def reject(self, uid: str, message: str = ...) -> bool: ...


class Handle(Protocol):
    """What a plugin may use of the scheduler. Valid for the plugin's whole life; each plugin has its own."""

    @property
    def profile_name(self) -> str:
        """The scheduler name of the profile that the plugin serves."""

    @property
    def clock(self) -> Clock:
        """The time to use: `time()`, `monotonic()`, `await sleep(seconds)`. In simulations it is virtual."""

    @property
    def rng(self) -> random.Random:
        """The chance to use; in simulations it repeats."""

    @property
    def nodes(self) -> NodeTable:
        """All nodes; only inside a scheduling cycle."""

    def watches(self, kind: str | Kind) -> bool:
        """Whether this kind is watched."""

    @property
    def scheduler_names(self) -> Collection[str]:
        """The names of all profiles: pods that name one of them are ours."""

    def node(self, name: str) -> NodeView | None:
        """One node by name; only inside a scheduling cycle."""

    @property
    def waiting_pods(self) -> HeldPods:
        """Pods that Permit plugins hold back."""

    def objects(self, kind: str | Kind) -> Mapping[str, Any]:
        """Objects of a watched kind by their key ("namespace/name"); UnknownKind if it is not watched.

        The kind is one of the scheduler's ("PersistentVolumeClaim") or one of the plugin's `watches`, itself or by its
        name ("podgroups.scheduling.x-k8s.io"). The mapping stays up to date; a kind that the API server does not have
        (yet) has no objects.
        """

    def raw(self, obj: Any) -> Mapping[str, Any]:
        """A watched object as the API server last sent it, with the fields that its class leaves out.

        The plugin names its kind in `raw_kinds`; LookupError if it does not. The JSON is read anew for each question
        (some 20 microseconds for a pod): keep what you find.
        """

    def index(self, cls: type[IndexT]) -> IndexT:
        """An index over nodes and pods, made on first use and kept up to date."""

    def count_pods(self, key: Hashable, wanted: Callable[[PodClass], bool], budget: Budget = UNLIMITED) -> Scores:
        """Per node of `nodes`, how many pods are of wanted classes; equal keys must mean equal questions.

        The answer is kept up to date, so a class is asked about again whenever the first pod of its kind comes:
        questions should be small. What it takes to answer for the first time is taken from the budget.
        """

    def weigh_pods(self, weigh: Callable[[PodClass], int], budget: Budget = UNLIMITED) -> Scores:
        """Per node of `nodes`, what its pods weigh together, a pod of each class what `weigh` says.

        Nothing is remembered: for questions that are too large to be kept up to date for all pods that come.
        """

    def nominated_pods(self, node_name: str) -> Sequence[Pod]:
        """Pending pods whose nominated node this is."""

    def nominated_node(self, pod: Pod) -> str:
        """The nominated node of a pending pod, also if the API server does not have it yet; "" if there is none."""

    def withdraw_nominations(self, pods: Iterable[Pod]) -> None:
        """Clear the nominated nodes of these pending pods, at the API server too."""

    def what_if(self, pod: Pod, budget: Budget = UNLIMITED) -> WhatIf:
        """What the filters and scores of this profile say about a pod, on nodes as they are or as they would be.

        PreFilter is run for it, on a state of its own. Within a cycle, give `state.budget`.
        """

    def search_victims(
        self, state: CycleState, pod: Pod, rows: Rows, wanted: int, policy: VictimPolicy | None = None
    ) -> VictimSearch:
        """On which of these nodes (rows of `nodes`, tried in the order given) the pod would fit if others went.

        Ends when `wanted` candidates are found, one of which violates no disruption budget. Changes nothing. Only
        inside a scheduling cycle, with the state that PreFilter has filled for this pod. A policy says who may be a
        victim and what is best; without one it is as in kube-scheduler, and faster: what was found is remembered.
        """

    def evict(self, eviction: Eviction, on_evicted: OnEvicted) -> None:
        """Make a pod go, and record an event about it.

        A pod that waits for permission or is in PreBind is sent back to the queue; any other is marked as a target of
        disruption and deleted through the API server. Returns at once; `on_evicted` is called between later cycles.
        """

    def submit(self, call: ApiCall, on_outcome: OnOutcome | None = ...) -> None:
        """Send an API call without waiting for it; `on_outcome`, if given, is called once with the outcome."""

    async def perform(self, call: ApiCall) -> None:
        """Send an API call and return when it is done; raises what went wrong."""

    def patch_status(self, pod: Pod, *conditions: PodCondition, nomination: str | None = ...) -> Pod:
        """Write conditions and the nominated node ("" clears it, None leaves it) into a pod's status.

        All readers see the change at once; it is sent in the background, together with others for the same pod, and
        taken back if that fails. Returns the pod as it is seen now.
        """

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod to the node through the API server; returns when it is done, raises what went wrong.

        The pod counts on its node at once; if the binding fails, it does not any more.
        """

    @property
    def client(self) -> ApiWriter:
        """The API server itself, for what no call type does; use it from coroutines only (PreBind, Bind, PostBind, a
        background task)."""

    def record_event(self, obj: Any, type_: str, reason: str, action: str, note: str) -> None:
        """Write an Event ("Normal" or "Warning") about a pod or any other object, in the background.

        An object of this API, its JSON as a dict, or an `ObjectReference`; TypeError if its kind is unknown.
        """

    @property
    def metrics(self) -> PluginMetrics:
        """Counters, gauges and histograms of your own, with labels."""

    def run_in_background(self, work: Callable[[], Coroutine[Any, Any, None]], name: str = "") -> None:
        """Run a coroutine function beside the scheduler, from when it starts to schedule to its end.

        A standby does not run it. If it raises, that is logged and counted as any error of a plugin, and it is run
        again after a pause that grows from a second to a minute; if it returns, it is over. It shares its thread with
        everything else: no blocking calls in it. Wait by `handle.clock.sleep`.
        """

    def count(self, name: str, *labels: str, amount: int = 1) -> None:
        """Add to a counter: one of the scheduler's by its full name and labels (`docs/metrics.md`), or one of your own.

        Yours has any other name, such as `my_plugin_rejections_total`, and no labels; it is shown as
        `pilotage_plugin_counter_total{name="my_plugin_rejections_total"}`.
        """

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Add a value to one of the scheduler's histograms, by its full name and labels."""

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move these pods to the active queue without waiting for their backoff."""

    def requeue_on(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Something happened that no watch will report, such as a reservation in memory that was given back.

        Waiting pods are asked about it as about any other event, after the present cycle.
        """

    def back_off(self, pods: Iterable[Pod]) -> None:
        """What was to follow from the last attempt of these pods failed: try them again after a growing backoff."""

    def awaits_view(self, pod: Pod) -> bool:
        """Whether the watch of pods is interrupted, so that what is known of them may be old.

        If so, the pod will be tried again when it is back, or 30 s after the interruption began: until then, decide
        nothing about it that harms other pods.
        """

    def recheck_gates(self, pods: Iterable[Pod]) -> None:
        """Ask PreEnqueue again about these pods if they are gated; those let in wait for what may help them."""
