"""A pool of devices, put together from its slices.

Only slices of the newest generation count, and a pool is complete when there are as many of them as the driver
announced. What counts as its slices depends on who looks: a node sees those that are for it, and all counters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from pilotage.model.quantity import parse_quantity
from pilotage.model.resource import CounterSet
from pilotage.plugins.dynamic_resources.device_ids import PoolID
from pilotage.plugins.dynamic_resources.published import PoolDevice, PublishedSlice

Counters = dict[str, dict[str, Fraction]]
"""Counter set -> counter -> amount."""


class Pool:
    """A pool as one node sees it. Of a pool that is not complete nothing is known but that."""

    __slots__ = ("_all_slices", "counter_sets", "devices", "has_binding_conditions", "id", "is_complete", "problem")

    def __init__(self, pool: PoolID, usable: Sequence[PublishedSlice], everything: Sequence[PublishedSlice]) -> None:
        self.id = pool
        self.is_complete = len(everything) == usable[0].spec.pool.resource_slice_count
        if not self.is_complete:
            usable = everything = ()
        self._all_slices = everything
        self.devices = tuple(_devices(usable))
        self.counter_sets = [counters for published in usable for counters in published.spec.shared_counters]
        self.problem = _problem(self.devices, self.counter_sets, self.all_devices())
        self.has_binding_conditions = any(device.device.binding_conditions for device in self.devices)

    @property
    def is_usable(self) -> bool:
        """May anything be taken from it?"""
        return self.is_complete and self.problem is None

    def all_devices(self) -> Iterator[PoolDevice]:
        """Also those that only other nodes can use: they share the counters."""
        return _devices(self._all_slices)

    def counters(self) -> Counters:
        """What the pool's devices may consume together."""
        return {
            counter_set.name: {name: parse_quantity(counter.value) for name, counter in counter_set.counters.items()}
            for counter_set in self.counter_sets
        }


def pool_of(pool: PoolID, seen: Sequence[PublishedSlice], everything: Collection[PublishedSlice]) -> Pool | None:
    """The pool as one sees it who sees these of its slices; None if what one sees is out of date."""
    newest = max(published.spec.pool.generation for published in seen)
    usable = _of_generation(seen, newest)
    if len(usable) == usable[0].spec.pool.resource_slice_count:
        return Pool(pool, usable, usable)
    if any(published.spec.pool.generation > newest for published in everything):
        # A newer generation is being published, but not for this node (yet).
        return None
    return Pool(pool, usable, _of_generation(everything, newest))


def _of_generation(slices: Iterable[PublishedSlice], wanted: int) -> list[PublishedSlice]:
    """In the order in which they are searched."""
    found = [published for published in slices if published.spec.pool.generation == wanted]
    return sorted(found, key=lambda published: published.name)


def _devices(slices: Iterable[PublishedSlice]) -> Iterator[PoolDevice]:
    """Slices with counters have no devices."""
    return (device for published in slices if not published.spec.shared_counters for device in published.devices)


def _problem(
    devices: Iterable[PoolDevice], counter_sets: Iterable[CounterSet], all_devices: Iterable[PoolDevice]
) -> str | None:
    """Why nothing may be taken from the pool; None if all is well."""
    seen: set[str] = set()
    for device in devices:
        if device.id.device in seen:
            return f"duplicate device name {device.id.device}"
        seen.add(device.id.device)
    known: dict[str, CounterSet] = {}
    for counter_set in counter_sets:
        if counter_set.name in known:
            return f"duplicate counter set {counter_set.name}"
        known[counter_set.name] = counter_set
    return next(filter(None, (_unknown_counter(device, known) for device in all_devices)), None)


def _unknown_counter(device: PoolDevice, known: Mapping[str, CounterSet]) -> str | None:
    for consumption in device.device.consumes_counters:
        counter_set = known.get(consumption.counter_set)
        if counter_set is None:
            return f"device {device.id.device} consumes of an unknown counter set {consumption.counter_set}"
        for name in consumption.counters:
            if name not in counter_set.counters:
                return f"device {device.id.device} consumes an unknown counter {consumption.counter_set}/{name}"
    return None
