"""VolumeBinding: a pod goes where its volumes are or can be made, and its claims are bound before it is."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Final

import numpy as np

from pilotage.api import (
    CycleState,
    Filter,
    Handle,
    NodeTable,
    NodeView,
    PreFilter,
    PreScore,
    Refusal,
    Score,
    Scores,
    Skip,
    VectorScore,
)
from pilotage.api.results import SKIP
from pilotage.model import Pod
from pilotage.plugins.args import VolumeBindingArgs
from pilotage.plugins.pod_volumes import has_claims
from pilotage.plugins.volume_binding.hints import VolumeHints

_NO_CLAIMS: Final = "no claims"


class VolumeBinding(VolumeHints, PreFilter, Filter, PreScore, Score, VectorScore):
    name = "VolumeBinding"
    args_type: ClassVar[type | None] = VolumeBindingArgs

    def __init__(self, handle: Handle, args: VolumeBindingArgs) -> None:
        self._handle = handle
        self._args = args

    def sign(self, pod: Pod) -> Hashable | None:
        return None if has_claims(pod) else _NO_CLAIMS

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | Refusal | None:
        return None if has_claims(pod) else SKIP

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Refusal | None:
        return None

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | None:
        return SKIP if self._args.shape is None else None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 0

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        return np.zeros(len(nodes), dtype=np.int64)
