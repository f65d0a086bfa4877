"""DefaultBinder: write the binding to the API server."""

from __future__ import annotations

from pilotage.api import Bind, CycleState, Handle, Plugin, Rejection, Skip
from pilotage.model import Pod


class DefaultBinder(Plugin, Bind):
    name = "DefaultBinder"

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Skip | Rejection | None:
        await self._handle.bind(pod, node_name)
        return None
