"""Which faults strike when, drawn from a seed.

A window is a time in which requests or watches of a kind go wrong, each by chance. An incident happens once: a crash, a
pause, a clock that is set. Everything is over when the plan ends, so that the cluster can come to rest.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Fault(StrEnum):
    """Of a request, unless it begins with WATCH."""

    ERROR = "500, nothing is done"
    UNAVAILABLE = "503, nothing is done"
    THROTTLED = "429, nothing is done"
    FORBIDDEN = "403"
    DISK_FULL = "507, nothing is done"
    REFUSED = "no connection"
    RESET_BEFORE = "the connection breaks before anything is done"
    ERROR_AFTER = "500, it is done"
    RESET_AFTER = "the connection breaks after it is done"
    SILENCE = "it is done, no answer ever comes"
    LATE_REQUEST = "it is done late"
    LATE_ANSWER = "it is done, the answer is late"
    WATCH_LAG = "watch lags"
    WATCH_CUT = "watch is cut"
    WATCH_END = "watch ends"
    WATCH_GONE = "watch: 410"
    WATCH_UNAVAILABLE = "watch: 503"


class Incident(StrEnum):
    CRASH = "crash"
    CRASH_AT_REQUEST = "crash at a request"
    STOP = "orderly stop"
    PAUSE = "pause"
    PAUSE_AT_WRITE = "pause at a write"
    CLOCK = "clock is set"
    SERVER_CLOCK = "the server's clock is set"
    OUTAGE = "the API server restarts"


@dataclass(frozen=True, slots=True)
class Call:
    """A request as the rules of access see it."""

    verb: str
    resource: str

    @property
    def is_write(self) -> bool:
        return self.verb in ("create", "update", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Window:
    begin: float
    end: float
    fault: Fault
    replica: str
    """"": both."""
    verb: str
    """"": every one."""
    resource: str
    """"": every one."""
    chance: float
    seconds: float

    def is_about(self, replica: str, call: Call, now: float) -> bool:
        if not self.begin <= now < self.end or self.replica not in ("", replica):
            return False
        if self.verb == "write":
            return call.is_write and self.resource in ("", call.resource)
        return self.verb in ("", call.verb) and self.resource in ("", call.resource)


LEADER: Final = "leader"


@dataclass(frozen=True, slots=True)
class Event:
    at: float
    incident: Incident
    replica: str
    """"a", "b", or LEADER: whoever leads by then."""
    amount: float
    """Seconds, or turns of the event loop, or requests."""


_FAULTS_OF_REQUESTS: Final = tuple(fault for fault in Fault if not fault.name.startswith("WATCH"))
_FAULTS_OF_WATCHES: Final = tuple(fault for fault in Fault if fault.name.startswith("WATCH"))
_RESOURCES: Final = (
    "pods/binding",
    "pods/status",
    "pods",
    "resourceclaims/status",
    "resourceclaims",
    "persistentvolumeclaims",
    "persistentvolumes",
    "events",
    "leases",
    "workloads/status",
    "workloads",
    "jobs",
)
_WATCHED: Final = ("pods", "nodes", "resourceclaims", "persistentvolumeclaims", "persistentvolumes", "workloads", "")
_LONGEST_ON_THE_WAY: Final = 4.0
"""A write on its way for longer than a lease outlives its renew deadline could meet the writes of the next leader; no
client can prevent that."""
_LONGEST_LAG: Final = 4.0
_LASTING: Final = (Incident.PAUSE, Incident.PAUSE_AT_WRITE, Incident.OUTAGE)


class FaultPlan:
    """Chance decides within a window; both come from the same source."""

    def __init__(self, windows: Sequence[Window], events: Sequence[Event], rng: random.Random) -> None:
        self.windows = windows
        self.events = sorted(events, key=lambda event: event.at)
        self._rng = rng

    def strike(self, replica: str, call: Call, now: float) -> Window | None:
        """What goes wrong with a request that is sent now."""
        return self._first(_FAULTS_OF_REQUESTS, replica, call, now)

    def strike_watch(self, replica: str, resource: str, now: float) -> Window | None:
        """What goes wrong with a watch that is opened, or brings something, now."""
        return self._first(_FAULTS_OF_WATCHES, replica, Call("watch", resource), now)

    def _first(self, faults: tuple[Fault, ...], replica: str, call: Call, now: float) -> Window | None:
        for window in self.windows:
            if window.fault in faults and window.is_about(replica, call, now) and self._rng.random() < window.chance:
                return window
        return None


def draw_plan(rng: random.Random, seconds: float) -> FaultPlan:
    """The faults of a run of which `seconds` are troubled."""
    windows = [_request_window(rng, seconds) for _ in range(rng.randint(2, 8))]
    windows += [_watch_window(rng, seconds) for _ in range(rng.randint(1, 6))]
    events = [_event(rng, seconds) for _ in range(rng.randint(1, 5))]
    for event in events:
        if event.incident is Incident.OUTAGE:
            windows.insert(0, Window(event.at, event.at + event.amount, Fault.REFUSED, "", "", "", 1.0, 0.0))
    if rng.random() < 0.3:
        begin = rng.uniform(10.0, seconds - 25.0)
        windows.insert(0, Window(begin, begin + rng.uniform(5, 25), Fault.REFUSED, rng.choice("ab"), "", "", 1.0, 0.0))
    return FaultPlan(windows, events, rng)


def _span(rng: random.Random, seconds: float) -> tuple[float, float]:
    begin = rng.uniform(2.0, seconds - 5.0)
    return begin, min(begin + rng.choice([1, 5, 15, 40]) * rng.uniform(0.5, 1.5), seconds)


def _request_window(rng: random.Random, seconds: float) -> Window:
    begin, end = _span(rng, seconds)
    fault = rng.choice(_FAULTS_OF_REQUESTS)
    chance = rng.choice([0.05, 0.3, 1.0])
    resource = rng.choice(_RESOURCES)
    verb = ""
    if fault is Fault.DISK_FULL:
        verb, resource, chance = "write", "", 1.0
    elif fault is Fault.FORBIDDEN:
        verb, chance = rng.choice(["create", "update", "patch", "delete", "list", "get", "write"]), 1.0
    elif rng.random() < 0.4:
        resource, chance = "", min(chance, 0.3)
    length = _LONGEST_ON_THE_WAY if fault is Fault.LATE_REQUEST else 20.0
    return Window(begin, end, fault, rng.choice(["", "a", "b"]), verb, resource, chance, rng.uniform(0.1, length))


def _watch_window(rng: random.Random, seconds: float) -> Window:
    begin, end = _span(rng, seconds)
    fault = rng.choice(_FAULTS_OF_WATCHES)
    chance = rng.choice([0.1, 0.5, 1.0]) if fault is not Fault.WATCH_LAG else 1.0
    resource = rng.choice(_WATCHED)
    return Window(begin, end, fault, rng.choice(["", "a", "b"]), "", resource, chance, rng.uniform(0.05, _LONGEST_LAG))


def _event(rng: random.Random, seconds: float) -> Event:
    incident = rng.choices(list(Incident), [4, 4, 2, 1, 2, 2, 1, 1])[0]
    amount = {
        Incident.CRASH: float(rng.randrange(0, 300)),
        Incident.CRASH_AT_REQUEST: float(rng.randrange(0, 30)),
        Incident.STOP: 0.0,
        Incident.PAUSE: rng.choice([2.0, 9.0, 14.0, 22.0]),
        Incident.PAUSE_AT_WRITE: rng.choice([2.0, 14.0, 22.0]),
        Incident.CLOCK: rng.choice([-3600.0, -20.0, 20.0, 3600.0]),
        Incident.SERVER_CLOCK: rng.choice([-60.0, -5.0, 5.0, 60.0]),
        Incident.OUTAGE: rng.choice([0.5, 4.0, 12.0]),
    }[incident]
    last = seconds - 25.0 if incident in _LASTING else seconds - 2.0
    return Event(rng.uniform(2.0, last), incident, rng.choice(["a", "b", LEADER, LEADER]), amount)
