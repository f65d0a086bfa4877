"""What an event costs that cannot help the pods that wait, and whether that depends on how many wait.

.venv/bin/python benchmarks/queue_events.py [--pods N] [--events N]

Waiting pods of 50 signatures, refused by NodeAffinity, and node updates whose labels match none of them; updates of a
resource claim with the same pods waiting, and with as many pods that each wait for a claim of their own. Everything
goes through the intake of the real scheduler with all default plugins; only the API server is missing.
"""

from __future__ import annotations

import argparse
import gc
from dataclasses import dataclass
from typing import Any

import msgspec

from pilotage.assembly import SchedulerOptions, build_scheduler
from pilotage.calls.no_api import NoApi
from pilotage.clock import thread_cpu_seconds
from pilotage.cycle.scheduler import Scheduler
from pilotage.model import KINDS, WatchEvent
from pilotage.queue.entry import Home
from pilotage.rng import seeded
from pilotage.testing import VirtualClock, node, pod

SIGNATURES = 50
REPEATS = 3


@dataclass(frozen=True)
class Figures:
    pods: int
    node_events_per_second: float
    claim_event_micros: float
    own_claim_event_micros: float


def decoded(resource: str, obj: dict[str, Any]) -> Any:
    return KINDS[resource].decode(msgspec.json.encode(obj))


def scheduler() -> Scheduler:
    return build_scheduler(NoApi(), VirtualClock(), seeded(1), SchedulerOptions())


def fill(target: Scheduler, pods: list[dict[str, Any]], rejector: str) -> None:
    """Pods that were tried once and refused by this plugin."""
    for obj in pods:
        target.intake.apply("Pod", [WatchEvent("ADDED", decoded("pods", obj))])
    target.take_news()
    while (ticket := target.queue.pop()) is not None:
        target.queue.give_back(ticket, ticket.pod, frozenset([rejector]), frozenset())
    assert target.queue.size(Home.UNSCHEDULABLE) == len(pods)


def measured(target: Scheduler, kind: str, changes: list[Any]) -> float:
    """CPU seconds per change, the best of a few runs; nobody may be woken."""
    before = target.queue.size(Home.UNSCHEDULABLE)
    best = float("inf")
    for _ in range(REPEATS):
        for obj in changes:
            target.intake.apply(kind, [WatchEvent("MODIFIED", obj)])
        gc.collect()
        began = thread_cpu_seconds()
        target.take_news()
        best = min(best, (thread_cpu_seconds() - began) / len(changes))
    assert target.queue.size(Home.UNSCHEDULABLE) == before, "the events were to help nobody"
    return best


def node_updates(count: int) -> list[Any]:
    """One label of a hundred nodes changes again and again."""
    updates = []
    for number in range(count):
        obj = node(f"n{number % 100}").label("pool", "none").label("heartbeat", str(number)).json()
        obj["metadata"]["resourceVersion"] = str(number + 1)
        updates.append(decoded("nodes", obj))
    return updates


def claim(name: str, note: str) -> Any:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    metadata = {"name": name, "namespace": "default", "uid": name, "annotations": {"note": note}}
    return decoded("resourceclaims", {"metadata": metadata, "spec": {"devices": {"requests": [request]}}})


def affine_pods(count: int) -> list[dict[str, Any]]:
    return [
        pod(f"p{number}").uid(f"uid-{number}").node_affinity_in("pool", [f"pool-{number % SIGNATURES}"]).json()
        for number in range(count)
    ]


def claiming_pods(count: int) -> list[dict[str, Any]]:
    def claiming(number: int) -> dict[str, Any]:
        obj = pod(f"p{number}").uid(f"uid-{number}").json()
        obj["spec"]["resourceClaims"] = [{"name": "device", "resourceClaimName": f"claim-{number}"}]
        return obj

    return [claiming(number) for number in range(count)]


def figures(pods: int, events: int) -> Figures:
    target = scheduler()
    fill(target, affine_pods(pods), "NodeAffinity")
    node_seconds = measured(target, "Node", node_updates(events))
    claims = [claim("other", str(number)) for number in range(5000)]
    claim_seconds = measured(target, "ResourceClaim", claims)
    devices = scheduler()
    for number in range(pods):
        devices.intake.apply("ResourceClaim", [WatchEvent("ADDED", claim(f"claim-{number}", ""))])
    fill(devices, claiming_pods(pods), "DynamicResources")
    own = [claim(f"claim-{number}", "changed") for number in range(min(pods, 5000))]
    own_seconds = measured(devices, "ResourceClaim", own)
    return Figures(pods, 1 / node_seconds, claim_seconds * 1e6, own_seconds * 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--events", type=int, default=10_000)
    options = parser.parse_args()
    few, many = figures(options.pods // 10, options.events), figures(options.pods, options.events)
    print(f"{'WAITING PODS':>14} {'NODE EVENTS/S':>14} {'CLAIM EVENT':>12} {'OWN CLAIM':>12}")
    for found in (few, many):
        print(
            f"{found.pods:>14,} {found.node_events_per_second:>14,.0f} "
            f"{found.claim_event_micros:>9.1f} us {found.own_claim_event_micros:>9.1f} us"
        )
    ratios = [
        few.node_events_per_second / many.node_events_per_second,
        many.claim_event_micros / few.claim_event_micros,
        many.own_claim_event_micros / few.own_claim_event_micros,
    ]
    print(f"{'times as dear':>14} {ratios[0]:>13.2f}x {ratios[1]:>10.2f}x  {ratios[2]:>9.2f}x")


if __name__ == "__main__":
    main()
