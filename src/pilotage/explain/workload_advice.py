"""What would get a waiting workload admitted: more quota, fewer or smaller pods, another flavor, the end of others.

Each is tried out: the queues are looked through once more with that one change, nodes included. What does not help, or
helps only those who come before it, is not said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from pilotage.explain.amounts import readable
from pilotage.explain.queueing import QueueingView
from pilotage.jobs.reports import Shortage, WorkloadReport
from pilotage.model.kueue import ClusterQueue, PodSet, Workload
from pilotage.model.pod_spec import Container, ResourceRequirements, Toleration
from pilotage.model.quantity import format_quantity, parse_quantity

_MOST_HOLDERS: Final = 5
_FOR_LACK: Final = ("WaitingForQuota", "ExceedsMaxQuota")


def what_would_help(view: QueueingView, workload: Workload, report: WorkloadReport) -> Iterator[str]:
    if view.make_engine is None or report.behind or not report.cluster_queue:
        return
    trials = _Trials(view, workload, report)
    yield from trials.more_quota()
    yield from trials.fewer_pods()
    yield from trials.smaller_pods()
    yield from trials.another_flavor()
    yield from trials.others_end()


class _Trials:
    def __init__(self, view: QueueingView, workload: Workload, report: WorkloadReport) -> None:
        self._view = view
        self._workload = workload
        self._report = report
        self._lacking = [one for one in report.shortages if one.code in _FOR_LACK]

    def _admits(self, changed: Workload | ClusterQueue, gone: Sequence[str] = ()) -> bool:
        return self._view.admits(self._workload.key, [changed], gone)

    def more_quota(self) -> Iterator[str]:
        """For each flavor, as much more as it lacks there."""
        name = self._report.cluster_queue
        queue = next((one for one in self._view.objects.get("ClusterQueue", ()) if one.name == name), None)
        for flavor in dict.fromkeys(one.flavor for one in self._lacking):
            missing = {one.resource: _missing(one) for one in self._lacking if one.flavor == flavor}
            if queue is not None and self._admits(_with_quota(queue, flavor, missing)):
                amounts = " and ".join(f"{readable(resource, n)} {resource}" for resource, n in missing.items())
                yield f"ClusterQueue {name} had {amounts} more of flavor {flavor}"

    def fewer_pods(self) -> Iterator[str]:
        """Of its only pod set, the most that would do."""
        pod_set = self._only_pod_set()
        if pod_set is None or pod_set.count < 2:
            return
        low, high = 0, pod_set.count - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._admits(self._with(replace(pod_set, count=middle, min_count=None))):
                low = middle
            else:
                high = middle - 1
        if low:
            yield f"it had {low} pods instead of {pod_set.count}"

    def smaller_pods(self) -> Iterator[str]:
        """With what is free, shared among its pods; only where one container asks for it."""
        pod_set = self._only_pod_set()
        if pod_set is None or len(pod_set.template.spec.containers) != 1:
            return
        for one in self._lacking:
            each = max(0, one.most if one.code == "ExceedsMaxQuota" else one.have) // max(pod_set.count, 1)
            asked = _requests(pod_set).get(one.resource)
            if each and asked is not None and self._admits(self._with(_asking(pod_set, one.resource, each))):
                amount = readable(one.resource, each)
                yield f"its pods asked for {amount} {one.resource} instead of {asked} (flavor {one.flavor})"

    def another_flavor(self) -> Iterator[str]:
        """Flavors whose nodes its pods rule out themselves."""
        ruled_out = [one.flavor for one in self._report.shortages if one.code == "NoMatchingFlavor" and one.flavor]
        pod_set = self._only_pod_set()
        if pod_set is None or not ruled_out:
            return
        spec = pod_set.template.spec
        open_spec = replace(spec, node_selector={}, affinity=None, tolerations=(Toleration(operator="Exists"),))
        if self._admits(self._with(replace(pod_set, template=replace(pod_set.template, spec=open_spec)))):
            why = "; ".join(dict.fromkeys(one.message for one in self._report.shortages if one.flavor in ruled_out))
            yield f"its pods accepted the nodes of {' or '.join(dict.fromkeys(ruled_out))} ({why})"

    def others_end(self) -> Iterator[str]:
        """The fewest of the largest of those who have quota."""
        gone: list[str] = []
        for key in self._holders():
            gone.append(key)
            if self._admits(self._workload, gone):
                # Smaller ones may have been taken for nothing.
                needed = [key for key in gone if not self._admits(self._workload, [one for one in gone if one != key])]
                yield f"{' and '.join(needed or gone)} had finished"
                return

    def _holders(self) -> list[str]:
        named = dict.fromkeys(key for one in self._lacking for key, _ in one.holders)
        if not named:
            running = [one for one in self._view.workloads.values() if one.status.admission is not None]
            ended = {one.key for one in running if any(c.type == "Finished" for c in one.status.conditions)}
            running.sort(key=lambda one: (-sum(pods.count for pods in one.spec.pod_sets), one.key))
            named = dict.fromkeys(one.key for one in running if one.key not in ended)
        return list(named)[:_MOST_HOLDERS]

    def _only_pod_set(self) -> PodSet | None:
        pod_sets = self._workload.spec.pod_sets
        return pod_sets[0] if len(pod_sets) == 1 else None

    def _with(self, pod_set: PodSet) -> Workload:
        changed: Workload = replace(self._workload, spec=replace(self._workload.spec, pod_sets=(pod_set,)))
        return changed


def _missing(one: Shortage) -> int:
    return one.need - (one.most if one.code == "ExceedsMaxQuota" else one.have - one.exceeded_by)


def _with_quota(queue: ClusterQueue, flavor: str, more: dict[str, int]) -> ClusterQueue:
    groups = tuple(
        replace(
            group,
            flavors=tuple(
                replace(
                    one,
                    resources=tuple(
                        replace(quota, nominal_quota=_sum(quota.name, quota.nominal_quota, more.get(quota.name, 0)))
                        for quota in one.resources
                    ),
                )
                if one.name == flavor
                else one
                for one in group.flavors
            ),
        )
        for group in queue.spec.resource_groups
    )
    changed: ClusterQueue = replace(queue, spec=replace(queue.spec, resource_groups=groups))
    return changed


def _sum(resource: str, quota: object, more: int) -> str:
    base = parse_quantity(str(quota))
    return format_quantity(base + (parse_quantity(f"{more}m") if resource == "cpu" else more))


def _requests(pod_set: PodSet) -> dict[str, str]:
    [container] = pod_set.template.spec.containers
    return {name: str(amount) for name, amount in container.resources.requests.items()}


def _asking(pod_set: PodSet, resource: str, amount: int) -> PodSet:
    [container] = pod_set.template.spec.containers
    text = f"{amount}m" if resource == "cpu" else str(amount)
    limits = {name: value for name, value in container.resources.limits.items() if name != resource}
    asked = ResourceRequirements({**container.resources.requests, resource: text}, limits)
    smaller: Container = replace(container, resources=asked)
    spec = replace(pod_set.template.spec, containers=(smaller,))
    changed: PodSet = replace(pod_set, template=replace(pod_set.template, spec=spec))
    return changed
