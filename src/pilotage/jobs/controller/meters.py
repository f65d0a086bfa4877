"""What the engine counts, as Kueue's metrics: for the ClusterQueue, and for the LocalQueue if there is one for it."""

from __future__ import annotations

from pilotage.jobs.effects import Counted, Observed
from pilotage.jobs.effects import Labels as EffectLabels
from pilotage.observe.instruments import Counter, Histogram
from pilotage.observe.workload_metrics import WorkloadMetrics

Labels = tuple[str, ...]
_Place = tuple[Counter | Histogram, Labels]


class Meters:
    def __init__(self, metrics: WorkloadMetrics) -> None:
        self._metrics = metrics
        self._places: dict[tuple[str, EffectLabels, str], list[_Place]] = {}
        self.role = "standalone"

    def record(self, effect: Counted | Observed) -> None:
        for instrument, values in self._places_of(effect.metric, effect.labels):
            if isinstance(instrument, Counter) and isinstance(effect, Counted):
                instrument.add(*values, amount=effect.amount)
            elif isinstance(instrument, Histogram) and isinstance(effect, Observed):
                instrument.observe(effect.value, *values)

    def _places_of(self, metric: str, labels: EffectLabels) -> list[_Place]:
        """Instruments and their label values in order; the same few are asked for again and again."""
        found = self._places.get((metric, labels, self.role))
        if found is None:
            known = dict(labels) | {"replica_role": self.role}
            found = self._places[metric, labels, self.role] = []
            for name in (metric, f"local_queue_{metric}"):
                instrument = getattr(self._metrics, name, None)
                if isinstance(instrument, Counter | Histogram):
                    found.append((instrument, tuple(known.get(label, "") for label in instrument.label_names)))
        return found
