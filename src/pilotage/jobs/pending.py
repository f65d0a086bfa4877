"""The workloads that wait in one ClusterQueue: what is tried next, and what an event may help.

Workloads that are equal in everything that decides about them (namespace, priority, shape) form a *group*,
ordered by age. A group is nominated by its first member: if that one is rejected under BestEffortFIFO the whole group
is inadmissible, since the others would be rejected too. So ten thousand equal workloads cost as much as one.

    arrival --> group (active) --head--> cycle --reserved--> gone
                  ^      |rejected                `-- the next member is the group's first
                  |      v
                 wake  group (inadmissible), indexed by the quota that it lacks

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
from typing import Any, NamedTuple

from pilotage.jobs.ordering import OrderKey
from pilotage.jobs.quota import FlavorResource
from pilotage.jobs.record import WorkloadPlace, WorkloadRecord
from pilotage.jobs.rejections import QuotaRejection
from pilotage.jobs.room import NoRoom

GroupKey = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class WakeCondition:
    """What may help a rejected group."""

    lacks: tuple[tuple[FlavorResource, int], ...] = ()
    """Any of these amounts being free; without any, only a change of configuration."""
    any_release: bool = False
    nodes: tuple[NoRoom, ...] = ()
    """Any of these no longer being true."""


NEVER = WakeCondition()


class KnownRejection(NamedTuple):
    """What was found out about a group."""

    rejection: QuotaRejection
    wake: WakeCondition


_Lack = tuple[int, int, "PendingGroup"]
"""Amount, order of arrival, the group."""


class PendingGroup:
    """Pending workloads of one ClusterQueue that are judged alike."""

    __slots__ = ("is_inadmissible", "key", "known", "lacks", "members", "priority", "rejected_key", "unreported")

    def __init__(self, key: GroupKey, priority: int) -> None:
        self.key = key
        self.priority = priority
        self.members: list[tuple[OrderKey, WorkloadRecord]] = []
        self.is_inadmissible = False
        self.known: KnownRejection | None = None
        """How it was rejected last, unless the configuration has changed since."""
        self.lacks: list[tuple[FlavorResource, _Lack]] = []
        """Where it stands in the index of the inadmissible groups."""
        self.rejected_key: OrderKey | None = None
        """Of the member that was rejected; who is before it has not been nominated."""
        self.unreported: dict[str, WorkloadRecord] = {}
        """Members that joined since the last rejection and do not carry its reason yet."""

    def reported(self, record: WorkloadRecord) -> None:
        """The member carries the reason of the last rejection."""
        self.unreported.pop(record.uid, None)

    def take_unreported(self) -> list[WorkloadRecord]:
        members = list(self.unreported.values())
        self.unreported.clear()
        return members

    @property
    def first(self) -> WorkloadRecord:
        return self.members[0][1]

    @property
    def front(self) -> OrderKey:
        return self.members[0][0]


def group_key(record: WorkloadRecord) -> GroupKey:
    reclaimable = tuple(sorted(record.reclaimable.items())) if record.reclaimable else ()
    return record.namespace, record.priority, record.shape, reclaimable, record.is_barred


class PendingWorkloads:
    def __init__(self) -> None:
        self._groups: dict[GroupKey, PendingGroup] = {}
        self._heads: list[tuple[OrderKey, int, PendingGroup]] = []
        self._order = count()
        self._keys: dict[str, OrderKey] = {}
        self._lacking: dict[FlavorResource, dict[int, list[_Lack]]] = {}
        self._searched_at = -1
        """The generation under which there was not enough for any (other) group."""
        self._passed: tuple[int, OrderKey | None] = (-1, None)
        """The generation, and the last head under it. Those inadmissible before that one have had their turn."""
        self._on_any_release: dict[int, PendingGroup] = {}
        self._on_nodes: dict[int, PendingGroup] = {}
        self.backoff: dict[str, WorkloadRecord] = {}
        self._sticky: WorkloadRecord | None = None
        """The preemptor that waits for its victims: before all others."""
        self.active_count = 0
        self.inadmissible_count = 0

    def __len__(self) -> int:
        return self.active_count + self.inadmissible_count + len(self.backoff)

    # --- coming and going ---------------------------------------------------------------------------------------------

    def add(self, record: WorkloadRecord, key: OrderKey) -> None:
        """Queue a workload; it is inadmissible at once if its like was rejected and nothing has changed since."""
        name = group_key(record)
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = PendingGroup(name, record.priority)
        insort(group.members, (key, record), key=_key_of)
        self._keys[record.uid] = key
        record.join(group)
        group.unreported[record.uid] = record
        if group.is_inadmissible:
            self.inadmissible_count += 1
            if group.rejected_key is None or key < group.rejected_key:
                self.wake(group)
        else:
            self.active_count += 1
            if group.members[0][1] is record:
                self._offer(group)

    def add_backoff(self, record: WorkloadRecord) -> None:
        record.begin_backoff()
        self.backoff[record.uid] = record

    def remove(self, record: WorkloadRecord) -> None:
        if self._sticky is record:
            self._sticky = None
        if self.backoff.pop(record.uid, None) is not None:
            return
        group, key = record.group, self._keys.pop(record.uid)
        assert group is not None
        at = bisect_left(group.members, key, key=_key_of)
        del group.members[at]
        group.reported(record)
        if group.is_inadmissible:
            self.inadmissible_count -= 1
        else:
            self.active_count -= 1
        if not group.members:
            group.is_inadmissible = False
            self._unindex(group)
            del self._groups[group.key]
        elif at == 0 and not group.is_inadmissible:
            self._offer(group)

    def holds(self, record: WorkloadRecord) -> bool:
        return record.uid in self._keys or record.uid in self.backoff

    def is_sticky(self, record: WorkloadRecord) -> bool:
        return self._sticky is record

    def sticky(self) -> WorkloadRecord | None:
        return self._sticky

    def stick(self, record: WorkloadRecord) -> None:
        """Before all others until it gets quota, is found unfit, or goes."""
        self._sticky = record

    def unstick(self) -> None:
        self._sticky = None

    def key_of(self, record: WorkloadRecord) -> OrderKey:
        """Of one that is not in back-off."""
        return self._keys[record.uid]

    # --- who is next --------------------------------------------------------------------------------------------------

    def head(self) -> WorkloadRecord | None:
        """The first of the active workloads."""
        if self._sticky is not None and self._sticky.group is not None and not self._sticky.group.is_inadmissible:
            return self._sticky
        while self._heads:
            key, _, group = self._heads[0]
            if group.members and not group.is_inadmissible and group.front == key:
                return group.first
            heapq.heappop(self._heads)
        return None

    def _offer(self, group: PendingGroup) -> None:
        heapq.heappush(self._heads, (group.front, next(self._order), group))

    # --- inadmissible, and woken --------------------------------------------------------------------------------------

    def mark_inadmissible(self, record: WorkloadRecord, known: KnownRejection) -> None:
        """The whole group of a workload that was rejected."""
        group = record.group
        assert group is not None and not group.is_inadmissible
        if self._sticky is record:
            self._sticky = None
        group.is_inadmissible = True
        group.known = known
        group.rejected_key = self._keys[record.uid]
        self.active_count -= len(group.members)
        self.inadmissible_count += len(group.members)
        for pair, amount in known.wake.lacks:
            entry = (amount, next(self._order), group)
            insort(self._lacking.setdefault(pair, {}).setdefault(group.priority, []), entry)
            group.lacks.append((pair, entry))
        if known.wake.any_release:
            self._on_any_release[id(group)] = group
        if known.wake.nodes:
            self._on_nodes[id(group)] = group

    def _unindex(self, group: PendingGroup) -> None:
        for pair, entry in group.lacks:
            by_priority = self._lacking[pair]
            waiting = by_priority[group.priority]
            del waiting[bisect_left(waiting, entry)]
            if not waiting:
                del by_priority[group.priority]
            if not by_priority:
                del self._lacking[pair]
        group.lacks.clear()
        self._on_any_release.pop(id(group), None)
        self._on_nodes.pop(id(group), None)

    def wake(self, group: PendingGroup) -> None:
        if not group.is_inadmissible:
            return
        group.is_inadmissible = False
        self._unindex(group)
        self.inadmissible_count -= len(group.members)
        self.active_count += len(group.members)
        self._offer(group)

    def wake_all(self) -> None:
        """After a change of configuration."""
        for group in self._groups.values():
            group.known = None
            self.wake(group)

    def may_have_more(self, generation: int) -> bool:
        """Whether there is a workload to be judged."""
        return self.active_count > 0 or (bool(self._lacking) and self._searched_at != generation)

    def wake_first_within(self, generation: int, reach: Callable[[FlavorResource, int], int]) -> None:
        """Wake the first group that has not had its turn under this generation and whose amount is within reach."""
        if self._searched_at == generation:
            return
        passed = self._passed[1] if self._passed[0] == generation else None
        found: PendingGroup | None = None
        for pair, by_priority in self._lacking.items():
            for priority in sorted(by_priority, reverse=True):
                if found is not None and priority < found.priority:
                    break
                found = _first_within(by_priority[priority], reach(pair, priority), passed, found)
        if found is None:
            self._searched_at = generation
        elif self._sticky is None and ((head := self.head()) is None or found.front < self._keys[head.uid]):
            self.wake(found)

    def begin(self, head: WorkloadRecord, generation: int) -> None:
        """This one is judged now. A release of quota gives each one turn, in order: what others get or lose in
        the meantime does not begin it anew, or preemptors could chase each other for ever."""
        key = self._keys[head.uid]
        since, last = self._passed
        if head is not self._sticky and (since != generation or last is None or last < key):
            self._passed = (generation, key)

    def wake_on_release(self) -> None:
        for group in list(self._on_any_release.values()):
            self.wake(group)

    def wake_on_room(self, may_fit: Callable[[NoRoom], bool]) -> None:
        """Nodes have changed, or something has left them."""
        for group in list(self._on_nodes.values()):
            known = group.known
            if known is None or any(may_fit(one) for one in known.wake.nodes):
                self.wake(group)

    # --- looking ------------------------------------------------------------------------------------------------------

    def records(self) -> Iterator[WorkloadRecord]:
        """All that wait, in no particular order."""
        for group in self._groups.values():
            for _, record in group.members:
                yield record
        yield from self.backoff.values()

    def kinds(self) -> Iterator[tuple[WorkloadRecord, int]]:
        """One of each kind of workload, and how many there are of it."""
        for group in self._groups.values():
            yield group.first, len(group.members)
        for record in self.backoff.values():
            yield record, 1

    def in_order(self, order_key: Callable[[WorkloadRecord], OrderKey]) -> Iterator[WorkloadRecord]:
        """All that wait, as they come; who asks for the first few does not pay for the rest."""
        if self._sticky is not None:
            yield self._sticky
        late = sorted(((order_key(record), record) for record in self.backoff.values()), key=_key_of)
        runs = [group.members for group in self._groups.values()]
        for _, record in heapq.merge(*runs, late, key=_key_of):
            if record is not self._sticky:
                yield record

    def check(self) -> None:
        sizes = {True: 0, False: 0}
        for group in self._groups.values():
            keys = [key for key, _ in group.members]
            assert keys and keys == sorted(keys), "a group is never empty and always in order"
            assert all(record.group is group and record.place is WorkloadPlace.QUEUED for _, record in group.members)
            sizes[group.is_inadmissible] += len(keys)
        assert sizes == {True: self.inadmissible_count, False: self.active_count}, "the counts are those of the groups"
        lines = [line for by_priority in self._lacking.values() for line in by_priority.values()]
        indexed = {id(group) for line in lines for _, _, group in line}
        inadmissible = {id(group) for group in self._groups.values() if group.is_inadmissible}
        assert indexed <= inadmissible and self._on_any_release.keys() <= inadmissible, "only they are looked for"
        assert all(record.place is WorkloadPlace.BACKOFF and record.group is None for record in self.backoff.values())
        fronts = [group.front for group in self._groups.values() if not group.is_inadmissible]
        head = self.head()
        assert (head is None) == (not fronts), "every active one is found"
        if head is not None and head is not self._sticky:
            assert self._keys[head.uid] == min(fronts), "the head is the first"


def _first_within(
    waiting: list[_Lack], reach: int, passed: OrderKey | None, found: PendingGroup | None
) -> PendingGroup | None:
    """The first in queue order of those with a small enough amount, or `found` if that is before them."""
    first = None if found is None else found.front
    for amount, _, group in waiting:
        if amount > reach:
            break
        front = group.members[0][0]
        if (first is None or front < first) and (passed is None or passed < front):
            found, first = group, front
    return found


def _key_of(member: tuple[OrderKey, WorkloadRecord]) -> OrderKey:
    return member[0]
