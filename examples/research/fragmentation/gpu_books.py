"""GPUs that pods share, by annotations: what all policies of this experiment have in common.

A pod says how many GPUs it wants (`gpu-count`), thousandths of each (`gpu-milli`, below 1000 only of one), and on which
models if not on any (`gpu-card-model`, joined by "|"). A node says how many it has (the extended resource `gpu`, which
nobody requests) and of which model (a label). Which GPUs a pod got is written into its annotation `gpu-index` before it
is bound: "2", or "0-1-2-3". After a restart the books are read from there.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pilotage.api import (
    KINDS,
    Action,
    ClusterEvent,
    ClusterIndex,
    CycleState,
    Handle,
    Mask,
    Node,
    NodeTable,
    Plugin,
    Pod,
    PreBind,
    Reason,
    Reject,
    Reserve,
    Resource,
    Scores,
    VectorFilter,
    VectorScore,
    pod_requests,
)

GROUP = "research.example.com"
GPUS = f"{GROUP}/gpu"
MODEL = f"{GROUP}/gpu-model"
WHOLE = 1000
MOST = 8
LARGEST_CPU, LARGEST_GPU = 128_000, MOST * WHOLE
KINDS_OF_PODS = (0, 1, 2, 4, 8)
"""A part of a GPU, one GPU, ..."""


class Wanted(NamedTuple):
    """What a pod asks for."""

    cpu: int
    count: int
    milli: int
    models: frozenset[str]
    """Empty: any."""

    @property
    def total(self) -> int:
        return self.count * self.milli

    @property
    def kind(self) -> int:
        """Where it stands among `KINDS_OF_PODS`."""
        return 0 if self.milli < WHOLE else KINDS_OF_PODS.index(self.count)


def wanted_by(pod: Pod) -> Wanted:
    said = pod.annotations
    models = frozenset(said.get(f"{GROUP}/gpu-card-model", "").split("|")) - {""}
    count, milli = int(said.get(f"{GROUP}/gpu-count", "0")), int(said.get(f"{GROUP}/gpu-milli", "0"))
    return Wanted(pod_requests(pod.spec).get("cpu", 0), count, milli, models)


class GpuBooks(ClusterIndex):
    """What is left of each GPU of each node, in thousandths; columns in the order in which the nodes came."""

    def __init__(self) -> None:
        self.left = np.zeros((0, MOST), dtype=np.int64)
        self.count = np.zeros(0, dtype=np.int64)
        self.models: list[str] = []
        self.model = np.zeros(0, dtype=np.int64)
        """Which of the models each node has."""
        self.kinds = np.zeros((0, len(KINDS_OF_PODS)), dtype=np.int64)
        """How many pods of each kind are on the node."""
        self.row_of: dict[str, int] = {}
        self.changed: set[int] = set()
        """Rows that have changed, for whoever clears this."""
        self._taken: dict[str, tuple[int, list[int], Wanted]] = {}
        self._rows: np.ndarray[Any, Any] | None = None

    def node_put(self, old: Node | None, new: Node) -> None:
        self._rows = None
        if new.name in self.row_of:
            return  # GPUs do not change while a node is there
        count = int(new.status.allocatable.get(GPUS, 0))
        self.row_of[new.name] = len(self.count)
        model = new.labels.get(MODEL, "")
        if model not in self.models:
            self.models.append(model)
        self.model = np.append(self.model, self.models.index(model))
        self.left = np.vstack([self.left, np.where(np.arange(MOST) < count, WHOLE, 0)])
        self.kinds = np.vstack([self.kinds, np.zeros((1, len(KINDS_OF_PODS)), dtype=np.int64)])
        self.count = np.append(self.count, count)

    def node_removed(self, node: Node) -> None:
        self._rows = None

    def pod_added(self, pod: Pod, node_name: str) -> None:
        index = pod.annotations.get(f"{GROUP}/gpu-index", "")
        if index:
            self.take(pod, node_name, [int(number) for number in index.split("-")])

    def pod_removed(self, pod: Pod, node_name: str) -> None:
        row, devices, wanted = self._taken.pop(pod.uid, (-1, [], None))
        if wanted is not None:
            self.left[row, devices] += wanted.milli
            self.kinds[row, wanted.kind] -= 1
            self.changed.add(row)

    def take(self, pod: Pod, node_name: str, devices: list[int]) -> None:
        row = self.row_of.get(node_name)
        if row is None or pod.uid in self._taken:
            return
        wanted = wanted_by(pod)
        self.left[row, devices] -= wanted.milli
        self.kinds[row, wanted.kind] += 1
        self._taken[pod.uid] = row, devices, wanted
        self.changed.add(row)

    def taken_by(self, pod: Pod) -> list[int]:
        return self._taken.get(pod.uid, (0, [], None))[1]

    def rows(self, nodes: NodeTable, every: NodeTable) -> np.ndarray[Any, Any]:
        """The row of each node of a table, which has some of `every` node."""
        if self._rows is None:
            self._rows = np.array([self.row_of[name] for name in every.names], dtype=np.int64)
        return nodes.pick(self._rows)


def suffice(left: np.ndarray[Any, Any], wanted: Wanted) -> Mask:
    """On which of these nodes enough GPUs have enough left."""
    enough: Mask = (left >= max(wanted.milli, 1)).sum(axis=-1) >= wanted.count
    return enough


class GpuPolicy(Plugin, VectorFilter, VectorScore, Reserve, PreBind):
    """Base of the policies: where the GPUs suffice, and which of them a pod gets."""

    always_queue_on = (ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE), ClusterEvent(Resource.NODE, Action.ADD))

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._books = handle.index(GpuBooks)

    @abstractmethod
    def points(self, rows: np.ndarray[Any, Any], free_cpu: Scores, wanted: Wanted) -> Scores:
        """The score of each of these rows of the books, 0 to 100."""

    def devices(self, row: int, free_cpu: int, wanted: Wanted) -> Sequence[int]:
        """The free GPUs with the lowest numbers; of a pod that wants a part, the one with the least left."""
        left = self._books.left[row]
        enough = np.flatnonzero(left >= wanted.milli)
        return enough[np.argsort(left[enough], kind="stable")[: wanted.count]].tolist()

    def sign(self, pod: Pod) -> Hashable:
        return wanted_by(pod)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        wanted = wanted_by(pod)
        if not wanted.count:
            return
        rows = self._books.rows(nodes, self._handle.nodes)
        yield ~suffice(self._books.left[rows], wanted), Reason("TooFewGpus", "too few GPUs with enough left")
        if wanted.models:
            codes, values = nodes.labels(MODEL)
            allowed = np.array([value in wanted.models for value in (*values, "")], dtype=np.bool_)
            yield ~allowed[codes], Reason("WrongModel", "another GPU model")

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        return self.points(self._books.rows(nodes, self._handle.nodes), nodes.free("cpu"), wanted_by(pod))

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Reject | None:
        wanted, row = wanted_by(pod), self._books.row_of[node_name]
        if wanted.count:
            if not suffice(self._books.left[row], wanted):
                return Reject(Reason("TooFewGpus", "too few GPUs with enough left"))
            view = self._handle.node(node_name)
            # The pod counts on its node already.
            free = 0 if view is None else view.allocatable("cpu") - view.requested("cpu") + wanted.cpu
            self._books.take(pod, node_name, list(self.devices(row, free, wanted)))
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._books.pod_removed(pod, node_name)

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        devices = self._books.taken_by(pod)
        if devices:
            written = {f"{GROUP}/gpu-index": "-".join(map(str, devices))}
            body = json.dumps({"metadata": {"uid": pod.uid, "annotations": written}}).encode()
            kind = KINDS["pods"]
            await self._handle.client.patch(
                kind, pod.namespace, pod.name, body, content_type="application/merge-patch+json"
            )
