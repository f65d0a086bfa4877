"""Random interleavings of what several pods want of the claims that they share, with the real call and a model server.

Calls are stopped before and after the server takes them in; meanwhile pods change their minds, others change the claim,
answers are lost, and the watch is late. Always

- a claim has one write in flight,
- everybody is told exactly once, and what is told is true: a pod that was told that it is reserved is, with the devices
  that it was placed by; one whose wish gave way to a newer one has submitted a newer one,
- the server is never asked for what it would reject: users without devices, other devices in place of those in use;

and in the end the server has what each pod wanted last, unless it was told that this has failed.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pilotage.api.calls import Ending, Lane, Outcome
from pilotage.calls.call_queue import CallQueue, CallSlot
from pilotage.kube.errors import ApiStatusError
from pilotage.kube.transport import TransportError
from pilotage.model import KINDS
from pilotage.model.resource import AllocationResult, DeviceAllocation, DeviceAllocationResult, ResourceClaim
from pilotage.plugins.dynamic_resources.claim_update import Act, ClaimIntent, ClaimUpdate
from pilotage.plugins.dynamic_resources.claims import is_newer
from pilotage.testing import pod
from tests.properties.held_calls import Flights, Listeners, Pause

CLAIMS = ("x", "y")
PODS = {name: pod(name).uid(name).build() for name in ("p", "q", "r")}
SOMEBODY = {"resource": "pods", "name": "somebody", "uid": "somebody"}
LOST = TransportError("the answer was lost", sent=True)
NOW = "2026-01-01T00:00:00Z"

claims = st.sampled_from(("x", "x", "x", "y"))
"""Most wishes are about the same claim; the other one may be deleted."""
pods = st.sampled_from(tuple(PODS))


class ModelServer:
    """Claims as JSON; every write waits before and after it takes effect."""

    def __init__(self) -> None:
        self.claims: dict[str, dict[str, Any]] = {}
        self.news: dict[str, list[dict[str, Any] | None]] = {name: [] for name in CLAIMS}
        """What the watch has still to tell; None for a deletion."""
        self._version = 0
        for name in CLAIMS:
            self.save(name, {"metadata": {"name": name, "namespace": "default", "uid": name}, "status": {}})

    def save(self, name: str, obj: dict[str, Any]) -> None:
        self._version += 1
        status = {key: value for key, value in obj["status"].items() if value}
        assert status.get("allocation") or not status.get("reservedFor"), "nobody uses a claim without devices"
        metadata = {**obj["metadata"], "resourceVersion": str(self._version)}
        self.claims[name] = {"metadata": metadata, "status": status}
        self.news[name].append(self.claims[name])

    def set_status(self, name: str, **status: Any) -> None:
        obj = self.claims[name]
        self.save(name, {**obj, "status": {**obj["status"], **status}})

    def users(self, name: str) -> list[str]:
        return [user["uid"] for user in self.claims[name]["status"].get("reservedFor", ())]

    def device(self, name: str) -> str | None:
        allocation = self.claims[name]["status"].get("allocation")
        return allocation["devices"]["results"][0]["device"] if allocation else None

    def delete(self, name: str) -> None:
        if self.claims.pop(name, None) is not None:
            self.news[name].append(None)

    def _current(self, name: str) -> dict[str, Any]:
        if name not in self.claims:
            raise ApiStatusError(404, "NotFound", f"{name} not found")
        return self.claims[name]

    async def get(self, kind: Any, namespace: str, name: str) -> bytes:
        return msgspec.json.encode(self._current(name))

    async def patch(self, kind: Any, namespace: str, name: str, body: bytes, **options: str) -> bytes:
        await Pause()
        patch, obj = msgspec.json.decode(body), self._current(name)
        asked, status = patch.get("status", {}), dict(obj["status"])
        if options["content_type"].startswith("application/strategic"):
            leaving = [user["uid"] for user in asked["reservedFor"]]
            status["reservedFor"] = [user for user in status.get("reservedFor", ()) if user["uid"] not in leaving]
        else:
            if patch["metadata"].pop("resourceVersion") != obj["metadata"]["resourceVersion"]:
                raise ApiStatusError(409, "Conflict", "modified")
            new, old = asked.get("allocation"), status.get("allocation")
            assert not (new and old), "devices are not exchanged for others"
            status |= asked
        self.save(name, {"metadata": {**obj["metadata"], **patch["metadata"]}, "status": status})
        answer = msgspec.json.encode(self.claims[name])
        await Pause()
        return answer


class Sharing(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.server = ModelServer()
        self.queue = CallQueue()
        self.believed: dict[str, ResourceClaim] = {}
        """The newest version that anybody has told of."""
        self.listeners = Listeners()
        self.count = 0
        self.flights = Flights(self.queue, self.server, self._rejected)
        self.last: dict[tuple[str, str], tuple[int, ClaimIntent, Outcome | None]] = {}
        """What a pod wanted last of a claim, and what became of it."""
        for name in CLAIMS:
            self.watch(name)

    # --- what pods want ----------------------------------------------------------------------------------------

    @rule(name=claims, user=pods)
    def reserve(self, name: str, user: str) -> None:
        known = self.believed.get(name)
        if known is None:
            return
        has = known.status.allocation
        device = DeviceAllocationResult("r0", "driver", "pool", f"d{self.count}")
        planned = AllocationResult(DeviceAllocation((device,))) if has is None else has
        self._submit(name, ClaimIntent(Act.RESERVE, PODS[user], planned, is_new=has is None))

    @rule(name=claims, user=pods, act=st.sampled_from((Act.RELEASE, Act.FREE)))
    def go_away(self, name: str, user: str, act: Act) -> None:
        self._submit(name, ClaimIntent(act, PODS[user]))

    def _submit(self, name: str, wish: ClaimIntent) -> None:
        known = self.believed.get(name)
        if known is None:
            return
        self.count += 1
        number, call = self.count, ClaimUpdate(known, wish, now=NOW)
        self.last[name, wish.pod.uid] = number, wish, None

        def check(outcome: Outcome) -> None:
            if outcome.ending is Ending.DONE:
                self._believe(name, call.claim)
            self._check_outcome(name, number, wish, outcome)

        self.queue.add(call, self.listeners.add(check), 0.0)

    def _believe(self, name: str, claim: ResourceClaim) -> None:
        known = self.believed.get(name)
        if known is not None and is_newer(claim, known):
            self.believed[name] = claim

    def _check_outcome(self, name: str, number: int, wish: ClaimIntent, outcome: Outcome) -> None:
        latest, _, _ = self.last[name, wish.pod.uid]
        if outcome.ending is Ending.OVERWRITTEN:
            assert latest > number, "it gave way to what the same pod wanted later"
        if latest == number:
            self.last[name, wish.pod.uid] = number, wish, outcome
        if outcome.is_as_wanted and name in self.server.claims:
            self._check_granted(name, wish)

    def _check_granted(self, name: str, wish: ClaimIntent) -> None:
        is_user = wish.pod.uid in self.server.users(name)
        assert is_user == (wish.act is Act.RESERVE)
        if wish.act is Act.RESERVE:
            assert wish.allocation is not None
            assert self.server.device(name) == wish.allocation.devices.results[0].device
        if wish.act is Act.FREE:
            assert self.server.device(name) is None

    # --- what calls do -----------------------------------------------------------------------------------------

    @rule()
    def send(self) -> None:
        slot = self.queue.next(Lane.VOLUME)
        if slot is not None:
            self.flights.begin(slot)

    def _rejected(self, slot: CallSlot, error: ApiStatusError) -> None:
        assert error.code == 409
        self.queue.retry(slot, 1.0, is_in_doubt=True)

    @rule(name=claims)
    def go_on(self, name: str) -> None:
        self.flights.go_on(name)

    @rule(name=claims)
    def send_and_finish(self, name: str) -> None:
        self.send()
        for _ in range(6):
            self.go_on(name)

    @precondition(lambda self: len(self.flights))
    @rule(name=claims, gives_up=st.booleans())
    def lose_connection(self, name: str, gives_up: bool) -> None:
        if name not in self.flights:
            return
        slot = self.flights.cut_off(name)
        if gives_up:
            self.queue.failed(slot, LOST, is_in_doubt=True)
        else:
            self.queue.retry(slot, 1.0, is_in_doubt=True)

    @rule()
    def wait(self) -> None:
        self.queue.wake(1.0)

    # --- what others do ----------------------------------------------------------------------------------------

    @rule(name=claims)
    def somebody_else_uses_the_claim(self, name: str) -> None:
        if name in self.server.claims and self.server.device(name) and "somebody" not in self.server.users(name):
            users = self.server.claims[name]["status"].get("reservedFor", [])
            self.server.set_status(name, reservedFor=[*users, SOMEBODY])

    @rule(name=claims)
    def somebody_else_leaves(self, name: str) -> None:
        if name in self.server.claims and "somebody" in self.server.users(name):
            users = self.server.claims[name]["status"]["reservedFor"]
            self.server.set_status(name, reservedFor=[user for user in users if user != SOMEBODY])

    @rule(name=claims)
    def the_controller_frees_an_idle_claim(self, name: str) -> None:
        if name in self.server.claims and not self.server.users(name):
            self.server.set_status(name, allocation=None)

    @rule(name=st.just("y"))
    def somebody_else_deletes_it(self, name: str) -> None:
        self.server.delete(name)

    @rule(name=claims)
    def watch(self, name: str) -> None:
        news = self.server.news[name]
        if not news:
            return
        obj = news.pop(0)
        if obj is None:
            del self.believed[name]
            self.queue.forget(name)
            return
        received = KINDS["resourceclaims"].decode(msgspec.json.encode(obj))
        self.believed.setdefault(name, received)
        self._believe(name, received)
        self.queue.sync(received.uid, received)

    # --- always, and in the end --------------------------------------------------------------------------------

    @invariant()
    def the_queue_is_in_order(self) -> None:
        self.queue.check()
        self.listeners.check()
        assert self.queue.in_flight == len(self.flights)

    def teardown(self) -> None:
        for _ in range(60):
            for name in CLAIMS:
                self.go_on(name)
                self.watch(name)
            self.queue.wake(1.0)
            self.send()
        assert self.queue.is_idle and self.listeners.all_told, "everybody is told in the end"
        self.listeners.check()
        for (name, user), (_, wish, outcome) in self.last.items():
            assert outcome is not None
            if outcome.is_as_wanted and name in self.server.claims:
                assert (user in self.server.users(name)) == (wish.act is Act.RESERVE), f"{user} and {name}"


TestSharing = Sharing.TestCase
TestSharing.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
