"""ResourceClaims of pods and PodGroups: made from templates while they need them, given back when they have ended.

For a PodGroup: each entry of spec.resourceClaims that names a template gets a claim of its own, owned by the group, and
the group's status names it. A pod of the group with an equal entry shares that claim.

For a pod: each other entry that names a template gets a claim of its own, owned by the pod, and the pod's status has
its name. A template that does not exist yet is waited for, and so is the PodGroup that the pod names.

For a claim: pods that have ended or are gone and PodGroups that are gone are taken out of status.reservedFor. When the
last one goes the claim is deallocated, so that its devices are free for others; a claim that was made for a pod is
deleted with it. The finalizer that keeps an allocated claim from being deleted is removed with the allocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from pilotage.sandbox.life.controllers.controller import (
    ControllerContext,
    Due,
    Interest,
    Object,
    controller_reference,
    drop_finalizer,
)
from pilotage.sandbox.life.facts import ClaimFacts, ObjectFacts, PodFacts, PodGroupFacts
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.operations.lookup import CachedLookup
from pilotage.sandbox.rules.admission import POD_GROUPS
from pilotage.sandbox.storage.store import Key

RESOURCE_CLAIMS: Final = "resourceclaims.resource.k8s.io"
TEMPLATES: Final = "resourceclaimtemplates.resource.k8s.io"

_OWNERS: Final = {("v1", "Pod"): "pods", ("scheduling.k8s.io/v1beta1", "PodGroup"): POD_GROUPS}

POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
DELETE_PROTECTION: Final = "resource.kubernetes.io/delete-protection"


class _Wish(msgspec.Struct, rename="camel"):
    """One entry of spec.resourceClaims."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _Asking(msgspec.Struct, rename="camel"):
    """The spec of a pod or a PodGroup."""

    resource_claims: list[_Wish] | None = None


_decode_asking = msgspec.json.Decoder(_Asking).decode


