"""The base class of every plugin, and how a plugin says what may help the pods that it refused.

class SunnyNodes(Plugin, Filter):
    name = "SunnyNodes"

    def filter(self, state, pod, node):
        return None if node.labels.get("weather") == "sun" else Reject(Reason("NotSunny", "node is not sunny"))

    @on_event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    def after_node_change(self, pod, old, new):
        return Hint.QUEUE if new.labels.get("weather") == "sun" else Hint.SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, ClassVar, TypeVar

from pilotage.api.events import Action, ClusterEvent, Hint, Resource
from pilotage.model import Pod

HintFunction = Callable[[Pod, Any, Any], Hint]
NarrowFunction = Callable[[Any, Any], "Affected"]
Method = TypeVar("Method", bound=Callable[..., Any])


class Sees(IntEnum):
    """How much of a node a filter looks at; each answer includes those before it."""

    NODE = 0
    """The Node object: labels, taints, capacity."""
    AMOUNTS = 1
    """How much is requested on the node, and by how many pods; in columns nothing but the table that is handed in."""
    PODS = 2
    """The pods on this or other nodes, or anything that follows from them."""


@dataclass(frozen=True, slots=True)
class Affected:
    """Which waiting pods an event can concern: all of them, or just the ones with these keys."""

    keys: frozenset[str] | None

    @staticmethod
    def all() -> Affected:
        return Affected(None)

    @staticmethod
    def pods(keys: Iterator[str] | frozenset[str] | set[str] | list[str] | tuple[str, ...]) -> Affected:
        return Affected(frozenset(keys))


@dataclass(frozen=True, slots=True)
class Narrowing:
    """A method that says which pods these events can concern at all."""

    event: ClusterEvent
    narrow: NarrowFunction


@dataclass(frozen=True, slots=True)
class Registration:
    """An event that a plugin wants to hear of, with the method that judges it (None: the event alone is enough)."""

    event: ClusterEvent
    hint: HintFunction | None
    narrowings: tuple[Narrowing, ...] = ()
    """What may narrow these events down; an event that none of them covers concerns all pods."""


def on_event(resource: Resource, action: Action) -> Callable[[Method], Method]:
    """Mark a method `(pod, old, new) -> Hint` as the judge of these events for pods that this plugin refused."""

    def mark(method: Method) -> Method:
        events = (*getattr(method, "__pilotage_events__", ()), ClusterEvent(resource, action))
        method.__pilotage_events__ = events  # type: ignore[attr-defined]
        return method

    return mark


def narrows(resource: Resource, action: Action) -> Callable[[Method], Method]:
    """Mark a method `(old, new) -> Affected` that says which pods such an event can concern at all."""

    def mark(method: Method) -> Method:
        events = (*getattr(method, "__pilotage_narrows__", ()), ClusterEvent(resource, action))
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
    dataclass has a method `problems()` that yields (field path, message), what it finds is refused at start-up.
    """

    filter_sees: ClassVar[Sees] = Sees.PODS
    """What of a node this plugin's Filter looks at; `Sees.PODS`, the default, is always right.

    A narrower answer makes preemption faster: filters that see no pods need not be asked again for every pod that may
    stay or go.
    """

    always_queue_on: ClassVar[tuple[ClusterEvent, ...]] = ()
    """Events after which every pod that this plugin refused is worth a retry, without asking."""

    hints_per_pod: ClassVar[bool] = False
    """Do the hints look at more of a pod than its namespace, spec and labels, such as its name or status?

    If not, pods that are equal in these are asked for only once per event.
    """

    def sign(self, pod: Pod) -> Hashable | None:
        """Everything of the pod that this plugin's Filter and Score look at, hashable; None if it cannot be said.

        Pods with equal signatures share filter and score columns. Say None (the default) when the answer depends on
        anything but the pod and one node: the framework then asks this plugin anew for every pod.
        """
        return None

    def facts_version(self) -> Hashable:
        """What the signed answers depend on besides the pod and one node, e.g. a counter of changes.

        When it is not equal to what it was, the answers for all nodes are computed anew.
        """
        return None

    @classmethod
    def plugin_name(cls) -> str:
        return cls.name or cls.__name__

    def registrations(self) -> list[Registration]:
        """The events of `@on_event`, `@narrows` and `always_queue_on`, in the order of their definition.

        A plugin that can refuse pods and finds nothing here hears of nearly everything, with a warning; to hear of
        nothing at all, override this and return an empty list.
        """
        found = [Registration(event, None) for event in self.always_queue_on]
        methods = [(name, getattr(self, name)) for name in _marked_names(type(self))]
        for _, method in methods:
            found += [Registration(event, method) for event in getattr(method, "__pilotage_events__", ())]
        narrowings = tuple(
            Narrowing(event, method) for _, method in methods for event in getattr(method, "__pilotage_narrows__", ())
        )
        return [replace(registration, narrowings=narrowings) for registration in found]


def _marked_names(cls: type) -> list[str]:
    names: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if hasattr(value, "__pilotage_events__") or hasattr(value, "__pilotage_narrows__"):
                names[name] = None
    return list(names)
