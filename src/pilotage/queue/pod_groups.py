"""Pod groups in the queue: one entry for all members, which is popped, gated, backed off and woken as one.

    pod of a group that is not known    -> incomplete: outside of all queues until the group comes
    pod of a group that is in its cycle -> pending: joins the entry when the cycle is over
    any other member                    -> into the entry of its group

A member's own entry keeps what belongs to the pod: its attempts, what rejected it, its history.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from pilotage.api.group_members import group_key
from pilotage.model.pod_group import PodGroup
from pilotage.queue.sub_queues import QueuedPodInfo, SubQueue, Ticket

Members = dict[str, QueuedPodInfo]


class QueuedGroup(QueuedPodInfo, kw_only=True, eq=False):
    """What the queue remembers of a group. `pod` is the member that speaks for it: a gated one, if there is one."""

    group: PodGroup
    members: Members
    """By UID."""
    is_in_order: bool = True

    @property
    def key(self) -> str:
        return self.group.key

    @property
    def size(self) -> int:
        return len(self.members)

    @property
    def first(self) -> QueuedPodInfo:
        return next(iter(self.members.values()))

    def insert(self, member: QueuedPodInfo) -> None:
        if self.is_in_order and self.members:
            self.is_in_order = _order(next(reversed(self.members.values()))) <= _order(member)
        self.members[member.pod.uid] = member

    def put_in_order(self) -> None:
        """In which they are placed: priority, then attempts (most first), then arrival, then name."""
        if not self.is_in_order:
            self.members = {member.pod.uid: member for member in sorted(self.members.values(), key=_order)}
            self.is_in_order = True


def _order(member: QueuedPodInfo) -> tuple[float, float, float, str]:
    return (-member.pod.priority, -member.attempts, member.timestamp, member.pod.name)


def gate_text(entry: QueuedGroup, exist: int) -> str:
    """What a gated group waits for; `exist` is the number of its members, those that run among them."""
    if entry.group.is_gang and exist < entry.group.min_count:
        return f"waiting for pods: {exist} of {entry.group.min_count}"
    return f"{entry.pod.name}: {entry.gate_message}"


class GroupTicket(Ticket, kw_only=True, eq=False):
    """Given out for a group; its members have tickets of their own."""

    entry: QueuedGroup
    members: list[Ticket]


class GroupResult(Enum):
    """How the cycle of a group ended."""

    PLACED = "placed"
    """Enough members have a place; some may be left over."""
    REJECTED = "rejected"
    FAILED = "failed"


class GroupMembers:
    """Who belongs to which group, as the queue knows it."""

    def __init__(self) -> None:
        self.known: dict[str, PodGroup] = {}
        self.queued: dict[str, QueuedGroup] = {}
        self.incomplete: dict[str, Members] = {}
        self.pending: dict[str, Members] = {}
        self.in_cycle: set[str] = set()
        """The keys of the groups whose cycles are running: one, and those whose extenders are being asked."""
        self.aside: Members = {}
        """All members that are incomplete or pending."""

    def set_aside(self, member: QueuedPodInfo, key: str) -> None:
        """Until its group comes, or until its group's cycle is over."""
        is_pending = key in self.known
        member.home = SubQueue.PENDING if is_pending else SubQueue.INCOMPLETE
        (self.pending if is_pending else self.incomplete).setdefault(key, {})[member.pod.uid] = member
        self.aside[member.pod.uid] = member

    def take_aside(self, uid: str) -> QueuedPodInfo | None:
        member = self.aside.pop(uid, None)
        if member is not None:
            key = group_key(member.pod)
            where = self.pending if member.home is SubQueue.PENDING else self.incomplete
            del where[key][uid]
            if not where[key]:
                del where[key]
        return member

    def take_all(self, where: dict[str, Members], key: str) -> list[QueuedPodInfo]:
        members = list(where.pop(key, {}).values())
        for member in members:
            del self.aside[member.pod.uid]
        return members

    def entries(self) -> Iterator[QueuedGroup]:
        return iter(self.queued.values())
