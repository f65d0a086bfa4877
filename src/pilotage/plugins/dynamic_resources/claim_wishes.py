"""What pods want of a claim, and what comes of it when several want something at once. Pure.

    RESERVE    use the claim, and the devices that the pod was placed by; if they are new, they are to be allocated
    RELEASE    use it no longer; what was allocated stays
    FREE       give the devices back, if nobody else uses them

A pod has one intent for a claim: its last. Intents of different pods never contradict each other but in one point: devices
that one pod wants to use are not freed for another, whoever came first. A intent that cannot be granted fails for itself
and harms no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final

import msgspec

from pilotage.model import Pod
from pilotage.model.resource import AllocationResult, ClaimConsumer, ResourceClaim
from pilotage.plugins.dynamic_resources.errors import AllocationError

MOST_CONSUMERS: Final = 256
"""The API server accepts no more."""


class Act(Enum):
    RESERVE = "reserve"
    RELEASE = "release"
    FREE = "free"


class ClaimIntent(msgspec.Struct, frozen=True, eq=False):
    """What one pod wants."""

    act: Act
    pod: Pod
    allocation: AllocationResult | None = None
    """RESERVE: the devices that the pod was placed by."""
    is_new: bool = False
    """RESERVE: nobody has allocated them yet."""


class Granted(msgspec.Struct, eq=False):
    """The claim as it is to be, as far as intents are about it, and the intents that come to nothing."""

    users: dict[str, ClaimConsumer]
    """By UID."""
    allocation: AllocationResult | None
    failures: dict[str, AllocationError] = msgspec.field(default_factory=dict)
    """By UID of the pod."""


def grant(claim: ResourceClaim, intents: Sequence[ClaimIntent]) -> Granted:
    """What is to become of a claim. Who leaves goes first, and who would free the devices comes last."""
    status = claim.status
    granted = Granted({user.uid: user for user in status.reserved_for}, status.allocation)
    for intent in intents:
        if intent.act is Act.RELEASE:
            granted.users.pop(intent.pod.uid, None)
    for intent in intents:
        if intent.act is Act.RESERVE and (problem := _reserve(claim, granted, intent)):
            granted.failures[intent.pod.uid] = AllocationError(f"claim {claim.key} {problem}")
    for intent in intents:
        if intent.act is not Act.FREE:
            continue
        if granted.users.keys() - {intent.pod.uid}:
            granted.failures[intent.pod.uid] = AllocationError(f"claim {claim.key} is in use by another pod")
        else:
            granted.users.clear()
            granted.allocation = None
    return granted


def gone(claim: ResourceClaim, intents: Iterable[ClaimIntent]) -> dict[str, AllocationError]:
    """Who does not get what it wants because there is no such claim any more: those who would use it."""
    text = f"claim {claim.key} got deleted in the meantime"
    return {intent.pod.uid: AllocationError(text) for intent in intents if intent.act is Act.RESERVE}


def _reserve(claim: ResourceClaim, granted: Granted, intent: ClaimIntent) -> str:
    """Returns what is wrong, "" if the pod can use the claim."""
    if claim.metadata.deletion_timestamp is not None:
        return "got deleted in the meantime"
    if granted.allocation is None and not intent.is_new:
        return "got deallocated elsewhere in the meantime"
    if granted.allocation is None:
        granted.allocation = intent.allocation
    elif not _same_devices(granted.allocation, intent.allocation):
        return "got allocated elsewhere in the meantime"
    pod = intent.pod
    if pod.uid not in granted.users:
        if len(granted.users) >= MOST_CONSUMERS:
            return f"is reserved for {MOST_CONSUMERS} pods already, which is the most that there can be"
        granted.users[pod.uid] = ClaimConsumer(resource="pods", name=pod.name, uid=pod.uid)
    return ""


def _same_devices(one: AllocationResult, other: AllocationResult | None) -> bool:
    """The API server may write the rest of an allocation in another way than we did."""
    if one is other:
        return True
    return other is not None and _devices(one) == _devices(other)


def _devices(allocation: AllocationResult) -> list[tuple[str, str, str, str, str | None]]:
    return [(r.request, r.driver, r.pool, r.device, r.share_id) for r in allocation.devices.results]
