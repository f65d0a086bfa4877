"""Which rule keeps a request from a device: what `explain` tells of nodes that cannot serve the claims of a pod.

The rules are those of the search, asked in its order, for each device by itself: as if nothing had been taken for the
pod yet. Devices that are rejected for the same reason share a line, so that there is little to read however many a node
has. If every request could be served by itself, what remains is that the devices do not go together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pilotage.api import Detail
from pilotage.model.resource import DeviceTaint
from pilotage.plugins.dynamic_resources.devices import DeviceID, PoolDevice, SelectorError, are_tolerated
from pilotage.plugins.dynamic_resources.requests import (
    AllocationError,
    PreparedClaim,
    PreparedRequest,
    attribute_value,
    expressions,
)
from pilotage.plugins.dynamic_resources.search import Search
from pilotage.plugins.dynamic_resources.slices import NodePools, Pool, device_is_for

Objection = tuple[str, str]
"""A stable code, and a sentence."""
HolderOf = Callable[[DeviceID], str]
"""Who has a device, in words."""

_MOST_EXAMPLES = 3
_LONGEST_EXPRESSION = 80


def objections(search: Search, pools: NodePools, claims: Sequence[PreparedClaim], holder: HolderOf) -> Iterator[Detail]:
    """Why the claims cannot be served: for each request the devices of the node, grouped by what is against them."""
    yield from _pool_problems(pools)
    could_be_served = True
    for place, claim in enumerate(claims):
        for alternatives in claim.requests:
            could_be = False
            for wanted in alternatives:
                free, details = _request(search, pools, place, wanted, holder)
                yield from details
                could_be |= free >= wanted.count
            could_be_served &= could_be
    if could_be_served:
        message = "each request could be served by itself, but not all together"
        yield Detail("NoCombination", message + _constraints_text(claims))


def _pool_problems(pools: NodePools) -> Iterator[Detail]:
    if not pools.pools:
        yield Detail("NoPools", "no driver publishes devices for this node")
    for pool in pools.pools:
        if not pool.is_complete:
            yield Detail("PoolIncomplete", "not all slices of the pool are published yet", (str(pool.id),), 1)
        elif pool.problem is not None:
            yield Detail("PoolInvalid", f"the pool is not usable: {pool.problem}", (str(pool.id),), 1)


def _request(
    search: Search, pools: NodePools, place: int, wanted: PreparedRequest, holder: HolderOf
) -> tuple[int, Iterator[Detail]]:
    """How many devices would do, and what is against the others."""
    found: dict[Objection, list[str]] = {}
    free = 0
    for pool, device in pools.candidates:
        against = objection(search, place, wanted, pool, device, holder)
        if against is None:
            free += 1
        else:
            found.setdefault(against, []).append(device.id.device)
    where = f"claim {search.claims[place].claim.key}, request {wanted.label}"
    return free, _grouped(where, wanted, found, free)


def _grouped(where: str, wanted: PreparedRequest, found: dict[Objection, list[str]], free: int) -> Iterator[Detail]:
    for (code, message), devices in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        yield Detail(code, f"{where}: {message}", tuple(devices[:_MOST_EXAMPLES]), len(devices))
    if free < wanted.count and not wanted.wants_all:
        asked = f"{wanted.count} devices are" if wanted.count > 1 else "1 device is"
        yield Detail("TooFewDevices", f"{where}: {asked} asked for, {free} would do")


def objection(
    search: Search, place: int, wanted: PreparedRequest, pool: Pool, device: PoolDevice, holder: HolderOf
) -> Objection | None:
    """The first rule that keeps the request from the device; None if it could have it."""
    if search.is_in_use(place, wanted, device):
        return "DeviceInUse", holder(device.id)
    against = _selector_objection(wanted, device)
    if against is not None:
        return against
    if device.per_device_nodes and not device_is_for(device, search.node):
        return "OtherNodes", "for other nodes"
    try:
        if not search.is_large_enough(wanted, device):
            return "NotEnoughCapacity", "not enough capacity left, or not in such amounts"
    except AllocationError as error:
        return "BadCapacity", str(error)
    if not search.leaves_counters(pool, device):
        return "CountersExhausted", "more of the shared counters needed than is left"
    if not are_tolerated(device.taints, wanted.tolerations):
        return "TaintNotTolerated", f"taint {_taint_text(device.taints, wanted)} not tolerated"
    return _constraint_objection(search.claims[place], wanted, device)


def _selector_objection(wanted: PreparedRequest, device: PoolDevice) -> Objection | None:
    name = wanted.device_class.name
    for where, selectors in (
        (f"class {name}", wanted.device_class.spec.selectors),
        ("the request", wanted.selectors),
    ):
        for place, expression in enumerate(expressions(selectors, where)):
            try:
                if not device.satisfies(expression):
                    return "SelectorFalse", f"selector #{place} of {where} does not hold: {_shortened(expression)}"
            except SelectorError as error:
                return "SelectorFailed", f"selector #{place} of {where} fails: {error}"
    return None


def _constraint_objection(claim: PreparedClaim, wanted: PreparedRequest, device: PoolDevice) -> Objection | None:
    for place, constraint in enumerate(claim.claim.spec.devices.constraints):
        concerned = not constraint.requests or {wanted.request, wanted.label} & set(constraint.requests)
        attribute = constraint.match_attribute or constraint.distinct_attribute
        if concerned and attribute is not None and attribute_value(device.device, device.id, attribute) is None:
            return "AttributeMissing", f"no attribute {attribute}, which constraint #{place} is about"
    return None


def _constraints_text(claims: Sequence[PreparedClaim]) -> str:
    named = [
        f"{kind} {attribute}"
        for claim in claims
        for constraint in claim.claim.spec.devices.constraints
        for kind, attribute in (
            ("matchAttribute", constraint.match_attribute),
            ("distinctAttribute", constraint.distinct_attribute),
        )
        if attribute is not None
    ]
    return f" (constraints: {', '.join(named[:_MOST_EXAMPLES])})" if named else ""


def _taint_text(taints: Sequence[DeviceTaint], wanted: PreparedRequest) -> str:
    taint = next(taint for taint in taints if not are_tolerated((taint,), wanted.tolerations))
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _shortened(expression: str) -> str:
    text = " ".join(expression.split())
    return text if len(text) <= _LONGEST_EXPRESSION else f"{text[: _LONGEST_EXPRESSION - 3]}..."
