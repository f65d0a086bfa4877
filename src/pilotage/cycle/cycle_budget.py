"""What each scheduling cycle may spend, and what becomes of pods that want more.

    within the budget      nothing happens
    exceeded               the pod is delayed with a long, growing backoff; equal pods are not tried for a while, and
                           the pods of its namespace have a quarter of the budget until a minute has passed

Garbage collections fall into whichever cycle allocates next and cost what the heap of the whole process costs: they are
not counted.

So one namespace can make the others wait for little more than the budget of one cycle, whatever number of costly pods
it creates, while its ordinary pods, which need a thousandth of the budget, are scheduled as before.
"""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, TypeVar

from msgspec import Struct

from pilotage.api.budget import Budget, BudgetExceeded
from pilotage.api.plugin import Plugin
from pilotage.clock import Clock, thread_cpu_seconds
from pilotage.cycle.slow_plugins import SlowPlugins
from pilotage.framework.plugin_meter import POINTS
from pilotage.model import Pod, PodSpec
from pilotage.observe.metrics import Metrics

K = TypeVar("K")
V = TypeVar("V")

_LEAST_SECONDS: Final = 0.01
_QUARTERED_FOR_SECONDS: Final = 60.0
_EQUAL_PODS_WAIT_SECONDS: Final = 20.0
"""Shorter than the first backoff of the pod itself."""
_MOST_REMEMBERED: Final = 1024


class Overrun(Struct, frozen=True):
    """Who exceeded the budget of a cycle, and by how much."""

    plugin: str
    point: str
    spent_seconds: float
    limit_seconds: float

    def message(self) -> str:
        who = f'plugin "{self.plugin}" ({self.point})' if self.plugin else "the scheduling cycle"
        return (
            f"{who} used up the CPU time of the cycle: {self.spent_seconds:.2f} s, allowed are "
            f"{self.limit_seconds:.2g} s. The pod is tried again later; ask for less, or raise cycleBudget in the "
            "scheduler's PilotageConfiguration"
        )


class CycleBudgets:
    """Begins the budget of each cycle and remembers what exceeded it."""

    def __init__(
        self,
        limit_seconds: float,
        clock: Clock,
        metrics: Metrics,
        cpu_seconds: Callable[[], float] = thread_cpu_seconds,
    ) -> None:
        self.cpu_seconds = cpu_seconds
        """CPU time of the thread that schedules."""
        self._limit = limit_seconds
        self._clock = clock
        self._exceeded = metrics.cycle_budget_exceeded_total
        self.budget = Budget(limit_seconds, cpu_seconds)
        """Of the present cycle."""
        self._namespaces: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What a cycle of their pods may spend, and until when it is so little."""
        self._specs: OrderedDict[int, tuple[PodSpec, float, Overrun]] = OrderedDict()
        """Specs that are not tried, and until when, by identity: equal pods share their spec."""

    def begin(self, pod: Pod) -> Budget:
        """The budget of a cycle for this pod, from now on."""
        limit = self._limit
        if pod.namespace in self._namespaces:
            allowed, until = self._namespaces[pod.namespace]
            if self._clock.monotonic() < until:
                limit = allowed
            else:
                del self._namespaces[pod.namespace]
        self.budget.begin(limit)
        return self.budget

    @contextmanager
    def excusing_garbage_collections(self) -> Iterator[None]:
        """Until the block ends, collections that the calling thread runs cost no cycle its budget."""
        thread, began = threading.get_ident(), 0.0

        def on_collection(phase: str, _: dict[str, int]) -> None:
            nonlocal began
            if threading.get_ident() != thread:
                return
            if phase == "start":
                began = thread_cpu_seconds()
            else:
                self.budget.excuse(thread_cpu_seconds() - began)

        gc.callbacks.append(on_collection)
        try:
            yield
        finally:
            gc.callbacks.remove(on_collection)

    def known_overrun(self, pod: Pod) -> Overrun | None:
        """What an equal pod has cost a moment ago; None if this one may be tried."""
        if not self._specs:
            return None
        known = self._specs.get(id(pod.spec))
        if known is None or known[0] is not pod.spec:
            return None
        if known[1] <= self._clock.monotonic():
            del self._specs[id(pod.spec)]
            return None
        return known[2]

    def exceeded(self, pod: Pod, error: BudgetExceeded) -> Overrun:
        """The cycle for this pod was ended."""
        plugin, point = _where(error.__traceback__)
        overrun = Overrun(plugin, point, error.spent_seconds, error.limit_seconds)
        self._exceeded.add(plugin)
        now = self._clock.monotonic()
        less = max(error.limit_seconds / 4, min(_LEAST_SECONDS, self._limit))
        _remember(self._namespaces, pod.namespace, (less, now + _QUARTERED_FOR_SECONDS))
        _remember(self._specs, id(pod.spec), (pod.spec, now + _EQUAL_PODS_WAIT_SECONDS, overrun))
        return overrun


class CycleGuard:
    """Keeps one pod, or one plugin, from holding up all others."""

    def __init__(self, budgets: CycleBudgets, slow_plugins: SlowPlugins) -> None:
        self.budgets = budgets
        self.slow_plugins = slow_plugins

    def begin_member(self, pod: Pod) -> None:
        """The search for a member of a group begins: it may take as long as that for a pod by itself."""
        self.budgets.begin(pod)
        self.slow_plugins.begin()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the calling thread until the block ends."""
        with self.slow_plugins.watching(), self.budgets.excusing_garbage_collections():
            yield


def _where(traceback: TracebackType | None) -> tuple[str, str]:
    """The innermost plugin that was at work, and its extension point; "" if none was."""
    plugin, point = "", ""
    while traceback is not None:
        frame = traceback.tb_frame
        asked = frame.f_locals.get("self")
        if isinstance(asked, Plugin) and frame.f_code.co_name in POINTS:
            plugin, point = asked.plugin_name(), POINTS[frame.f_code.co_name]
        traceback = traceback.tb_next
    return plugin, point


def _remember(kept: OrderedDict[K, V], key: K, value: V) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > _MOST_REMEMBERED:
        kept.popitem(last=False)
