"""Two plugins that serve every extension point, write down each call, and answer as a test tells them.

They are the only plugins of their profile, so that the record is everything that happened.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from pilotage.api import (
    Action,
    Bind,
    CycleState,
    Filter,
    Handle,
    Hint,
    NodeTable,
    NodeView,
    Nominate,
    NormalizeScore,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    QueuedPod,
    QueueSort,
    Reason,
    Reject,
    RejectedNodes,
    Reserve,
    Resource,
    Score,
    Scores,
    on_event,
)
from pilotage.config.load import configuration_of
from pilotage.model import Pod
from tests.cycle.live_scheduler import LiveScheduler, live

_CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "plugins": {
                "multiPoint": {"enabled": [{"name": "A"}, {"name": "B"}], "disabled": [{"name": "*"}]},
                "queueSort": {"enabled": [{"name": "Order"}], "disabled": [{"name": "*"}]},
            }
        }
    ],
}


class Order(Plugin, QueueSort):
    """First come, first served; who sorts when is the queue's own business and not recorded."""

    def sort_key(self, queued: QueuedPod) -> tuple[float, ...]:
        return (queued.timestamp,)


class _Recording(
    Plugin,
    PreEnqueue,
    PreFilter,
    Filter,
    PostFilter,
    PreScore,
    Score,
    NormalizeScore,
    Reserve,
    Permit,
    PreBind,
    Bind,
    PostBind,
):
    calls: ClassVar[list[str]] = []
    """`A.reserve` and the like, of both plugins, in the order in which they happened."""
    script: ClassVar[dict[str, Any]] = {}
    """What to answer, by the name of the call; an exception is raised."""
    handle: ClassVar[Handle]

    def __init__(self, handle: Handle) -> None:
        type(self).handle = handle

    def _answer(self, method: str, default: Any = None, node: str = "") -> Any:
        call = f"{self.plugin_name()}.{method}"
        self.calls.append(f"{call} {node}" if node else call)
        answer = self.script.get(call, default)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def pre_enqueue(self, pod: Pod) -> Any:
        return self._answer("pre_enqueue")

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Any:
        return self._answer("pre_filter")

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Any:
        return self._answer("filter", node=node.name)

    def post_filter(self, state: CycleState, pod: Pod, rejected: RejectedNodes) -> Any:
        return self._answer("post_filter", Reject(Reason("NoHelp", "no help")))

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Any:
        return self._answer("pre_score")

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        score: int = self._answer("score", 1, node.name)
        return score

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        self._answer("normalize")
        return scores

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self._answer("reserve")

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._answer("unreserve")

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self._answer("permit")

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        default = super().pre_bind_pre_flight(state, pod, node_name)
        return self._answer("pre_flight", default)

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self._answer("pre_bind")

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        answer = self._answer("bind")
        if answer is None:
            await self.handle.bind(pod, node_name)
        return answer

    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._answer("post_bind")

    @on_event(Resource.STORAGE_CLASS, Action.ADD)
    def after_something_that_never_happens(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.SKIP


class A(_Recording):
    """The one that is asked first."""


class B(_Recording):
    """The one that is asked second."""


@asynccontextmanager
async def recorded(**script: Any) -> AsyncIterator[tuple[LiveScheduler, list[str]]]:
    """A scheduler with just these plugins; `A_filter=...` is what A's filter answers."""
    _Recording.script = {name.replace("_", ".", 1): answer for name, answer in script.items()}
    _Recording.calls.clear()
    async with live(Order, A, B, configuration=configuration_of(_CONFIGURATION)) as world:
        yield world, _Recording.calls


NOMINATED = Nominate("a", "made room")
