"""Plugins that a scenario writes down: what they answer at which point, and which events they registered.

    {name: Turnstile, permit: {code: Wait, seconds: 60}, events: [{event: Node/Add, hint: queue, pre: [p]}]}

A class is made for each of them, with exactly the extension points that are named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilotage.api import (
    Action,
    Affected,
    Bind,
    ClusterEvent,
    CycleState,
    Filter,
    Handle,
    Hint,
    NodeTable,
    NodeView,
    Pending,
    Permit,
    Plugin,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreFlight,
    Reason,
    Reject,
    Rejection,
    Reserve,
    Resource,
    Skip,
    StateKey,
    Wait,
)
from pilotage.api.plugin import HintFunction, Narrowing, Registration
from pilotage.api.results import SKIP
from pilotage.model import Node, Pod

Json = dict[str, Any]

_ACTIONS: Final = {
    ClusterEvent(Resource.NODE, action).action_name: action for action in (*Action, Action.UPDATE, Action.ALL)
}
_FIELDS: Final = frozenset({"code", "seconds", "times", "unless", "pods"})
_CODES: Final = ("Success", "Unschedulable", "UnschedulableAndUnresolvable", "Pending", "Error", "Wait")
_MARKS: Final = ("nodeLabel", "nodeAnnotation", "podLabel", "podAnnotation")


class ScriptError(ValueError):
    """What is wrong with a scripted plugin."""


class Scripted(Plugin):
    """The part that all of them share; `script` is set by the class that is made."""

    script: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._calls: Counter[tuple[str, str]] = Counter()

    def concerns(self, point: str, pod: Pod) -> bool:
        named = self.script[point].get("pods")
        return named is None or pod.name in named

    def rejection(self, point: str, pod: Pod, node_name: str = "") -> Rejection | None:
        """What the script answers; an error is raised."""
        code = self.code(point, pod, node_name)
        text = f"{self.name} says so"
        match code:
            case "Success":
                return None
            case "Pending":
                return Pending(Reason("Scripted", text))
            case "Error":
                raise RuntimeError(text)
            case _:
                return Reject(Reason("Scripted", text, unresolvable=code == "UnschedulableAndUnresolvable"))

    def code(self, point: str, pod: Pod, node_name: str = "") -> str:
        """The code that the script gives now; Success where its rule does not apply."""
        rule = self.script[point]
        if not self.concerns(point, pod) or self._is_excused(rule.get("unless", {}), pod, node_name):
            return "Success"
        self._calls[point, pod.uid] += 1
        if self._calls[point, pod.uid] > rule.get("times", float("inf")):
            return "Success"
        code: str = rule.get("code", "Success")
        return code

    async def take_time(self, point: str) -> None:
        await self._handle.clock.sleep(self.script[point].get("seconds", 0))

    def _is_excused(self, marks: Mapping[str, str], pod: Pod, node_name: str) -> bool:
        node: Node | None = self._handle.objects("Node").get(node_name)
        found = {
            "podLabel": pod.labels,
            "podAnnotation": pod.annotations,
            "nodeLabel": {} if node is None else node.labels,
            "nodeAnnotation": {} if node is None else node.annotations,
        }
        return any(key in found[mark] for mark, key in marks.items())


class _AtPreEnqueue(Scripted, PreEnqueue):
    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        return self.rejection("preEnqueue", pod)


class _AtPreFilter(Scripted, PreFilter):
    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Rejection | None:
        return self.rejection("preFilter", pod)


class _AtFilter(Scripted, Filter):
    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        # A node may be asked about again to say why it was rejected: that is the same call as far as a scenario counts.
        key = StateKey[dict[str, Rejection | None]](f"{self.name}/filter")
        if key not in state:
            state[key] = {}
        answers = state[key]
        if node.name not in answers:
            answers[node.name] = self.rejection("filter", pod, node.name)
        return answers[node.name]


class _AtReserve(Scripted, Reserve):
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        return self.rejection("reserve", pod, node_name)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Nothing was taken."""


