"""Write to a claim what pods want of it: one call for all of them.

Two pods that share a claim never write to it at the same time. What is wanted while a call waits is put together with
it and written at once; what is wanted while one is in flight follows it. Each pod is told what became of its own intent.

A patch carries the claim's version, so that the server rejects it if somebody else was faster (then the claim is read,
and the intents are looked at again), and names only what changes, so that fields which this scheduler does not know are
kept. A patch that only takes pods off is right for any version.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, ClassVar, Final

import msgspec
from msgspec.structs import replace

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance, Seen, is_not_found
from pilotage.model import KINDS
from pilotage.model.resource import AllocationResult, ResourceClaim
from pilotage.plugins.dynamic_resources.claim_wishes import ClaimIntent, Granted, gone, grant
from pilotage.plugins.dynamic_resources.claims import is_newer

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

    __slots__ = ("_failures", "_now", "_parts", "_plan", "_intents", "claim")

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
