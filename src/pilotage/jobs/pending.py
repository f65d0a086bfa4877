"""The workloads that wait in one ClusterQueue: what is tried next, and what an event may help.

Workloads that cannot be told apart by anything that decides about them (namespace, priority, shape) form a *group*,
ordered by age. A group is judged by its first member: if that one is refused under BestEffortFIFO the whole group is
put aside, since the others would be refused too. So ten thousand equal workloads cost as much as one.

    arrival --> group (active) --head--> cycle --reserved--> gone
                  ^      |refused                 `-- the next member is the group's first
                  |      v
                 wake  group (aside), indexed by the quota that it lacks

A group that lacks quota is indexed by (flavor, resource), its priority and the amount that must at least be free or
held by workloads that it may preempt: after a release only those are looked at for whom that is so now, and only the
first of them is woken. One that no release can help (too large, no matching flavor) is woken by changes of
configuration alone. Workloads in back-off are in no group.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from pilotage.jobs.ordering import OrderKey
from pilotage.jobs.quota import FlavorResource
from pilotage.jobs.record import Place, Record

GroupKey = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Wake:
    """What may help a refused group."""

    lacks: tuple[tuple[FlavorResource, int], ...] = ()
    """Any of these amounts being free; without any, only a change of configuration."""
    any_release: bool = False


NEVER = Wake()
_FEW = 32


class Group:
    """Pending workloads of one ClusterQueue that are judged alike."""

    __slots__ = ("is_aside", "judged_at", "key", "members", "refusals", "refused_key", "untold")

    def __init__(self, key: GroupKey) -> None:
        self.key = key
        self.members: list[tuple[OrderKey, Record]] = []
        self.is_aside = False
        self.refusals = 0
        """How often it was put aside: entries of the index that are older count no more."""
        self.refused_key: OrderKey | None = None
        """Of the member that was refused; who is before it has not been judged."""
        self.judged_at = -1
        """The generation of free quota under which it was refused."""
        self.untold: dict[str, Record] = {}
        """Members that joined since the last refusal and do not carry its reason yet."""

    @property
    def first(self) -> Record:
        return self.members[0][1]

    @property
    def front(self) -> OrderKey:
        return self.members[0][0]


_Lack = tuple[int, int, int, Group]
"""Amount, order of arrival, which refusal of the group, the group."""


def group_key(record: Record) -> GroupKey:
    reclaimable = tuple(sorted(record.reclaimable.items())) if record.reclaimable else ()
    return record.namespace, record.priority, record.shape, reclaimable


class PendingWorkloads:
    def __init__(self) -> None:
        self._groups: dict[GroupKey, Group] = {}
        self._heads: list[tuple[OrderKey, int, Group]] = []
        self._order = count()
        self._keys: dict[str, OrderKey] = {}
        self._lacking: dict[FlavorResource, dict[int, list[_Lack]]] = {}
        self._searched_at = -1
        """The generation under which nobody (more) was within reach."""
        self._on_any_release: dict[int, tuple[int, Group]] = {}
        self.backoff: dict[str, Record] = {}
        self.sticky: Record | None = None
        """The preemptor that waits for its victims: before all others."""
        self.active_count = 0
        self.aside_count = 0

    def __len__(self) -> int:
        return self.active_count + self.aside_count + len(self.backoff)

    # --- coming and going ---------------------------------------------------------------------------------------------

    def add(self, record: Record, key: OrderKey) -> None:
        """Queue a workload; it is put aside at once if its like was refused and nothing has changed since."""
        name = group_key(record)
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = Group(name)
        insort(group.members, (key, record), key=_key_of)
        self._keys[record.uid] = key
        record.group = group
        record.place = Place.QUEUED
        group.untold[record.uid] = record
        if group.is_aside:
            self.aside_count += 1
            if group.refused_key is None or key < group.refused_key:
                self.wake(group)
        else:
            self.active_count += 1
            if group.members[0][1] is record:
                self._offer(group)

    def add_backoff(self, record: Record) -> None:
        record.place = Place.BACKOFF
        self.backoff[record.uid] = record

    def remove(self, record: Record) -> None:
        if self.sticky is record:
            self.sticky = None
        if self.backoff.pop(record.uid, None) is not None:
            return
        group, key = record.group, self._keys.pop(record.uid)
        assert group is not None
        at = bisect_left(group.members, key, key=_key_of)
        del group.members[at]
        record.group = None
        group.untold.pop(record.uid, None)
        if group.is_aside:
            self.aside_count -= 1
        else:
            self.active_count -= 1
        if not group.members:
            group.is_aside = False
            group.refusals += 1
            del self._groups[group.key]
        elif at == 0 and not group.is_aside:
            self._offer(group)

    # --- who is next --------------------------------------------------------------------------------------------------

    def head(self) -> Record | None:
        """The first of the active workloads."""
        if self.sticky is not None and self.sticky.group is not None and not self.sticky.group.is_aside:
            return self.sticky
        while self._heads:
            key, _, group = self._heads[0]
            if group.members and not group.is_aside and group.front == key:
                return group.first
            heapq.heappop(self._heads)
        return None

    def _offer(self, group: Group) -> None:
        heapq.heappush(self._heads, (group.front, next(self._order), group))

    # --- put aside and woken ------------------------------------------------------------------------------------------

    def put_aside(self, record: Record, wake: Wake, generation: int) -> None:
        """The whole group of a workload that was refused under this generation of free quota."""
        group = record.group
        assert group is not None and not group.is_aside
        if self.sticky is record:
            self.sticky = None
        group.is_aside = True
        group.refusals += 1
        group.refused_key = self._keys[record.uid]
        group.judged_at = generation
        self.active_count -= len(group.members)
        self.aside_count += len(group.members)
        for pair, amount in wake.lacks:
            waiting = self._lacking.setdefault(pair, {}).setdefault(record.priority, [])
            if len(waiting) > 2 * len(self._groups) + _FEW:
                waiting[:] = [entry for entry in waiting if entry[3].refusals == entry[2]]
            insort(waiting, (amount, next(self._order), group.refusals, group))
        if wake.any_release:
            self._on_any_release[id(group)] = (group.refusals, group)

    def wake(self, group: Group) -> None:
        if not group.is_aside:
            return
        group.is_aside = False
        self.aside_count -= len(group.members)
        self.active_count += len(group.members)
        self._offer(group)

    def wake_all(self) -> None:
        """After a change of configuration."""
        for group in self._groups.values():
            self.wake(group)
        self._lacking.clear()
        self._on_any_release.clear()

    def may_have_more(self, generation: int) -> bool:
        """Is there anybody to be judged?"""
        return self.active_count > 0 or (bool(self._lacking) and self._searched_at != generation)

    def wake_first_within(self, generation: int, reach: Callable[[FlavorResource, int], int]) -> None:
        """Wake the first group that was refused under another generation and whose amount is within reach now."""
        if self._searched_at == generation:
            return
        found: Group | None = None
        for pair, by_priority in self._lacking.items():
            for priority in sorted(by_priority, reverse=True):
                if found is not None and priority < found.first.priority:
                    break
                found = _first_within(by_priority[priority], reach(pair, priority), generation, found)
        if found is None:
            self._searched_at = generation
        elif self.sticky is None and ((head := self.head()) is None or found.front < self._keys[head.uid]):
            self.wake(found)

    def wake_on_release(self) -> None:
        for refusals, group in list(self._on_any_release.values()):
            if group.refusals == refusals:
                self.wake(group)
        self._on_any_release.clear()

    # --- looking ------------------------------------------------------------------------------------------------------

    def records(self) -> Iterator[Record]:
        """All that wait, in no particular order."""
        for group in self._groups.values():
            for _, record in group.members:
                yield record
        yield from self.backoff.values()

    def check(self) -> None:
        sizes = {True: 0, False: 0}
        for group in self._groups.values():
            keys = [key for key, _ in group.members]
            assert keys and keys == sorted(keys), "a group is never empty and always in order"
            assert all(record.group is group and record.place is Place.QUEUED for _, record in group.members)
            sizes[group.is_aside] += len(keys)
        assert sizes == {True: self.aside_count, False: self.active_count}, "the counts are those of the groups"
        assert all(record.place is Place.BACKOFF and record.group is None for record in self.backoff.values())
        fronts = [group.front for group in self._groups.values() if not group.is_aside]
        head = self.head()
        assert (head is None) == (not fronts), "whoever is active is found"
        if head is not None and head is not self.sticky:
            assert self._keys[head.uid] == min(fronts), "the head is the first"


def _first_within(waiting: list[_Lack], reach: int, generation: int, found: Group | None) -> Group | None:
    """The first in queue order of those with a small enough amount, or `found` if that is before them."""
    first = None if found is None else found.front
    for amount, _, refusals, group in waiting:
        if amount > reach:
            break
        if group.refusals != refusals or not group.is_aside or group.judged_at == generation:
            continue
        front = group.members[0][0]
        if first is None or front < first:
            found, first = group, front
    return found


def _key_of(member: tuple[OrderKey, Record]) -> OrderKey:
    return member[0]
