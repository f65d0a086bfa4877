"""GpuPacking: GPUs that are in use before free ones, and nodes that are in use before free ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from gpu_books import WHOLE, GpuPolicy, Wanted

from pilotage.api import Scores


class GpuPacking(GpuPolicy):
    def points(self, rows: np.ndarray[Any, Any], free_cpu: Scores, wanted: Wanted) -> Scores:
        if not wanted.count:
            return np.zeros(len(rows), dtype=np.int64)
        left, count = self._books.left[rows], self._books.count[rows]
        # The fullest GPUs that suffice come first; where there are too few, the pod does not fit anyway.
        fullest = np.sort(np.where(left >= wanted.milli, left, WHOLE), axis=1)[:, : wanted.count]
        whole = (fullest == WHOLE).sum(axis=1)
        percent = (fullest // 10).sum(axis=1)
        points = np.where(whole > 0, np.maximum(50 - whole, 33), np.maximum(100 - percent // 10, 50))
        is_free = left.sum(axis=1) == count * WHOLE
        return np.where(is_free, np.maximum(33 - count, count), points)