class _AtPermit(Scripted, Permit):
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Wait | Rejection | None:
        rule = self.script["permit"]
        if rule.get("code") != "Wait":
            return self.rejection("permit", pod, node_name)
        return Wait(rule.get("seconds", 0)) if self.code("permit", pod, node_name) == "Wait" else None


class _AtPreBind(Scripted, PreBind):
    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreFlight | Skip:
        return PreFlight() if self.concerns("preBind", pod) else SKIP

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        before = self._calls["preBind", pod.uid]
        if before < self.script["preBind"].get("times", float("inf")):
            await self.take_time("preBind")
        return self.rejection("preBind", pod, node_name)


class _AtBind(Scripted, Bind):
    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Skip | Rejection | None:
        before = self._calls["bind", pod.uid]
        if not self.concerns("bind", pod) or before >= self.script["bind"].get("times", float("inf")):
            return SKIP
        await self.take_time("bind")
        return self.rejection("bind", pod, node_name) or SKIP


_POINTS: Final[Mapping[str, type[Scripted]]] = {
    "preEnqueue": _AtPreEnqueue,
    "preFilter": _AtPreFilter,
    "filter": _AtFilter,
    "reserve": _AtReserve,
    "permit": _AtPermit,
    "preBind": _AtPreBind,
    "bind": _AtBind,
}


def scripted_plugin(script: Json) -> type[Plugin]:
    """The class of a plugin that a scenario describes; ScriptError if the description makes no sense."""
    name = script.get("name")
    if not isinstance(name, str) or not name:
        raise ScriptError("a plugin needs a name")
    unknown = sorted(script.keys() - _POINTS.keys() - {"name", "events"})
    if unknown:
        raise ScriptError(f"plugin {name}: unknown key {', '.join(unknown)}")
    points = [point for point in _POINTS if point in script]
    for point in points:
        _check_rule(name, point, script[point])
    body: Json = {"name": name, "script": script}
    if script.get("events") is not None:
        registrations = [_registration(name, event) for event in script["events"]]
        body["registrations"] = lambda self: list(registrations)
    return type(name, tuple(_POINTS[point] for point in points) or (Scripted,), body)


def _check_rule(plugin: str, point: str, rule: Json) -> None:
    unknown = sorted(rule.keys() - _FIELDS)
    if unknown:
        raise ScriptError(f"plugin {plugin}: {point}: unknown field {', '.join(unknown)}")
    if rule.get("code", "Success") not in _CODES:
        raise ScriptError(f"plugin {plugin}: {point}: unknown code {rule['code']}")
    if rule.get("unless", {}).keys() - set(_MARKS):
        raise ScriptError(f"plugin {plugin}: {point}: unless takes {', '.join(_MARKS)}")


def _registration(plugin: str, event: Json) -> Registration:
    resource, _, action = str(event.get("event", "")).rpartition("/")
    try:
        wanted = ClusterEvent(Resource(resource), _ACTIONS[action])
    except (ValueError, KeyError) as error:
        raise ScriptError(f"plugin {plugin}: unknown event {event.get('event')!r}") from error
    narrowings = (Narrowing(wanted, _narrow(event["pre"])),) if "pre" in event else ()
    return Registration(wanted, _hint(plugin, event.get("hint")), narrowings)


def _hint(plugin: str, answer: str | None) -> HintFunction | None:
    def hint(pod: Pod, old: Any, new: Any) -> Hint:
        if answer == "error":
            raise RuntimeError("the scenario wants this hint to fail")
        return Hint.QUEUE if answer == "queue" else Hint.SKIP

    if answer not in (None, "queue", "skip", "error"):
        raise ScriptError(f"plugin {plugin}: unknown hint {answer!r}")
    return None if answer is None else hint


def _narrow(answer: str | list[str]) -> Any:
    def narrow(old: Any, new: Any) -> Affected:
        if answer == "error":
            raise RuntimeError("the scenario wants this narrowing to fail")
        return Affected.all() if answer == "all" else Affected.pods([f"default/{name}" for name in answer])

    return narrow
