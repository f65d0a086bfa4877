"""The allocator: find devices for all claims of a pod on one node, or find that there are none.

An exhaustive search, depth first: claims in the order of the pod, requests in the order of the claim, devices in the
order of the pools. The first complete solution is taken. Everything that a step takes it gives back when the steps
after it fail, so that a failed search leaves nothing behind. A search that takes long learns what not to try again.

A device that is considered for a request must, in this order: not be in use; match the selectors of class and request;
have enough capacity; leave no counter below zero; have its taints tolerated; and keep all constraints of the claim.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Final

import msgspec

from pilotage.api import Budget
from pilotage.api.budget import UNLIMITED
from pilotage.clock import Clock, SystemClock
from pilotage.model import Node
from pilotage.model.resource import DeviceSelector
from pilotage.plugins.dynamic_resources.capacity import Amounts, CounterBook, consumption, consumption_of, fits
from pilotage.plugins.dynamic_resources.claim_book import DeviceLedger
from pilotage.plugins.dynamic_resources.devices import (
    DeviceID,
    PoolDevice,
    SelectorCompileError,
    SelectorError,
    are_tolerated,
)
from pilotage.plugins.dynamic_resources.lessons import Lessons, learn
from pilotage.plugins.dynamic_resources.requests import (
    MAX_RESULTS,
    AllocationError,
    AttributeConstraint,
    NodeAllocationError,
    PreparedClaim,
    PreparedRequest,
    constraints_of,
    expressions,
)
from pilotage.plugins.dynamic_resources.slices import NodePools, Pool, device_is_for

_STEPS_PER_LOOK_AT_THE_CLOCK = 256


class TimeLimit:
    """For one search on one node."""

    __slots__ = ("_budget", "_clock", "_end", "_node_name", "_steps")

    def __init__(self, node_name: str, budget: Budget, clock: Clock, timeout_seconds: float | None = None) -> None:
        self._node_name = node_name
        self._budget = budget
        self._clock = clock
        self._end = clock.monotonic() + timeout_seconds if timeout_seconds else math.inf
        self._steps = 0

    def spend(self) -> None:
        """A device was tried."""
        self._budget.spend()
        self._steps += 1
        if self._steps >= _STEPS_PER_LOOK_AT_THE_CLOCK:
            self._steps = 0
            if self._clock.monotonic() > self._end:
                raise AllocationError(f"node {self._node_name}: timed out trying to allocate devices")

    def check(self) -> None:
        """Something is to be done that may take long by itself."""
        self._budget.check()


FOR_EVER: Final = TimeLimit("", UNLIMITED, SystemClock())


STEPS_WITHOUT_LESSONS = 256
"""So many devices are tried before a search begins to learn: nearly all searches need fewer."""
_NOTHING: Amounts = {}
_NOBODY: Mapping[DeviceID, int] = {}


class Pick(msgspec.Struct, frozen=True):
    """A device that a request gets."""

    wanted: PreparedRequest
    device: PoolDevice
    consumed: Amounts | None
    """What a share takes of the device; None if the request gets all of it."""


Candidate = tuple[Pool, PoolDevice]
Picks = tuple[tuple[Pick, ...], ...]
"""For each claim the devices that it gets, in the order of allocation."""


class Search:
    """One attempt on one node."""

    def __init__(
        self,
        node: Node,
        pools: NodePools,
        ledger: DeviceLedger,
        claims: Sequence[PreparedClaim],
        limit: TimeLimit = FOR_EVER,
    ) -> None:
        self.node = node
        self._pools = pools
        self._ledger = ledger
        self.claims = claims
        self._limit = limit
        self.steps = 0
        self._lessons: Lessons | None = None
        self._counters = CounterBook(ledger)
        self._constraints = [constraints_of(claim.claim.key, claim.claim.spec.devices) for claim in claims]
        self._all: dict[PreparedRequest, list[Candidate]] = {}
        self._takers: dict[DeviceID, list[int]] = {}
        """Claims (by their place) that have the device in this attempt."""
        self._consumed: dict[DeviceID, Amounts] = {}
        self._picks: list[list[Pick]] = [[] for _ in claims]

    def run(self) -> Picks | None:
        """The devices for each claim; None if there is no solution.

        Raises AllocationError for claims that cannot be dealt with, NodeAllocationError for a node with bad pools.
        """
        for claim in self.claims:
            if claim.claim_requests.least is None or claim.claim_requests.least > MAX_RESULTS:
                self._check_size(claim)
        if self._claim(0):
            return tuple(tuple(picks) for picks in self._picks)
        if self._pools.has_problems:
            raise NodeAllocationError("invalid resource pools were encountered")
        return None

    # --- before the search -------------------------------------------------------------------------------------

    def _check_size(self, claim: PreparedClaim) -> None:
        least = sum(min(self._size(claim, wanted) for wanted in alternatives) for alternatives in claim.requests)
        if least > MAX_RESULTS:
            raise AllocationError(
                f"claim {claim.claim.key}: number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
            )

    def _size(self, claim: PreparedClaim, wanted: PreparedRequest) -> int:
        """How many devices a request gets; for all devices, that has to be found out first."""
        if not wanted.wants_all:
            return wanted.count
        if wanted not in self._all:
            self._all[wanted] = self._all_devices(claim, wanted)
        return len(self._all[wanted])

    def _all_devices(self, claim: PreparedClaim, wanted: PreparedRequest) -> list[Candidate]:
        found: list[Candidate] = []
        for pool in self._pools.pools:
            state = "being updated" if not pool.is_complete else "invalid" if pool.problem is not None else ""
            if state:
                raise AllocationError(
                    f"{claim.where(wanted)}: asks for all devices, but resource pool {pool.id} is currently {state}"
                )
            found += [(pool, device) for device in pool.devices if self._is_wanted(claim, wanted, device)]
        return found

    def _is_wanted(self, claim: PreparedClaim, wanted: PreparedRequest, device: PoolDevice) -> bool:
        """Does the device belong to "all"? One that is too small for the request does not."""
        return self._is_selectable(claim, wanted, device) and self.is_large_enough(wanted, device)

    # --- the search --------------------------------------------------------------------------------------------

    def _claim(self, place: int) -> bool:
        return place >= len(self.claims) or self._request(place, 0)

    def _request(self, claim: int, place: int) -> bool:
        """Serve a request and everything after it."""
        requests = self.claims[claim].requests
        if place >= len(requests):
            return self._claim(claim + 1)
        if self._is_hopeless(claim, place):
            return False
        return any(self._alternative(claim, place, wanted) for wanted in requests[place])

    def _alternative(self, claim: int, place: int, wanted: PreparedRequest) -> bool:
        size = self._size(self.claims[claim], wanted)
        if (wanted.wants_all and not size) or len(self._picks[claim]) + size > MAX_RESULTS:
            return False
        candidates = self._all[wanted] if wanted.wants_all else self._pools.candidates
        return self._device(claim, place, wanted, candidates, size, 0)

    def _device(
        self, claim: int, place: int, wanted: PreparedRequest, candidates: Sequence[Candidate], missing: int, start: int
    ) -> bool:
        """Find the remaining devices of a request, from one position on, and everything after it."""
        if not missing:
            return self._request(claim, place + 1)
        state = None if self._lessons is None else self._state(self._lessons, claim, wanted, start, missing)
        if self._lessons is not None and state in self._lessons.dead_ends:
            return False
        # Of all devices each must be had: there is no other choice than the next one.
        end = start + 1 if wanted.wants_all else len(candidates)
        # On a busy node most devices are taken: they are passed over without much ado.
        taken = _NOBODY if wanted.admin_access else self._ledger.taken
        failed: set[int] = set()
        for position in range(start, end):
            pool, device = candidates[position]
            if device.id in taken:
                continue
            look = self._step(claim, device)
            if look in failed:
                continue
            if self._take(claim, wanted, pool, device):
                if self._device(claim, place, wanted, candidates, missing - 1, position + 1):
                    return True
                self._give_back(claim, wanted, pool, device)
            if look is not None:
                failed.add(look)
        if self._lessons is not None and state is not None:
            self._lessons.remember(state)
        return False

    # --- learning ----------------------------------------------------------------------------------------------

    def _step(self, claim: int, device: PoolDevice) -> int | None:
        """Count a device that is tried, and tell how it looks; None as long as nothing is learnt."""
        self._limit.spend()
        self.steps += 1
        if self._lessons is None:
            if self.steps < STEPS_WITHOUT_LESSONS:
                return None
            self._lessons = learn(self, self._pools.candidates)
        return self._look(self._lessons, claim, device.id)

    def _look(self, lessons: Lessons, claim: int, device: DeviceID) -> int:
        """What it depends on whether a device can be taken, and what follows from it, in the present state."""
        like, takers = lessons.like(device), self._takers.get(device)
        if takers is None:
            return lessons.number((like,))
        consumed = tuple(sorted(self._consumed.get(device, _NOTHING).items()))
        return lessons.number((like, claim in takers, consumed))

    def _state(self, lessons: Lessons, claim: int, wanted: PreparedRequest, start: int, missing: int) -> Hashable:
        """What it depends on whether the rest of a request and all that follow can be served."""
        looks = [(lessons.positions[device] >= start, self._look(lessons, claim, device)) for device in self._takers]
        constraints = tuple(constraint.state for constraint in self._constraints[claim])
        return claim, wanted, start, missing, len(self._picks[claim]), tuple(sorted(looks)), constraints

    def _is_hopeless(self, claim: int, place: int) -> bool:
        """Are there too few devices for a request and all that follow?"""
        if self._lessons is None:
            return False
        self._limit.spend()
        left = [*self.claims[claim].requests[place:]]
        for later in self.claims[claim + 1 :]:
            left += later.requests
        return not self._lessons.may_succeed(left, self._takers)

    def verdict(self, claim: PreparedClaim, wanted: PreparedRequest, device: PoolDevice) -> Hashable:
        """What a request would take of a device, None if it cannot have it whatever is taken; may AllocationError."""
        if not self._is_selectable(claim, wanted, device) or not are_tolerated(device.taints, wanted.tolerations):
            return None
        taken = consumption(device.device, wanted.capacity)
        return None if taken is None or not fits(device.device, taken) else tuple(sorted(taken.items()))

    def look_of(self, pool: Pool, device: PoolDevice) -> Hashable:
        """What else makes a difference between devices."""
        ledger, made_of = self._ledger, device.device
        used = device.id in ledger.taken, ledger.is_shared(device.id), tuple(sorted(ledger.consumed(device.id).items()))
        counted = (pool.id, tuple(consumption_of(device))) if made_of.consumes_counters else None
        values = tuple(c.value_of(made_of, device.id) for of_claim in self._constraints for c in of_claim)
        return bool(made_of.allow_multiple_allocations), used, counted, values

    def is_free(self, device: PoolDevice) -> bool:
        """Has nobody taken the device away before this attempt?"""
        if device.id in self._ledger.taken:
            return False
        return bool(device.device.allow_multiple_allocations) or not self._ledger.is_shared(device.id)

    # --- one device --------------------------------------------------------------------------------------------

    def _take(self, claim: int, wanted: PreparedRequest, pool: Pool, device: PoolDevice) -> bool:
        if self.is_in_use(claim, wanted, device):
            return False
        if not wanted.wants_all and not self._is_selectable(self.claims[claim], wanted, device):
            return False
        taken = consumption(device.device, wanted.capacity)
        if taken is None or not self._has_capacity(device, taken):
            return False
        is_charged = self._is_charged(device)
        if is_charged and not self._counters.take(pool, device):
            return False
        if not are_tolerated(device.taints, wanted.tolerations) or not self._constrain(claim, wanted, device):
            if is_charged:
                self._counters.give_back(pool, device)
            return False
        self._takers.setdefault(device.id, []).append(claim)
        is_share = bool(device.device.allow_multiple_allocations)
        if is_share:
            self._consume(device.id, taken, 1)
        self._picks[claim].append(Pick(wanted, device, taken if is_share else None))
        return True

    def _give_back(self, claim: int, wanted: PreparedRequest, pool: Pool, device: PoolDevice) -> None:
        pick = self._picks[claim].pop()
        if pick.consumed is not None:
            self._consume(device.id, pick.consumed, -1)
        takers = self._takers[device.id]
        takers.pop()
        if not takers:
            del self._takers[device.id]
        for constraint in self._constraints[claim]:
            constraint.remove(wanted.request, wanted.alternative)
        if self._is_charged(device):
            self._counters.give_back(pool, device)

    def is_in_use(self, claim: int, wanted: PreparedRequest, device: PoolDevice) -> bool:
        if wanted.admin_access:
            return claim in self._takers.get(device.id, ())
        if device.id in self._ledger.taken:
            return True
        if device.device.allow_multiple_allocations:
            return False
        # A driver may have stopped sharing a device of which somebody still has a share.
        return device.id in self._takers or self._ledger.is_shared(device.id)

    def is_large_enough(self, wanted: PreparedRequest, device: PoolDevice) -> bool:
        """Has the device what the request asks of its capacity?"""
        taken = consumption(device.device, wanted.capacity)
        return taken is not None and self._has_capacity(device, taken)

    def leaves_counters(self, pool: Pool, device: PoolDevice) -> bool:
        """Would the counters of the pool stay above zero without what the device consumes?"""
        if not self._is_charged(device):
            return True
        could = self._counters.take(pool, device)
        if could:
            self._counters.give_back(pool, device)
        return could

    def _is_selectable(self, claim: PreparedClaim, wanted: PreparedRequest, device: PoolDevice) -> bool:
        of_class = wanted.device_class.spec.selectors
        if of_class and not _matches(device, of_class, f"class {wanted.device_class.name}", self._limit):
            return False
        if wanted.selectors and not _matches(device, wanted.selectors, f"claim {claim.claim.key}", self._limit):
            return False
        return not device.per_device_nodes or device_is_for(device, self.node)

    def _has_capacity(self, device: PoolDevice, taken: Amounts) -> bool:
        if not taken:
            return True
        if not device.device.allow_multiple_allocations:
            return fits(device.device, taken)
        return fits(device.device, taken, self._ledger.consumed(device.id), self._consumed.get(device.id, _NOTHING))

    def _is_charged(self, device: PoolDevice) -> bool:
        """Does taking the device consume of its pool's counters? Not if it is a further share."""
        if not device.device.consumes_counters:
            return False
        return not self._ledger.is_shared(device.id) and device.id not in self._takers

    def _constrain(self, claim: int, wanted: PreparedRequest, device: PoolDevice) -> bool:
        taken_by: list[AttributeConstraint] = []
        for constraint in self._constraints[claim]:
            if constraint.add(wanted.request, wanted.alternative, device.device, device.id):
                taken_by.append(constraint)
                continue
            for earlier in taken_by:
                earlier.remove(wanted.request, wanted.alternative)
            if wanted.wants_all:
                where = self.claims[claim].where(wanted)
                raise AllocationError(
                    f"{where}: cannot add device {device.id} because a claim constraint would not be satisfied"
                )
            return False
        return True

    def _consume(self, device: DeviceID, amounts: Amounts, sign: int) -> None:
        consumed = self._consumed.setdefault(device, {})
        for name, amount in amounts.items():
            consumed[name] = consumed.get(name, Fraction(0)) + sign * amount


def _matches(device: PoolDevice, selectors: Sequence[DeviceSelector], where: str, limit: TimeLimit) -> bool:
    """Do all of them hold? AllocationError if one cannot be asked; `where` says of whom they are."""
    for place, expression in enumerate(expressions(selectors, where)):
        try:
            if not device.satisfies(expression, limit.check):
                return False
        except SelectorError as error:
            raise _selector_error(where, place, device, error) from error
    return True


def _selector_error(where: str, place: int, device: PoolDevice, error: SelectorError) -> AllocationError:
    if isinstance(error, SelectorCompileError):
        return AllocationError(f"{where}: selector #{place}: CEL compile error: {error}")
    return AllocationError(f"{where}: selector #{place} on device {device.id}: CEL runtime error: {error}")