class ResourceClaimController:
    name = "resource-claim"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._claims = ClaimIndex()
        self._lookup = CachedLookup(context.api.store)

    def interests(self) -> Mapping[str, Interest]:
        return {
            "pods": self._pod_seen,
            POD_GROUPS: self._group_seen,
            RESOURCE_CLAIMS: self._claim_seen,
            TEMPLATES: self._template_seen,
        }

    def reconcile(self, key: Key) -> float | None:
        if key.resource == "pods":
            pod = self._context.outline(key)
            if pod is not None:
                self._make_claims_of_pod(key, pod)
        elif key.resource == POD_GROUPS:
            group = self._context.outline(key)
            if group is not None and "deletionTimestamp" not in group["metadata"]:
                self._make_claims(key, group, _wishes(group), {})
        else:
            claim = self._context.read(key)
            if claim is not None:
                self._sync_claim(key, claim)
        return None

    def _pod_seen(self, seen: ObservedChange) -> Iterable[Due]:
        pod = seen.facts
        if not isinstance(pod, PodFacts) or not (pod.has_claims or self._claims.has_reserved(pod.uid)):
            return ()
        if seen.new is None or _is_done(pod):
            owned = [facts.key for facts in self._context.index.dependents(pod.uid)]
            claims = [*self._claims.reserved_by(pod.uid), *(key for key in owned if key.resource == RESOURCE_CLAIMS)]
            return [Due(claim) for claim in claims]
        return (Due(pod.key),) if seen.old is None else ()

    def _group_seen(self, seen: ObservedChange) -> Iterable[Due]:
        """Its status says which claims its pods share."""
        group = seen.facts
        if seen.new is None:
            return [Due(claim) for claim in self._claims.reserved_by(group.uid)]
        has_claims = isinstance(group, PodGroupFacts) and group.has_claims
        if not has_claims and seen.old is not None:
            return ()
        members = self._context.index.members(group.key.namespace, group.key.name)
        waiting = [Due(pod.key) for pod in members if pod.has_claims]
        return [Due(group.key), *waiting] if has_claims else waiting

    def _claim_seen(self, seen: ObservedChange) -> Iterable[Due]:
        claim = seen.new
        if isinstance(claim, ClaimFacts):
            self._claims.put(claim)
            return () if self._is_settled(claim) else (Due(claim.key),)
        self._claims.remove(seen.key)
        if claim is not None:
            # It breaks the rules of its kind.
            return ()
        owner = seen.facts.controller
        resource = None if owner is None else _OWNERS.get((owner.api_version, owner.kind))
        return () if owner is None or resource is None else (Due(Key(resource, seen.key.namespace, owner.name)),)

    def _is_settled(self, claim: ClaimFacts) -> bool:
        """Nothing is to be done for a claim in use or to be used: when its users end, that is seen of the users."""
        if claim.is_deleting:
            return False
        if claim.consumers:
            return all(map(self._is_alive, claim.consumers))
        return not self._is_left_over(claim)

    def _is_alive(self, uid: str) -> bool:
        consumer = self._context.index.by_uid(uid)
        return isinstance(consumer, PodGroupFacts) or (isinstance(consumer, PodFacts) and not _is_done(consumer))

    def _template_seen(self, seen: ObservedChange) -> Iterable[Due]:
        return () if seen.new is None else [Due(pod) for pod in self._claims.stop_waiting(seen.key)]

    def _make_claims_of_pod(self, key: Key, pod: Object) -> None:
        """See to the claims of a pod, given in outline."""
        facts = self._context.index.pod(key)
        if facts is None or facts.is_deleting or facts.is_finished:
            return
        own, shared = _wishes(pod), dict[str, str]()
        if facts.group:
            group = self._context.outline(Key(POD_GROUPS, key.namespace, facts.group))
            if group is None:
                return  # it may have claims for its pods; they are looked at again when it comes
            wishes_of_group, claims = _wishes(group), _known_claims(group)
            shared = {wish.name: claims.get(wish.name) or "" for wish in own if wish in wishes_of_group}
            own = [wish for wish in own if wish.name not in shared]
        self._make_claims(key, pod, own, {entry: name for entry, name in shared.items() if name})

    def _make_claims(self, key: Key, obj: Object, wishes: Iterable[_Wish], names: dict[str, str]) -> None:
        """Make what is missing of the claims that are wished for; write their names to the status, and those given."""
        status: Object = obj.setdefault("status", {})
        known = _known_claims(obj)
        for wish in wishes:
            if wish.resource_claim_template_name:
                name = self._claim_name(key, obj, wish, known.get(wish.name))
                if name is not None:
                    names[wish.name] = name
        if any(known.get(entry) != name for entry, name in names.items()):
            known.update(names)
            entries = [
                {"name": entry, **({"resourceClaimName": name} if name else {})} for entry, name in known.items()
            ]
            status["resourceClaimStatuses"] = entries
            self._context.write_status(key, obj)

    def _claim_name(self, key: Key, owner: Object, wish: _Wish, known: str | None) -> str | None:
        """The name of the claim for one entry, which is made if it is missing; None if its template is."""
        if known and self._context.index.get(Key(RESOURCE_CLAIMS, key.namespace, known)) is not None:
            return known
        for facts in self._context.index.dependents(owner["metadata"]["uid"]):
            if facts.key.resource == RESOURCE_CLAIMS and self._is_for(facts, wish.name):
                return facts.key.name
        template_key = Key(TEMPLATES, key.namespace, wish.resource_claim_template_name or "")
        template = self._lookup.get(*template_key)
        if template is None:
            self._claims.wait(key, template_key)
            return None
        claim = _claim(owner, wish.name, template)
        self._context.create(RESOURCE_CLAIMS, key.namespace, claim)
        name: str = claim["metadata"]["name"]
        return name

    def _is_for(self, facts: ObjectFacts, entry: str) -> bool:
        claim = self._context.read(facts.key)
        if claim is None or facts.is_deleting:
            return False
        return bool((claim["metadata"].get("annotations") or {}).get(POD_CLAIM_NAME) == entry)

    def _sync_claim(self, key: Key, claim: Object) -> None:
        status: Object = claim.setdefault("status", {})
        reserved = status.get("reservedFor") or []
        valid = [consumer for consumer in reserved if self._is_consumer(key.namespace, consumer)]
        is_deleting = "deletionTimestamp" in claim["metadata"]
        if len(valid) < len(reserved) or (is_deleting and not valid and status.get("allocation")):
            status["reservedFor"] = valid
            if not valid:
                for field in ("reservedFor", "allocation", "devices"):
                    status.pop(field, None)
            claim = self._context.api.update(RESOURCE_CLAIMS, key.namespace, key.name, claim, "status")
            self._unprotect(key, claim)
        elif is_deleting:
            self._unprotect(key, claim)
        if not valid:
            self._let_go(key)

    def _unprotect(self, key: Key, claim: Object) -> None:
        # Never without a reason: a scheduler protects a claim first, and allocates it in its next write.
        if not (claim.get("status") or {}).get("allocation") and drop_finalizer(claim, DELETE_PROTECTION):
            self._context.write_metadata(key, claim)

    def _let_go(self, key: Key) -> None:
        """The claim is not used: delete it if its pod has ended."""
        facts = self._context.index.get(key)
        if facts is not None and not facts.is_deleting and self._is_left_over(facts):
            self._context.delete(facts)

    def _is_left_over(self, claim: ObjectFacts) -> bool:
        """Whether the claim was made for a pod that has ended."""
        owner = claim.controller
        if owner is None or owner.kind != "Pod":
            return False
        pod = self._context.index.by_uid(owner.uid)
        if not isinstance(pod, PodFacts) or not _is_done(pod):
            return False
        return pod.key.namespace == claim.key.namespace and pod.key.name == owner.name

    def _is_consumer(self, namespace: str, consumer: Object) -> bool:
        """Whether the reservation still counts; those of things that we do not know are none of our business."""
        asked = (consumer.get("apiGroup") or "", consumer.get("resource"))
        if asked == ("scheduling.k8s.io", "podgroups"):
            group = self._context.index.get(Key(POD_GROUPS, namespace, consumer.get("name", "")))
            return group is not None and group.uid == consumer.get("uid")
        if asked != ("", "pods"):
            return True
        pod = self._context.index.pod(Key("pods", namespace, consumer.get("name", "")))
        return pod is not None and pod.uid == consumer.get("uid") and not _is_done(pod)


