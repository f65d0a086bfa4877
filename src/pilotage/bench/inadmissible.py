"""What workloads that cannot be admitted cost the others in the same BestEffortFIFO queue.

Three engines side by side: an empty queue, one with 10,000 inadmissible workloads that are all alike, and one in which
each of them has a shape of its own. Small workloads are admitted and finished in all three, in batches in turn, so that
a busy machine slows all of them; the best batch of each counts.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Final

import msgspec

from pilotage.bench.event_handling import MeasuredFigure
from pilotage.clock import rfc3339, thread_cpu_seconds
from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.effects import StatusChanged
from pilotage.jobs.engine import JobQueueing
from pilotage.model.kueue import ClusterQueue, LocalQueue, ResourceFlavor, Workload
from pilotage.rng import seeded
from pilotage.testing.virtual_clock import VirtualClock

WORKLOADS: Final = 10_000
_BATCHES: Final = 40
_PER_BATCH: Final = 100
_QUOTA: Final = 64
_MOST_PERCENT: Final = 20.0


def measure(inadmissible: int) -> Iterator[MeasuredFigure]:
    """How much slower others are, in percent."""
    queues = [_Queue(), _Queue(), _Queue()]
    queues[1].fill(inadmissible, shapes=1)
    queues[2].fill(inadmissible, shapes=inadmissible)
    best = [float("inf")] * len(queues)
    gc.collect()
    gc.freeze()
    for batch in range(_BATCHES):
        for at, queue in enumerate(queues):
            best[at] = min(best[at], queue.batch(batch))
    gc.unfreeze()
    for at, shapes in ((1, "one shape"), (2, f"{inadmissible:,} shapes")):
        slower = 100 * (best[at] / best[0] - 1)
        name = f"admission beside {inadmissible:,} inadmissible of {shapes}"
        yield MeasuredFigure(name, slower, "% slower", f"<= {_MOST_PERCENT:g}", slower <= _MOST_PERCENT)


class _Queue:
    """One ClusterQueue whose workloads end on request; statuses come back as from a watch."""

    def __init__(self) -> None:
        self._clock = VirtualClock()
        self._engine = engine = JobQueueing(self._clock, seeded(1), QueueingConfiguration(wait_for_pods_ready=None))
        engine.set_namespace("ns", {})
        engine.upsert(msgspec.convert({"metadata": {"name": "std"}}, ResourceFlavor))
        flavor = {"name": "std", "resources": [{"name": "cpu", "nominalQuota": _QUOTA}]}
        spec = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}]}
        engine.upsert(msgspec.convert({"metadata": {"name": "busy"}, "spec": spec}, ClusterQueue))
        local = {"metadata": {"name": "busy", "namespace": "ns"}, "spec": {"clusterQueue": "busy"}}
        engine.upsert(msgspec.convert(local, LocalQueue))

    def fill(self, count: int, shapes: int) -> None:
        """Half of the quota is taken for good; each of the others needs a little more than the other half."""
        self._submit("rock", _QUOTA / 2, 100)
        self._settle()
        for number in range(count):
            self._submit(f"big-{number:05}", _QUOTA / 2 + 1 + number % shapes / 1000, 10)
        self._settle()
        queue = self._engine.cluster_queues()[0]
        assert queue.inadmissible == count, "they were to be inadmissible"

    def batch(self, batch: int) -> float:
        """CPU seconds to admit and finish small workloads one after the other."""
        names = [f"small-{batch}-{number}" for number in range(_PER_BATCH)]
        began = thread_cpu_seconds()
        for name in names:
            self._submit(name, 1, 0)
            self._settle()
            self._engine.finished(f"ns/{name}", "Succeeded", "")
            self._settle()
        return thread_cpu_seconds() - began

    def _submit(self, name: str, cpu: float, priority: int) -> None:
        template = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
        pod_sets = [{"name": "main", "count": 1, "template": template}]
        spec = {"queueName": "busy", "priority": priority, "podSets": pod_sets}
        metadata = {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": rfc3339(self._clock.time())}
        self._engine.upsert(msgspec.convert({"metadata": metadata, "spec": spec}, Workload))

    def _settle(self) -> None:
        has_more = True
        while has_more:
            has_more = self._engine.cycle()
            for effect in self._engine.take_effects():
                if isinstance(effect, StatusChanged):
                    self._engine.upsert(effect.workload)
