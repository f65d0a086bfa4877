"""What became of the specs of pods and resource claims that were created before.

They come by the thousand from a few templates, and most of what creating one costs is to complete and to judge a spec
that has been completed and judged before. So the outcome is remembered by what was sent: the spec with its defaults and
the server's decisions, as JSON, and the status that an object with it begins with. Pods of one template may differ in
the claims of their volumes; the names of claims are therefore left out of what is compared, and put back.

Remembered is only what depends on nothing but the spec and the classes that admission looks up (when one of those
changes, everything is forgotten): not a gated pod, whose status has the time, not selectors that are completed from
the pod's labels, and nothing in a namespace with LimitRanges, which have a say in the spec and the annotations.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pilotage.sandbox.operations.backend import Object
from pilotage.sandbox.operations.field_management import MetadataShape, metadata_shape
from pilotage.sandbox.rules.admission import PRIORITY_CLASSES
from pilotage.sandbox.rules.runtime_class import RUNTIME_CLASSES
from pilotage.sandbox.storage.records import Change
from pilotage.sandbox.storage.store import Store

REMEMBERED: Final = frozenset({"pods", "resourceclaims.resource.k8s.io"})
"""The resources of which this makes sense."""
_MOST_SPECS: Final = 512
_MOST_SHAPES: Final = 64
_LONGEST_SPEC: Final = 64 * 1024
_SENT_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata", "spec"})
_LABEL_KEYS: Final = b'atchLabelKeys"'
_GATES: Final = b'"schedulingGates"'
_ANY_CLAIM: Final = "x"
_CLAIM: Final = "persistentVolumeClaim"

_encode = msgspec.json.Encoder().encode


class SentSpec(msgspec.Struct, frozen=True):
    """A spec as a client sent it, apart from the names of its claims."""

    content: tuple[str, bytes]
    """Of which resource, and the JSON."""
    claims: tuple[str, ...]


class _Outcome(msgspec.Struct):
    spec: msgspec.Raw
    status: msgspec.Raw | None
    owned: dict[MetadataShape, msgspec.Raw] = {}
    """What the authors of such objects own, by the shape of their metadata."""
    fields: dict[str, Any] | None = None
    """The same spec by field, made on first use; the volumes are objects, for the names of claims to be put into."""

    def with_claims(self, claims: tuple[str, ...]) -> Object:
        if self.fields is None:
            raw = msgspec.json.decode(self.spec, type=dict[str, msgspec.Raw])
            self.fields = {**raw, "volumes": msgspec.json.decode(raw["volumes"])}
        return _with_claims(self.fields, claims)


class KnownSpecs:
    """Outcomes by what was sent. `read` before anything is changed, then `complete`, or else `remember`."""

    def __init__(self, store: Store) -> None:
        self._outcomes: dict[tuple[str, bytes], _Outcome] = {}
        for resource in (PRIORITY_CLASSES, RUNTIME_CLASSES):
            store.subscribe(resource, self._forget)

    def read(self, resource: str, obj: Object) -> SentSpec | None:
        """What the object asks for; None if that says too much about this one, or nothing that could be compared."""
        spec = obj.get("spec")
        if type(spec) is not dict or not obj.keys() <= _SENT_FIELDS:
            return None
        try:
            claims: tuple[str, ...] = ()
            if "volumes" in spec:
                claims, spec = _without_claims(spec)
            content = _encode(spec)
        except (TypeError, ValueError, RecursionError):
            return None
        if len(content) > _LONGEST_SPEC or _LABEL_KEYS in content or _GATES in content:
            return None
        return SentSpec((resource, content), claims)

    def complete(self, sent: SentSpec, obj: Object) -> bool:
        """Give the object the spec and the status that it would get; False if this was not sent before."""
        outcome = self._outcomes.get(sent.content)
        if outcome is None:
            return False
        obj["spec"] = outcome.with_claims(sent.claims) if sent.claims else outcome.spec
        if outcome.status is not None:
            obj["status"] = outcome.status
        return True

    def owned(self, sent: SentSpec, obj: Object) -> msgspec.Raw | None:
        """What the author of a new object owns; None if that is not known of one like it."""
        outcome, shape = self._outcomes.get(sent.content), metadata_shape(obj.get("metadata") or {})
        return None if outcome is None or shape is None else outcome.owned.get(shape)

    def remember_owned(self, sent: SentSpec, shape: MetadataShape | None, owned: msgspec.Raw | None) -> None:
        """The author of an accepted object with metadata of this shape owns that."""
        outcome = self._outcomes.get(sent.content)
        if outcome is None or shape is None or owned is None:
            return
        if len(outcome.owned) >= _MOST_SHAPES:
            outcome.owned.clear()
        outcome.owned[shape] = owned

    def remember(self, sent: SentSpec, obj: Object) -> None:
        """`obj` was accepted as it is now."""
        if len(self._outcomes) >= _MOST_SPECS:
            self._outcomes.clear()
        spec: Object = obj["spec"]
        status = _raw(obj["status"]) if "status" in obj else None
        known = self._outcomes.get(sent.content)
        self._outcomes[sent.content] = _Outcome(_raw(spec), status, {} if known is None else known.owned)

    def _forget(self, change: Change) -> None:
        self._outcomes.clear()


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(_encode(value))


def _without_claims(spec: Object) -> tuple[tuple[str, ...], Object]:
    claims: list[str] = []
    volumes = []
    for volume in spec["volumes"] or ():
        name = _claim_name(volume)
        if name:
            claims.append(name)
            volume = {**volume, _CLAIM: {**volume[_CLAIM], "claimName": _ANY_CLAIM}}
        volumes.append(volume)
    return tuple(claims), {**spec, "volumes": volumes} if claims else spec


def _with_claims(fields: Object, claims: tuple[str, ...]) -> Object:
    names = iter(claims)
    volumes = [
        {**volume, _CLAIM: {**volume[_CLAIM], "claimName": next(names)}} if _claim_name(volume) else volume
        for volume in fields["volumes"]
    ]
    return {**fields, "volumes": volumes}


def _claim_name(volume: Any) -> str:
    claim = volume.get(_CLAIM) if type(volume) is dict else None
    name = claim.get("claimName") if type(claim) is dict else None
    return name if isinstance(name, str) else ""
