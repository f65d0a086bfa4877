"""What searches that took long have found, for nodes with the same devices in the same state.

The devices of many nodes differ in nothing but their names. What the search found for one of them holds for all: a
rejection as it is, a solution with the devices at the same places. Comparing nodes costs about as much as an ordinary
search, so only the answers of searches that took long are kept, and looked up only while there are any.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Final

import msgspec

from pilotage.api import Reject
from pilotage.plugins.dynamic_resources.capacity import counters_left
from pilotage.plugins.dynamic_resources.claim_book import DeviceLedger
from pilotage.plugins.dynamic_resources.devices import DeviceID, PoolDevice
from pilotage.plugins.dynamic_resources.requests import ClaimRequests, PreparedClaim
from pilotage.plugins.dynamic_resources.search import Picks
from pilotage.plugins.dynamic_resources.slices import NodePools, Pool

_KEPT_REQUESTS: Final = 64
_KEPT_NODES: Final = 256
Found = Picks | Reject


class EqualNodes:
    """Answers by what was asked and by what the node has."""

    def __init__(self, ledger: DeviceLedger) -> None:
        self._ledger = ledger
        self._answers: OrderedDict[tuple[ClaimRequests, ...], dict[Hashable, tuple[NodePools, Found]]] = OrderedDict()

    def answer(self, claims: Sequence[PreparedClaim], pools: NodePools) -> Found | None:
        """What an equal node got; None if no such node is known."""
        if not self._answers:
            return None
        answers = self._answers.get(tuple([claim.claim_requests for claim in claims]))
        if answers is None or (key := self._key(pools)) is None or key not in answers:
            return None
        before, found = answers[key]
        return found if isinstance(found, Reject) else _moved(found, before, pools)

    def remember(self, claims: Sequence[PreparedClaim], pools: NodePools, found: Found) -> None:
        key = self._key(pools)
        if key is None:
            return
        requests = tuple(claim.claim_requests for claim in claims)
        answers = self._answers.setdefault(requests, {})
        self._answers.move_to_end(requests)
        if len(answers) >= _KEPT_NODES:
            answers.clear()
        answers[key] = pools, found
        if len(self._answers) > _KEPT_REQUESTS:
            self._answers.popitem(last=False)

    def _key(self, pools: NodePools) -> Hashable | None:
        """All that an answer depends on besides the requests; None if it depends on the node itself."""
        content = pools.content
        return None if content is None else (content, tuple([self._use(pool) for pool in pools.pools]))

    def _use(self, pool: Pool) -> Hashable:
        """What is left of a pool."""
        if not self._ledger.has_any_of(pool.id):
            return None
        left = counters_left(pool, self._ledger) if pool.is_usable and pool.counter_sets else {}
        counters = tuple((name, tuple(sorted(of_set.items()))) for name, of_set in sorted(left.items()))
        return counters, tuple(self._use_of(device.id) for device in pool.devices)

    def _use_of(self, device: DeviceID) -> Hashable:
        ledger = self._ledger
        if device not in ledger.taken and not ledger.is_shared(device):
            return None
        return device in ledger.taken, ledger.is_shared(device), tuple(sorted(ledger.consumed(device).items()))


def _moved(picks: Picks, before: NodePools, after: NodePools) -> Picks:
    """The devices at the same places of another node."""
    there: dict[DeviceID, PoolDevice] = {}
    for old, new in zip(before.pools, after.pools, strict=True):
        there.update((device.id, same) for device, same in zip(old.devices, new.devices, strict=True))
    return tuple(
        tuple(msgspec.structs.replace(pick, device=there[pick.device.id]) for pick in of_claim) for of_claim in picks
    )
