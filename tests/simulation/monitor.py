"""What replicas send, held against the lease and against common sense.

deposed write     bytes of a write leave a replica that does not hold the lease in the store
livelock          one pod is tried, or one object is written, again and again within a second of virtual time
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from pilotage.clock import Clock
from pilotage.kube.election import ElectionTiming
from pilotage.model import Pod
from pilotage.sandbox.http.exchange import Request
from pilotage.sandbox.storage.records import Change
from tests.simulation.fault_plan import Call
from tests.simulation.history import History

LEASES = "leases.coordination.k8s.io"
MOST_CALLS_PER_OBJECT = 25
MOST_CALLS = 1500
MOST_TRIES_PER_POD = 25
MOST_TRIES = 1500


class _LeaseSpec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None


class _Lease(msgspec.Struct):
    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)


_lease = msgspec.json.Decoder(_Lease)


@dataclass(slots=True)
class _Second:
    """What one replica did within one second."""

    number: int = -1
    calls: Counter[str] = field(default_factory=Counter)
    tries: Counter[str] = field(default_factory=Counter)

    def at(self, now: float) -> _Second:
        if int(now) != self.number:
            self.number = int(now)
            self.calls.clear()
            self.tries.clear()
        return self


class Monitor:
    """Looks at every request when it leaves and every attempt when it is made."""

    def __init__(self, clock: Clock, history: History, timing: ElectionTiming) -> None:
        self._clock = clock
        self.history = history
        self._timing = timing
        self._seconds: dict[str, _Second] = {}
        self.holder = ""
        self._renewed_at = 0.0
        self.figures: Counter[str] = Counter()
        self.untold: set[str] = set()
        """Paths of pods whose last status was rejected with 403: what is not allowed is not tried again by itself."""
        self.on_livelock: Callable[[], None] = lambda: None
        """Called to end what would never end by itself."""

    def on_lease(self, change: Change) -> None:
        holder = "" if change.type == "DELETED" else _lease.decode(change.record.body).spec.holder_identity or ""
        if holder != self.holder:
            self.history.note("lease", f"{self.holder or 'nobody'} -> {holder or 'nobody'}")
        self.holder, self._renewed_at = holder, self._clock.monotonic()

    def sent(self, identity: str, call: Call, request: Request) -> None:
        self.figures["requests"] += 1
        if not call.is_write or _is_about_leases(call, request):
            self._count(identity, "calls", f"{call.verb} {request.path}", MOST_CALLS_PER_OBJECT, MOST_CALLS)
            return
        self.figures["writes"] += 1
        held_for = self._clock.monotonic() - self._renewed_at
        if self.holder != identity or held_for > self._timing.lease_seconds:
            state = f"{self.holder or 'nobody'} holds the lease, written {held_for:.3f} s ago"
            self.history.violated("deposed write", f"{identity}: {call.verb} {request.path}: {state}")
        name = "" if call.verb != "create" else str(_name_in(request.body))
        key = f"{call.verb} {request.path} {name}"
        self._count(identity, "calls", key, MOST_CALLS_PER_OBJECT, MOST_CALLS)

    def answered(self, call: Call, request: Request, outcome: str) -> None:
        if call == Call("patch", "pods/status"):
            pod = request.path.removesuffix("/status")
            (self.untold.add if outcome.startswith("403") else self.untold.discard)(pod)

    def tried(self, identity: str, pod: Pod) -> None:
        self.figures["cycles"] += 1
        self._count(identity, "tries", f"{pod.key} {pod.uid}", MOST_TRIES_PER_POD, MOST_TRIES)

    def _count(self, identity: str, what: str, key: str, most: int, most_in_all: int) -> None:
        second = self._seconds.setdefault(identity, _Second()).at(self._clock.monotonic())
        counted: Counter[str] = getattr(second, what)
        counted[key] += 1
        peak = f"most {what} of one thing in a second"
        self.figures[peak] = max(self.figures[peak], counted[key])
        if counted[key] == most + 1:
            self._livelock(f"{identity}: more than {most} {what} in a second: {key}")
        if counted.total() == most_in_all + 1:
            self._livelock(f"{identity}: more than {most_in_all} {what} in a second")

    def _livelock(self, details: str) -> None:
        self.history.violated("livelock", details)
        self.on_livelock()


def _is_about_leases(call: Call, request: Request) -> bool:
    return call.resource == "leases" or (call.resource == "events" and b'"LeaderElection"' in request.body)


def _name_in(body: bytes) -> str:
    metadata = msgspec.json.decode(body).get("metadata") or {}
    return str(metadata.get("name") or metadata.get("generateName") or "")
