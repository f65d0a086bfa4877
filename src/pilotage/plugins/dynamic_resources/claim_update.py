"""Write to a claim what pods want of it: one call for all of them.

    RESERVE    use the claim, and the devices that the pod was placed by; if they are new, they are to be allocated
    RELEASE    use it no longer; what was allocated stays
    FREE       give the devices back, if nobody else uses them

A claim of a PodGroup is used in the name of the group: the first member writes it down, the others find it there.

A pod has one intent for a claim: its last. Intents of different pods never contradict each other but in one point:
devices that one pod wants to use are not freed for another, whoever came first. An intent that cannot be granted fails
for itself and harms no other.

Two pods that share a claim never write to it at the same time. What is wanted while a call waits is put together with
it and written at once; what is wanted while one is in flight follows it. Each pod learns what became of its intent.

A patch carries the claim's version, so that the server rejects it if somebody else was faster (then the claim is read,
and the intents are looked at again), and names only what changes, so that fields which this scheduler does not know are
kept. A patch that only takes pods off is right for any version.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Final

import msgspec
from msgspec.structs import replace

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance, Seen, is_not_found
from pilotage.model import KINDS, Pod
from pilotage.model.pod_group import PodGroup
from pilotage.model.resource import AllocationResult, ClaimConsumer, ResourceClaim
from pilotage.plugins.dynamic_resources.claims import is_newer
from pilotage.plugins.dynamic_resources.requests import AllocationError

MOST_CONSUMERS: Final = 256
"""The API server accepts no more."""


class Act(Enum):
    RESERVE = "reserve"
    RELEASE = "release"
    FREE = "free"


class ClaimIntent(msgspec.Struct, frozen=True, eq=False):
    """What one pod wants."""

    act: Act
    pod: Pod
    allocation: AllocationResult | None = None
    """RESERVE: the devices that the pod was placed by."""
    is_new: bool = False
    """RESERVE: nobody has allocated them yet."""
    group: PodGroup | None = None
    """In whose name, if it is not the pod's own."""

    @property
    def user(self) -> ClaimConsumer:
        if self.group is not None:
            return ClaimConsumer("scheduling.k8s.io", "podgroups", self.group.name, self.group.uid)
        return ClaimConsumer(resource="pods", name=self.pod.name, uid=self.pod.uid)


class Granted(msgspec.Struct, eq=False):
    """The claim as it is to be, as far as intents are about it, and the intents that come to nothing."""

    users: dict[str, ClaimConsumer]
    """By UID."""
    allocation: AllocationResult | None
    failures: dict[str, AllocationError] = msgspec.field(default_factory=dict)
    """By UID of the pod."""


def grant(claim: ResourceClaim, intents: Sequence[ClaimIntent]) -> Granted:
    """What is to become of a claim. Who leaves goes first, and who would free the devices comes last."""
    status = claim.status
    granted = Granted({user.uid: user for user in status.reserved_for}, status.allocation)
    for intent in intents:
        if intent.act is Act.RELEASE:
            granted.users.pop(intent.user.uid, None)
    for intent in intents:
        if intent.act is Act.RESERVE and (problem := _reserve(claim, granted, intent)):
            granted.failures[intent.pod.uid] = AllocationError(f"claim {claim.key} {problem}")
    for intent in intents:
        if intent.act is not Act.FREE:
            continue
        if granted.users.keys() - {intent.user.uid}:
            granted.failures[intent.pod.uid] = AllocationError(f"claim {claim.key} is in use by another pod")
        else:
            granted.users.clear()
            granted.allocation = None
    return granted


def gone(claim: ResourceClaim, intents: Iterable[ClaimIntent]) -> dict[str, AllocationError]:
    """Who does not get what it wants because there is no such claim any more: those who would use it."""
    text = f"claim {claim.key} got deleted in the meantime"
    return {intent.pod.uid: AllocationError(text) for intent in intents if intent.act is Act.RESERVE}


def _reserve(claim: ResourceClaim, granted: Granted, intent: ClaimIntent) -> str:
    """Returns what is wrong, "" if the pod can use the claim."""
    if claim.metadata.deletion_timestamp is not None:
        return "got deleted in the meantime"
    if granted.allocation is None and not intent.is_new:
        return "got deallocated elsewhere in the meantime"
    if granted.allocation is None:
        granted.allocation = intent.allocation
    elif not _same_devices(granted.allocation, intent.allocation):
        return "got allocated elsewhere in the meantime"
    user = intent.user
    if user.uid not in granted.users:
        if len(granted.users) >= MOST_CONSUMERS:
            return f"is reserved for {MOST_CONSUMERS} pods already, which is the most that there can be"
        granted.users[user.uid] = user
    return ""


