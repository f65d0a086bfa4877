"""What the engine counts, as Kueue's metrics; and what can be read off the queues when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pilotage.jobs.effects import Counted, Observed
from pilotage.jobs.effects import Labels as EffectLabels
from pilotage.jobs.reports import ClusterQueueReport, LocalQueueReport, QuotaReport
from pilotage.observe.instruments import Counter, Histogram
from pilotage.observe.workload_metrics import WorkloadMetrics

Labels = tuple[str, ...]
_MILLI = 1000.0


class Meters:
    def __init__(
        self,
        metrics: WorkloadMetrics,
        queues: Callable[[], Sequence[ClusterQueueReport]],
        local_queues: Callable[[], Sequence[LocalQueueReport]],
        *,
        role: str = "standalone",
        tells_quota: bool = False,
    ) -> None:
        """`tells_quota`: metrics.enableClusterQueueResources of the configuration."""
        self._metrics = metrics
        self._queues = queues
        self._local_queues = local_queues
        self._places: dict[tuple[str, EffectLabels, str], tuple[Any, Labels]] = {}
        self.role = role
        metrics.pending_workloads.read_from(self._pending)
        metrics.reserving_active_workloads.read_from(lambda: self._per_queue(lambda one: one.reserving))
        metrics.admitted_active_workloads.read_from(lambda: self._per_queue(lambda one: one.admitted))
        metrics.cluster_queue_status.read_from(self._statuses)
        metrics.cluster_queue_weighted_share.read_from(self._shares)
        metrics.local_queue_pending_workloads.read_from(self._local_pending)
        metrics.local_queue_reserving_active_workloads.read_from(lambda: self._per_local(lambda one: one.reserving))
        metrics.local_queue_admitted_active_workloads.read_from(lambda: self._per_local(lambda one: one.admitted))
        metrics.local_queue_status.read_from(self._local_statuses)
        if tells_quota:
            for gauge, amount in (
                (metrics.cluster_queue_resource_reservation, lambda quota: quota.used),
                (metrics.cluster_queue_nominal_quota, lambda quota: quota.nominal),
                (metrics.cluster_queue_borrowing_limit, lambda quota: quota.borrowing_limit),
                (metrics.cluster_queue_lending_limit, lambda quota: quota.lending_limit),
            ):
                gauge.read_from(self._quota_reader(amount))

    def record(self, effect: Counted | Observed) -> None:
        instrument, values = self._place(effect.metric, effect.labels)
        if isinstance(instrument, Counter) and isinstance(effect, Counted):
            instrument.add(*values, amount=effect.amount)
        elif isinstance(instrument, Histogram) and isinstance(effect, Observed):
            instrument.observe(effect.value, *values)

    def _place(self, metric: str, labels: EffectLabels) -> tuple[Any, Labels]:
        """The instrument and its label values in order; the same few are asked for again and again."""
        found = self._places.get((metric, labels, self.role))
        if found is None:
            instrument = getattr(self._metrics, metric, None)
            known = dict(labels) | {"replica_role": self.role}
            values = tuple(known.get(name, "") for name in getattr(instrument, "label_names", ()))
            found = self._places[metric, labels, self.role] = (instrument, values)
        return found

    def _pending(self) -> Mapping[Labels, float]:
        found: dict[Labels, float] = {}
        for queue in self._queues():
            found[queue.name, "active", self.role] = queue.pending - queue.inadmissible
            found[queue.name, "inadmissible", self.role] = queue.inadmissible
        return found

    def _per_queue(self, value: Callable[[ClusterQueueReport], float]) -> Mapping[Labels, float]:
        return {(queue.name, self.role): value(queue) for queue in self._queues()}

    def _local_pending(self) -> Mapping[Labels, float]:
        found: dict[Labels, float] = {}
        for queue in self._local_queues():
            found[queue.name, queue.namespace, "active", self.role] = queue.pending - queue.inadmissible
            found[queue.name, queue.namespace, "inadmissible", self.role] = queue.inadmissible
        return found

    def _per_local(self, value: Callable[[LocalQueueReport], float]) -> Mapping[Labels, float]:
        return {(queue.name, queue.namespace, self.role): value(queue) for queue in self._local_queues()}

    def _local_statuses(self) -> Mapping[Labels, float]:
        return {
            (queue.name, queue.namespace, status, self.role): float(status == str(queue.is_active))
            for queue in self._local_queues()
            for status in ("True", "False", "Unknown")
        }

    def _statuses(self) -> Mapping[Labels, float]:
        return {
            (queue.name, status, self.role): float(status == _status(queue))
            for queue in self._queues()
            for status in ("pending", "active", "terminating")
        }

    def _shares(self) -> Mapping[Labels, float]:
        return {(queue.name, queue.cohort, self.role): queue.weighted_share for queue in self._queues()}

    def _quota_reader(self, amount: Callable[[QuotaReport], int | None]) -> Callable[[], Mapping[Labels, float]]:
        def read() -> Mapping[Labels, float]:
            return dict(self._quotas(amount))

        return read

    def _quotas(self, amount: Callable[[QuotaReport], int | None]) -> Iterator[tuple[Labels, float]]:
        for queue in self._queues():
            for quota in queue.quotas:
                value = amount(quota)
                if value is not None:
                    scale = _MILLI if quota.resource == "cpu" else 1.0
                    yield (queue.cohort, queue.name, quota.flavor, quota.resource, self.role), value / scale


def _status(queue: ClusterQueueReport) -> str:
    if queue.is_active:
        return "active"
    return "terminating" if queue.reason == "Terminating" else "pending"
