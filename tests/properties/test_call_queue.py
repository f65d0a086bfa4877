"""Random submissions of API calls: every customer is told exactly once, and the rules of relevance hold throughout."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pilotage.api.calls import Lane
from pilotage.calls.call_queue import CallQueue, CallSkipped, QueuedCall
from tests.calls.sample_calls import Binding, Deletion, SampleCall, Status

KINDS: dict[str, type[SampleCall]] = {"status": Status, "binding": Binding, "deletion": Deletion}
keys = st.sampled_from("abc")


class Desk(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.queue = CallQueue()
        self.customers = 0
        self.told: dict[str, str] = {}
        self.open: set[str] = set()
        """Customers that were not told yet."""
        self.flying: dict[str, QueuedCall] = {}
        self.pending: dict[str, list[str]] = {}
        """Object -> customers of its pending call, in order."""
        self.pending_kind: dict[str, str] = {}

    # --- what can happen ---------------------------------------------------------------------------------------

    @rule(kind=st.sampled_from(sorted(KINDS)), key=keys)
    def submit(self, kind: str, key: str) -> None:
        self.customers += 1
        text = f"{kind}{self.customers}"
        call = KINDS[kind](key, text)
        self.open.add(text)
        overtaken = self._expect(call, text)
        self.queue.submit(call, lambda error: self._tell(text, error))
        for customer in overtaken:
            assert self.told.get(customer) == "skipped", "who is overtaken is told at once"

    def _expect(self, call: SampleCall, text: str) -> list[str]:
        """Follow the rules; returns the customers that are told "skipped" by this submission."""
        key, relevance = call.object_key, call.relevance
        if key in self.flying and self.flying[key].call.relevance > relevance:
            return [text]
        if key in self.pending:
            pending = KINDS[self.pending_kind[key]]
            if pending.relevance > relevance:
                return [text]
            if pending is type(call):
                self.pending[key].append(text)
                return []
        overtaken = self.pending.pop(key, [])
        self.pending[key] = [text]
        self.pending_kind[key] = call.kind
        return overtaken

    @rule(lane=st.sampled_from([Lane.STATUS, Lane.BIND, Lane.EVICT]))
    def send(self, lane: Lane) -> None:
        free = [key for key in self.pending if self._lane(key) is lane and key not in self.flying]
        queued = self.queue.next(lane)
        if queued is None:
            assert not free
            return
        key = queued.call.object_key
        assert key in free, "a call is sent only while no other is in flight for its object"
        assert isinstance(queued.call, SampleCall)
        assert queued.call.kind == self.pending_kind.pop(key)
        assert queued.call.text == "+".join(self.pending.pop(key)), "what was merged is sent in order"
        self.flying[key] = queued

    @precondition(lambda self: self.flying)
    @rule(key=keys, fails=st.booleans())
    def finish(self, key: str, fails: bool) -> None:
        queued = self.flying.pop(key, None)
        if queued is None:
            return
        assert isinstance(queued.call, SampleCall)
        waiting = self.queue.finish(queued, OSError("refused") if fails else None)
        assert waiting is (self._lane(key) if key in self.pending else None)
        for customer in queued.call.text.split("+"):
            assert self.told[customer] == ("refused" if fails else "done")

    def teardown(self) -> None:
        for key in list(self.flying):
            self.finish(key, fails=False)
        for lane in (Lane.EVICT, Lane.BIND, Lane.STATUS):
            while (queued := self.queue.next(lane)) is not None:
                self.queue.finish(queued, None)
        assert self.queue.is_idle and not self.open, "everybody is told in the end"

    # --- always ------------------------------------------------------------------------------------------------

    @invariant()
    def the_queue_holds_what_the_rules_say(self) -> None:
        self.queue.check()
        assert self.queue.in_flight == len(self.flying)
        for lane in (Lane.STATUS, Lane.BIND, Lane.EVICT):
            assert self.queue.pending(lane) == sum(self._lane(key) is lane for key in self.pending)
        waiting = {text for texts in self.pending.values() for text in texts}
        sent = {text for queued in self.flying.values() for text in queued.call.text.split("+")}  # type: ignore[attr-defined]
        assert self.open == waiting | sent

    def _lane(self, key: str) -> Lane:
        return KINDS[self.pending_kind[key]].lane

    def _tell(self, text: str, error: Exception | None) -> None:
        assert text in self.open, "nobody is told twice"
        self.open.discard(text)
        self.told[text] = "done" if error is None else "skipped" if isinstance(error, CallSkipped) else str(error)


TestDesk = Desk.TestCase
TestDesk.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
