"""Score nodes by their real load: TargetLoadPacking and LoadVariationRiskBalancing of Trimaran, from their description.

    pilotage sandbox --plugin examples/plugins/load_aware.py --config examples/plugins/load_aware.config.yaml \\
        -f examples/plugins/load_aware.yaml
    python examples/load_watcher.py                   # in another shell, before: says how busy idle, warm and hot are
    kubectl create deployment web --image=web         # a moment later: its pod is on warm

A background task asks a load watcher (`GET /watcher`) how busy the nodes are. The score uses the last good answer; if
that is too old, all nodes get the same score and the other plugins decide. A node that the answer does not mention is
avoided. What pods that started after the measured window will use is guessed from their requests.

The answers depend on the pod's requests, on one node, and on the measurements, which `facts_version` counts: so they
are signed, and only nodes that changed are asked about again.
"""

from __future__ import annotations

import asyncio
import json
import math
import urllib.request
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pilotage.api import CycleState, Duration, Handle, NodeView, Plugin, Pod, Score, pod_requests, rfc3339

MOST_POINTS = 100
RESOURCES = ("cpu", "memory")
_LONGEST_ANSWER = 64 * 1024 * 1024


@dataclass(frozen=True)
class LoadAwareArgs:
    watcher_address: str = "http://127.0.0.1:2020"
    strategy: Literal["TargetLoadPacking", "LoadVariationRiskBalancing"] = "TargetLoadPacking"
    target_utilization: int = 40
    """TargetLoadPacking: fill nodes up to so many percent of their CPU, then spread."""
    safe_variance_margin: float = 1.0
    """LoadVariationRiskBalancing: how many standard deviations of load count as load."""
    requests_multiplier: float = 1.5
    """What a pod is thought to use of the CPU, as a multiple of its requests."""
    default_cpu_millis: int = 1000
    """What a pod without requests is thought to use."""
    poll_interval: Duration = 30.0
    stale_after: Duration = 300.0

    def problems(self) -> Iterator[tuple[str, str]]:
        if not self.watcher_address.startswith(("http://", "https://")):
            yield "watcherAddress", "must begin with http:// or https://"
        if not 0 < self.target_utilization < 100:
            yield "targetUtilization", "must be between 1 and 99"
        if self.poll_interval <= 0:
            yield "pollInterval", "must be longer than nothing"
        if self.stale_after < self.poll_interval:
            yield "staleAfter", "must not be shorter than pollInterval"


@dataclass(frozen=True)
class Load:
    """Of one node: mean and standard deviation in percent, by resource."""

    mean: Mapping[str, float]
    deviation: Mapping[str, float]


class LoadAware(Plugin, Score):
    """Prefer nodes by how busy they are."""

    args_type = LoadAwareArgs

    def __init__(self, handle: Handle, args: LoadAwareArgs) -> None:
        self._clock = handle.clock
        self._args = args
        self._loads: Mapping[str, Load] = {}
        self._window_end = ""
        self._measured_at = -math.inf
        self._version = 0
        self._age = handle.metrics.gauge("load_aware_age_seconds", "Age of the load that nodes are scored by.")
        self._polls = handle.metrics.counter("load_aware_polls_total", "Questions to the load watcher.", "result")
        handle.run_in_background(self._poll)

    # --- in the background -------------------------------------------------------------------------------------

    async def _poll(self) -> None:
        while True:
            try:
                self._take(await self.fetch())
                self._polls.add("success")
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                # A watcher that is away for a moment is everyday life; what is not expected is the scheduler's to log.
                self._polls.add(type(error).__name__)
                self._forget_if_stale()
            self._age.set(self._clock.monotonic() - self._measured_at)
            await self._clock.sleep(self._args.poll_interval)

    async def fetch(self) -> Any:
        """What the load watcher says now."""
        return await asyncio.to_thread(_get_json, f"{self._args.watcher_address.rstrip('/')}/watcher")

    def _take(self, answer: Any) -> None:
        loads = loads_of(answer)
        window_end = float(answer.get("window", {}).get("end", answer.get("timestamp", 0)))
        if self._clock.time() - window_end > self._args.stale_after:
            raise ValueError("the load watcher answers with old values")
        self._loads, self._window_end = loads, rfc3339(window_end)
        self._measured_at = self._clock.monotonic()
        self._version += 1

    def _forget_if_stale(self) -> None:
        if self._loads and self._clock.monotonic() - self._measured_at > self._args.stale_after:
            self._loads = {}
            self._version += 1

    # --- scoring -----------------------------------------------------------------------------------------------

    def sign(self, pod: Pod) -> Hashable:
        return self._demand(pod)

    def facts_version(self) -> Hashable:
        return self._version

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        load = self._loads.get(node.name)
        if load is None:
            # Of nobody: then all nodes are alike. Of this node alone: who knows what is going on there.
            return 0
        expected = {resource: self._expected(resource, load, pod, node) for resource in RESOURCES}
        if self._args.strategy == "TargetLoadPacking":
            return target_load_points(expected["cpu"], self._args.target_utilization)
        margin = self._args.safe_variance_margin
        risks = [expected[name] + margin * load.deviation.get(name, 0.0) for name in RESOURCES if name in load.mean]
        return round(MOST_POINTS - min(max(risks, default=0.0), 100.0))

    def _expected(self, resource: str, load: Load, pod: Pod, node: NodeView) -> float:
        """Percent in use on the node with the pod on it."""
        offered = node.allocatable(resource)
        if offered <= 0:
            return 100.0
        at = RESOURCES.index(resource)
        # The node itself is asked about again when its pods change: what is new on it is looked up here.
        coming = [pod, *(other for other in node.pods if self._is_unmeasured(other))]
        return load.mean.get(resource, 0.0) + 100.0 * sum(self._demand(one)[at] for one in coming) / offered

    def _is_unmeasured(self, pod: Pod) -> bool:
        started = pod.status.start_time
        return started is None or started > self._window_end

    def _demand(self, pod: Pod) -> tuple[float, float]:
        """What a pod is thought to use: CPU in milli-cores, memory in bytes."""
        requests = pod_requests(pod.spec)
        cpu = requests.get("cpu", 0) * self._args.requests_multiplier
        return cpu or self._args.default_cpu_millis, requests.get("memory", 0)


def target_load_points(used: float, target: float) -> int:
    """The nearer below the target the better; above it, the emptier the better; `used` in percent."""
    if used <= target:
        return round((MOST_POINTS - target) * used / target + target)
    return round(target * (MOST_POINTS - used) / (MOST_POINTS - target)) if used <= MOST_POINTS else 0


def loads_of(answer: Any) -> dict[str, Load]:
    """From the load watcher's JSON: means ("AVG") and standard deviations ("STD") by node and resource."""
    data = answer["data"]
    found = {}
    for name, node in data.get("NodeMetricsMap", data).items():
        parts: dict[str, dict[str, float]] = {"AVG": {}, "STD": {}}
        for metric in node.get("metrics") or ():
            # What was measured is in `operator`, or in `rollup` of older watchers.
            kind = metric.get("operator") or metric.get("rollup")
            if kind in parts and metric["type"].lower() in RESOURCES:
                parts[kind][metric["type"].lower()] = float(metric["value"])
        if parts["AVG"]:
            found[name] = Load(parts["AVG"], parts["STD"])
    return found


def _get_json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=5.0) as answer:
        return json.loads(answer.read(_LONGEST_ANSWER))
