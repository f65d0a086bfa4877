"""What LimitRanges say about new pods and claims: defaults for containers, and bounds.

The API server completes every container with the defaults of all LimitRanges of the namespace, and then refuses what
breaks a bound of any of them. A bound is a minimum, a maximum, or a largest ratio of limit to request; it holds for
each container, for the pod as a whole (its overhead left out), or for a claim. Without a limit every maximum is broken:
nothing would keep the container from passing it. A breach is reported in the API server's words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Final, Literal, NamedTuple

import msgspec

from pilotage.model.meta import ApiObject, Shape
from pilotage.model.pod_resources import summed
from pilotage.model.pod_spec import Container, PodSpecFields, ResourceRequirements
from pilotage.model.quantity import (
    Format,
    Quantity,
    canonical_quantity,
    format_quantity,
    parse_quantity,
    quantity_form,
)

CONTAINER: Final = "Container"
POD: Final = "Pod"
CLAIM: Final = "PersistentVolumeClaim"
_POD_LEVEL: Final = ("cpu", "memory")

ResourceList = Mapping[str, Quantity]
_Kind = Literal["minimum", "maximum", "ratio"]


class LimitRangeItem(Shape, frozen=True):
    type: str = ""
    max: dict[str, Quantity] = msgspec.field(default_factory=dict)
    min: dict[str, Quantity] = msgspec.field(default_factory=dict)
    default: dict[str, Quantity] = msgspec.field(default_factory=dict)
    default_request: dict[str, Quantity] = msgspec.field(default_factory=dict)
    max_limit_request_ratio: dict[str, Quantity] = msgspec.field(default_factory=dict)


class LimitRangeSpec(Shape, frozen=True):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(ApiObject, frozen=True):
    spec: LimitRangeSpec = LimitRangeSpec()


class Breach(NamedTuple):
    """One bound of a LimitRange that a pod or a claim breaks."""

    container: str
    """ "" if the bound is none of a container."""
    resource: str
    kind: _Kind
    bound: Quantity
    amount: Fraction | None
    """What breaks it: the request, the limit, or the ratio of both; None if that is missing."""
    sentence: str


_LARGEST_RATIO = Fraction(10**18)


class _Amount(NamedTuple):
    value: Fraction
    form: Format

    def __str__(self) -> str:
        return format_quantity(self.value, self.form)


class _Subject(NamedTuple):
    """Whose requests and limits are held against the bounds."""

    scope: str
    container: str
    requests: Mapping[str, _Amount]
    limits: Mapping[str, _Amount]


_Found = tuple[Fraction | None, str]
_Judge = Callable[[Fraction, _Amount | None, _Amount | None], _Found | None]


class _Bound(NamedTuple):
    resource: str
    kind: _Kind
    quantity: Quantity

    @property
    def value(self) -> Fraction:
        return parse_quantity(self.quantity)

    def message(self, scope: str) -> str:
        shown = canonical_quantity(self.quantity)
        if self.kind == "ratio":
            return f"{self.resource} max limit to request ratio per {scope} is {shown}"
        return f"{self.kind} {self.resource} usage per {scope} is {shown}"


def container_defaults(limit_range: LimitRangeSpec) -> ResourceRequirements:
    """What a container gets that does not say it itself: a maximum is a limit, a limit or a minimum is a request.

    (The API server writes that into the LimitRange itself; one from a file does not have it yet.)
    """
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    for item in limit_range.limits:
        if item.type == CONTAINER:
            limits |= {**item.max, **item.default}
            requests |= {**item.min, **item.max, **item.default, **item.default_request}
    return ResourceRequirements(requests, limits)


def pod_breaches(spec: PodSpecFields, limit_range: LimitRangeSpec) -> list[Breach]:
    """What a pod would be refused for; `spec` has all its defaults already."""
    return [
        breach
        for item in limit_range.limits
        for subject in _subjects(spec, item.type)
        for breach in _breaches(item, subject)
    ]


def claim_breaches(requests: ResourceList, limit_range: LimitRangeSpec) -> list[Breach]:
    """The same for a claim, of which only the requests count."""
    subject = _Subject(CLAIM, "", _amounts(requests), {})
    found: list[Breach] = []
    for item in limit_range.limits:
        if item.type == CLAIM:
            found += _judged(_below_minimum, subject, _bounds("minimum", item.min))
            found += _judged(_request_above_maximum, subject, _bounds("maximum", item.max))
    return found


def _subjects(spec: PodSpecFields, scope: str) -> Iterator[_Subject]:
    if scope == CONTAINER:
        for one in (*spec.containers, *spec.init_containers):
            yield _Subject(scope, one.name, _amounts(one.resources.requests), _amounts(one.resources.limits))
    elif scope == POD:
        own = spec.resources or ResourceRequirements()
        requests = _total(spec, lambda container: container.resources.requests) | _pod_level(own.requests)
        limits = _total(spec, lambda container: container.resources.limits) | _pod_level(own.limits)
        yield _Subject(scope, "", requests, limits)


def _breaches(item: LimitRangeItem, subject: _Subject) -> Iterator[Breach]:
    yield from _judged(_below_minimum, subject, _bounds("minimum", item.min))
    yield from _judged(_above_maximum, subject, _bounds("maximum", item.max))
    yield from _judged(_above_ratio, subject, _bounds("ratio", item.max_limit_request_ratio))


def _bounds(kind: _Kind, quantities: ResourceList) -> list[_Bound]:
    return [_Bound(resource, kind, quantity) for resource, quantity in sorted(quantities.items())]


def _judged(judge: _Judge, subject: _Subject, bounds: list[_Bound]) -> Iterator[Breach]:
    for bound in bounds:
        amounts = subject.requests.get(bound.resource), subject.limits.get(bound.resource)
        found = judge(bound.value, *amounts)
        if found is not None:
            amount, words = found
            sentence = f"{bound.message(subject.scope)}{words}"
            yield Breach(subject.container, bound.resource, bound.kind, bound.quantity, amount, sentence)


# --- one bound: what breaks it, and how the sentence ends -------------------------------------------------------------


def _below_minimum(least: Fraction, request: _Amount | None, limit: _Amount | None) -> _Found | None:
    if request is None:
        return None, ".  No request is specified"
    if request.value < least:
        return request.value, f", but request is {request}"
    if limit is not None and limit.value < least:
        return limit.value, f", but limit is {limit}"
    return None


def _above_maximum(most: Fraction, request: _Amount | None, limit: _Amount | None) -> _Found | None:
    if limit is None:
        return None, ".  No limit is specified"
    if limit.value > most:
        return limit.value, f", but limit is {limit}"
    if request is not None and request.value > most:
        return request.value, f", but request is {request}"
    return None


def _request_above_maximum(most: Fraction, request: _Amount | None, limit: _Amount | None) -> _Found | None:
    if request is None:
        return None, ".  No request is specified"
    return (request.value, f", but request is {request}") if request.value > most else None


def _above_ratio(most: Fraction, request: _Amount | None, limit: _Amount | None) -> _Found | None:
    if request is None or not request.value:
        return None, ", but no request is specified or request is 0"
    if limit is None or not limit.value:
        return None, ", but no limit is specified or limit is 0"
    ratio = limit.value / request.value
    return (ratio, f", but provided ratio is {float(min(ratio, _LARGEST_RATIO)):f}") if ratio > most else None


# --- amounts ----------------------------------------------------------------------------------------------------------


def _amounts(resources: ResourceList) -> dict[str, _Amount]:
    return {name: _Amount(parse_quantity(text), quantity_form(text)) for name, text in resources.items()}


def _pod_level(resources: ResourceList) -> dict[str, _Amount]:
    return _amounts({name: text for name, text in resources.items() if name in _POD_LEVEL})


def _total(spec: PodSpecFields, resources_of: Callable[[Container], ResourceList]) -> dict[str, _Amount]:
    """As requests are summed for scheduling, but without the overhead."""
    return summed(spec, lambda container: _amounts(resources_of(container)), _add, _raise_to)


def _add(total: dict[str, _Amount], more: Mapping[str, _Amount]) -> None:
    for name, amount in more.items():
        known = total.get(name)
        # A sum is written as its first part is.
        total[name] = _Amount(known.value + amount.value, known.form) if known is not None and known.value else amount


def _raise_to(total: dict[str, _Amount], floor: Mapping[str, _Amount]) -> None:
    for name, amount in floor.items():
        known = total.get(name)
        if known is None or amount.value > known.value:
            total[name] = amount
