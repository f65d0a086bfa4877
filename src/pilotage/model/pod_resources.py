"""How much a pod asks for.

Containers run side by side, so their requests add up. Init containers run before them one after the other, each
together with the sidecars (restartable init containers) started earlier; the pod needs the larger of the two. Requests
at the pod's own level replace cpu, memory and huge pages of that sum; the overhead of the runtime comes on top.
Sums are exact; only the result is rounded up: cpu to thousandths, everything else to whole units.

A pod on a node may be in the middle of a resize: then it counts with the largest of what it asks for, what the kubelet
granted and what is in effect. Results that follow from the spec alone are kept in its memo.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from pilotage.model.pod import Pod
from pilotage.model.pod_spec import Container, PodSpec, PodSpecFields
from pilotage.model.pod_status import ContainerStatus, PodStatus
from pilotage.model.quantity import Quantity, quantity_nanos, resource_amount

DEFAULT_CPU_MILLIS = 100
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024

A = TypeVar("A")
T = TypeVar("T")
ResourceList = Mapping[str, Quantity]
_Totals = dict[str, int]
"""In billionths, which are exact."""
_RequestsOf = Callable[[Container], ResourceList]
_Requests = tuple[Mapping[str, int], tuple[int, int]]

_NON_ZERO: ResourceList = {"cpu": f"{DEFAULT_CPU_MILLIS}m", "memory": str(DEFAULT_MEMORY_BYTES)}
_NONE: ResourceList = {}
_MOST_VARIANTS = 64  # of the status of pods with one spec; a resize makes a few, not hundreds
_encode = msgspec.msgpack.Encoder().encode


def pod_requests(spec: PodSpec) -> Mapping[str, int]:
    """What the pod asks for: cpu in thousandths, everything else in units. Do not change the mapping."""
    known: Mapping[str, int] | None = spec.memo.get(pod_requests)
    if known is None:
        known = spec.memo[pod_requests] = _rounded(_spec_totals(spec, _NONE))
    return known


def non_zero_requests(spec: PodSpec) -> tuple[int, int]:
    """(cpu in thousandths, memory in bytes), where a container that asks for none counts with 100m and 200 MiB."""
    known: tuple[int, int] | None = spec.memo.get(non_zero_requests)
    if known is None:
        rounded = _rounded(_spec_totals(spec, _missing_defaults(spec, pod_requests(spec))))
        known = spec.memo[non_zero_requests] = (rounded.get("cpu", 0), rounded.get("memory", 0))
    return known


def container_requests(spec: PodSpec) -> Mapping[str, int]:
    """What the containers and the overhead ask for, with the defaults of `non_zero_requests`, whatever the pod's own
    level says. (Fit's scores are computed from this.)"""
    known: Mapping[str, int] | None = spec.memo.get(container_requests)
    if known is None:
        totals = _container_totals(spec, lambda container: container.resources.requests, _NON_ZERO)
        known = spec.memo[container_requests] = _rounded(_plus_overhead(totals, spec))
    return known


def pod_limits(spec: PodSpec) -> Mapping[str, int]:
    """What the pod may use at most, of resources that some container limits; in the same units, summed the same way."""
    totals = _container_totals(spec, lambda container: container.resources.limits, _NONE)
    if spec.resources is not None:
        _replace(totals, spec.resources.limits)
    _add(totals, _nanos({name: quantity for name, quantity in spec.overhead.items() if totals.get(name)}))
    return _rounded(totals)


def assigned_requests(pod: Pod) -> Mapping[str, int]:
    """What a pod on a node counts with, a resize in progress included."""
    return _assigned(pod)[0]


def assigned_non_zero_requests(pod: Pod) -> tuple[int, int]:
    """Like `non_zero_requests`, a resize in progress included."""
    return _assigned(pod)[1]


def requests_on_node(pod: Pod) -> tuple[Mapping[str, int], tuple[int, int]]:
    """Both at once."""
    return _assigned(pod)


def count_alike(pod: Pod, other: Pod) -> bool:
    """Do both count the same on a node? Only the status says whether a resize goes on."""
    one, another = _assigned(pod), _assigned(other)
    return one is another or one == another


def _spec_totals(spec: PodSpec, defaults: ResourceList) -> _Totals:
    totals = _container_totals(spec, lambda container: container.resources.requests, defaults)
    if spec.resources is not None:
        _replace(totals, spec.resources.requests)
    return _plus_overhead(totals, spec)


def _container_totals(spec: PodSpec, requests_of: _RequestsOf, defaults: ResourceList) -> _Totals:
    return summed(spec, lambda container: _nanos({**defaults, **requests_of(container)}), _add, _raise_to)


def _nanos(quantities: ResourceList) -> _Totals:
    return {name: quantity_nanos(quantity) for name, quantity in quantities.items()}


def summed(
    spec: PodSpecFields,
    amounts_of: Callable[[Container], Mapping[str, A]],
    add: Callable[[dict[str, T], Mapping[str, A | T]], None],
    raise_to: Callable[[dict[str, T], dict[str, T]], None],
) -> dict[str, T]:
    """The sum over all containers, however amounts are added and compared."""
    totals: dict[str, T] = {}
    sidecars: dict[str, T] = {}
    largest_step: dict[str, T] = {}
    for container in spec.containers:
        add(totals, amounts_of(container))
    for container in spec.init_containers:
        amounts = amounts_of(container)
        # Of the resources that this container does not name, what the sidecars take was noted when they came.
        step = {name: sidecars[name] for name in amounts if name in sidecars}
        add(step, amounts)
        if container.is_sidecar:
            add(totals, amounts)
            sidecars.update(step)
        raise_to(largest_step, step)
    raise_to(totals, largest_step)
    return totals


def _missing_defaults(spec: PodSpec, requests: Mapping[str, int]) -> ResourceList:
    """Requests at the pod's level make the defaults superfluous, except for a resource that nobody names."""
    if not _has_pod_level_requests(spec):
        return _NON_ZERO
    return {name: quantity for name, quantity in _NON_ZERO.items() if name not in requests}


def _has_pod_level_requests(spec: PodSpec) -> bool:
    return spec.resources is not None and any(_is_pod_level(name) for name in spec.resources.requests)


def _is_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _replace(totals: _Totals, pod_level: ResourceList) -> None:
    for name, quantity in pod_level.items():
        if _is_pod_level(name):
            totals[name] = quantity_nanos(quantity)


def _plus_overhead(totals: _Totals, spec: PodSpec) -> _Totals:
    _add(totals, _nanos(spec.overhead))
    return totals


def _add(totals: _Totals, amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        totals[name] = totals.get(name, 0) + amount


def _raise_to(totals: _Totals, other: _Totals) -> None:
    for name, amount in other.items():
        if amount > totals.get(name, amount - 1):
            totals[name] = amount


def _rounded(totals: _Totals) -> dict[str, int]:
    return {name: resource_amount(name, amount) for name, amount in totals.items()}


def _assigned(pod: Pod) -> _Requests:
    spec, status = pod.spec, pod.status
    if not _reports_resources(status):
        return _unassigned(spec)
    reported = (status.container_statuses, status.init_container_statuses, status.resources, status.allocated_resources)
    content = _encode((*reported, _is_infeasible(status)))
    variants: dict[bytes, _Requests] = spec.memo.setdefault(_assigned, {})
    known = variants.get(content)
    if known is None:
        if len(variants) >= _MOST_VARIANTS:
            variants.clear()
        known = variants[content] = _resized(spec, status)
    return known


def _unassigned(spec: PodSpec) -> _Requests:
    """What nearly every pod on a node counts with, too."""
    known: _Requests | None = spec.memo.get(_unassigned)
    if known is None:
        known = spec.memo[_unassigned] = (pod_requests(spec), non_zero_requests(spec))
    return known


def _reports_resources(status: PodStatus) -> bool:
    if status.resources is not None or status.allocated_resources:
        return True
    # Asked for every pod that comes or goes, really or in a dry run: plain loops are the fastest way.
    for container in status.container_statuses:
        if container.resources is not None or container.allocated_resources:
            return True
    for container in status.init_container_statuses:
        if container.resources is not None or container.allocated_resources:
            return True
    return False


def _is_infeasible(status: PodStatus) -> bool:
    pending = status.condition("PodResizePending")
    return pending is not None and pending.reason == "Infeasible"


def _resized(spec: PodSpec, status: PodStatus) -> _Requests:
    requests = _rounded(_largest_totals(spec, status, _NONE))
    non_zero = _rounded(_largest_totals(spec, status, _missing_defaults(spec, requests)))
    return requests, (non_zero.get("cpu", 0), non_zero.get("memory", 0))


def _largest_totals(spec: PodSpec, status: PodStatus, defaults: ResourceList) -> _Totals:
    """Element by element the largest of: asked for (unless that can never be granted), granted, in effect."""
    reported = {
        container.name: container for container in (*status.init_container_statuses, *status.container_statuses)
    }

    is_infeasible = _is_infeasible(status)

    def unreported(container: Container) -> ResourceList:
        return _NONE if is_infeasible else container.resources.requests

    def granted(container: Container) -> ResourceList:
        own = reported.get(container.name)
        return unreported(container) if own is None or not _is_telling(own) else own.allocated_resources

    def in_effect(container: Container) -> ResourceList:
        own = reported.get(container.name)
        if own is not None and own.resources is not None:
            return own.resources.requests
        return granted(container)

    totals: _Totals = {}
    views: list[_RequestsOf] = [granted, in_effect]
    if not is_infeasible:
        views.append(lambda container: container.resources.requests)
    for view in views:
        _raise_to(totals, _container_totals(spec, view, defaults))
    _replace(totals, _pod_level_largest(spec, status))
    return _plus_overhead(totals, spec)


def _is_telling(reported: ContainerStatus) -> bool:
    """Does the kubelet say anything about the container's resources, be it that it has none?"""
    return reported.resources is not None or bool(reported.allocated_resources)


def _pod_level_largest(spec: PodSpec, status: PodStatus) -> ResourceList:
    if not _has_pod_level_requests(spec) or spec.resources is None:
        return _NONE
    reported = [status.allocated_resources, status.resources.requests if status.resources is not None else {}]
    candidates = [quantities for quantities in reported if quantities]
    if not candidates or not _is_infeasible(status):
        candidates.append(spec.resources.requests)
    largest: dict[str, Quantity] = {}
    for quantities in candidates:
        for name, quantity in quantities.items():
            if name not in largest or quantity_nanos(quantity) > quantity_nanos(largest[name]):
                largest[name] = quantity
    return largest