def _same_devices(one: AllocationResult, other: AllocationResult | None) -> bool:
    """The API server may write the rest of an allocation in another way than we did."""
    if one is other:
        return True
    return other is not None and _devices(one) == _devices(other)


def _devices(allocation: AllocationResult) -> list[tuple[str, str, str, str, str | None]]:
    return [(r.request, r.driver, r.pool, r.device, r.share_id) for r in allocation.devices.results]


FINALIZER: Final = "resource.kubernetes.io/delete-protection"
_MERGE_PATCH: Final = "application/merge-patch+json"
_STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
_CLAIMS: Final = KINDS["resourceclaims"]


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Written(msgspec.Struct):
    metadata: _Metadata


_written: Final = msgspec.json.Decoder(_Written)


class _Plan(msgspec.Struct, frozen=True, eq=False):
    """What the call would do to this version of the claim."""

    claim: ResourceClaim
    granted: Granted
    changes: dict[str, Any]


class ClaimUpdate(ApiCall):
    """PATCH a claim's status, after its finalizer if it gets its devices."""

    __slots__ = ("_failures", "_intents", "_now", "_parts", "_plan", "claim")

    kind: ClassVar[str] = "claim_update"
    lane: ClassVar[Lane] = Lane.VOLUME
    relevance: ClassVar[int] = Relevance.BINDING
    retries_conflicts: ClassVar[bool] = True
    joins: ClassVar[bool] = True

    def __init__(
        self, claim: ResourceClaim, *intents: ClaimIntent, now: str = "", parts: tuple[ClaimUpdate, ...] = ()
    ) -> None:
        """`now` is the time of an allocation; `parts` are the calls that this one was put together from."""
        self.claim = claim
        """The claim as it is known to be on the server: before the call, and after it."""
        self._intents = intents
        self._now = now
        self._parts = parts
        self._plan: _Plan | None = None
        self._failures: Mapping[str, Exception] = {}

    @property
    def object_key(self) -> str:
        return self.claim.uid

    # --- putting together --------------------------------------------------------------------------------------

    def merged_with(self, newer: ApiCall) -> ApiCall:
        assert isinstance(newer, ClaimUpdate)
        changed = {intent.pod.uid for intent in newer._intents}
        intents = (*(intent for intent in self._intents if intent.pod.uid not in changed), *newer._intents)
        claim = newer.claim if is_newer(newer.claim, self.claim) else self.claim
        parts = (*(self._parts or (self,)), *(newer._parts or (newer,)))
        merged = ClaimUpdate(claim, *intents, now=newer._now or self._now)
        merged._parts = tuple(part for part in parts if merged.still_wants(part))
        return merged

    def still_wants(self, part: ApiCall) -> bool:
        return isinstance(part, ClaimUpdate) and all(intent in self._intents for intent in part._intents)

    def failure_of(self, part: ApiCall) -> Exception | None:
        assert isinstance(part, ClaimUpdate)
        if not self._failures:
            return None
        return next((self._failures[w.pod.uid] for w in part._intents if w.pod.uid in self._failures), None)

    # --- what the server has -----------------------------------------------------------------------------------

    def rebase(self, obj: Any) -> None:
        if is_newer(obj, self.claim):
            self._learn(obj)

    def follow(self, done: ApiCall) -> None:
        assert isinstance(done, ClaimUpdate)
        self.rebase(done.claim)

    def is_pointless(self) -> bool:
        plan = self._planned()
        return not plan.granted.failures and not plan.changes

    async def look(self, writer: ApiWriter) -> Seen:
        found = await read_claim(writer, self.claim)
        if found is None:
            self._failures = gone(self.claim, self._intents)
            return Seen(True)
        self._learn(found)
        return Seen(self.is_pointless(), found)

    def _learn(self, claim: ResourceClaim) -> None:
        self.claim = claim
        for part in self._parts:
            part.claim = claim

    # --- writing -----------------------------------------------------------------------------------------------

    def _planned(self) -> _Plan:
        """Asked when the call is submitted and when it is sent: mostly nothing has happened between."""
        plan, claim = self._plan, self.claim
        if plan is None or plan.claim is not claim:
            granted = grant(claim, self._intents)
            plan = self._plan = _Plan(claim, granted, _changes(claim, granted))
        return plan

    async def perform(self, writer: ApiWriter) -> str | None:
        plan = self._planned()
        claim, granted, changes = plan.claim, plan.granted, plan.changes
        self._failures = granted.failures
        if not changes:
            return None
        try:
            if changes.keys() == {"released"}:
                claim = await _release(writer, claim, changes["released"])
            else:
                claim = await self._update(writer, claim, granted, changes)
        except Exception as error:
            if not is_not_found(error):
                raise
            self._failures = gone(claim, self._intents)
            return None
        self._learn(claim)
        return claim.resource_version

    async def _update(
        self, writer: ApiWriter, claim: ResourceClaim, granted: Granted, changes: dict[str, Any]
    ) -> ResourceClaim:
        new: AllocationResult | None = changes.get("allocation")
        if new is not None and FINALIZER not in claim.metadata.finalizers:
            claim = await _protect(writer, claim)
        status: dict[str, Any] = {"reservedFor": list(granted.users.values()) or None}
        if new is not None:
            status["allocation"] = replace(new, allocation_timestamp=self._now)
        elif granted.allocation is None:
            status |= {"allocation": None, "devices": None}
        elif granted.allocation.allocation_timestamp is None and self._now:
            status["allocation"] = {"allocationTimestamp": self._now}
        return await write_claim(writer, claim, {"status": status}, subresource="status")


