"""GpuClustering: pods of one kind (a part of a GPU, one, two, four, eight) together."""

from __future__ import annotations

from typing import Any

import numpy as np
from gpu_books import LARGEST_GPU, GpuPolicy, Wanted

from pilotage.api import Scores


class GpuClustering(GpuPolicy):
    def points(self, rows: np.ndarray[Any, Any], free_cpu: Scores, wanted: Wanted) -> Scores:
        if not wanted.count:
            return np.zeros(len(rows), dtype=np.int64)
        kinds = self._books.kinds[rows] > 0
        how_many, has_own = kinds.sum(axis=1), kinds[:, wanted.kind]
        together = np.select([how_many == 0, has_own & (how_many == 1), has_own], [25, 75, 50], 0)
        used = LARGEST_GPU - self._books.left[rows].sum(axis=1)
        return together + 25 * used // LARGEST_GPU
