"""A handle over the cluster of a test, for plugins that ask for one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from pilotage.clock import SystemClock
from pilotage.cycle.handle import FrameworkHandle
from pilotage.testing import NodeBuilder, PodBuilder
from tests.plugins.one_plugin import OnePlugin


def with_handle(make: Callable[..., Any], *nodes: NodeBuilder, pods: Sequence[PodBuilder] = ()) -> OnePlugin:
    """`make(handle)` on a cluster of these nodes and pods."""
    world = OnePlugin(None, *nodes, pods=pods)
    world.plugin = make(FrameworkHandle(world.cluster, SystemClock(), random.Random(1)))
    return world
