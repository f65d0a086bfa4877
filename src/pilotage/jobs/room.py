"""What admission asks of the nodes: whether the pods of a workload fit now, and that their room is kept.

`Room` is all that the engine knows of nodes. Room that was taken for pods that do not exist yet counts for all who ask
after it, until the pods themselves are on nodes; so it is given once. `room_on_nodes` tries it out on the
scheduler's own filters and scores; `Anywhere` is for an engine without nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from msgspec import Struct

from pilotage.model.pod import PodSpec

Labels = tuple[tuple[str, str], ...]


class PodsToPlace(Struct, frozen=True):
    """The pods of one pod set on the nodes of its flavors. Compared by content; specs by identity."""

    pod_set: str
    namespace: str
    count: int
    spec: PodSpec
    labels: Labels = ()
    required: str = ""
    """A label of nodes: all pods must be on nodes with the same value of it."""
    preferred: str = ""
    """The same, if it can be had."""
    avoid: frozenset[str] = frozenset()
    """Nodes that are kept for others."""


class NoRoom(Struct, eq=False):
    """Why there is no room now."""

    message: str
    version: int = 0
    """Of the nodes: as long as no room becomes free it need not be asked again."""
    wanted: tuple[PodsToPlace, ...] = ()
    possible: int = 0
    """At most so many of the pods find a node; grows with what becomes free."""


class TopologyDomain(Struct, frozen=True):
    """Where all pods of a pod set go: nodes with this value of a label."""

    key: str
    value: str


TopologyDomains = Mapping[str, TopologyDomain]
"""By pod set, of those that have one."""


class PodTrouble(Struct, frozen=True):
    """Pods of an admitted workload that no node takes."""

    count: int
    message: str
    """The scheduler's, of one of them."""


class Room(Protocol):
    """A workload is known by its key ("namespace/name")."""

    @property
    def is_known(self) -> bool:
        """Whether there are nodes; if not, nothing can be said of them."""

    @property
    def version(self) -> int:
        """Of what is free."""

    def begin_anew(self) -> None:
        """Nothing is kept for anyone: an engine begins, and says who has quota."""

    def rejection(self, key: str, wanted: Sequence[PodsToPlace]) -> NoRoom | None:
        """Why these pods do not fit beside all that is there or kept; None if they do."""

    def fits_now(self, key: str, wanted: Sequence[PodsToPlace]) -> bool:
        """The same, tried out whatever is remembered: while others are imagined away."""

    def may_fit_without(self, keys: Iterable[str], wanted: Sequence[PodsToPlace]) -> bool:
        """Whether it is worth a try once these workloads are gone; False only if the amounts alone forbid it."""

    def take(self, key: str, wanted: Sequence[PodsToPlace]) -> TopologyDomains | NoRoom:
        """Try them out together, and keep their places if they fit."""

    def keep(self, key: str, wanted: Sequence[PodsToPlace], *, insists: bool = True) -> None:
        """It has quota already: keep places for those of its pods that are on no node, as far as there are any.

        `insists`: what is missing is made up for as soon as something becomes free.
        """

    def release(self, key: str) -> None:
        """Nothing is kept for the workload any more; its pods count as long as they are on nodes."""

    def without(self, keys: Iterable[str]) -> AbstractContextManager[None]:
        """Until the block ends, as if these workloads were gone with their pods."""

    def nodes_to_keep(self, wanted: Sequence[PodsToPlace]) -> frozenset[str]:
        """Nodes that would take them if no workload had any pods, free soonest; none if they do not fit."""

    def may_fit(self, rejection: NoRoom, kept: frozenset[str]) -> bool:
        """Whether enough has become free since to ask again; `kept`: nodes that are kept for others still."""

    def free(self, nodes: Iterable[str]) -> None:
        """These are not kept for anyone any more."""

    def follow_pods(self) -> None:
        """From now on `trouble` is known, whether room is asked for or not."""

    def is_on_nodes(self, key: str) -> bool:
        """Whether pods of the workload are on nodes still."""

    def trouble(self, key: str) -> PodTrouble | None:
        """What the scheduler says of the workload's pods that fit nowhere."""


class Anywhere:
    """Implements `Room` where nothing is known of nodes."""

    is_known = False
    version = 0

    def begin_anew(self) -> None: ...

    def rejection(self, key: str, wanted: Sequence[PodsToPlace]) -> NoRoom | None:
        return None

    def fits_now(self, key: str, wanted: Sequence[PodsToPlace]) -> bool:
        return True

    def may_fit_without(self, keys: Iterable[str], wanted: Sequence[PodsToPlace]) -> bool:
        return True

    def take(self, key: str, wanted: Sequence[PodsToPlace]) -> TopologyDomains | NoRoom:
        return {}

    def keep(self, key: str, wanted: Sequence[PodsToPlace], *, insists: bool = True) -> None: ...

    def release(self, key: str) -> None: ...

    def without(self, keys: Iterable[str]) -> AbstractContextManager[None]:
        return nullcontext()

    def nodes_to_keep(self, wanted: Sequence[PodsToPlace]) -> frozenset[str]:
        return frozenset()

    def may_fit(self, rejection: NoRoom, kept: frozenset[str]) -> bool:
        return True

    def free(self, nodes: Iterable[str]) -> None: ...

    def follow_pods(self) -> None: ...

    def is_on_nodes(self, key: str) -> bool:
        return False

    def trouble(self, key: str) -> PodTrouble | None:
        return None
