"""A world of queues in a few lines: short forms in, settled after each change."""

from __future__ import annotations

from typing import Any

from pilotage.jobs.configuration.load import queueing_of
from pilotage.jobs.reports import WorkloadReport
from pilotage.model.kueue import Workload
from pilotage.simulate.queueing_expectations import state
from pilotage.simulate.queueing_file import Named
from pilotage.simulate.queueing_stage import QueueingStage


def groups(**quotas: Any) -> list[dict[str, Any]]:
    """One group with cpu in these flavors."""
    return [{"resources": ["cpu"], "flavors": [{"name": name, "quotas": {"cpu": n}} for name, n in quotas.items()]}]


class World:
    def __init__(self, **config: Any) -> None:
        self.stage = QueueingStage(queueing_of({"waitForPodsReady": {}, **config}))
        self.engine = self.stage.engine

    def add(self, kind: str, name: str, **fields: Any) -> None:
        self.stage.apply(Named(kind, name, "ns", {"name": name, **fields}))
        self.settle()

    def queue(self, name: str, cohort: str = "", *, std: Any = 4, **fields: Any) -> None:
        self.add("flavor", "std")
        self.add("clusterQueue", name, cohort=cohort, groups=groups(std=std), **fields)
        self.add("localQueue", f"lq-{name}", clusterQueue=name)

    def submit(self, name: str, queue: str, cpu: int = 1, **fields: Any) -> None:
        self.add("workload", name, queue=f"lq-{queue}", requests={"cpu": cpu}, **fields)

    def change(self, kind: str, name: str, **fields: Any) -> None:
        self.stage.patch(Named(kind, name, "ns", fields))
        self.settle()

    def remove(self, kind: str, name: str) -> None:
        self.stage.delete(Named(kind, name, "ns", {}))
        self.settle()

    def finish(self, name: str) -> None:
        self.engine.finished(f"ns/{name}", "Succeeded", "")
        self.settle()

    def settle(self) -> None:
        self.stage.settle()
        self.engine.check()

    def workload(self, name: str) -> Workload:
        return self.stage.workloads[f"ns/{name}"]

    def state(self, name: str) -> str:
        return state(self.workload(name))

    def explain(self, name: str) -> WorkloadReport:
        found = self.engine.explain(f"ns/{name}")
        assert found is not None
        return found

    def why(self, name: str) -> tuple[str, str]:
        """Reason and message of QuotaReserved."""
        found = next(one for one in self.workload(name).status.conditions if one.type == "QuotaReserved")
        return found.reason, found.message
