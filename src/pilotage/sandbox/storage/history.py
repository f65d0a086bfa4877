"""The recent past of the store: how a watch that was cut resumes without a new list.

One ring bounds the number of changes kept over all resources, so that memory is bounded whatever is written. Beside it
each resource has its own queue of the same changes: resuming a watch walks back from the newest change of that resource
and costs what it returns, not the length of the ring.

The ring lets go of the oldest change first, and that is also the oldest of its resource's queue. What a resource
lost is remembered as one number, its floor: every change of the resource after the floor is still here. A quiet
resource can thus be resumed from far back although a busy one has filled the ring since.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from pilotage.sandbox.storage.records import Change

# Live watchers send a change within moments of the write. Keeping the encoded line any longer would double the memory
# of the ring for the few that resume from further back.
_LINES_KEPT: Final = 256


class Expired(Exception):
    """The changes asked for are no longer all here; `oldest` is the first revision that a watch can start from."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"the history starts at revision {oldest}")
        self.oldest = oldest


class History:
    """The last `limit` changes, retrievable by resource. Nothing up to revision `start` is known."""

    def __init__(self, limit: int, start: int) -> None:
        if limit < 1:
            raise ValueError(f"history must keep at least one change, not {limit}")
        self._limit = limit
        self._start = start
        self._ring: deque[Change] = deque()
        self._by_resource: dict[str, deque[Change]] = {}
        self._floors: dict[str, int] = {}

    def append(self, change: Change) -> None:
        resource = change.record.key.resource
        queue = self._by_resource.get(resource)
        if queue is None:
            queue = self._by_resource[resource] = deque()
        queue.append(change)
        ring = self._ring
        ring.append(change)
        if len(ring) > self._limit:
            self._drop_oldest()
        if len(ring) > _LINES_KEPT:
            ring[-1 - _LINES_KEPT].forget_line()

    def cut(self, revision: int) -> None:
        """Forget every change after `revision`."""
        ring = self._ring
        while ring and ring[-1].revision > revision:
            resource = ring.pop().record.key.resource
            queue = self._by_resource[resource]
            queue.pop()
            if not queue:
                del self._by_resource[resource]

    def since(self, resource: str, revision: int) -> list[Change]:
        """Every change of `resource` after `revision`, oldest first; Expired if one of them is gone."""
        oldest = self._floors.get(resource, self._start)
        if revision < oldest:
            raise Expired(oldest)
        found: list[Change] = []
        for change in reversed(self._by_resource.get(resource, ())):
            if change.revision <= revision:
                break
            found.append(change)
        found.reverse()
        return found

    def check(self) -> None:
        """The ring is bounded and in order, and the queues hold exactly its changes."""
        revisions = [change.revision for change in self._ring]
        assert len(revisions) <= self._limit, "the ring is bounded"
        assert revisions == sorted(set(revisions)), "the ring is in the order of the writes"
        queued = [(change.revision, resource) for resource, queue in self._by_resource.items() for change in queue]
        in_ring = [(change.revision, change.record.key.resource) for change in self._ring]
        assert sorted(queued) == in_ring, "a change is in the ring and in its resource's queue"
        for resource, floor in self._floors.items():
            queue = self._by_resource.get(resource)
            assert not queue or queue[0].revision > floor, "a floor lies below the changes that are left"

    def _drop_oldest(self) -> None:
        dropped = self._ring.popleft()
        resource = dropped.record.key.resource
        queue = self._by_resource[resource]
        queue.popleft()
        if not queue:
            del self._by_resource[resource]
        self._floors[resource] = dropped.revision
