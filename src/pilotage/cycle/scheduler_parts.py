"""What a scheduler is made of, and which of its ways are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pilotage.calls.dispatcher import Dispatcher
from pilotage.calls.synchronous_calls import SynchronousCalls
from pilotage.clock import Clock
from pilotage.cluster.state import Cluster
from pilotage.cycle.cycle_budget import CycleBudgets
from pilotage.cycle.placement import ProfileEngine
from pilotage.cycle.plugin_tasks import PluginTasks
from pilotage.framework.plugin_meter import PluginMeter
from pilotage.framework.waiting_pods import WaitingPods
from pilotage.observe.metrics import Metrics
from pilotage.observe.plugin_errors import PluginErrors
from pilotage.queue.scheduling_queue import SchedulingQueue


@dataclass(frozen=True, slots=True)
class SchedulerParts:
    """Put together in `assembly`."""

    clock: Clock
    cluster: Cluster
    queue: SchedulingQueue
    engines: Mapping[str, ProfileEngine]
    dispatcher: Dispatcher
    waiting_pods: WaitingPods
    metrics: Metrics
    meters: Mapping[str, PluginMeter]
    """By profile, like the engines."""
    budgets: CycleBudgets
    plugin_errors: PluginErrors
    announces_places: bool = True
    """Write where a pod will be while it waits for permission or PreBind (NominatedNodeNameForExpectation)."""
    calls_in_place: SynchronousCalls | None = None
    """Set: a cycle is over when its calls are (SchedulerAsyncAPICalls is off)."""
    waits_for_victims: bool = False
    """A pod that preempts goes back to the queue when its victims are gone (SchedulerAsyncPreemption is off)."""
    plugin_tasks: PluginTasks | None = None
    """What plugins run in the background."""
