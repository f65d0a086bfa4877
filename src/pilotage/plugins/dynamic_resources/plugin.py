"""DynamicResources: a pod with claims goes where all devices that it claims can be had."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from pilotage.api import (
    Action,
    ClusterEvent,
    CycleState,
    Filter,
    Handle,
    Hint,
    NodeTable,
    NodeView,
    NormalizeScore,
    Plugin,
    PreEnqueue,
    PreFilter,
    Reason,
    Refusal,
    Reject,
    Resource,
    Score,
    Scores,
    Skip,
    on_event,
)
from pilotage.api.results import SKIP
from pilotage.model import Pod
from pilotage.model.resource import ResourceClaim
from pilotage.plugins.dynamic_resources.claims import ClaimProblem, claims_of
from pilotage.plugins.dynamic_resources.extended_resources import DeviceClassIndex, extended_requests
from pilotage.plugins.normalize import by_maximum

_NO_DEVICES: Final = "no devices"


class DynamicResources(Plugin, PreEnqueue, PreFilter, Filter, Score, NormalizeScore):
    name = "DynamicResources"
    always_queue_on = (
        ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL),
        ClusterEvent(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE),
        ClusterEvent(Resource.RESOURCE_SLICE, Action.ADD | Action.UPDATE),
    )

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def sign(self, pod: Pod) -> Hashable | None:
        # What a claim gets depends on devices that several nodes may share: such pods are asked anew each time.
        return None if pod.spec.resource_claims or extended_requests(pod.spec) else _NO_DEVICES

    def pre_enqueue(self, pod: Pod) -> Refusal | None:
        try:
            self._claims(pod)
        except ClaimProblem as problem:
            return _refused(problem)
        return None

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | Refusal | None:
        if not pod.spec.resource_claims and not self._uses_classes(pod):
            return SKIP
        try:
            self._claims(pod)
        except ClaimProblem as problem:
            return _refused(problem)
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Refusal | None:
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        return 0

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return by_maximum(np.asarray(scores))

    def _uses_classes(self, pod: Pod) -> bool:
        wanted = extended_requests(pod.spec)
        if not wanted:
            return False
        classes = self._handle.index(DeviceClassIndex)
        return any(classes.class_for(resource) is not None for resource in wanted)

    def _claims(self, pod: Pod) -> list[ResourceClaim]:
        if not pod.spec.resource_claims:
            return []
        return claims_of(pod, self._handle.objects("ResourceClaim").get)

    # --- what helps --------------------------------------------------------------------------------------------

    @on_event(Resource.RESOURCE_CLAIM, Action.ADD | Action.UPDATE | Action.DELETE)
    def after_claim_change(self, pod: Pod, old: ResourceClaim | None, new: ResourceClaim | None) -> Hint:
        if new is None:
            return Hint.QUEUE if old is not None and old.status.allocation is not None else Hint.SKIP
        try:
            uses = any(claim.uid == new.uid for claim in self._claims(pod))
        except ClaimProblem:
            return Hint.SKIP
        if old is not None and old.status.allocation is not None and new.status.allocation is None:
            return Hint.QUEUE
        if not uses:
            return Hint.SKIP
        return Hint.QUEUE if old is None or old.status != new.status else Hint.SKIP

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    def after_claim_was_generated(self, pod: Pod, old: Pod, new: Any) -> Hint:
        try:
            self._claims(new)
        except ClaimProblem:
            return Hint.SKIP
        return Hint.QUEUE


def _refused(problem: ClaimProblem) -> Reject:
    return Reject(Reason("ClaimNotUsable", str(problem), unresolvable=True))
