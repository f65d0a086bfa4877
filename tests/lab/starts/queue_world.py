"""A queue with a past that follows from arithmetic: who comes first is served first, by as many as quota allows."""

from __future__ import annotations

import heapq
from typing import Any

import msgspec

from pilotage.clock import parse_rfc3339, rfc3339
from pilotage.model import kind_of
from pilotage.rng import seeded
from tests.jobs.live.world import KUEUE, cluster_queue, flavor, local_queue

START = parse_rfc3339("2026-11-16T00:00:00Z")
SLOTS = 4
MEANS = (120.0, 900.0, 2400.0)


class QueuedRun(msgspec.Struct):
    """A workload of the past, or one that is to come. Seconds since the start."""

    name: str
    owner: str
    created: int
    admitted: int
    finished: int


def runs(seed: int, count: int, load: float = 0.9) -> list[QueuedRun]:
    """Those that came, in order: of three jobs with lifetimes of their own."""
    rng, time = seeded(seed), 0.0
    free = [0] * SLOTS
    found = []
    for number in range(count):
        time += rng.expovariate(load * SLOTS * len(MEANS) / sum(MEANS))
        kind = rng.randrange(len(MEANS))
        begin = max(int(time), heapq.heappop(free))
        end = begin + max(1, int(MEANS[kind] * rng.lognormvariate(0, 0.5)))
        heapq.heappush(free, end)
        found.append(QueuedRun(f"w{number}", f"job{kind}", int(time), begin, end))
    return found


def workload(run: QueuedRun, now: float) -> dict[str, Any]:
    """As the API server has it at a moment."""

    def condition(kind: str, since: int) -> dict[str, str]:
        return {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": rfc3339(START + since)}

    times = [("QuotaReserved", run.admitted), ("Admitted", run.admitted), ("Finished", run.finished)]
    conditions = [condition(kind, since) for kind, since in times if since <= now]
    status: dict[str, Any] = {"conditions": conditions}
    if run.admitted <= now:
        assignment = {"name": "main", "flavors": {"cpu": "std"}, "resourceUsage": {"cpu": "1"}, "count": 1}
        status["admission"] = {"clusterQueue": "cq", "podSetAssignments": [assignment]}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": run.owner, "uid": run.name, "controller": True}
    created = rfc3339(START + run.created)
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": run.name, "namespace": "default", "uid": run.name, "creationTimestamp": created}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {**metadata, "ownerReferences": [owner]},
        "spec": {
            "queueName": "lq",
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}],
        },
        "status": status,
    }


def manifests(all_runs: list[QueuedRun], now: float) -> list[dict[str, Any]]:
    """The cluster at a moment, with all that has finished still there."""
    queues = [flavor("std"), cluster_queue(flavors={"std": SLOTS}), local_queue()]
    return [*queues, *(workload(run, now) for run in all_runs if run.created <= now)]


def by_kind(objects: list[dict[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {"Namespace": []}
    for obj in [{"kind": "Namespace", "metadata": {"name": "default"}}, *objects]:
        kind = kind_of(obj["kind"])
        assert kind is not None, "it is one of queueing"
        metadata = {"uid": obj["metadata"]["name"], **obj["metadata"]}
        data = {**obj, "metadata": {"namespace": "default", **metadata} if kind.namespaced else metadata}
        found.setdefault(kind.kind, []).append(kind.decode(msgspec.json.encode(data)))
    return found
