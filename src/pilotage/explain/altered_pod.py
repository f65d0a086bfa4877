"""A pod as it would be after one change: asking for less, tolerating more, wanting fewer labels."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import asdict

from pilotage.model import Pod, shared_spec
from pilotage.model.node import Taint
from pilotage.model.pod_spec import Container, PodSpecFields, ResourceRequirements, Toleration
from pilotage.model.quantity import quantity_milli, quantity_value


def with_spec(pod: Pod, **changes: Any) -> Pod:
    """The pod with some fields of its spec exchanged."""
    fields = {name: value for name, value in asdict(pod.spec).items() if name != "memo"}
    return msgspec.structs.replace(pod, spec=shared_spec(PodSpecFields(**{**fields, **changes})))


def tolerating(pod: Pod, taint: Taint) -> Pod:
    toleration = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    return with_spec(pod, tolerations=(*pod.spec.tolerations, toleration))


def asking_less(pod: Pod, resource: str, by: int) -> Pod | None:
    """The container that asks for most gives up `by` of a resource; None if no container asks for that much."""
    amounts = [_amount(container, resource) for container in pod.spec.containers]
    if not amounts or max(amounts) < by:
        return None
    at = amounts.index(max(amounts))
    left = amounts[at] - by
    text = f"{left}m" if resource == "cpu" else str(left)
    container = pod.spec.containers[at]
    requests = {**container.resources.requests, resource: text}
    changed = msgspec.structs.replace(
        container, resources=ResourceRequirements(requests=requests, limits=container.resources.limits)
    )
    return with_spec(pod, containers=(*pod.spec.containers[:at], changed, *pod.spec.containers[at + 1 :]))


def _amount(container: Container, resource: str) -> int:
    text = container.resources.requests.get(resource, "0")
    return quantity_milli(text) if resource == "cpu" else quantity_value(text)
