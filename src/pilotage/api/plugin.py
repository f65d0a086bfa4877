"""The base class of every plugin, and how a plugin says what may help the pods that it rejected.

class SunnyNodes(Plugin, Filter):
    name = "SunnyNodes"

    def filter(self, state, pod, node):
        return None if node.labels.get("weather") == "sun" else Reject(Reason("NotSunny", "node is not sunny"))

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    def after_node_change(self, pod, old, new):
        return Hint.QUEUE if new.labels.get("weather") == "sun" else Hint.SKIP
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Hashable, Iterator
from enum import IntEnum
from typing import Any, ClassVar, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from pilotage.api.events import Action, ClusterEvent, Hint, Resource, event_on
from pilotage.api.kinds import Kind, own_kind
from pilotage.model import Pod

HintFunction = Callable[[Pod, Any, Any], Hint]
NarrowFunction = Callable[[Any, Any], "Affected"]
Method = TypeVar("Method", bound=Callable[..., Any])


class Sees(IntEnum):
    """How much of a node a filter or a score looks at; each answer includes those before it."""

    NODE = 0
    """The Node object: labels, taints, capacity."""
    AMOUNTS = 1
    """How much is requested on the node, and by how many pods; in columns nothing but the table that is handed in."""
    PODS = 2
    """The pods on this or other nodes, or anything that follows from them."""


RAISED: Final = (Exception, asyncio.CancelledError)
"""What a method of a plugin may raise that is not awaited. It cannot be cancelled: a cancellation is an error, too."""


class Affected(Struct, frozen=True):
    """Which waiting pods an event can concern: all of them, or just the ones with these keys."""

    keys: frozenset[str] | None

    @staticmethod
    def all() -> Affected:
        return Affected(None)

    @staticmethod
    def pods(keys: Iterator[str] | frozenset[str] | set[str] | list[str] | tuple[str, ...]) -> Affected:
        return Affected(frozenset(keys))


class Narrowing(Struct, frozen=True):
    """A method that says which pods these events can concern at all."""

    event: ClusterEvent
    narrow: NarrowFunction


class Registration(Struct, frozen=True):
    """An event that a plugin wants to hear of, with the method that judges it (None: the event alone is enough)."""

    event: ClusterEvent
    hint: HintFunction | None
    narrowings: tuple[Narrowing, ...] = ()
    """What may narrow these events down; an event that none of them covers concerns all pods."""


def on_event(resource: Resource | Kind | str, action: Action) -> Callable[[Method], Method]:
    """Mark a method `(pod, old, new) -> Hint` as the judge of these events for pods that this plugin rejected.

    `resource` is one of ours, or a kind of the plugin's `watches`, also by its name.
    """

    def mark(method: Method) -> Method:
        events = (*getattr(method, "__pilotage_events__", ()), event_on(resource, action))
        method.__pilotage_events__ = events  # type: ignore[attr-defined]
        return method

    return mark


def narrows(resource: Resource | Kind | str, action: Action) -> Callable[[Method], Method]:
    """Mark a method `(old, new) -> Affected` that says which pods such an event can concern at all."""

    def mark(method: Method) -> Method:
        events = (*getattr(method, "__pilotage_narrows__", ()), event_on(resource, action))
        method.__pilotage_narrows__ = events  # type: ignore[attr-defined]
        return method

    return mark


class Plugin:
    """Derive from this and from one class of `pilotage.api.points` for each extension point that you serve."""

    name: ClassVar[str] = ""
    """The name in configuration files; the class's own name if left empty."""

    args_type: ClassVar[type | None] = None
    """The plugin's arguments: a frozen dataclass, whose fields are camelCase in configuration files.

    `__init__` then gets an instance as `args`, with the dataclass's defaults where the configuration is silent. If the
    dataclass has a method `problems()` that yields (field path, message), what it finds is rejected at start-up.
    """

    filter_sees: ClassVar[Sees] = Sees.PODS
    """What of a node this plugin's Filter looks at; `Sees.PODS`, the default, is always right.

    A narrower answer makes preemption faster: filters that see no pods need not be asked again for every pod that may
    stay or go. Of a pod that is signed they are not asked again either about a node on which only pods have changed.
    """

    score_sees: ClassVar[Sees] = Sees.PODS
    """The same of its Score: one of a signed pod that sees no more than the Node object is asked once per node."""

    watches: ClassVar[tuple[Kind, ...]] = ()
    """Further kinds that are watched for this plugin while it is enabled in a profile."""

    always_queue_on: ClassVar[tuple[ClusterEvent, ...]] = ()
    """Events after which every pod that this plugin rejected is worth a retry, without asking."""

    pure_hints: ClassVar[bool] = False
    """Do the hints answer by nothing but what they read of the pod, the event, and what stays as it is meanwhile?

    If so, pods that share namespace, spec and labels are asked about once per event: what a hint reads is observed at
    every call, and an answer for which it read anything else (name, UID, annotations, owners, status) holds for that
    pod alone. Hints that keep count of their calls, or compare pods by `is`, are not pure.
    """

    serves_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of pods that the default plugins do not serve and this one does, such as "spec.schedulingGroup".

    Pods that use a field that no plugin of their profile serves get an Event that says so.
    """

    raw_kinds: ClassVar[frozenset[str]] = frozenset()
    """Kinds, such as "Pod", of which `handle.raw(obj)` is to be asked: the JSON of all their objects is then kept.

    It costs the memory of that JSON (some 4 KB for a pod) and a slower intake of that kind, so only who needs fields
    that the classes of this API leave out should ask for it.
    """

    def sign(self, pod: Pod) -> Hashable | None:
        """Everything of the pod that this plugin's Filter and Score look at, hashable; None if it cannot be said.

        Pods with equal signatures share filter and score columns. Say None (the default) when the answer depends on
        anything but the pod and one node: the framework then asks this plugin anew for every pod.
        """
        return None

    def may_filter(self, pod: Pod) -> bool:
        """False if PreFilter would answer Skip for this pod, whatever is in the cluster: it is then not asked.

        Asked once for all pods that are equal in what this method reads of them.
        """
        return True

    def may_score(self, pod: Pod) -> bool:
        """The same of PreScore."""
        return True

    def facts_version(self) -> Hashable:
        """What the signed answers depend on besides the pod and one node, e.g. a counter of changes.

        When it is not equal to what it was, the answers for all nodes are computed anew.
        """
        return None

    async def close(self) -> None:
        """The scheduler comes to an orderly end: give back what is held outside of it.

        Called once, after the last binding and after the plugin's background tasks were cancelled; calls that it
        submits are still sent. Not called when the lease is lost, or the process is killed.
        """

    @classmethod
    def plugin_name(cls) -> str:
        return cls.name or cls.__name__

    def registrations(self) -> list[Registration]:
        """The events of `@on_event`, `@narrows` and `always_queue_on`, in the order of their definition.

        A plugin that can reject pods and finds nothing here hears of nearly everything, with a warning; to hear of
        nothing at all, override this and return an empty list.
        """
        found = [Registration(_resolved(event, self.watches), None) for event in self.always_queue_on]
        methods = [(name, getattr(self, name)) for name in _marked_names(type(self))]
        for _, method in methods:
            events = getattr(method, "__pilotage_events__", ())
            found += [Registration(_resolved(event, self.watches), method) for event in events]
        narrowings = tuple(
            Narrowing(_resolved(event, self.watches), method)
            for _, method in methods
            for event in getattr(method, "__pilotage_narrows__", ())
        )
        return [replace(registration, narrowings=narrowings) for registration in found]


def _resolved(event: ClusterEvent, watches: tuple[Kind, ...]) -> ClusterEvent:
    """The event under the full name of its kind; UnknownKind if it is none of ours and none of `watches`."""
    if isinstance(event.resource, Resource):
        return event
    return dataclasses.replace(event, resource=own_kind(event.resource, watches).name)


def _marked_names(cls: type) -> list[str]:
    names: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if hasattr(value, "__pilotage_events__") or hasattr(value, "__pilotage_narrows__"):
                names[name] = None
    return list(names)
