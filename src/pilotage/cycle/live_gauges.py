"""Metrics that no event changes: what is counted in queue and cluster when they are read, versions, feature gates."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable
from typing import Final

from pilotage import __version__
from pilotage.cluster.state import Cluster
from pilotage.observe.instruments import Labels
from pilotage.observe.metrics import Metrics
from pilotage.queue.scheduling_queue import SchedulingQueue
from pilotage.queue.sub_queues import ASIDE, QUEUE_NAMES

_POD_POPPED = "PodPopped"


def read_live_gauges(metrics: Metrics, queue: SchedulingQueue, cluster: Cluster) -> None:
    """From now on, reading the metrics looks at these."""
    metrics.pending_pods.read_from(lambda: _pending(queue))
    metrics.queued_entities.read_from(lambda: _entities(queue))
    metrics.unschedulable_pods.read_from(lambda: _rejected(queue))
    metrics.inflight_events.read_from(lambda: _in_flight(queue))
    metrics.goroutines.read_from(lambda: {("binding",): sum(queue.is_binding(ticket) for ticket in queue.tickets())})
    metrics.cache_size.read_from(lambda: _cached(cluster))


def _pending(queue: SchedulingQueue) -> dict[Labels, float]:
    sizes: Counter[Labels] = Counter()
    for home, name in QUEUE_NAMES.items():
        if queue.has_groups or home not in ASIDE:
            sizes[name,] += queue.size(home)
    return dict(sizes)


def _entities(queue: SchedulingQueue) -> dict[Labels, float]:
    """A group is one entity, whatever number of members it has."""
    groups = Counter(QUEUE_NAMES[group.home] for group in queue.groups())
    members = Counter(QUEUE_NAMES[group.home] for group in queue.groups() for _ in group.members)
    pods = {labels: value - members[labels[0]] for labels, value in _pending(queue).items()}
    found = _of_pods(pods)
    if queue.has_groups:
        found |= {(name, "podgroup"): float(groups[name]) for name in dict.fromkeys(QUEUE_NAMES.values())}
    return found


def _of_pods(values: dict[Labels, float]) -> dict[Labels, float]:
    return {(*labels, "pod"): value for labels, value in values.items()}


def _rejected(queue: SchedulingQueue) -> dict[Labels, float]:
    """Pods that are in the queue again after a rejection, by the plugin that rejected them."""
    alike = Counter((entry.rejectors, entry.pod.spec.scheduler_name) for entry in queue.entries() if entry.rejectors)
    pods: Counter[Labels] = Counter()
    for (rejectors, profile), count in alike.items():
        for plugin in rejectors:
            pods[plugin, profile] += count
    return dict(pods)


def _in_flight(queue: SchedulingQueue) -> dict[Labels, float]:
    events: Counter[Labels] = Counter((recorded.event.label,) for recorded in queue.missed_events())
    events[_POD_POPPED,] = sum(not queue.is_binding(ticket) for ticket in queue.tickets())
    return dict(events)


def _cached(cluster: Cluster) -> dict[Labels, float]:
    return {
        ("nodes",): len(cluster.nodes),
        ("pods",): cluster.placed_count,
        ("assumed_pods",): cluster.assumed_count,
    }


FOLLOWED: Final = ("1", "37")
"""The Kubernetes release whose scheduler we follow."""
_STAGES: Final = {"alpha": "ALPHA", "beta": "BETA", "GA": ""}


def set_facts(metrics: Metrics, gates: Iterable[tuple[str, str, bool]]) -> None:
    """`gates` are (name, stage, is on)."""
    for name, stage, is_on in gates:
        metrics.kubernetes_feature_enabled.set(is_on, name, _STAGES[stage])
    ours, python = __version__, platform.python_version()
    metrics.build_info.set(1, ours, python)
    major, minor = FOLLOWED
    system = f"{platform.system()}/{platform.machine()}".lower()
    git_version = f"v{major}.{minor}.0-pilotage.{ours}"
    metrics.kubernetes_build_info.set(
        1, major, minor, git_version, "", "", "", "", platform.python_implementation(), system
    )
