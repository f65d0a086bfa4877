"""What a search that takes long learns on its way, so that it does not try in vain what has failed already.

Most searches take the first devices that they see, and learn nothing. One that goes back again and again compares: two
devices that no request and no constraint can tell apart are *alike*, and where one did not lead to a solution the
other does not either. A state (the likes of the devices that are taken) that was left without a solution is a dead
end whenever it comes again. And before a state is entered, the requests that are left are matched with the
devices that are free: if there is no such matching, there is no solution.

Only what cannot succeed is left out, so the first solution is the same as without lessons.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from pilotage.plugins.dynamic_resources.devices import DeviceID, PoolDevice
from pilotage.plugins.dynamic_resources.requests import AllocationError, PreparedClaim, PreparedRequest
from pilotage.plugins.dynamic_resources.slices import Pool

_MOST_DEAD_ENDS: Final = 50_000
_MOST_SLOTS: Final = 256


class Facts(Protocol):
    """What a search knows of devices before it takes any."""

    claims: Sequence[PreparedClaim]

    def verdict(self, claim: PreparedClaim, wanted: PreparedRequest, device: PoolDevice) -> Hashable: ...

    def look_of(self, pool: Pool, device: PoolDevice) -> Hashable: ...

    def is_free(self, device: PoolDevice) -> bool: ...


class Lessons:
    """Of one search on one node."""

    def __init__(
        self, likes: Mapping[DeviceID, Hashable], usable: Mapping[PreparedRequest, int] | None, shareable: int
    ) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._likes = {device: self.number(like) for device, like in likes.items()}
        self.positions = {device: position for position, device in enumerate(likes)}
        self._usable = usable
        """The devices that a request could have if it were alone, as bits by their position; None: not certain."""
        self._shareable = shareable
        """Bits of the devices that several requests can have."""
        self.dead_ends: set[Hashable] = set()

    def number(self, like: Hashable) -> int:
        """A small number for each different value."""
        return self._numbers.setdefault(like, len(self._numbers))

    def like(self, device: DeviceID) -> int:
        """Devices with the same number are alike."""
        return self._likes[device]

    def remember(self, state: Hashable) -> None:
        if len(self.dead_ends) < _MOST_DEAD_ENDS:
            self.dead_ends.add(state)

    def may_succeed(self, requests: Iterable[Sequence[PreparedRequest]], taken: Iterable[DeviceID]) -> bool:
        """Can each request have devices of its own, judged for each by itself?"""
        if self._usable is None:
            return True
        slots: list[int] = []
        for alternatives in requests:
            devices = self._for_any(self._usable, alternatives)
            if devices is not None:
                slots += [devices] * min(wanted.count for wanted in alternatives)
        if len(slots) > _MOST_SLOTS:
            return True
        in_use = 0
        for device in taken:
            in_use |= 1 << self.positions[device]
        return _can_match(slots, ~(in_use & ~self._shareable))

    def _for_any(self, usable: Mapping[PreparedRequest, int], alternatives: Sequence[PreparedRequest]) -> int | None:
        """The devices that one of the alternatives could have; None for a request that nothing is concluded from."""
        devices = 0
        for wanted in alternatives:
            if wanted.admin_access:
                return None
            devices |= usable[wanted]
        return None if devices & self._shareable else devices


def learn(facts: Facts, candidates: Sequence[tuple[Pool, PoolDevice]]) -> Lessons:
    """Compare all devices."""
    asked = [(claim, wanted) for claim in facts.claims for some in claim.requests for wanted in some]
    usable = dict.fromkeys((wanted for _, wanted in asked), 0)
    uncertain = False
    looks: dict[DeviceID, list[Hashable]] = {}
    shareable = 0
    for position, (pool, device) in enumerate(candidates):
        looks[device.id] = look = [facts.look_of(pool, device)]
        if device.device.allow_multiple_allocations:
            shareable |= 1 << position
        for claim, wanted in asked:
            try:
                verdict = facts.verdict(claim, wanted, device)
            except AllocationError:
                # Whoever tries it ends with this error, so the device is like no other and nothing is concluded.
                verdict = device.id
                uncertain = True
            # A request for all devices ends with an error at the first one that a constraint is against: which one that
            # is depends on their order, not on their likeness.
            is_unique = wanted.wants_all and verdict is not None and claim.claim.spec.devices.constraints
            look.append(device.id if is_unique else verdict)
            if verdict is not None and facts.is_free(device):
                usable[wanted] |= 1 << position
    # A request for all devices ends with an error if a constraint is against one of them.
    is_certain = not uncertain and not any(wanted.wants_all for wanted in usable)
    likes = {device: tuple(look) for device, look in looks.items()}
    return Lessons(likes, usable if is_certain else None, shareable)


def _can_match(slots: Sequence[int], free: int) -> bool:
    """Can each slot get a device (a bit) of its own among those that are free?"""
    owner: dict[int, int] = {}
    taken = 0
    for slot in range(len(slots)):
        bit = _free_place(slots, slot, owner, free & ~taken, free)
        if not bit:
            return False
        taken |= bit
    return True


def _free_place(slots: Sequence[int], slot: int, owner: dict[int, int], left: int, free: int) -> int:
    """Give a slot a device, if need be by moving others; the device that was free before, 0 if there is none."""
    asked_by: dict[int, tuple[int, int]] = {}
    """For each slot that might move: the device that it has, and the slot that would get it."""
    queue, seen = [slot], 0
    for current in queue:
        wanted = slots[current] & free & ~seen
        if wanted & left:
            found = bit = (wanted & left) & -(wanted & left)
            while current != slot:
                owner[bit] = current
                bit, current = asked_by[current]
            owner[bit] = slot
            return found
        seen |= wanted
        while wanted:
            bit = wanted & -wanted
            wanted ^= bit
            asked_by[owner[bit]] = (bit, current)
            queue.append(owner[bit])
    return 0
