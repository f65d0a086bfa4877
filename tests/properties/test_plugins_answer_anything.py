"""Whatever plugins answer or raise, at whatever point: the scheduler goes on, loses no pod, and says who it was."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotage.api import (
    Action,
    Affected,
    Bind,
    CycleState,
    Filter,
    Hint,
    NodeNames,
    NodeView,
    Nominate,
    NormalizeScore,
    Pending,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreFilterExtensions,
    PreFlight,
    PreScore,
    QueuedPod,
    QueueSort,
    Reason,
    Reject,
    Reserve,
    Resource,
    Score,
    Skip,
    VectorFilter,
    VectorScore,
    Wait,
    narrows,
    on_event,
)
from pilotage.config.load import configuration_of
from pilotage.model import Pod
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import live

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("not even that")

    __hash__ = None  # type: ignore[assignment]


class Raises:
    """The point raises this instead of answering."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __repr__(self) -> str:
        return f"Raises({self.error!r})"


ANSWERS: list[Any] = [
    None, True, False, 0, 1, -1, 5.5, float("nan"), float("inf"), 2**70, "", "text", b"bytes", (), [], {}, set(),
    (1, "a"), (None,), ("a", 1), [None], {"a": 1}, object(), Unprintable(), int, lambda *_: None,
    np.int64(3), np.array([1.5]), np.zeros(7), np.array(["x"]), np.array([True]),
    Reject(), Reject(Reason("No", "no")), Pending(), Pending(Reason("Later", "later")), Skip(), Wait(0.5), PreFlight(),
    NodeNames(frozenset()), NodeNames(["nowhere"]), Nominate(""), Nominate("nowhere"), Nominate("a"),  # type: ignore[arg-type]
    Hint.QUEUE, Hint.SKIP, Affected.all(), Affected(["x"]), Affected.pods(["default/p"]),  # type: ignore[arg-type]
    [(np.array([True, False]), "text")], [(None, None)], [(np.array([True]), Reason("No", "no"))], [5],
    Raises(RuntimeError("boom")), Raises(KeyError("k")), Raises(StopIteration()), Raises(RecursionError()),
    Raises(asyncio.CancelledError()), Raises(TimeoutError()), Raises(MemoryError()), Raises(AssertionError()),
]  # fmt: skip
POINTS = [
    "pre_enqueue", "pre_filter", "filter", "filter_all", "post_filter", "pre_score", "score", "score_all", "normalize",
    "reserve", "unreserve", "permit", "pre_bind_pre_flight", "pre_bind", "bind", "post_bind", "sort_key", "sign",
    "hint", "narrow", "add_pod", "remove_pod",
]  # fmt: skip
PLAIN: dict[str, Any] = {
    "score": 1, "sort_key": (1.0,), "bind": Skip(), "pre_bind_pre_flight": PreFlight(), "hint": Hint.QUEUE,
    "narrow": Affected.all(), "post_filter": Reject(Reason("No", "no")), "sign": None,
}  # fmt: skip
"""What a plugin answers at the points that are not tried out."""


class Anything(
    Plugin, PreEnqueue, PreFilter, PreFilterExtensions, Filter, PostFilter, PreScore, Score, NormalizeScore, Reserve,
    Permit, PreBind, Bind, PostBind,
):  # fmt: skip
    """Answers what the script of a pod says, by point; what is not in it, as any plugin would."""

    scripts: dict[str, Mapping[str, Any]] = {}  # noqa: RUF012
    turns: Iterator[Any] = iter(())
    """What is answered where no pod is asked about."""

    @classmethod
    def has(cls, point: str, pod: Pod) -> bool:
        return point in cls.scripts.get(pod.name, {})

    @classmethod
    def say(cls, point: str, pod: Pod | None) -> Any:
        if pod is None:
            answer = next(cls.turns, PLAIN.get(point))
        else:
            answer = cls.scripts.get(pod.name, {}).get(point, PLAIN.get(point))
        if isinstance(answer, Raises):
            raise answer.error
        return answer

    def pre_enqueue(self, pod: Pod) -> Any:
        return self.say("pre_enqueue", pod)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Any) -> Any:
        return self.say("pre_filter", pod)

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeView) -> Any:
        return self.say("add_pod", pod)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeView) -> Any:
        return self.say("remove_pod", pod)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Any:
        return self.say("filter", pod)

    def post_filter(self, state: CycleState, pod: Pod, diagnosis: Any) -> Any:
        return self.say("post_filter", pod)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Any) -> Any:
        return self.say("pre_score", pod)

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> Any:
        return self.say("score", pod)

    def normalize(self, state: CycleState, pod: Pod, scores: Any) -> Any:
        return self.say("normalize", pod) if self.has("normalize", pod) else scores

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self.say("reserve", pod)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self.say("unreserve", pod)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self.say("permit", pod)

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self.say("pre_bind_pre_flight", pod)

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self.say("pre_bind", pod)

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self.say("bind", pod)

    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self.say("post_bind", pod)

    def sign(self, pod: Pod) -> Any:
        return self.say("sign", pod)

    @on_event(Resource.NODE, Action.ADD)
    def after_node(self, pod: Pod, old: Any, new: Any) -> Any:
        return self.say("hint", pod)

    @narrows(Resource.NODE, Action.ADD)
    def narrow(self, old: Any, new: Any) -> Any:
        return self.say("narrow", None)


