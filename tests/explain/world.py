"""A small cluster to be explained."""

from __future__ import annotations

from pilotage.assembly import SchedulerOptions
from pilotage.clock import SystemClock
from pilotage.cluster.state import Cluster
from pilotage.cycle.placement import ProfileEngine
from pilotage.explain.engine import put, thinking_engines
from pilotage.testing import NodeBuilder, PodBuilder


def engine_of(*things: NodeBuilder | PodBuilder, options: SchedulerOptions | None = None) -> ProfileEngine:
    """The engine of the default profile over these nodes and pods."""
    cluster = Cluster()
    for thing in things:
        put(cluster, "Node" if isinstance(thing, NodeBuilder) else "Pod", thing.build())
    return thinking_engines(cluster, SystemClock(), options or SchedulerOptions())["default-scheduler"]
