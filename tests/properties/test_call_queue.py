"""Random interleavings of API calls, answers, lost answers and watch events, with the real call types.

A model of the API server holds pods with a nomination and two conditions. Calls are stopped before and after the server
takes them in, so that anything can happen in between: newer calls, a watch event of before or after, a lost answer. In
the end everything is allowed to finish, and then

- everybody was told exactly once, and nothing is left,
- the server has, in every field, what was wanted last (calls that the rules say are pointless excepted),
- no pod was bound twice, and what was said to be done was done,
- what the scheduler shows is what the server has.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pilotage.api.calls import ApiCall, Ending, Lane, Outcome, Why
from pilotage.api.conditions import PodCondition
from pilotage.calls.binding import PodBinding
from pilotage.calls.call_queue import CallQueue, CallSlot
from pilotage.calls.pod_status import PodStatusPatch
from pilotage.calls.victim_eviction import VictimEviction
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.transport import TransportError
from pilotage.model import KINDS, Pod
from pilotage.testing import pod
from tests.properties.held_calls import Flights, Listeners, Pause

NAMES = ("a", "b")
FIELDS = ("nomination", "PodScheduled", "Other")
VALUES = ("", "x", "y")
LOST = TransportError("the answer was lost", sent=True)
NOW = "2026-01-01T00:00:00Z"

names = st.sampled_from(("a", "a", "a", "b"))
"""Most calls are for the same pod, or they would seldom meet."""
values = st.sampled_from(VALUES)


class ModelServer:
    """Pods as JSON; every write waits before and after it takes effect."""

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.news: dict[str, list[dict[str, Any] | None]] = {name: [] for name in NAMES}
        """What the watch has still to tell; None for a deletion."""
        self.bindings: list[str] = []
        self._version = 0
        for name in NAMES:
            self._save(pod(name).uid(f"uid-{name}").json() | {"status": {}})
            self.pods[name]["metadata"]["uid"] = f"uid-{name}"

    def _save(self, obj: dict[str, Any]) -> None:
        self._version += 1
        name = obj["metadata"]["name"]
        self.pods[name] = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}
        self.news[name].append(self.pods[name])

    def touch(self, name: str) -> None:
        self._save(self.pods[name])

    def field(self, name: str, field: str) -> str:
        status = self.pods[name]["status"]
        if field == "nomination":
            return str(status.get("nominatedNodeName", ""))
        return next((str(c["message"]) for c in status.get("conditions", ()) if c["type"] == field), "")

    def _current(self, name: str) -> dict[str, Any]:
        if name not in self.pods:
            raise ApiStatusError(404, "NotFound", f"{name} not found")
        return self.pods[name]

    async def get(self, kind: Any, namespace: str, name: str) -> bytes:
        return msgspec.json.encode(self._current(name))

    async def patch(self, kind: Any, namespace: str, name: str, body: bytes, **options: str) -> bytes:
        await Pause()
        patch, obj = msgspec.json.decode(body), self._current(name)
        changed = {c["type"]: c for c in patch["status"].pop("conditions", ())}
        kept = [c for c in obj["status"].get("conditions", ()) if c["type"] not in changed]
        status = {**obj["status"], **patch["status"], "conditions": [*kept, *changed.values()]}
        self._save({**obj, "status": {key: value for key, value in status.items() if value is not None}})
        answer = msgspec.json.encode(self.pods[name])
        await Pause()
        return answer

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        await Pause()
        obj = self._current(name)
        if obj["spec"].get("nodeName"):
            raise ApiStatusError(409, "Conflict", "bound already")
        self.bindings.append(name)
        self._save({**obj, "spec": {**obj["spec"], "nodeName": node}})
        await Pause()

    async def delete(self, kind: Any, namespace: str, name: str, options: bytes) -> bytes:
        await Pause()
        self._current(name)
        del self.pods[name]
        self.news[name].append(None)
        await Pause()
        return b""


class Traffic(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.server = ModelServer()
        self.queue = CallQueue()
        self.received: dict[str, Pod | None] = dict.fromkeys(NAMES)
        self.listeners = Listeners()
        self.flights = Flights(self.queue, self.server, self._rejected)
        self.binds = dict.fromkeys(NAMES, 0)
        self.wanted: dict[str, dict[str, str]] = {name: {} for name in NAMES}
        """What was wanted last, field by field; without fields that nobody can know any more."""
        for name in NAMES:
            self.watch(name)

    # --- what can happen ---------------------------------------------------------------------------------------

    @rule(name=names, value=values)
    def nominate(self, name: str, value: str) -> None:
        self._patch(name, {"nomination": value})

    @rule(name=names, value=st.sampled_from(("x", "y")), other=st.booleans(), nomination=st.none() | values)
    def write_condition(self, name: str, value: str, other: bool, nomination: str | None) -> None:
        wanted = {"Other" if other else "PodScheduled": value}
        self._patch(name, wanted if nomination is None else {**wanted, "nomination": nomination})

    def _patch(self, name: str, wanted: dict[str, str]) -> None:
        known = self._seen(name)
        if known is None:
            return
        conditions = [PodCondition(f, "False", "R", v, 0, NOW) for f, v in wanted.items() if f != "nomination"]
        call = PodStatusPatch(known, *conditions, nomination=wanted.get("nomination"))
        if self._submit(call) is not Why.LESS_RELEVANT:
            self.wanted[name].update(wanted)

    def _seen(self, name: str) -> Pod | None:
        """The pod as everybody sees it."""
        received = self.received[name]
        return None if received is None else self.queue.shown(received.uid, received)

    @rule(name=names)
    def bind(self, name: str) -> None:
        known = self.received[name]
        if known is None or known.node_name:
            return
        self.binds[name] += 1
        if self._submit(PodBinding(known, "n")) is None:
            # What was still to be written is not written any more, or was on its way: nobody knows.
            self.wanted[name].clear()

    @rule(name=names)
    def evict(self, name: str) -> None:
        known = self.received[name]
        if known is not None:
            self._submit(VictimEviction(known, PodCondition("DisruptionTarget", "True", "P", "m", 0, NOW)))
            self.wanted[name].clear()

    def _submit(self, call: ApiCall) -> Why | None:
        told: list[Outcome] = []

        def check(outcome: Outcome) -> None:
            told.append(outcome)
            self._check_outcome(call, outcome)

        self.queue.add(call, self.listeners.add(check), 0.0)
        return told[0].why if told else None

    def _check_outcome(self, call: ApiCall, outcome: Outcome) -> None:
        name = call.object_key.removeprefix("uid-")
        if outcome.ending is Ending.DONE and isinstance(call, PodBinding) and name in self.server.pods:
            assert self.server.pods[name]["spec"].get("nodeName") == "n"
        if outcome.ending is Ending.DONE and isinstance(call, VictimEviction):
            assert name not in self.server.pods
        if isinstance(call, PodBinding):
            assert outcome.why is not Why.NO_EFFECT
            if isinstance(outcome.error, ApiStatusError) and self.binds[name] == 1:
                assert name not in self.server.bindings, "what was done has not failed"

    @rule(lane=st.sampled_from([Lane.STATUS, Lane.BIND, Lane.EVICT]))
    def send(self, lane: Lane) -> None:
        slot = self.queue.next(lane)
        if slot is not None:
            self.flights.begin(slot)

    @rule(lane=st.sampled_from([Lane.STATUS, Lane.STATUS, Lane.BIND]))
    def send_until_taken_in(self, lane: Lane) -> None:
        """The server has taken it in, and nobody knows yet."""
        before = self.flights.keys()
        self.send(lane)
        for key in self.flights.keys() - before:
            self.flights.go_on(key)

    @precondition(lambda self: len(self.flights))
    @rule(name=names)
    def go_on(self, name: str) -> None:
        self.flights.go_on(f"uid-{name}")

    @precondition(lambda self: len(self.flights))
    @rule(name=names, gives_up=st.booleans())
    def lose_connection(self, name: str, gives_up: bool) -> None:
        if f"uid-{name}" not in self.flights:
            return
        slot = self.flights.cut_off(f"uid-{name}")
        if gives_up:
            self._failed(slot, LOST, is_in_doubt=True)
        else:
            self.queue.retry(slot, 1.0, is_in_doubt=True)

    def _rejected(self, slot: CallSlot, error: ApiStatusError) -> None:
        self._failed(slot, error, is_in_doubt=False)

    def _failed(self, slot: CallSlot, error: Exception, *, is_in_doubt: bool) -> None:
        name = slot.key.removeprefix("uid-")
        has_follower = any(s.key == slot.key and s is not slot for s in self.queue.slots())
        if not has_follower:
            # Whoever submitted it knows that it has failed.
            self.wanted[name].clear()
        self.queue.failed(slot, error, is_in_doubt=is_in_doubt)

    @rule()
    def wait(self) -> None:
        self.queue.wake(1.0)

    @rule(name=names)
    def somebody_else_changes_something(self, name: str) -> None:
        if name in self.server.pods:
            self.server.touch(name)

    @rule(name=names)
    def watch(self, name: str) -> None:
        news = self.server.news[name]
        if not news:
            return
        obj = news.pop(0)
        if obj is None:
            self.received[name] = None
            self.queue.forget(f"uid-{name}")
            return
        received = KINDS["pods"].decode(msgspec.json.encode(obj))
        self.received[name] = received
        shown = self.queue.sync(received.uid, received)
        assert int(shown.resource_version) >= int(received.resource_version)

    def teardown(self) -> None:
        for _ in range(50):
            for name in NAMES:
                self.flights.go_on(f"uid-{name}")
                self.watch(name)
            self.queue.wake(1.0)
            for lane in Lane:
                if (slot := self.queue.next(lane)) is not None:
                    self.flights.begin(slot)
        assert self.queue.is_idle and self.listeners.all_told, "everybody is told in the end"
        self.listeners.check()
        self.check_the_end()

    def check_the_end(self) -> None:
        assert len(set(self.server.bindings)) == len(self.server.bindings), "no pod is bound twice"
        for name in self.server.pods:
            for field, value in self.wanted[name].items():
                assert self.server.field(name, field) == value, f"{name} {field}"
            received = self.received[name]
            assert received is not None
            assert self.queue.shown(received.uid, received) is received, "nothing is laid over the last word"

    # --- always ------------------------------------------------------------------------------------------------

    @invariant()
    def the_queue_is_in_order(self) -> None:
        self.queue.check()
        self.listeners.check()
        assert self.queue.in_flight == len(self.flights)

    @invariant()
    def what_is_wanted_is_what_is_shown(self) -> None:
        """Unless a field is in doubt, which only a look can settle, the newest wish is what everybody sees."""
        for name, wanted in self.wanted.items():
            received = self.received[name]
            pending = [slot for slot in self.queue.slots() if slot.key == f"uid-{name}"]
            if received is None or any(self.queue.is_in_doubt(slot) for slot in pending):
                continue
            shown: Pod = self.queue.shown(received.uid, received)
            if "nomination" in wanted and all(isinstance(slot.call, PodStatusPatch) for slot in pending):
                assert shown.status.nominated_node_name == wanted["nomination"]


TestTraffic = Traffic.TestCase
TestTraffic.settings = settings(max_examples=250, stateful_step_count=40, deadline=None)
