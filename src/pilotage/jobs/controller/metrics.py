"""Kueue's metrics: what the engine counts, and gauges that are worked out on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pilotage.jobs.configuration.kinds import QueueingConfiguration
from pilotage.jobs.effects import Counted, Observed
from pilotage.jobs.effects import Labels as EffectLabels
from pilotage.jobs.engine import JobQueueing
from pilotage.jobs.reports import ClusterQueueReport, LocalQueueReport, QuotaReport
from pilotage.model.quantity import MAX_INT64
from pilotage.observe.instruments import Counter, Histogram
from pilotage.observe.workload_metrics import WorkloadMetrics

Labels = tuple[str, ...]
Values = Mapping[Labels, float]
_MILLI = 1000.0


class Gauges:
    """Shows nothing while there is no engine. `role` is the label that all metrics have."""

    def __init__(
        self,
        metrics: WorkloadMetrics,
        engine: Callable[[], JobQueueing | None],
        configuration: QueueingConfiguration,
    ) -> None:
        self._engine = engine
        self.role = "standalone"
        metrics.pending_workloads.read_from(self._pending)
        metrics.unadmitted_workloads.read_from(self._unadmitted)
        metrics.reserving_active_workloads.read_from(lambda: self._per_queue(lambda one: one.reserving))
        metrics.admitted_active_workloads.read_from(lambda: self._per_queue(lambda one: one.admitted))
        metrics.admission_cycle_preemption_skips.read_from(lambda: self._per_queue(lambda one: one.preemption_skips))
        metrics.cluster_queue_status.read_from(self._statuses)
        metrics.local_queue_pending_workloads.read_from(self._local_pending)
        metrics.local_queue_unadmitted_workloads.read_from(self._local_unadmitted)
        metrics.local_queue_reserving_active_workloads.read_from(lambda: self._per_local(lambda one: one.reserving))
        metrics.local_queue_admitted_active_workloads.read_from(lambda: self._per_local(lambda one: one.admitted))
        metrics.local_queue_status.read_from(self._local_statuses)
        if configuration.fair_sharing is not None:
            metrics.cluster_queue_weighted_share.read_from(self._shares)
            metrics.cohort_weighted_share.read_from(self._cohort_shares)
        if configuration.metrics.enable_cluster_queue_resources:
            self._set_resources(metrics)

    def _set_resources(self, metrics: WorkloadMetrics) -> None:
        for gauge, amount in (
            (metrics.cluster_queue_resource_reservation, lambda quota: quota.used),
            (metrics.cluster_queue_resource_usage, lambda quota: quota.admitted),
            (metrics.cluster_queue_nominal_quota, lambda quota: quota.nominal),
            (metrics.cluster_queue_borrowing_limit, lambda quota: quota.borrowing_limit),
            (metrics.cluster_queue_lending_limit, lambda quota: quota.lending_limit),
        ):
            gauge.read_from(self._quota_reader(amount))
        metrics.cluster_queue_resource_pending.read_from(self._pending_amounts)
        metrics.local_queue_resource_reservation.read_from(lambda: self._local_amounts(lambda one: one.reserved_usage))
        metrics.local_queue_resource_usage.read_from(lambda: self._local_amounts(lambda one: one.admitted_usage))

    # --- ClusterQueues and cohorts ------------------------------------------------------------------------------------

    def _queues(self) -> Sequence[ClusterQueueReport]:
        engine = self._engine()
        return engine.cluster_queues() if engine is not None else ()

    def _per_queue(self, value: Callable[[ClusterQueueReport], float]) -> Values:
        return {(queue.name, self.role): value(queue) for queue in self._queues()}

    def _pending(self) -> Values:
        found: dict[Labels, float] = {}
        for queue in self._queues():
            found[queue.name, "active", self.role] = queue.pending - queue.inadmissible
            found[queue.name, "inadmissible", self.role] = queue.inadmissible
        return found

    def _unadmitted(self) -> Values:
        found: dict[Labels, float] = {}
        engine = self._engine()
        for one in engine.unadmitted() if engine is not None else ():
            labels = (one.cluster_queue, one.reason, one.underlying_cause, self.role)
            found[labels] = found.get(labels, 0.0) + one.count
        return found

    def _statuses(self) -> Values:
        return {
            (queue.name, status, self.role): float(status == _status(queue))
            for queue in self._queues()
            for status in ("pending", "active", "terminating")
        }

    def _shares(self) -> Values:
        return {(queue.name, queue.cohort, self.role): queue.weighted_share for queue in self._queues()}

    def _cohort_shares(self) -> Values:
        engine = self._engine()
        shares = engine.cohort_shares() if engine is not None else {}
        return {(name, self.role): share for name, share in shares.items()}

    def _quota_reader(self, amount: Callable[[QuotaReport], int | None]) -> Callable[[], Values]:
        return lambda: dict(self._quotas(amount))

    def _quotas(self, amount: Callable[[QuotaReport], int | None]) -> Iterator[tuple[Labels, float]]:
        for queue in self._queues():
            for quota in queue.quotas:
                value = amount(quota)
                if value is not None:
                    labels = (queue.cohort, queue.name, quota.flavor, quota.resource, self.role)
                    yield labels, _in_units(quota.resource, value)

    def _pending_amounts(self) -> Values:
        engine = self._engine()
        if engine is None:
            return {}
        cohorts = {queue.name: queue.cohort for queue in engine.cluster_queues()}
        return {
            (cohorts.get(queue, ""), queue, flavor, resource, self.role): _in_units(resource, amount)
            for (queue, flavor, resource), amount in engine.pending_amounts().items()
        }

    # --- LocalQueues --------------------------------------------------------------------------------------------------

    def _local_queues(self) -> Sequence[LocalQueueReport]:
        engine = self._engine()
        return engine.local_queues() if engine is not None else ()

    def _per_local(self, value: Callable[[LocalQueueReport], float]) -> Values:
        return {(queue.name, queue.namespace, self.role): value(queue) for queue in self._local_queues()}

    def _local_pending(self) -> Values:
        found: dict[Labels, float] = {}
        for queue in self._local_queues():
            found[queue.name, queue.namespace, "active", self.role] = queue.pending - queue.inadmissible
            found[queue.name, queue.namespace, "inadmissible", self.role] = queue.inadmissible
        return found

    def _local_unadmitted(self) -> Values:
        engine = self._engine()
        return {
            (one.local_queue, one.namespace, one.reason, one.underlying_cause, self.role): one.count
            for one in (engine.unadmitted() if engine is not None else ())
        }

    def _local_statuses(self) -> Values:
        return {
            (queue.name, queue.namespace, status, self.role): float(status == str(queue.is_active))
            for queue in self._local_queues()
            for status in ("True", "False", "Unknown")
        }

    def _local_amounts(self, usage: Callable[[LocalQueueReport], Mapping[tuple[str, str], int]]) -> Values:
        return {
            (queue.name, queue.namespace, flavor, resource, self.role): _in_units(resource, amount)
            for queue in self._local_queues()
            for (flavor, resource), amount in usage(queue).items()
        }


def _in_units(resource: str, amount: int) -> float:
    """Sums end at the largest int64, as in the API."""
    capped = min(amount, MAX_INT64)
    return capped / _MILLI if resource == "cpu" else float(capped)


def _status(queue: ClusterQueueReport) -> str:
    if queue.is_active:
        return "active"
    return "terminating" if queue.reason == "Terminating" else "pending"


_Place = tuple[Counter | Histogram, Labels]


class Meters:
    """What the engine counts: for the ClusterQueue, and for the LocalQueue if there is a metric for it."""

    def __init__(self, metrics: WorkloadMetrics, has_local_queue: Callable[[str], bool]) -> None:
        self._metrics = metrics
        self._has_local_queue = has_local_queue
        self._places: dict[tuple[str, EffectLabels, str], list[_Place]] = {}
        self.role = "standalone"

    def record(self, effect: Counted | Observed) -> None:
        for instrument, values in self._places_of(effect.metric, effect.labels):
            if isinstance(instrument, Counter) and isinstance(effect, Counted):
                instrument.add(*values, amount=effect.amount)
            elif isinstance(instrument, Histogram) and isinstance(effect, Observed):
                instrument.observe(effect.value, *values)

    def forget(self, **labels: str) -> None:
        """Drop the series of a queue that is gone."""
        self._places.clear()
        for instrument in vars(self._metrics).values():
            if isinstance(instrument, Counter | Histogram):
                instrument.forget(**labels)

    def _places_of(self, metric: str, labels: EffectLabels) -> list[_Place]:
        """Instruments and their label values in order; the same few are asked for again and again."""
        found = self._places.get((metric, labels, self.role))
        if found is None:
            known = dict(labels) | {"replica_role": self.role}
            found = []
            is_local = self._has_local_queue(f"{known.get('namespace')}/{known.get('name')}")
            for name in (metric, f"local_queue_{metric}") if is_local else (metric,):
                instrument = getattr(self._metrics, name, None)
                if isinstance(instrument, Counter | Histogram):
                    found.append((instrument, tuple(known.get(label, "") for label in instrument.label_names)))
            if is_local or "name" not in known:
                self._places[metric, labels, self.role] = found
        return found
