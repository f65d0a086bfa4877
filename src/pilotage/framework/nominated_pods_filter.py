"""Nodes to which other pods are nominated, filtered as if those pods were there already.

A pod may take a node only if it fits both beside the pods of the same or higher priority that are nominated to it,
and without them. Hundreds of preemptors may wait for their nodes at a time, so what the filters say of a node beside
its nominated pods is remembered per class of pods, as long as neither node nor nominations change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pilotage.api.state import CycleState
from pilotage.api.table import Mask, Rows
from pilotage.cluster.node_table import ClusterNodeTable
from pilotage.cluster.state import Nominations
from pilotage.framework.class_memory import ClassMemory
from pilotage.framework.diagnosis import Rejected
from pilotage.framework.dry_run import DryRun
from pilotage.framework.profile import Profile
from pilotage.framework.rejection_codes import RejectionCodes
from pilotage.model import Pod

UNCONTESTED = -1
UNKNOWN = -2
FITS = -3


class Verdicts:
    """One number per row: a constant from above, or the number of the rejection beside the nominated pods."""

    __slots__ = ("_codes", "_rejections")

    def __init__(self, size: int) -> None:
        self._codes: NDArray[np.int32] = np.full(size, UNCONTESTED, dtype=np.int32)
        self._rejections = RejectionCodes()

    def __getitem__(self, row: int) -> Rejected:
        """What rejects a row that is rejected."""
        return self._rejections[self._codes[row]]

    def set_contested(self, row: int, is_contested: bool) -> None:
        self._codes[row] = UNKNOWN if is_contested else UNCONTESTED

    def note(self, row: int, rejected: Rejected | None) -> None:
        self._codes[row] = FITS if rejected is None else self._rejections.number(rejected)

    def unknown(self, among: Mask) -> list[int]:
        found: list[int] = (among & (self._codes == UNKNOWN)).nonzero()[0].tolist()
        return found

    def rejected(self, among: Mask) -> Rows:
        """Rows on which the pod does not fit."""
        return (among & (self._codes >= 0)).nonzero()[0]

    def groups(self, among: Mask) -> Iterator[tuple[Rejected, Mask]]:
        """The same rows by what rejects them."""
        for number in np.bincount(self._codes[self.rejected(among)]).nonzero()[0].tolist():
            yield self._rejections[number], among & (self._codes == number)

    def seen_by(self, row: int, rejected: Rejected | None) -> Verdicts:
        """A copy for the pod that is nominated to this row itself."""
        copy = Verdicts(0)
        copy._codes = self._codes.copy()
        copy._rejections = self._rejections
        copy.note(row, rejected)
        return copy


class NominatedPodsFilter:
    """Answers for the pods of one profile."""

    def __init__(self, profile: Profile, dry_run: DryRun, nodes: ClusterNodeTable, nominations: Nominations) -> None:
        self._dry_run = dry_run
        self._nodes = nodes
        self._nominations = nominations
        self._classes = ClassMemory(profile, nodes, nominations, self._new, self._update)

    def verdicts(self, state: CycleState, pod: Pod, among: Mask) -> Verdicts | None:
        """What is to be said of the rows in `among` to which others are nominated; None if no pod is nominated."""
        if not len(self._nominations):
            return None
        verdicts = self._classes.get(state, pod) or self._new(pod)
        own = self._nodes.row(self._nominations.node_of(pod.uid))
        unknown = verdicts.unknown(among)
        if not unknown and own is None:
            return verdicts
        filters = self._dry_run.filters_of(state, pod)
        for row in unknown:
            if row != own:
                verdicts.note(row, filters.rejection_beside(row, self._rivals(pod, row)))
        if own is None:
            return verdicts
        # The class's verdict would count this very pod among the nominated ones.
        return verdicts.seen_by(own, filters.rejection_beside(own, self._rivals(pod, own)))

    def rejections(self, state: CycleState, pod: Pod, among: Mask) -> list[tuple[int, Rejected]]:
        """Rows in `among` that are rejected beside the pods that are nominated to them."""
        verdicts = self.verdicts(state, pod, among)
        return [] if verdicts is None else [(row, verdicts[row]) for row in verdicts.rejected(among).tolist()]

    def _rivals(self, pod: Pod, row: int) -> list[Pod]:
        return self._dry_run.rivals_on(pod, self._nodes.names[row])

    def _new(self, pod: Pod) -> Verdicts:
        verdicts = Verdicts(len(self._nodes))
        rows = [row for row in map(self._nodes.row, self._nominations.nodes()) if row is not None]
        self._look_again(verdicts, pod, rows)
        return verdicts

    def _update(self, verdicts: Verdicts, pod: Pod, changed: Sequence[int]) -> bool:
        self._look_again(verdicts, pod, changed)
        return True

    def _look_again(self, verdicts: Verdicts, pod: Pod, rows: Iterable[int]) -> None:
        names = self._nodes.names
        for row in rows:
            nominated = self._nominations.on(names[row])
            verdicts.set_contested(row, any(other.priority >= pod.priority for other in nominated))