class AnyColumns(Plugin, VectorFilter, VectorScore):
    def filter_all(self, state: CycleState, pod: Pod, nodes: Any) -> Any:
        return Anything.say("filter_all", pod) if Anything.has("filter_all", pod) else ()

    def score_all(self, state: CycleState, pod: Pod, nodes: Any) -> Any:
        if Anything.has("score_all", pod):
            return Anything.say("score_all", pod)
        return np.zeros(len(nodes), dtype=np.int64)


class AnyOrder(Plugin, QueueSort):
    def sort_key(self, queued: QueuedPod) -> Any:
        return Anything.say("sort_key", queued.pod)


ORDERED = configuration_of({
    **HEADER,
    "profiles": [{
        "schedulerName": "default-scheduler",
        "plugins": {
            "queueSort": {"enabled": [{"name": "AnyOrder"}], "disabled": [{"name": "*"}]},
            "bind": {"enabled": [{"name": "Anything"}, {"name": "DefaultBinder"}], "disabled": [{"name": "*"}]},
        },
    }],
})  # fmt: skip


async def lives_through(scripts: Mapping[str, Mapping[str, Any]]) -> None:
    """Pods by name, each with its script: whatever becomes of them, nothing is lost and others are scheduled."""
    Anything.scripts = dict(scripts)
    async with live(Anything, AnyColumns, AnyOrder, configuration=ORDERED) as world:
        await world.put(node("a").cpu("100"), node("b").cpu("100"))
        await world.put(*(pod(name).requests(cpu="1") for name in scripts))
        await world.put(node("c").cpu("100"), pod("canary").requests(cpu="1"))
        await world.after(40)
        await world.put(node("d").cpu("100"))
        assert world.node_of("canary"), "another pod was not scheduled"
        uids = {name: world.api.pods[f"default/{name}"]["metadata"]["uid"] for name in scripts}
        lost = [scripts[name] for name, uid in uids.items() if not world.node_of(name) and uid not in world.queue]
        assert lost == []
        waiting = {waiting.pod.uid for waiting in world.scheduler.waiting_pods}
        stuck = {ticket.uid for ticket in world.queue.tickets()} - waiting
        assert [scripts[name] for name, uid in uids.items() if uid in stuck] == []
        bound = [one["spec"]["nodeName"] for one in world.api.pods.values() if one["spec"].get("nodeName")]
        assert sum(world.requested().values()) == 1000 * (len(bound) + len(waiting)), "a place was kept"


def claims_to_bind(answer: Any) -> bool:
    """A plugin that says that it has bound a pod is believed."""
    return answer is None


@pytest.mark.parametrize("point", POINTS)
async def test_any_answer_at_any_point(point: str) -> None:
    answers = [answer for answer in ANSWERS if point != "bind" or not claims_to_bind(answer)]
    Anything.turns = iter(answers)
    await lives_through({f"p{at}": {point: answer} for at, answer in enumerate(answers)})


SCRIPTS = st.dictionaries(st.sampled_from(POINTS), st.sampled_from(ANSWERS), min_size=2, max_size=6)


@settings(max_examples=30, suppress_health_check=list(HealthCheck), derandomize=True, deadline=None)
@given(scripts=st.lists(SCRIPTS, min_size=1, max_size=8))
def test_any_answers_at_several_points(scripts: list[dict[str, Any]]) -> None:
    kept = [script for script in scripts if not claims_to_bind(script.get("bind", Skip()))]
    asyncio.run(lives_through({f"p{at}": script for at, script in enumerate(kept)}))
