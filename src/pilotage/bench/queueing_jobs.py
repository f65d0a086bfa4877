"""Who runs the workloads of a queueing benchmark: finishes what was admitted, and checks the quota of what is stored.

It sees every version that the API server stores. A workload runs from its admission until its time is over or it is
evicted; its end is written into its status, as the owner of a workload does. What stored workloads hold is added up at
every single write, so that not even a moment with too much in use goes unnoticed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import msgspec

from pilotage.clock import Clock, rfc3339
from pilotage.kube.client import KubeClient
from pilotage.model import KINDS
from pilotage.model.quantity import quantity_milli
from pilotage.sandbox.storage.records import Change

NAMESPACE: Final = "default"
_MERGE_PATCH: Final = "application/merge-patch+json"


class _JobCondition(msgspec.Struct):
    type: str
    status: str


class _Usage(msgspec.Struct):
    resourceUsage: dict[str, str] = {}


class _Admission(msgspec.Struct):
    clusterQueue: str
    podSetAssignments: list[_Usage] = []


class _JobStatus(msgspec.Struct):
    conditions: list[_JobCondition] = []
    admission: _Admission | None = None


class _Stored(msgspec.Struct):
    """What counts of a stored workload."""

    status: _JobStatus = msgspec.field(default_factory=_JobStatus)


_decode = msgspec.json.Decoder(_Stored).decode


@dataclass(slots=True)
class QueueingTally:
    """What has happened so far."""

    finished: int = 0
    admissions: int = 0
    evictions: int = 0
    writes: int = 0
    excesses: int = 0
    """Writes after which the stored workloads of a cohort hold more than its quota."""


@dataclass(slots=True)
class _Run:
    """One workload."""

    cohort: str = ""
    cpu: int = 0
    """What it holds of the quota, in thousandths."""
    is_running: bool = False
    attempt: int = 0
    stored: bytes = b"{}"
    """The newest version, as a watch would show it."""


@dataclass(slots=True)
class JobRunner:
    """`cohorts`: of each ClusterQueue; `quota`: cpu of each cohort, in thousandths."""

    client: KubeClient
    clock: Clock
    rng: random.Random
    cohorts: Mapping[str, str]
    quota: Mapping[str, int]
    tally: QueueingTally = field(default_factory=QueueingTally)
    _runs: dict[str, _Run] = field(default_factory=dict)
    _used: dict[str, int] = field(default_factory=dict)
    _ends: list[tuple[float, int, str, int]] = field(default_factory=list)
    _order: count[int] = field(default_factory=count)

    def on_change(self, change: Change) -> None:
        """A workload was stored."""
        self.tally.writes += 1
        name = change.record.key.name
        run = self._runs.get(name)
        if run is None:
            run = self._runs[name] = _Run()
        run.stored = change.record.body
        status = _decode(run.stored).status
        true = {one.type for one in status.conditions if one.status == "True"}
        holds = "QuotaReserved" in true and "Finished" not in true
        self._book(run, status.admission if holds else None)
        should_run = holds and "Admitted" in true and "Evicted" not in true
        if should_run and not run.is_running:
            self.tally.admissions += 1
            run.attempt += 1
            end = self.clock.monotonic() + self.rng.randint(30, 300)
            heapq.heappush(self._ends, (end, next(self._order), name, run.attempt))
        elif run.is_running and not should_run and "Finished" not in true:
            self.tally.evictions += 1
        run.is_running = should_run

    def _book(self, run: _Run, admission: _Admission | None) -> None:
        cohort = "" if admission is None else self.cohorts[admission.clusterQueue]
        cpu = 0 if admission is None else sum(_cpu(one) for one in admission.podSetAssignments)
        if cohort == run.cohort and cpu == run.cpu:
            return
        if run.cohort:
            self._used[run.cohort] -= run.cpu
        if cohort:
            self._used[cohort] = self._used.get(cohort, 0) + cpu
            self.tally.excesses += self._used[cohort] > self.quota[cohort]
        run.cohort, run.cpu = cohort, cpu

    async def end_due(self) -> None:
        """Finish the workloads whose time is over."""
        while self._ends and self._ends[0][0] <= self.clock.monotonic():
            _, _, name, attempt = heapq.heappop(self._ends)
            run = self._runs[name]
            if run.is_running and run.attempt == attempt:
                await self._finish(name, msgspec.json.decode(run.stored))

    async def _finish(self, name: str, stored: dict[str, Any]) -> None:
        conditions: list[Any] = stored["status"]["conditions"]
        conditions.append(
            {
                "type": "Finished",
                "status": "True",
                "reason": "Succeeded",
                "message": "Its time is over",
                "lastTransitionTime": rfc3339(self.clock.time()),
            }
        )
        version = {"resourceVersion": stored["metadata"]["resourceVersion"]}
        body = msgspec.json.encode({"metadata": version, "status": {"conditions": conditions}})
        await self.client.patch(
            KINDS["workloads"], NAMESPACE, name, body, content_type=_MERGE_PATCH, subresource="status"
        )
        self.tally.finished += 1


def _cpu(usage: _Usage) -> int:
    return quantity_milli(usage.resourceUsage.get("cpu", "0"))
