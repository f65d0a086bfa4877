"""What the API server will make of the pods of a template, and whether it will let them in.

A template says less than its pods will: the overhead of their RuntimeClass, the defaults of the LimitRanges of the
namespace, and limits in place of missing requests are written into each pod when it is created. Quota is counted for
the pods as they will be, and a workload whose pods would be rejected gets none: it would hold its quota for nothing.

The order is the API server's: a container's own limits stand in for its requests before a LimitRange has a say.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import msgspec
from msgspec.structs import replace

from pilotage.jobs import conditions as c
from pilotage.jobs.counted_resources import ALL_AS_ASKED, CountingRules
from pilotage.jobs.rejections import Obstacle
from pilotage.model.limit_ranges import Breach, LimitRangeSpec, container_defaults, pod_breaches
from pilotage.model.pod_spec import Container, PodSpecFields, ResourceRequirements, TemplateSpec
from pilotage.model.quantity import Quantity, canonical_quantity, parse_quantity


class Surroundings(msgspec.Struct, array_like=True, frozen=True):
    """What a template depends on besides itself."""

    limit_ranges: tuple[tuple[str, LimitRangeSpec], ...] = ()
    """Of its namespace, by name."""
    overheads: dict[str, dict[str, Quantity] | None] = msgspec.field(default_factory=dict)
    """Of the RuntimeClasses that it names; None if there is no such class."""
    counting: CountingRules = ALL_AS_ASKED
    """What of its requests counts, and as what."""


def effective_spec(spec: TemplateSpec, around: Surroundings) -> PodSpecFields:
    """Of the pods to come: all that has to do with resources."""
    defaults = [container_defaults(limits) for _, limits in around.limit_ranges]
    return PodSpecFields(
        containers=tuple(_completed(one, defaults) for one in spec.containers),
        init_containers=tuple(_completed(one, defaults) for one in spec.init_containers),
        resources=_pod_level(spec) if spec.resources is not None else None,
        overhead=spec.overhead or around.overheads.get(spec.runtime_class_name) or {},
    )


def _completed(container: Container, defaults: list[ResourceRequirements]) -> Container:
    own = container.resources
    if not own.limits and not defaults:
        return container
    requests, limits = {**own.limits, **own.requests}, own.limits
    for default in defaults:
        limits = {**default.limits, **limits}
        requests = {**default.requests, **requests}
    return replace(container, resources=ResourceRequirements({**limits, **requests}, limits))


def _pod_level(spec: TemplateSpec) -> ResourceRequirements:
    """A limit of the whole pod stands in for its request if no container asks for the resource."""
    own = spec.resources or ResourceRequirements()
    containers = (*spec.containers, *spec.init_containers)
    asked = {name for one in containers for name in (*one.resources.requests, *one.resources.limits)}
    missing = {name: limit for name, limit in own.limits.items() if name not in asked}
    return replace(own, requests={**missing, **own.requests})


# --- what they would be rejected for ---------------------------------------------------------------------------------


def problems_of(pod_set: str, spec: TemplateSpec, effective: PodSpecFields, around: Surroundings) -> Iterator[Obstacle]:
    """Why the API server would not create the pods of this pod set."""
    name = spec.runtime_class_name
    if name and around.overheads.get(name) is None:
        yield Obstacle(pod_set, "", "", c.MISCONFIGURED, f"pod set {pod_set}: RuntimeClass {name} doesn't exist")
    written = (*spec.containers, *spec.init_containers)
    for before, after in zip(written, (*effective.containers, *effective.init_containers), strict=True):
        yield from _above_own_limit(pod_set, before, after, around)
    for limit_range, limits in around.limit_ranges:
        for breach in pod_breaches(effective, limits):
            yield _broken(pod_set, limit_range, breach)


def _above_own_limit(pod_set: str, before: Container, after: Container, around: Surroundings) -> Iterator[Obstacle]:
    for resource, request in after.resources.requests.items():
        limit = after.resources.limits.get(resource)
        if limit is None or parse_quantity(request) <= parse_quantity(limit):
            continue
        text = f"pod set {pod_set}: container {after.name} requests {canonical_quantity(request)} {resource}"
        text += f", more than its limit of {canonical_quantity(limit)}"
        if resource not in before.resources.limits:
            ranges = around.limit_ranges
            source = next(name for name, limits in ranges if resource in container_defaults(limits).limits)
            text += f" (the default of LimitRange {source})"
        need, most = _scaled(resource, parse_quantity(request)), _scaled(resource, parse_quantity(limit))
        yield Obstacle(pod_set, "", resource, c.MISCONFIGURED, text, need=need, most=most)


def _broken(pod_set: str, limit_range: str, breach: Breach) -> Obstacle:
    whose = f"container {breach.container}, " if breach.container else ""
    text = f"pod set {pod_set}: {breach.sentence} ({whose}LimitRange {limit_range})"
    need, most = 0, 0
    if breach.kind != "ratio":
        need = _scaled(breach.resource, breach.amount or Fraction(0))
        most = _scaled(breach.resource, parse_quantity(breach.bound))
    return Obstacle(pod_set, "", breach.resource, c.MISCONFIGURED, text, need=need, most=most)


def _scaled(resource: str, amount: Fraction) -> int:
    scaled = amount * 1000 if resource == "cpu" else amount
    return -(-scaled.numerator // scaled.denominator)
