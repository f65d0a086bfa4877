"""DynamicResources: a pod with claims goes where all devices that it claims can be had."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from pilotage.api import (
    Action,
    Affected,
    ClusterEvent,
    CycleState,
    Detail,
    Details,
    Filter,
    GroupAttempt,
    Handle,
    Hint,
    Mask,
    NodeTable,
    NodeView,
    NormalizeScore,
    Plugin,
    PodGroupPostFilter,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreFlight,
    Reason,
    Reject,
    RejectedNodes,
    Rejection,
    Reserve,
    Resource,
    Score,
    Scores,
    Sees,
    Skip,
    VectorFilter,
    VectorScore,
    narrows,
    on_event,
)
from pilotage.api.group_members import group_key
from pilotage.api.results import SKIP, SKIP_BESIDE_OTHERS
from pilotage.model import Pod
from pilotage.model.pod_group import PodGroup
from pilotage.model.resource import ResourceClaim
from pilotage.plugins.args import DynamicResourcesArgs
from pilotage.plugins.device_classes import DeviceClassIndex, extended_requests
from pilotage.plugins.dynamic_resources.allocation import (
    NO_CLAIMS,
    POD_CLAIMS,
    NodeAllocator,
    PodResourceClaims,
    Reserved,
    rejected,
)
from pilotage.plugins.dynamic_resources.claim_book import ClaimBook, PendingAllocation
from pilotage.plugins.dynamic_resources.claims import ClaimProblem, ReferencingPods, claims_of, claims_of_group
from pilotage.plugins.dynamic_resources.extended_claim import claim_in_memory
from pilotage.plugins.dynamic_resources.freeing import free_for_group, free_for_pod
from pilotage.plugins.dynamic_resources.requests import AllocationError, MissingClass
from pilotage.plugins.dynamic_resources.reservation import Reservations
from pilotage.plugins.normalize import by_maximum
from pilotage.rng import random_uid

_WITHOUT_DEVICES: Final = "no devices"


class DynamicResources(
    Plugin,
    PreEnqueue,
    PreFilter,
    Filter,
    Details,
    VectorFilter,
    PostFilter,
    Score,
    VectorScore,
    NormalizeScore,
    PodGroupPostFilter,
    Reserve,
    PreBind,
):
    name = "DynamicResources"
    filter_sees = Sees.NODE
    score_sees = Sees.NODE
    pure_hints = True
    always_queue_on = (
        ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL),
        ClusterEvent(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE),
        ClusterEvent(Resource.RESOURCE_SLICE, Action.ADD | Action.UPDATE),
    )

    args_type = DynamicResourcesArgs

    def __init__(self, handle: Handle, args: DynamicResourcesArgs) -> None:
        self._handle = handle
        self._args = args
        self._allocator = NodeAllocator(handle, args)
        self._reservations = Reservations(handle, args)
        self._schedules_groups = handle.watches("PodGroup")

    @cached_property
    def _book(self) -> ClaimBook:
        return self._handle.index(ClaimBook)

    @cached_property
    def _users(self) -> ReferencingPods:
        return self._handle.index(ReferencingPods)

    def sign(self, pod: Pod) -> Hashable | None:
        # What a claim gets depends on devices that several nodes may share: such pods are asked anew each time.
        return None if pod.spec.resource_claims or extended_requests(pod.spec) else _WITHOUT_DEVICES

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        if not pod.spec.resource_claims:
            return None
        try:
            self._claims(pod)
        except ClaimProblem as problem:
            return rejected("ClaimNotUsable", str(problem))
        return None

    # --- before the nodes --------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Skip | Rejection | None:
        extended = self._extended(pod)
        if not pod.spec.resource_claims and not extended:
            state[POD_CLAIMS] = NO_CLAIMS
            return SKIP
        # From here on PostFilter has something to go by, even if the claims turn out not to be usable.
        state[POD_CLAIMS] = NO_CLAIMS
        try:
            claims = self._claims(pod)
        except ClaimProblem as problem:
            return rejected("ClaimNotUsable", str(problem))
        if not claims and not extended:
            return SKIP
        try:
            state[POD_CLAIMS] = self._prepared(pod, claims, extended)
        except ClaimProblem as problem:
            return rejected("ClaimInFlight", str(problem))
        except MissingClass as problem:
            return rejected("MissingClass", str(problem))
        return None

    def _prepared(self, pod: Pod, claims: list[ResourceClaim], extended: Mapping[str, str | None]) -> PodResourceClaims:
        book = self._book
        to_allocate, shared, usable = [], [], []
        for claim in claims:
            pending = book.pending(claim.uid) if claim.status.allocation is None else None
            if pending is not None:
                if not self._may_share(pending, pod):
                    pending.turned_away[pod.uid] = pod
                    raise ClaimProblem(f"resource claim {claim.key} is in the process of being allocated")
                # To this pod it is allocated already: it follows the devices that its sibling gets.
                shared.append(Reserved(claim, pending.allocation))
                claim = replace(claim, status=replace(claim.status, allocation=pending.allocation))
            elif claim.status.allocation is None:
                to_allocate.append(self._allocator.prepare(claim))
            usable.append(claim)
        extended_claim = self._extended_claim(pod) if extended else None
        prepared = PodResourceClaims(usable, to_allocate, extended, extended_claim, shared)
        group = self._group_of(pod)
        if group is not None and group.spec.resource_claims:
            prepared.group, prepared.of_group = group, claims_of_group(pod, group)
        return prepared

    def _group_of(self, pod: Pod) -> PodGroup | None:
        """The group of the pod, if claims are reserved for groups."""
        if not (self._schedules_groups and self._args.reserves_for_groups):
            return None
        found: PodGroup | None = self._handle.objects("PodGroup").get(group_key(pod))
        return found

    def _may_share(self, pending: PendingAllocation, pod: Pod) -> bool:
        """Is it a sibling of the pod, a member of its group, for which the claim is being allocated?"""
        return self._schedules_groups and pending.group != "" and pending.group == group_key(pod)

    def _extended(self, pod: Pod) -> Mapping[str, str | None]:
        """The extended resources of the pod with the classes behind them; empty if there is no class for any."""
        wanted = extended_requests(pod.spec)
        if not wanted:
            return {}
        classes = self._handle.index(DeviceClassIndex)
        found = {resource: classes.class_for(resource) for resource in wanted}
        return found if any(found.values()) else {}

    def _extended_claim(self, pod: Pod) -> ResourceClaim:
        left_behind = self._book.extended_claim(pod)
        return left_behind or claim_in_memory(pod, random_uid(self._handle.rng))

    def _claims(self, pod: Pod) -> list[ResourceClaim]:
        if not pod.spec.resource_claims:
            return []
        return claims_of(pod, self._book.get)

    # --- each node ---------------------------------------------------------------------------------------------

    def filter(self, state: CycleState, pod: Pod, node: NodeView) -> Rejection | None:
        return self._allocator.try_node(state[POD_CLAIMS], pod, node, state.budget)

    def details(self, state: CycleState, pod: Pod, node: NodeView) -> Iterable[Detail]:
        return self._allocator.details(state[POD_CLAIMS], pod, node, state.budget)

    def filter_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Iterator[tuple[Mask, Reason]]:
        return self._allocator.rejections(state[POD_CLAIMS], pod, nodes, state.budget)

    def score(self, state: CycleState, pod: Pod, node: NodeView) -> int:
        claims = state.get(POD_CLAIMS)
        return 0 if claims is None or claims is NO_CLAIMS else preference(claims, node.name)

    def score_all(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Scores:
        claims = state.get(POD_CLAIMS)
        if claims is None or not has_alternatives(claims):
            return np.zeros(len(nodes), dtype=np.int64)
        return np.array([preference(claims, name) for name in nodes.names], dtype=np.int64)

    def normalize(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        return by_maximum(np.asarray(scores))

    def post_filter(self, state: CycleState, pod: Pod, rejected: RejectedNodes) -> Rejection:
        claims = state.get(POD_CLAIMS)
        if claims is None:
            # The pod was rejected before this plugin had a look at it.
            raise LookupError("not found")
        return free_for_pod(self._handle, claims, pod)

    def pod_group_post_filter(self, attempt: GroupAttempt) -> Rejection:
        if attempt.group.topology_key:
            # What could not be used in one placement may be what another needs.
            return Reject()
        return free_for_group(self._handle, attempt)

    # --- the chosen node ---------------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        claims = state.get(POD_CLAIMS)
        if claims is None or claims is NO_CLAIMS:
            return None
        node = self._handle.node(node_name)
        if node is None:
            raise AllocationError(f"node {node_name} is gone")
        self._reservations.reserve(claims, pod, node.node)
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        claims = state.get(POD_CLAIMS)
        if claims is not None and claims is not NO_CLAIMS:
            self._reservations.unreserve(claims, pod)

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreFlight | Skip:
        claims = state.get(POD_CLAIMS)
        has_work = claims is not None and claims is not NO_CLAIMS
        return PreFlight(allow_parallel=True) if has_work else SKIP_BESIDE_OTHERS

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Rejection | None:
        claims = state.get(POD_CLAIMS)
        if claims is not None and claims is not NO_CLAIMS:
            await self._reservations.write(claims, pod)
        return None

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

    @narrows(Resource.RESOURCE_CLAIM, Action.ADD | Action.UPDATE | Action.DELETE)
    def pods_with_the_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> Affected:
        """Devices that were freed may help anybody; everything else concerns the pods that use the claim."""
        claim = new if new is not None else old
        assert claim is not None
        had_devices = old is not None and old.status.allocation is not None
        if had_devices and (new is None or new.status.allocation is None):
            return Affected.all()
        return Affected.pods(self._users.of(claim.key))

    @on_event(Resource.TARGET_POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    def after_claim_was_generated(self, pod: Pod, old: Pod, new: Any) -> Hint:
        try:
            self._claims(new)
        except ClaimProblem:
            return Hint.SKIP
        return Hint.QUEUE


MOST_ALTERNATIVES = 8


def has_alternatives(claims: PodResourceClaims) -> bool:
    """Without alternatives all nodes are equally good."""
    return any(wanted.alternative for claim in claims.to_allocate for some in claim.requests for wanted in some)


def preference(claims: PodResourceClaims, node_name: str) -> int:
    """The first of a list of alternatives is worth 8, the next 7, and so on; summed over all such requests."""
    outcome = claims.outcome(node_name)
    if outcome is None:
        return 0
    total = 0
    for claim, picks in zip(outcome.claims, outcome.picks, strict=True):
        taken = {pick.wanted.label for pick in picks}
        for alternatives in claim.requests:
            for place, wanted in enumerate(alternatives):
                if wanted.alternative and wanted.label in taken:
                    total += MOST_ALTERNATIVES - place
    return total
