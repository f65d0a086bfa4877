"""Nodes that are promised to other pods, judged as if those pods were there already.

A pod may take a node only if it fits both beside the pods of the same or higher priority that are promised the node,
and without them. Hundreds of preemptors may wait for their nodes at a time, so what the filters say of a node beside
its promised pods is remembered per class of pods, as long as neither node nor promises change.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from pilotage.api.state import CycleState
from pilotage.api.table import Mask, Rows
from pilotage.cluster.node_table import NodeTable
from pilotage.cluster.nominations import Nominations
from pilotage.framework.diagnosis import Refused
from pilotage.framework.dry_run import DryRun
from pilotage.framework.plan import class_of
from pilotage.framework.profile import Profile
from pilotage.framework.refusal_codes import RefusalCodes
from pilotage.framework.row_changes import RowChanges
from pilotage.model import Pod

_KEPT_CLASSES = 64

UNCONTESTED = -1
UNKNOWN = -2
FITS = -3


class Verdicts:
    """One number per row: a constant from above, or the number of the refusal beside the promised pods."""

    __slots__ = ("_codes", "_refusals", "changes", "versions")

    def __init__(self, size: int, versions: Hashable, changes: RowChanges) -> None:
        self.versions = versions
        self.changes = changes
        self._codes: NDArray[np.int32] = np.full(size, UNCONTESTED, dtype=np.int32)
        self._refusals = RefusalCodes()

    def __getitem__(self, row: int) -> Refused:
        """What refuses a row that is refused."""
        return self._refusals[self._codes[row]]

    def set_contested(self, row: int, is_contested: bool) -> None:
        self._codes[row] = UNKNOWN if is_contested else UNCONTESTED

    def note(self, row: int, refused: Refused | None) -> None:
        self._codes[row] = FITS if refused is None else self._refusals.number(refused)

    def unknown(self, among: Mask) -> list[int]:
        found: list[int] = (among & (self._codes == UNKNOWN)).nonzero()[0].tolist()
        return found

    def refused(self, among: Mask) -> Rows:
        """Rows on which the pod does not fit."""
        return (among & (self._codes >= 0)).nonzero()[0]

    def groups(self, among: Mask) -> Iterator[tuple[Refused, Mask]]:
        """The same rows by what refuses them."""
        for number in np.bincount(self._codes[self.refused(among)]).nonzero()[0].tolist():
            yield self._refusals[number], among & (self._codes == number)

    def seen_by(self, row: int, refused: Refused | None) -> Verdicts:
        """A copy for the pod that has the promise of this row itself."""
        copy = Verdicts(0, self.versions, self.changes)
        copy._codes = self._codes.copy()
        copy._refusals = self._refusals
        copy.note(row, refused)
        return copy


class Contested:
    """Answers for the pods of one profile."""

    def __init__(self, profile: Profile, dry_run: DryRun, nodes: NodeTable, nominations: Nominations) -> None:
        self._profile = profile
        self._dry_run = dry_run
        self._nodes = nodes
        self._nominations = nominations
        self._classes: OrderedDict[Hashable, Verdicts] = OrderedDict()

    def verdicts(self, state: CycleState, pod: Pod, among: Mask) -> Verdicts | None:
        """What is to be said of the rows in `among` that others are promised; None if nobody is promised anything."""
        if not len(self._nominations):
            return None
        verdicts = self._class_verdicts(state, pod)
        own = self._nodes.row(self._nominations.node_of(pod.uid))
        unknown = verdicts.unknown(among)
        if not unknown and own is None:
            return verdicts
        trial = self._dry_run.trial(state, pod)
        for row in unknown:
            if row != own:
                verdicts.note(row, trial.refusal_beside(row, self._rivals(pod, row)))
        if own is None:
            return verdicts
        # The class's verdict would count this very pod among the promised ones.
        return verdicts.seen_by(own, trial.refusal_beside(own, self._rivals(pod, own)))

    def refusals(self, state: CycleState, pod: Pod, among: Mask) -> list[tuple[int, Refused]]:
        """Rows in `among` that are refused beside the pods that are promised them."""
        verdicts = self.verdicts(state, pod, among)
        return [] if verdicts is None else [(row, verdicts[row]) for row in verdicts.refused(among).tolist()]

    def _rivals(self, pod: Pod, row: int) -> list[Pod]:
        return self._dry_run.rivals_on(pod, self._nodes.names[row])

    def _class_verdicts(self, state: CycleState, pod: Pod) -> Verdicts:
        shared = class_of(self._profile, state, pod)
        if shared is None:
            return self._new(None, pod)
        key = (shared.signature, pod.priority)
        known = self._classes.get(key)
        changed = None if known is None or known.versions != shared.versions else known.changes.since_last()
        if known is None or changed is None:
            known = self._classes[key] = self._new(shared.versions, pod)
            if len(self._classes) > _KEPT_CLASSES:
                self._classes.popitem(last=False)
        else:
            self._look_again(known, pod, changed)
        self._classes.move_to_end(key)
        return known

    def _new(self, versions: Hashable, pod: Pod) -> Verdicts:
        verdicts = Verdicts(len(self._nodes), versions, RowChanges(self._nodes, self._nominations))
        rows = [row for row in map(self._nodes.row, self._nominations.nodes()) if row is not None]
        self._look_again(verdicts, pod, rows)
        return verdicts

    def _look_again(self, verdicts: Verdicts, pod: Pod, rows: Iterable[int]) -> None:
        names = self._nodes.names
        for row in rows:
            promised = self._nominations.on(names[row])
            verdicts.set_contested(row, any(other.priority >= pod.priority for other in promised))