def _wishes(obj: Object) -> list[_Wish]:
    """The claims that a pod or a PodGroup, given in outline, asks for."""
    return _decode_asking(obj["spec"]).resource_claims or []


def _known_claims(obj: Object) -> dict[str, str | None]:
    """Entry -> claim, as the status of a pod or a PodGroup says."""
    entries = (obj.get("status") or {}).get("resourceClaimStatuses") or ()
    return {entry["name"]: entry.get("resourceClaimName") for entry in entries}


def _is_done(pod: PodFacts) -> bool:
    """The pod runs no more and never will."""
    return pod.is_finished or (pod.is_deleting and not pod.node_name)


def _claim(owner: Object, entry: str, template: Object) -> Object:
    asked = template["spec"].get("metadata") or {}
    metadata: Object = {
        "generateName": f"{owner['metadata']['name']}-{entry}-",
        "annotations": {**(asked.get("annotations") or {}), POD_CLAIM_NAME: entry},
        "ownerReferences": [controller_reference(owner)],
    }
    if asked.get("labels"):
        metadata["labels"] = dict(asked["labels"])
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        # The template is shared, and what is created is completed in place.
        "spec": msgspec.to_builtins(template["spec"].get("spec") or {}),
    }


class ClaimIndex:
    """Claims by the uid for which they are reserved; waiting pods and PodGroups by template."""

    def __init__(self) -> None:
        self._consumers_of: dict[Key, tuple[str, ...]] = {}
        self._reserved_by: dict[str, dict[Key, None]] = {}
        self._waiting: dict[Key, dict[Key, None]] = {}

    def put(self, claim: ClaimFacts) -> None:
        consumers = claim.consumers
        if self._consumers_of.get(claim.key, ()) == consumers:
            return
        self.remove(claim.key)
        if consumers:
            self._consumers_of[claim.key] = consumers
        for uid in consumers:
            self._reserved_by.setdefault(uid, {})[claim.key] = None

    def remove(self, claim: Key) -> None:
        for uid in self._consumers_of.pop(claim, ()):
            claims = self._reserved_by.get(uid, {})
            claims.pop(claim, None)
            if not claims:
                self._reserved_by.pop(uid, None)

    def has_reserved(self, uid: str) -> bool:
        return uid in self._reserved_by

    def reserved_by(self, uid: str) -> list[Key]:
        return list(self._reserved_by.get(uid, ()))

    def wait(self, waiting: Key, template: Key) -> None:
        self._waiting.setdefault(template, {})[waiting] = None

    def stop_waiting(self, template: Key) -> list[Key]:
        """What waited for the template; it waits no longer."""
        return list(self._waiting.pop(template, ()))
