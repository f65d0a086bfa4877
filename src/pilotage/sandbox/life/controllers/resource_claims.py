"""ResourceClaims of pods: made from templates while the pod needs them, given back when it has ended.

For a pod: each entry of spec.resourceClaims that names a template gets a claim of its own, owned by the pod, and the
pod's status tells its name. A template that does not exist yet is waited for.

For a claim: pods that have ended or are gone are taken out of status.reservedFor. When the last one goes the claim is
deallocated, so that its devices are free for others; a claim that was made for a pod is deleted with it. The finalizer
that keeps an allocated claim from being deleted is removed with the allocation.
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
from pilotage.sandbox.life.facts import ClaimFacts, ObjectFacts, PodFacts
from pilotage.sandbox.life.object_index import ObservedChange
from pilotage.sandbox.operations.lookup import CachedLookup
from pilotage.sandbox.storage.store import Key

RESOURCE_CLAIMS: Final = "resourceclaims.resource.k8s.io"
TEMPLATES: Final = "resourceclaimtemplates.resource.k8s.io"

POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
DELETE_PROTECTION: Final = "resource.kubernetes.io/delete-protection"


class _Wish(msgspec.Struct, rename="camel"):
    """One entry of spec.resourceClaims."""

    name: str
    resource_claim_template_name: str | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    resource_claims: list[_Wish] | None = None


_decode_pod_spec = msgspec.json.Decoder(_PodSpec).decode


class ResourceClaimController:
    name = "resource-claim"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._claims = ClaimIndex()
        self._lookup = CachedLookup(context.api.store)

    def interests(self) -> Mapping[str, Interest]:
        return {"pods": self._pod_seen, RESOURCE_CLAIMS: self._claim_seen, TEMPLATES: self._template_seen}

    def reconcile(self, key: Key) -> float | None:
        if key.resource == "pods":
            pod = self._context.outline(key)
            if pod is not None:
                self._make_claims(key, pod)
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
        if owner is None or owner.kind != "Pod":
            return ()
        return (Due(Key("pods", seen.key.namespace, owner.name)),)

    def _is_settled(self, claim: ClaimFacts) -> bool:
        """Nothing is to be done for a claim in use or to be used: when its users end, that is seen of the users."""
        if claim.is_deleting:
            return False
        if claim.consumers:
            return all(map(self._is_alive, claim.consumers))
        return not self._is_left_over(claim)

    def _is_alive(self, uid: str) -> bool:
        pod = self._context.index.by_uid(uid)
        return isinstance(pod, PodFacts) and not _is_done(pod)

    def _template_seen(self, seen: ObservedChange) -> Iterable[Due]:
        return () if seen.new is None else [Due(pod) for pod in self._claims.stop_waiting(seen.key)]

    def _make_claims(self, key: Key, pod: Object) -> None:
        """See to the claims of a pod, given in outline."""
        facts = self._context.index.pod(key)
        if facts is None or facts.is_deleting or facts.is_finished:
            return
        status: Object = pod.setdefault("status", {})
        known = {entry["name"]: entry.get("resourceClaimName") for entry in status.get("resourceClaimStatuses") or ()}
        names: dict[str, str] = {}
        for request in _decode_pod_spec(pod["spec"]).resource_claims or ():
            if request.resource_claim_template_name:
                name = self._claim_name(
                    pod, request.name, request.resource_claim_template_name, known.get(request.name)
                )
                if name is not None:
                    names[request.name] = name
        if any(known.get(entry) != name for entry, name in names.items()):
            known.update(names)
            entries = [
                {"name": entry, **({"resourceClaimName": name} if name else {})} for entry, name in known.items()
            ]
            status["resourceClaimStatuses"] = entries
            self._context.write_status(key, pod)

    def _claim_name(self, pod: Object, entry: str, template_name: str, known: str | None) -> str | None:
        """The name of the claim for one entry, which is made if it is missing; None if its template is."""
        namespace, uid = pod["metadata"]["namespace"], pod["metadata"]["uid"]
        if known and self._context.index.get(Key(RESOURCE_CLAIMS, namespace, known)) is not None:
            return known
        for facts in self._context.index.dependents(uid):
            if facts.key.resource == RESOURCE_CLAIMS and self._is_for(facts, entry):
                return facts.key.name
        template_key = Key(TEMPLATES, namespace, template_name)
        template = self._lookup.get(*template_key)
        if template is None:
            self._claims.wait(Key("pods", namespace, pod["metadata"]["name"]), template_key)
            return None
        claim = _claim(pod, entry, template)
        self._context.create(RESOURCE_CLAIMS, namespace, claim)
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
        """Nobody uses the claim: delete it if its pod has ended."""
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
        """Whether the reservation still counts; those of other things than pods are none of our business."""
        if consumer.get("resource") != "pods" or consumer.get("apiGroup"):
            return True
        pod = self._context.index.pod(Key("pods", namespace, consumer.get("name", "")))
        return pod is not None and pod.uid == consumer.get("uid") and not _is_done(pod)


def _is_done(pod: PodFacts) -> bool:
    """The pod runs no more and never will."""
    return pod.is_finished or (pod.is_deleting and not pod.node_name)


def _claim(pod: Object, entry: str, template: Object) -> Object:
    asked = template["spec"].get("metadata") or {}
    metadata: Object = {
        "generateName": f"{pod['metadata']['name']}-{entry}-",
        "annotations": {**(asked.get("annotations") or {}), POD_CLAIM_NAME: entry},
        "ownerReferences": [controller_reference(pod)],
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
    """Claims by the uid of the pod that reserved them; waiting pods by template."""

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

    def wait(self, pod: Key, template: Key) -> None:
        self._waiting.setdefault(template, {})[pod] = None

    def stop_waiting(self, template: Key) -> list[Key]:
        """The pods that waited for the template; they wait no longer."""
        return list(self._waiting.pop(template, ()))
