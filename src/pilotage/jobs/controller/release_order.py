"""Quota that was given back is given away only when the API server has both in this order.

The engine goes on as if its statuses were written. If the write that takes quota from one workload failed, and the
write that gives it to another succeeded, the stored statuses would hold more than there is: a reader then, after a
crash or as a dashboard, finds a quota exceeded. So a reservation is sent only after the releases of the same quota tree
that came before it are stored. Releases never wait.

A workload that was evicted and admitted again before anything could be written is both: its old admission has to be
taken back in a write of its own (`exchanges`), for others may have got that quota, and the API server does not accept
one admission in place of another.
"""

from __future__ import annotations

from collections.abc import Callable

from pilotage.jobs.controller.workload_facts import holds_quota, is_true
from pilotage.model.kueue import Admission, Workload


class ReleaseOrder:
    """`tree_of` says which ClusterQueues share quota: the same text for all of a tree."""

    def __init__(self, tree_of: Callable[[str], str]) -> None:
        self._tree_of = tree_of
        self._stored: dict[str, Admission] = {}
        """What workloads hold in the API server."""
        self._admissions: dict[str, Admission] = {}
        """The same, and what stands in those that do not count any more."""
        self._releases: dict[str, str] = {}
        """Workloads whose release is on its way -> the tree."""
        self._waiting: dict[str, set[str]] = {}
        """Reservations that wait -> the releases that they wait for."""

    def stored(self, workload: Workload) -> list[str]:
        """The API server has this status. Returns the workloads that need not wait any more."""
        held = held_quota(workload)
        _put(self._stored, workload.key, held)
        _put(self._admissions, workload.key, workload.status.admission)
        return self._over(workload.key) if held is None else []

    def gone(self, key: str) -> list[str]:
        """The workload is deleted."""
        self._stored.pop(key, None)
        self._admissions.pop(key, None)
        return self.rejected(key)

    def rejected(self, key: str) -> list[str]:
        """This status will never be written: nothing waits for it, and what the API server has stays as it is."""
        self._waiting.pop(key, None)
        return self._over(key)

    def _over(self, key: str) -> list[str]:
        if self._releases.pop(key, None) is None:
            return []
        free = []
        for other, releases in list(self._waiting.items()):
            releases.discard(key)
            if not releases:
                del self._waiting[other]
                free.append(other)
        return free

    def decided(self, workload: Workload) -> list[str]:
        """The engine has decided on this status. Returns the workloads that need not wait any more."""
        before = self._stored.get(workload.key)
        if before is None:
            return []
        held = held_quota(workload)
        if held == before:
            # It got back what it had before its loss was written.
            return self._over(workload.key)
        self._note_release(workload.key, held)
        return []

    def _note_release(self, key: str, held: Admission | None) -> None:
        before = self._stored.get(key)
        if before is not None and held != before:
            self._releases[key] = self._tree_of(before.cluster_queue)

    def is_release(self, key: str) -> bool:
        """Whether the API server still has quota with this workload that it does not hold any more."""
        return key in self._releases

    def exchanges(self, workload: Workload) -> bool:
        """Whether this status would put one admission in the place of another."""
        before, after = self._admissions.get(workload.key), workload.status.admission
        return before is not None and after is not None and before != after

    def may_go(self, workload: Workload) -> bool:
        """Whether this status may be sent now; if not, `stored` or `gone` will name it."""
        key, held = workload.key, held_quota(workload)
        self._note_release(key, held)
        if held is None or key in self._stored:
            self._waiting.pop(key, None)
            return True
        if key not in self._waiting:
            tree = self._tree_of(held.cluster_queue)
            releases = {other for other, where in self._releases.items() if where == tree}
            if not releases:
                return True
            self._waiting[key] = releases
        return False


def _put(admissions: dict[str, Admission], key: str, admission: Admission | None) -> None:
    if admission is None:
        admissions.pop(key, None)
    else:
        admissions[key] = admission


def held_quota(workload: Workload) -> Admission | None:
    """The quota that a stored workload counts for."""
    if not workload.spec.active or not holds_quota(workload) or is_true(workload, "Finished"):
        return None
    return workload.status.admission
