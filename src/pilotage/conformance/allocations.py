"""The devices that the claims of a pod would get, in the form of the recorded answers."""

from __future__ import annotations

from typing import Any

from pilotage.api.state import CycleState
from pilotage.plugins.dynamic_resources.allocation import POD_CLAIMS
from pilotage.plugins.dynamic_resources.capacity import written
from pilotage.plugins.dynamic_resources.search import Pick

Answer = dict[str, Any]


def allocations(state: CycleState, feasible: list[str]) -> dict[str, Answer] | None:
    """For each feasible node, what every claim without devices would get; None if there is no such claim."""
    claims = state.get(POD_CLAIMS)
    if claims is None or not claims.to_allocate or not feasible:
        return None
    named = {prepared.claim.name for prepared in claims.to_allocate}
    found: dict[str, Answer] = {}
    for node_name in feasible:
        outcome = claims.outcome(node_name)
        assert outcome is not None
        pairs = zip(outcome.claims, outcome.picks, strict=True)
        found[node_name] = {c.claim.name: [_device(pick) for pick in p] for c, p in pairs if c.claim.name in named}
    return found


def _device(pick: Pick) -> Answer:
    device: Answer = {
        "request": pick.wanted.label,
        "driver": pick.device.id.driver,
        "pool": pick.device.id.pool,
        "device": pick.device.id.device,
    }
    if pick.wanted.admin_access:
        device["adminAccess"] = True
    if pick.consumed is not None:
        device["consumedCapacity"] = dict(written(pick.consumed, pick.device.device))
    return device
