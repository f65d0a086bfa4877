"""Default plugins as a profile makes them: with their default arguments, and a handle if they want one."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from pilotage.api import Plugin
from pilotage.clock import SystemClock
from pilotage.cluster.state import Cluster
from pilotage.cycle.handle import FrameworkHandle
from pilotage.rng import seeded

PluginT = TypeVar("PluginT", bound=Plugin)


def default(cls: type[PluginT], handle: Any = None) -> PluginT:
    """An instance of the plugin with its default arguments; without a handle, on a cluster with nothing in it."""
    if handle is None:
        handle = FrameworkHandle(Cluster(), SystemClock(), seeded(1))
    args_type = cls.args_type
    offered = {"handle": handle, "args": {} if args_type is None else args_type()}
    wanted = inspect.signature(cls).parameters
    return cls(**{name: value for name, value in offered.items() if name in wanted})