def _changes(claim: ResourceClaim, granted: Granted) -> dict[str, Any]:
    """What is to be written: an allocation or none, new users, and users that leave."""
    had = {user.uid for user in claim.status.reserved_for}
    changes: dict[str, Any] = {}
    if granted.allocation is not claim.status.allocation:
        changes["allocation"] = granted.allocation
    users = granted.users.keys()
    if joining := users - had:
        changes["reserved"] = joining
    if leaving := had - users:
        changes["released"] = sorted(leaving)
    return changes


async def read_claim(writer: ApiWriter, known: ResourceClaim) -> ResourceClaim | None:
    """The claim as the server has it now; None if it is gone, also if another one has its name."""
    try:
        found: ResourceClaim = _CLAIMS.decode(await writer.get(_CLAIMS, known.namespace, known.name))
    except Exception as error:
        if not is_not_found(error):
            raise
        return None
    return found if found.uid == known.uid else None


def write_claim(
    writer: ApiWriter, claim: ResourceClaim, patch: dict[str, Any], subresource: str = ""
) -> Coroutine[Any, Any, ResourceClaim]:
    """Patch this version of the claim; returns what became of it."""
    metadata = {**patch.get("metadata", {}), "resourceVersion": claim.resource_version}
    return _send(writer, claim, {**patch, "metadata": metadata}, _MERGE_PATCH, subresource)


async def _protect(writer: ApiWriter, claim: ResourceClaim) -> ResourceClaim:
    """Put the finalizer on; of the answer only the version is news."""
    finalizers = (*claim.metadata.finalizers, FINALIZER)
    metadata = {"finalizers": finalizers, "resourceVersion": claim.resource_version}
    answer = await _patch(writer, claim, {"metadata": metadata}, _MERGE_PATCH, "")
    version = _written.decode(answer).metadata.resource_version
    return replace(claim, metadata=replace(claim.metadata, finalizers=finalizers, resource_version=version))


async def _release(writer: ApiWriter, claim: ResourceClaim, pods: list[str]) -> ResourceClaim:
    leaving = [{"$patch": "delete", "uid": uid} for uid in pods]
    patch = {"metadata": {"uid": claim.uid}, "status": {"reservedFor": leaving}}
    return await _send(writer, claim, patch, _STRATEGIC_MERGE_PATCH, "status")


async def _send(
    writer: ApiWriter, claim: ResourceClaim, patch: dict[str, Any], content_type: str, subresource: str
) -> ResourceClaim:
    written: ResourceClaim = _CLAIMS.decode(await _patch(writer, claim, patch, content_type, subresource))
    return written


def _patch(
    writer: ApiWriter, claim: ResourceClaim, patch: dict[str, Any], content_type: str, subresource: str
) -> Coroutine[Any, Any, bytes]:
    body, metadata = msgspec.json.encode(patch), claim.metadata
    return writer.patch(
        _CLAIMS, metadata.namespace, metadata.name, body, content_type=content_type, subresource=subresource
    )
