"""The whole scheduler with plugins that reject, wait, raise, or wake others: what becomes of the pods."""

from __future__ import annotations

from typing import Any, ClassVar

from pilotage.api import (
    Action,
    CycleState,
    Filter,
    Handle,
    Hint,
    NodeView,
    Permit,
    Plugin,
    PostBind,
    PreBind,
    PreEnqueue,
    Reason,
    Reject,
    Rejection,
    Reserve,
    Resource,
    Score,
    Wait,
    on_event,
)
from pilotage.model import Pod
from pilotage.queue.sub_queues import SubQueue
from pilotage.testing import node, pod
from tests.cycle.live_scheduler import live

A = node("a").cpu("1")
P = pod("p").requests(cpu="1")
NO = Reject(Reason("No", "not today"))


def marked(pod: Pod, mark: str) -> bool:
    return pod.labels.get("mark") == mark


# --- plugins that raise -----------------------------------------------------------------------------------------------


class Explosive(Plugin, Filter, Score):
    """Raises for marked pods."""

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        if marked(pod, "filter"):
            raise RuntimeError("boom")
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 1000 if marked(pod, "score") else 0


async def test_a_plugin_that_raises_costs_one_pod_its_attempt_and_no_one_else() -> None:
    async with live(Explosive) as world:
        await world.put(node("a"), node("b"), pod("p").label("mark", "filter"), pod("q"))
        assert world.condition("p") == (
            "False",
            "SchedulerError",
            'running "Explosive" filter plugin: RuntimeError: boom',
        )
        assert world.queue.size(SubQueue.ERROR_BACKOFF) == 1 and world.node_of("q") != ""
        assert world.scheduler.metrics.plugin_errors_total.values() == {("Explosive",): 1}
        await world.after(3)
        assert world.scheduler.metrics.plugin_errors_total.values() == {("Explosive",): 2}
        world.api.update_pod(pod("p"))
        await world.after(6)
        assert world.node_of("p") != ""


async def test_a_score_out_of_range_is_reported() -> None:
    async with live(Explosive) as world:
        await world.put(node("a"), node("b"), pod("p").label("mark", "score"))
        status, reason, message = world.condition("p")
        assert (status, reason) == ("False", "SchedulerError")
        assert 'plugin "Explosive" returns an invalid score 1000' in message


# --- PreEnqueue -------------------------------------------------------------------------------------------------------


