"""Random: one of the nodes that fit, each equally likely, and any of its GPUs that suffice.

Every node gets the same points: simulate it with `--ties random`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gpu_books import GpuPolicy, Wanted

from pilotage.api import Scores


class Random(GpuPolicy):
    def points(self, rows: np.ndarray[Any, Any], free_cpu: Scores, wanted: Wanted) -> Scores:
        return np.zeros(len(rows), dtype=np.int64)

    def devices(self, row: int, free_cpu: int, wanted: Wanted) -> Sequence[int]:
        enough = np.flatnonzero(self._books.left[row] >= wanted.milli).tolist()
        return enough[: wanted.count] if wanted.kind else [self._handle.rng.choice(enough)]
