"""All nodes as columns: what vectorised plugins work on.

Every method returns an array with one entry per node of the table, in the table's own order. The arrays are
read-only. A plugin must not remember them: the next cycle sees others, and the framework also hands in tables of just
a few changed nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pilotage.model import Node
from pilotage.model.node import Taint

Mask: TypeAlias = NDArray[np.bool_]
Scores: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = NDArray[np.int32]
Rows: TypeAlias = NDArray[np.int64]


class NodeTable(Protocol):
    """A read-only table with a row per node."""

    def __len__(self) -> int:
        """How many nodes there are in the table."""

    @property
    def names(self) -> Sequence[str]:
        """Node names, row by row."""

    def allocatable(self, resource: str) -> Scores:
        """What the node offers: cpu in milli-cores, everything else in units; 0 if it has none."""

    def is_offered(self, resource: str) -> bool:
        """False if no node of the cluster has any of it: one look, where a column would be all 0."""

    def requested(self, resource: str) -> Scores:
        """What the pods on the node have requested."""

    def free(self, resource: str) -> Scores:
        """allocatable - requested."""

    def non_zero_requested(self, resource: str) -> Scores:
        """What scoring counts as requested: cpu and memory with the defaults for containers that request nothing."""

    @property
    def pod_count(self) -> Scores:
        """Number of pods on the node."""

    @property
    def unschedulable(self) -> Mask:
        """True where the node is cordoned."""

    def labels(self, key: str) -> tuple[Codes, Sequence[str]]:
        """Label values as small integers: codes (-1 where the label is missing) and the values they stand for.

        A value keeps its code, and its place among the values, even when no node has it any more, as long as `values`
        is the same list: a change of a node may begin a new one.
        """

    def has_label(self, key: str) -> bool:
        """False if no node of the cluster has this label: one look, where a column would be all -1."""

    def taint_sets(self) -> tuple[Codes, Sequence[tuple[Taint, ...]]]:
        """Taints as small integers: codes and the distinct taint sets they stand for."""

    def rows_of(self, names: frozenset[str]) -> Mask:
        """True for the nodes with these names."""

    def node(self, row: int) -> Node:
        """The Node object of a row."""

    def everywhere(self, value: bool) -> Mask:
        """A mask with the same value in every row."""

    def pick(self, column: NDArray[Any]) -> NDArray[Any]:
        """Of a column with an entry for each node of `handle.nodes`, the entries for the nodes of this table."""

    def derived(self, key: Hashable, derive: Callable[[NodeTable], NDArray[Any]]) -> NDArray[Any]:
        """A column of your own that is kept between pods: `derive` is asked about nodes that are new or have changed.

        It gets a table of them and answers with an array whose last axis has an entry for each. What it says of a node
        may depend on nothing but what that table shows of the node, and `key`, which is the name of the column for all
        plugins: begin it with the name of yours. Few columns are kept, so a pod should not be part of the key.
        """
