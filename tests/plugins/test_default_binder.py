"""DefaultBinder: the binding goes through the handle, and what goes wrong there goes on."""

from __future__ import annotations

import pytest

from pilotage.api import CycleState
from pilotage.model import Pod
from pilotage.plugins import DefaultBinder
from pilotage.testing import pod
from tests.default_plugins import default


class Notary:
    """The part of the handle that binds."""

    def __init__(self, error: Exception | None = None) -> None:
        self.bound: list[tuple[str, str]] = []
        self._error = error

    async def bind(self, pod: Pod, node_name: str) -> None:
        if self._error is not None:
            raise self._error
        self.bound.append((pod.key, node_name))


async def test_the_pod_is_bound_to_the_node() -> None:
    notary = Notary()
    assert await default(DefaultBinder, notary).bind(CycleState(), pod("p").build(), "a") is None
    assert notary.bound == [("default/p", "a")]


async def test_a_failure_is_not_swallowed() -> None:
    with pytest.raises(OSError, match="connection refused"):
        await default(DefaultBinder, Notary(OSError("connection refused"))).bind(CycleState(), pod("p").build(), "a")
