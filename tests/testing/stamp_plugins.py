"""Plugins that watch a kind of their own, the first as it should be, the others with one defect each."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pilotage.api import (
    Action,
    ApiObject,
    CycleState,
    Filter,
    Handle,
    Hint,
    Kind,
    NodeView,
    Plugin,
    Reason,
    Reject,
    Rejection,
    Resource,
    on_event,
)
from pilotage.model import Pod


class Stamp(ApiObject, frozen=True):
    worth: int = 0


STAMPS = Kind("stamps.example.com", "v1", Stamp, namespaced=False)
STAMP: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Stamp", "metadata": {"name": "a"}}


class WaitsForStamp(Plugin, Filter):
    """A pod needs a stamp of at least 2 that is named like the node."""

    watches = (STAMPS,)

    def __init__(self, handle: Handle) -> None:
        self._stamps = handle.objects(STAMPS)

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        stamp = self._stamps.get(node.name)
        return None if stamp is not None and stamp.worth >= 2 else Reject(Reason("NoStamp", "no stamp"))

    @on_event(STAMPS, Action.ADD | Action.UPDATE)
    @on_event(Resource.NODE, Action.ADD)
    def after_change(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE


class ForgetsStamps(WaitsForStamp):
    """Hears of nodes only."""

    @on_event(Resource.NODE, Action.ADD)
    def after_change(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE


class SignsDespiteStamps(WaitsForStamp):
    def sign(self, pod: Pod) -> Hashable:
        return ()


class TrustsStamps(WaitsForStamp):
    """Takes for granted that a stamp is worth something."""

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        for stamp in self._stamps.values():
            assert 1 // stamp.worth >= 0
        return None


class ReadsColour(Plugin, Filter):
    watches = (Kind("stamps.example.com", "v1", namespaced=False),)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        colours = [stamp["colour"] for stamp in self._handle.objects("stamps.example.com").values()]
        return Reject(Reason("Red", "too red")) if "red" in colours else None

    @on_event("stamps.example.com", Action.ALL)
    def after_stamp(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE
