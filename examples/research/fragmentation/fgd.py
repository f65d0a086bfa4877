"""FGD, fragmentation gradient descent: where the pod leaves the least that typical pods cannot use.

To a typical pod, what is left of a node's GPUs is a fragment: all of it, if the pod cannot run there (or wants no GPU);
else what is left of the GPUs that have less than it wants. The fragmentation of a node is the mean over typical pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gpu_books import MOST, WHOLE, GpuPolicy, Wanted

from pilotage.api import Handle, Scores

Column = np.ndarray[Any, Any]
_EARLIER = np.tri(MOST, k=-1, dtype=np.bool_)


@dataclass(frozen=True)
class FGDArgs:
    """`typicalPods` in pluginConfig: "milli-CPU GPUs milli-of-each models": share of all pods."""

    typical_pods: Mapping[str, float] = field(default_factory=dict)


class Typical:
    """Typical pods by kind (how many GPUs, how much of each), and the share of each that suits a CPU and a model."""

    def __init__(self, pods: Mapping[str, float]) -> None:
        parts = [text.split() for text in pods]
        self._share = np.array(list(pods.values()))
        cpu, count, milli = np.array([part[:3] for part in parts], dtype=np.int64).reshape(-1, 3).T
        sizes, size_of = np.unique(milli, return_inverse=True)
        self._width, self._rank = len(sizes) + 1, np.searchsorted(sizes, np.arange(WHOLE + 1), side="right")
        (self._size, self._count), kind_of = np.unique([size_of, count], axis=1, return_inverse=True)
        # Pods without GPUs are of no kind that suits.
        self._kinds = np.where(count > 0, self._share, 0)[:, None] * np.eye(len(self._size))[kind_of.ravel()]
        self._cpus = np.unique(cpu)
        self._suits_cpu = cpu <= np.concatenate([[-1], self._cpus])[:, None]
        self._allowed = [frozenset(part[3].split("|")) if part[3:] else frozenset() for part in parts]
        self._suited = np.zeros((0, 0, 0))

    def fragments(self, left: Column, cpu: Column, model: Column, models: Sequence[str]) -> Column:
        """The fragmentation of nodes with so much left of each GPU (rows), so much CPU, and one of these models."""
        total, cells = left.sum(axis=1), len(left) * self._width
        place = (np.arange(len(left))[:, None] * self._width + self._rank[left]).ravel()
        smaller = np.bincount(place, minlength=cells).reshape(-1, self._width).cumsum(axis=1)
        low = np.bincount(place, left.ravel(), cells).reshape(-1, self._width).cumsum(axis=1)
        is_enough = MOST - smaller[:, self._size] >= self._count
        useful = np.where(is_enough, total[:, None] - low[:, self._size], 0)
        if len(self._suited) < len(models):
            may = np.array([[not names or one in names for names in self._allowed] for one in models])
            self._suited = (self._suits_cpu & may[:, None]) @ self._kinds
        suited = self._suited[model, np.searchsorted(self._cpus, cpu, side="right")]
        return self._share.sum() * total - np.einsum("nk,nk->n", useful, suited)


class FGD(GpuPolicy):
    args_type = FGDArgs

    def __init__(self, handle: Handle, args: FGDArgs) -> None:
        super().__init__(handle)
        self._typical = Typical(args.typical_pods)

    def points(self, rows: Column, free_cpu: Scores, wanted: Wanted) -> Scores:
        return np.maximum(self._by_choice(rows, free_cpu, wanted).max(axis=1), 0)

    def devices(self, row: int, free_cpu: int, wanted: Wanted) -> Sequence[int]:
        if wanted.milli == WHOLE:
            return super().devices(row, free_cpu, wanted)
        return [int(self._by_choice(np.array([row]), np.array([free_cpu]), wanted)[0].argmax())]

    def _by_choice(self, rows: Column, cpu: Column, wanted: Wanted) -> Column:
        """Points of each node (rows) for every choice of GPUs that is looked at; -1 where too little is left."""
        left, model = self._books.left[rows], self._books.model[rows]
        if 0 < wanted.milli < WHOLE:  # any of them; what is equal is looked at once
            is_same = left[:, :, None] == left[:, None, :]
            at, device = np.nonzero((left >= wanted.milli) & ~(is_same & _EARLIER).any(axis=2))
            after = left[at]
            after[np.arange(len(at)), device] -= wanted.milli
        else:  # free ones are all alike
            at, device = np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)
            is_free = left == WHOLE
            after = np.where(is_free & (is_free.cumsum(axis=1) <= wanted.count), 0, left)
        before = self._typical.fragments(left, cpu, model, self._books.models)
        then = self._typical.fragments(after, cpu[at] - wanted.cpu, model[at], self._books.models)
        points = np.full(left.shape, -1, dtype=np.int64)
        points[at, device] = _points(before[at] - then)
        return points


def _points(less: Column) -> Column:
    # Sums of the same numbers in another order are not equal to the last digit.
    return (100 / (1 + np.exp(-np.round(less, 6) / 1000))).astype(np.int64)
