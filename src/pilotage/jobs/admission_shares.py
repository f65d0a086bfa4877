"""Admission fair sharing: what each LocalQueue has used lately, so that who has used less goes first.

    used'   = used * 0.5^(t / halfLife) + present * (1 - 0.5^(t / halfLife))     every sampling interval t
    reserve: used += request * (1 - 0.5^(interval / halfLife))                   as if it had run for one interval
    share   = sum over resources of used * weight of the resource, divided by the weight of the LocalQueue

What is used counts from admission; the small charge at the reservation keeps a LocalQueue from getting everything
between two samples. Only LocalQueues whose ClusterQueue wants it are kept (`admissionScope`). The figures stand in the
status of the LocalQueue, from where the next engine takes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pilotage.clock import rfc3339
from pilotage.jobs.conditions import epoch
from pilotage.jobs.configuration.kinds import AdmissionFairSharing
from pilotage.jobs.quota import Amounts, amount_of, weight_of
from pilotage.jobs.rejections import shown
from pilotage.model.kueue import AdmissionFairSharingStatus, LocalQueue
from pilotage.model.quantity import Quantity

USAGE_BASED = "UsageBasedAdmissionFairSharing"


@dataclass(slots=True)
class _Account:
    weight: float
    sampled_at: int
    used: dict[str, float] = field(default_factory=dict)
    """By resource, in the engine's units."""


class AdmissionShares:
    def __init__(self, settings: AdmissionFairSharing) -> None:
        self._settings = settings
        self._interval = max(1, math.ceil(settings.usage_sampling_interval))
        self._accounts: dict[str, _Account] = {}

    def keep(self, queues: Iterable[LocalQueue], now: int) -> None:
        """Exactly these LocalQueues are compared from now on."""
        before, self._accounts = self._accounts, {}
        for queue in queues:
            account = before.get(queue.key) or _stored(queue, now)
            account.weight = weight_of(queue.spec.fair_sharing)
            self._accounts[queue.key] = account

    def share(self, key: str) -> float:
        """How much a LocalQueue has had; less goes first."""
        account = self._accounts.get(key)
        if account is None:
            return 0.0
        if account.weight == 0:
            return math.inf
        weights = self._settings.resource_weights
        total = sum(_whole(name, amount) * weights.get(name, 1.0) for name, amount in account.used.items())
        return total / account.weight

    def charge(self, key: str, usage: Amounts) -> None:
        """A workload of the LocalQueue got quota."""
        account = self._accounts.get(key)
        if account is None:
            return
        part = self._part(self._interval)
        for (_, resource), amount in usage.items():
            account.used[resource] = account.used.get(resource, 0.0) + part * amount

    def next_due(self) -> int | None:
        """When the next sample is to be taken."""
        return min((one.sampled_at + self._interval for one in self._accounts.values()), default=None)

    def sample(self, now: int, present: Callable[[str], Mapping[str, int]]) -> list[str]:
        """Take the samples that are due; `present` says what admitted workloads of a LocalQueue use, by resource."""
        due = [key for key, one in self._accounts.items() if one.sampled_at + self._interval <= now]
        for key in due:
            account = self._accounts[key]
            part = self._part(now - account.sampled_at)
            current = present(key)
            account.used = {
                name: used
                for name in [*account.used, *(name for name in current if name not in account.used)]
                if (used := account.used.get(name, 0.0) * (1 - part) + current.get(name, 0) * part) >= _LEAST
            }
            account.sampled_at = now
        return due

    def status(self, key: str) -> AdmissionFairSharingStatus | None:
        account = self._accounts.get(key)
        if account is None:
            return None
        used: dict[str, Quantity] = {name: shown(name, math.ceil(n)) for name, n in sorted(account.used.items())}
        return AdmissionFairSharingStatus(used, rfc3339(account.sampled_at))

    def _part(self, seconds: float) -> float:
        """Which part of what is used now counts after that time; without a half-life nothing is remembered at all."""
        half_life = self._settings.usage_half_life_time
        return 1 - 0.5 ** (seconds / half_life) if half_life else 0.0


_LEAST = 1e-3


def _whole(resource: str, amount: float) -> float:
    """In the unit that people count in: whole cores, bytes."""
    return amount / 1000 if resource == "cpu" else amount


def _stored(queue: LocalQueue, now: int) -> _Account:
    """What the last engine has left."""
    sharing = queue.status.fair_sharing
    known = sharing.admission_fair_sharing_status if sharing is not None else None
    if known is None:
        return _Account(1.0, now)
    used = {name: float(amount_of(name, amount)) for name, amount in known.consumed_resources.items()}
    at = epoch(known.last_update) or now
    return _Account(1.0, min(at, now), used)
