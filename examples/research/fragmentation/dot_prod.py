"""DotProd: little is left of what the pod wants much of."""

from __future__ import annotations

from typing import Any

import numpy as np
from gpu_books import LARGEST_CPU, LARGEST_GPU, GpuPolicy, Wanted

from pilotage.api import Scores


class DotProd(GpuPolicy):
    def points(self, rows: np.ndarray[Any, Any], free_cpu: Scores, wanted: Wanted) -> Scores:
        free_gpu = self._books.left[rows].sum(axis=1)
        cpu = free_cpu / LARGEST_CPU * (wanted.cpu / LARGEST_CPU)
        gpu = free_gpu / LARGEST_GPU * (wanted.total / LARGEST_GPU)
        return np.clip(100 * (1 - (cpu + gpu) / 2), 0, 100).astype(np.int64)
