"""What a plugin may answer.

Success is `None` (or the value that was asked for). Everything else is one of the small frozen types below; a plugin
never raises to reject. An exception is a bug: the framework catches it, retries the pod and shows the traceback.

Reasons are data. The code is stable and countable, the message is what kube-scheduler would have said, and the
numbers behind it stay numbers, so that `explain`, metrics and the pod condition are renderings of the same fact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from msgspec import Struct


class Reason(Struct, frozen=True):
    """Why a node or a pod was rejected."""

    code: str
    message: str
    need: float | None = None
    have: float | None = None
    unresolvable: bool = False
    """True if evicting pods from the node cannot remove this reason, so preemption need not look at it."""
    resource: str = ""
    """The resource of which there is too little, if that is it; `need` and `have` are amounts of it."""


class Detail(Struct, frozen=True):
    """One thing more to know about a rejection: a rule, and objects (devices, volumes) that it rejected."""

    code: str
    message: str
    objects: tuple[str, ...] = ()
    """A few of them."""
    count: int = 0
    """How many there are."""


@dataclass(frozen=True, slots=True)
class Reject:
    """The pod (or this node for the pod) is rejected until something changes."""

    reasons: tuple[Reason, ...]

    def __init__(self, *reasons: Reason) -> None:
        for reason in reasons:
            if not isinstance(reason, Reason):
                raise TypeError(f"Reject takes Reasons, such as Reason('NotSunny', 'not sunny'), got {reason!r:.200}")
        object.__setattr__(self, "reasons", reasons)

    @property
    def unresolvable(self) -> bool:
        return any(reason.unresolvable for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class Pending:
    """Rejected, but the attempt was useful: an outside actor must answer first, and then no backoff is due."""

    reasons: tuple[Reason, ...]

    def __init__(self, *reasons: Reason) -> None:
        for reason in reasons:
            if not isinstance(reason, Reason):
                raise TypeError(f"Pending takes Reasons, such as Reason('NotSunny', 'not sunny'), got {reason!r:.200}")
        object.__setattr__(self, "reasons", reasons)

    @property
    def unresolvable(self) -> bool:
        return any(reason.unresolvable for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class Wait:
    """Only from Permit: hold the pod until it is allowed, rejected, or `timeout_seconds` have passed."""

    timeout_seconds: float

    def __post_init__(self) -> None:
        seconds: object = self.timeout_seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
            raise TypeError(f"Wait takes a number of seconds, got {seconds!r:.200}")


class Skip(Struct, frozen=True):
    """From PreFilter, PreScore, Bind or pre-flight: this plugin has nothing to do for this pod."""

    allow_parallel: bool = False
    """From pre-flight only: may the plugins before and after this one run side by side, as if it was not there?

    If not, those before it have finished before those after it begin, even though this plugin does nothing between.
    """


SKIP: Final = Skip()
SKIP_BESIDE_OTHERS: Final = Skip(allow_parallel=True)


@dataclass(frozen=True, slots=True)
class NodeNames:
    """From PreFilter: only these nodes can be right. Any collection of names will do."""

    names: frozenset[str]

    def __post_init__(self) -> None:
        names: object = self.names
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise TypeError(f"NodeNames takes names of nodes, such as NodeNames(['a', 'b']), got {names!r:.200}")
        if not isinstance(names, frozenset):
            object.__setattr__(self, "names", frozenset(names))
        if not all(isinstance(name, str) for name in self.names):
            raise TypeError(f"NodeNames takes names of nodes, got {names!r:.200}")


class Nominate(Struct, frozen=True):
    """From PostFilter: what becomes of the pod's nominated node; `None` leaves it alone, "" clears it."""

    node_name: str | None = None
    message: str = ""
    rejectors: frozenset[str] = frozenset()
    """Plugins that stood in the way of a nomination. An event that makes one of them change its mind may help the pod,
    although it was another plugin that rejected the nodes as they are."""

    def __post_init__(self) -> None:
        name, message, rejectors = cast(tuple[object, ...], (self.node_name, self.message, self.rejectors))
        if not (name is None or isinstance(name, str)) or not isinstance(message, str):
            raise TypeError(f"Nominate takes the name of a node and a message, got {name!r:.200}, {message!r:.200}")
        if not isinstance(rejectors, frozenset):
            raise TypeError(f"Nominate takes a frozenset of names of plugins as rejectors, got {rejectors!r:.200}")


class PreFlight(Struct, frozen=True):
    """From the pre-flight of PreBind: this plugin has work to do; may it run beside others?"""

    allow_parallel: bool = False


Rejection: TypeAlias = Reject | Pending
