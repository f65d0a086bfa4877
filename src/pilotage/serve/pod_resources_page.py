"""`/metrics/resources`: what every pod asks for and may use at most, a line per pod and resource.

Empty unless this replica leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from pilotage.cluster.state import Cluster
from pilotage.model import Pod, PodSpec, pod_limits, pod_requests
from pilotage.observe.exposition import render_collected
from pilotage.serve.page import Page, PageAnswer, PageRequest

_LABELS: Final = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
_REQUESTS: Final = "[STABLE] Resources requested by the pods of the cluster, with the unit if there is one."
_LIMITS: Final = "[STABLE] Limits of the resources of the pods of the cluster, with the unit if there is one."
_BYTES: Final = frozenset({"memory", "storage", "ephemeral-storage"})


def pod_resources_page(cluster: Cluster, is_leading: Callable[[], bool]) -> Page:
    registry = CollectorRegistry()
    registry.register(_PodResources(cluster, is_leading))

    def answer(request: PageRequest) -> PageAnswer:
        return PageAnswer(200, *render_collected(request.headers.get("accept", ""), registry))

    return answer


class _PodResources(Collector):
    def __init__(self, cluster: Cluster, is_leading: Callable[[], bool]) -> None:
        self._cluster = cluster
        self._is_leading = is_leading

    def collect(self) -> Iterator[Metric]:
        if not self._is_leading():
            return
        yield self._family("kube_pod_resource_request", _REQUESTS, pod_requests)
        yield self._family("kube_pod_resource_limit", _LIMITS, pod_limits)

    def _family(self, name: str, about: str, amounts_of: Callable[[PodSpec], Mapping[str, int]]) -> Metric:
        family = GaugeMetricFamily(name, about, labels=_LABELS)
        for pod in self._cluster.objects("Pod").values():
            for resource, amount in amounts_of(pod.spec).items():
                if amount:
                    family.add_metric(_labels(pod, resource), amount / 1000 if resource == "cpu" else amount)
        return family

    def describe(self) -> Iterator[Metric]:
        # Asked by the registry to find duplicates; values need not be read for that.
        return iter(())


def _labels(pod: Pod, resource: str) -> tuple[str, ...]:
    priority = "" if pod.spec.priority is None else str(pod.spec.priority)
    return (pod.namespace, pod.name, pod.node_name, pod.spec.scheduler_name, priority, resource, _unit(resource))


def _unit(resource: str) -> str:
    if resource == "cpu":
        return "cores"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return "bytes"
    return "integer" if resource.startswith("attachable-volumes-") else ""
