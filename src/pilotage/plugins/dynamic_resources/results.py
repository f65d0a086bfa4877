"""From devices that were picked to what is written into a claim."""

from __future__ import annotations

import random
from collections.abc import Sequence

from pilotage.model import Node
from pilotage.model.resource import (
    AllocationResult,
    DeviceAllocation,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    ResourceClaim,
)
from pilotage.model.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from pilotage.plugins.dynamic_resources.capacity import written
from pilotage.plugins.dynamic_resources.published import PoolDevice
from pilotage.plugins.dynamic_resources.requests import PreparedClaim, PreparedRequest
from pilotage.plugins.dynamic_resources.search import Pick
from pilotage.rng import random_uid


def allocation_of(claim: PreparedClaim, picks: Sequence[Pick], node: Node, rng: random.Random) -> AllocationResult:
    """What a claim gets; shares of devices get an identity of their own."""
    results = tuple(_result(pick, rng) for pick in picks)
    return AllocationResult(
        devices=DeviceAllocation(results=results, config=tuple(_config(claim, picks))),
        node_selector=_node_selector([pick.device for pick in picks], node),
    )


def _result(pick: Pick, rng: random.Random) -> DeviceAllocationResult:
    device = pick.device.device
    return DeviceAllocationResult(
        request=pick.wanted.label,
        driver=pick.device.id.driver,
        pool=pick.device.id.pool,
        device=pick.device.id.device,
        admin_access=True if pick.wanted.admin_access else None,
        tolerations=pick.wanted.tolerations,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=None if pick.consumed is None else random_uid(rng),
        consumed_capacity={} if pick.consumed is None else dict(written(pick.consumed, device)),
    )


# --- where it can be used ---------------------------------------------------------------------------------------------


def _node_selector(devices: Sequence[PoolDevice], node: Node) -> NodeSelector | None:
    """The nodes that can use all the devices; None if every node can."""
    if any(device.is_node_local for device in devices):
        requirement = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node.name,))
        return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(requirement,)),))
    expressions: list[NodeSelectorRequirement] = []
    fields: list[NodeSelectorRequirement] = []
    for device in devices:
        selector = device.device.node_selector if device.per_device_nodes else device.published.spec.node_selector
        # Validation allows exactly one term: several could not be joined.
        for term in () if selector is None else selector.node_selector_terms[:1]:
            expressions += [found for found in term.match_expressions if found not in expressions]
            fields += [found for found in term.match_fields if found not in fields]
    if not expressions and not fields:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))
    return NodeSelector(node_selector_terms=(term,))


# --- how it is configured ---------------------------------------------------------------------------------------------


def _config(claim: PreparedClaim, picks: Sequence[Pick]) -> list[DeviceAllocationConfiguration]:
    """The drivers' settings: those of the classes first, then those of the claim."""
    of_classes = any(pick.wanted.device_class.spec.config for pick in picks)
    if not of_classes and not claim.claim.spec.devices.config:
        return []
    chosen = _chosen(claim, picks)
    config: list[DeviceAllocationConfiguration] = []
    for name in dict.fromkeys(wanted.device_class.name for wanted in chosen):
        users = [wanted for wanted in chosen if wanted.device_class.name == name]
        labels = tuple(wanted.label for wanted in users)
        for setting in users[0].device_class.spec.config:
            config.append(DeviceAllocationConfiguration("FromClass", labels, setting.opaque))
    return config + _claim_config(claim.claim, chosen)


def _chosen(claim: PreparedClaim, picks: Sequence[Pick]) -> list[PreparedRequest]:
    """Of each request the alternative that was taken."""
    picked = dict.fromkeys(pick.wanted for pick in picks)
    return [wanted for alternatives in claim.requests for wanted in alternatives if wanted in picked]


def _claim_config(claim: ResourceClaim, chosen: Sequence[PreparedRequest]) -> list[DeviceAllocationConfiguration]:
    config = []
    for setting in claim.spec.devices.config:
        if not setting.requests:
            config.append(DeviceAllocationConfiguration("FromClaim", (), setting.opaque))
            continue
        concerned = [w for w in chosen if w.request in setting.requests or w.label in setting.requests]
        if concerned:
            labels = () if len(concerned) == len(chosen) else tuple(setting.requests)
            config.append(DeviceAllocationConfiguration("FromClaim", labels, setting.opaque))
    return config