class Doorman(Plugin, PreEnqueue):
    """Keeps marked pods out without giving a reason."""

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        return Reject() if marked(pod, "out") else None

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_LABEL)
    def after_relabelling(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE


async def test_a_gated_pod_enters_when_its_gate_lets_it() -> None:
    async with live(Doorman) as world:
        await world.put(A, P.label("mark", "out"), pod("q"))
        assert world.queue.size(SubQueue.GATED) == 1 and world.node_of("q") == "a"
        world.api.update_pod(P)
        await world.settle()
        assert world.node_of("p") == "a"


async def test_a_pod_is_scheduled_when_its_last_scheduling_gate_is_removed() -> None:
    async with live() as world:
        await world.put(A, P.gate("x").gate("y"))
        assert world.queue.size(SubQueue.GATED) == 1 and "status" not in world.api.pods["default/p"]
        world.api.update_pod(P.gate("y"))
        await world.settle()
        assert world.queue.size(SubQueue.GATED) == 1
        world.api.update_pod(P)
        await world.settle()
        assert world.node_of("p") == "a"


# --- Reserve and Permit -----------------------------------------------------------------------------------------------


class Ledger(Plugin, Reserve):
    """Reserves for everybody but marked pods; keeps a book of who has what."""

    held: ClassVar[dict[str, str]] = {}

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        if marked(pod, "reject"):
            return NO
        if marked(pod, "raise"):
            raise RuntimeError("out of ink")
        self.held[pod.name] = node_name
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.held.pop(pod.name, None)

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_LABEL)
    def after_relabelling(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE


async def test_a_rejected_reservation_gives_the_place_back() -> None:
    Ledger.held.clear()
    async with live(Ledger) as world:
        await world.put(A, P.label("mark", "reject"))
        assert world.condition("p") == ("False", "Unschedulable", "0/1 nodes are available: 1 not today.")
        assert world.requested() == {"a": 0} and world.queue.size(SubQueue.UNSCHEDULABLE) == 1
        world.api.update_pod(P)
        await world.settle()
        assert world.node_of("p") == "a" and Ledger.held == {"p": "a"}


async def test_an_error_while_reserving_gives_the_place_back() -> None:
    async with live(Ledger) as world:
        await world.put(A, P.label("mark", "raise"))
        assert world.condition("p")[1:] == (
            "SchedulerError",
            'running Reserve plugin "Ledger": RuntimeError: out of ink',
        )
        assert world.requested() == {"a": 0} and world.queue.size(SubQueue.ERROR_BACKOFF) == 1


class Escort(Plugin, Permit):
    """Holds marked pods until somebody allows them."""

    handle: ClassVar[Handle]

    def __init__(self, handle: Handle) -> None:
        type(self).handle = handle

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Wait | Rejection | None:
        if marked(pod, "reject"):
            return NO
        return Wait(60) if marked(pod, "wait") else None

    @on_event(Resource.NODE, Action.ADD)
    def after_new_node(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE


async def test_a_rejected_permission_gives_the_place_back() -> None:
    async with live(Escort, Ledger) as world:
        await world.put(A, P.label("mark", "reject"))
        assert world.requested() == {"a": 0} and "p" not in Ledger.held
        assert world.condition("p")[1] == "Unschedulable"


async def test_a_held_pod_keeps_its_place_until_it_is_allowed() -> None:
    async with live(Escort) as world:
        await world.put(A, P.label("mark", "wait"), pod("q").requests(cpu="1"))
        assert world.node_of("p") == "" and world.requested() == {"a": 1000}
        (held,) = Escort.handle.waiting_pods
        assert held.pending_plugins == ["Escort"]
        held.allow("Escort")
        await world.settle()
        assert (world.node_of("p"), world.node_of("q")) == ("a", "")


async def test_a_pod_held_for_too_long_goes_back_and_its_place_to_others() -> None:
    async with live(Escort) as world:
        await world.put(A, P.label("mark", "wait"), pod("q").requests(cpu="1"))
        await world.after(61)
        assert (world.node_of("p"), world.node_of("q")) == ("", "a")
        text = "rejected due to timeout after waiting 1m0s at plugin Escort"
        assert world.condition("p") == ("False", "Unschedulable", f"0/1 nodes are available: 1 {text}.")
        assert world.queue.size(SubQueue.UNSCHEDULABLE) == 1


async def test_a_held_pod_that_is_deleted_frees_its_place() -> None:
    async with live(Escort) as world:
        await world.put(A, P.label("mark", "wait"), pod("q").requests(cpu="1"))
        world.api.delete_pod("p")
        await world.settle()
        assert world.node_of("q") == "a" and list(Escort.handle.waiting_pods) == []


# --- PreBind and PostBind ---------------------------------------------------------------------------------------------


class Customs(Plugin, PreBind):
    """Rejects marked pods at the last moment."""

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        if marked(pod, "raise"):
            raise RuntimeError("closed")
        return NO if marked(pod, "reject") else None


async def test_a_rejection_before_binding_is_an_unschedulable_pod_in_error_backoff() -> None:
    async with live(Customs) as world:
        await world.put(A, P.label("mark", "reject"))
        assert world.api.bindings == [] and world.requested() == {"a": 0}
        assert world.condition("p") == ("False", "Unschedulable", "not today")
        assert world.queue.size(SubQueue.ERROR_BACKOFF) == 1


async def test_an_error_before_binding_gives_everything_back() -> None:
    async with live(Customs) as world:
        await world.put(A, P.label("mark", "raise"))
        assert world.condition("p")[1:] == ("SchedulerError", 'running PreBind plugin "Customs": RuntimeError: closed')
        assert world.requested() == {"a": 0} and world.queue.size(SubQueue.ERROR_BACKOFF) == 1


class Buddies(Plugin, Filter, PostBind):
    """Rejects pods marked "second" until a pod is bound, and then wakes them."""

    someone_is_bound: ClassVar[bool] = False

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return NO if marked(pod, "second") and not self.someone_is_bound else None

    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        type(self).someone_is_bound = True
        waiting = self._handle.objects("Pod").values()
        self._handle.activate(other for other in waiting if not other.node_name)

    @on_event(Resource.CSI_DRIVER, Action.ADD)
    def after_something_that_never_happens(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.SKIP


async def test_a_plugin_may_wake_other_pods_after_a_binding() -> None:
    """Nothing else happens after the activation: it must wake the scheduler itself."""
    Buddies.someone_is_bound = False
    async with live(Buddies) as world:
        await world.put(node("a"), pod("p").label("mark", "second"))
        assert world.queue.size(SubQueue.UNSCHEDULABLE) == 1
        await world.put(pod("q"))
        assert (world.node_of("q"), world.node_of("p")) == ("a", "a")


# --- the safety net ---------------------------------------------------------------------------------------------------


class Moody(Plugin, Filter):
    """Changes its mind without any event, and says of every event that it does not help."""

    is_in_good_mood: ClassVar[bool] = False

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return None if self.is_in_good_mood else NO

    @on_event(Resource.NODE, Action.ADD)
    def after_new_node(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.SKIP


async def test_a_pod_that_no_event_wakes_is_tried_again_after_five_minutes() -> None:
    Moody.is_in_good_mood = False
    async with live(Moody) as world:
        await world.put(A, P)
        Moody.is_in_good_mood = True
        await world.put(node("b"))
        await world.after(299)
        assert world.node_of("p") == "" and world.attempts == 1
        await world.after(60)
        assert world.node_of("p") != ""
