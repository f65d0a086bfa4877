"""What became of the specs of pods and resource claims that were created before.

They come by the thousand from a few templates, and most of what creating one costs is to complete and to judge a spec
that has been completed and judged before. So the outcome is remembered by what was sent: the spec with its defaults and
the server's decisions, as JSON, and the status that an object with it begins with. Pods of one template may differ in
the claims of their volumes; the names of claims are therefore left out of what is compared, and put back.

Remembered is only what depends on nothing but the spec and the classes and accounts that admission looks up (when one
of those changes, everything is forgotten): not a gated pod, whose status has the time, not selectors that are completed
from the pod's labels, and nothing in a namespace with LimitRanges, which have a say in the spec and the annotations.

Of a spec it is remembered, too, which metadata it came with that needed no completion: then only the name is new.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from pilotage.sandbox.operations.backend import Object
from pilotage.sandbox.operations.field_management import MetadataShape, metadata_shape
from pilotage.sandbox.rules.admission import PRIORITY_CLASSES
from pilotage.sandbox.rules.runtime_class import RUNTIME_CLASSES
from pilotage.sandbox.rules.token_mounts import ACCOUNTS
from pilotage.sandbox.storage.records import Change
from pilotage.sandbox.storage.store import Store

REMEMBERED: Final = frozenset({"pods", "resourceclaims.resource.k8s.io"})
"""The resources of which this makes sense."""
_MOST_SPECS: Final = 512
_MOST_SHAPES: Final = 64
_MOST_METADATA: Final = 64
_LONGEST_SPEC: Final = 64 * 1024
_LONGEST_METADATA: Final = 1024
_SENT_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata", "spec"})
_SAID: Final = frozenset({"generateName", "labels", "annotations", "finalizers", "ownerReferences"})
_METADATA: Final = frozenset({"name", "namespace", *_SAID})
_LABEL_KEYS: Final = b'atchLabelKeys"'
_GATES: Final = b'"schedulingGates"'
_ANY_CLAIM: Final = "x"
_CLAIM: Final = "persistentVolumeClaim"

_encode = msgspec.json.Encoder().encode


class SentSpec(msgspec.Struct, frozen=True):
    """A spec as a client sent it, apart from the names of its claims."""

    content: tuple[tuple[str, str], bytes]
    """Of which resource and, where that matters, in which namespace; and the JSON."""
    claims: tuple[str, ...]
    metadata: bytes | None
    """The metadata apart from the name; None if it is not remembered."""
    is_managed: bool
    """Whether it has an author, who owns something."""


class KnownObject(NamedTuple):
    """What is known of an object that was completed."""

    is_whole: bool
    """Its metadata was accepted before as it is, apart from the name."""
    owned: msgspec.Raw | None
    """What its author owns, if it has one."""


class _Outcome(msgspec.Struct):
    spec: msgspec.Raw
    status: msgspec.Raw | None
    owned: dict[MetadataShape, msgspec.Raw] = {}
    """What the authors of such objects own, by the shape of their metadata."""
    whole: dict[tuple[bytes, bool], KnownObject] = {}
    """By metadata that was accepted as it came, and whether the object has an author."""
    fields: dict[str, Any] | None = None
    """The same spec by field, made on first use; the volumes are objects, for the names of claims to be put into."""

    def with_claims(self, claims: tuple[str, ...]) -> Object:
        if self.fields is None:
            raw = msgspec.json.decode(self.spec, type=dict[str, msgspec.Raw])
            self.fields = {**raw, "volumes": msgspec.json.decode(raw["volumes"])}
        return _with_claims(self.fields, claims)


class KnownSpecs:
    """Outcomes by what was sent. `read` before anything is changed, then `complete`, or else `remember`.

    Of an object that was completed but is not whole, `remember_metadata` once its metadata is accepted.
    """

    def __init__(self, store: Store) -> None:
        self._outcomes: dict[tuple[tuple[str, str], bytes], _Outcome] = {}
        for resource in (PRIORITY_CLASSES, RUNTIME_CLASSES, ACCOUNTS):
            store.subscribe(resource, self._forget)

    def read(self, where: tuple[str, str], obj: Object, *, is_managed: bool) -> SentSpec | None:
        """What the object asks for; None if that says too much about this one, or nothing that could be compared."""
        spec = obj.get("spec")
        if type(spec) is not dict or not obj.keys() <= _SENT_FIELDS:
            return None
        try:
            claims: tuple[str, ...] = ()
            if "volumes" in spec:
                claims, spec = _without_claims(spec)
            content = _encode(spec)
            metadata = _said_in(obj.get("metadata"))
        except (TypeError, ValueError, RecursionError):
            return None
        if len(content) > _LONGEST_SPEC or _LABEL_KEYS in content or _GATES in content:
            return None
        return SentSpec((where, content), claims, metadata, is_managed)

    def complete(self, sent: SentSpec, obj: Object) -> KnownObject | None:
        """Give the object the spec and the status that it would get; None if this was not sent before."""
        outcome = self._outcomes.get(sent.content)
        if outcome is None:
            return None
        known = None if sent.metadata is None else outcome.whole.get((sent.metadata, sent.is_managed))
        if known is None:
            shape = metadata_shape(obj.get("metadata") or {}) if sent.is_managed else None
            known = KnownObject(False, None if shape is None else outcome.owned.get(shape))
            if sent.is_managed and known.owned is None:
                return None
        obj["spec"] = outcome.with_claims(sent.claims) if sent.claims else outcome.spec
        if outcome.status is not None:
            obj["status"] = outcome.status
        return known

    def remember_metadata(self, sent: SentSpec, obj: Object, known: KnownObject) -> None:
        """The metadata of an object that was completed is accepted as it is now."""
        outcome = self._outcomes.get(sent.content)
        if outcome is None or sent.metadata is None or _said_in(obj["metadata"], is_new=False) != sent.metadata:
            return
        if len(outcome.whole) >= _MOST_METADATA:
            outcome.whole.clear()
        outcome.whole[sent.metadata, sent.is_managed] = known._replace(is_whole=True)

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
        outcome, known = _Outcome(_raw(spec), status), self._outcomes.get(sent.content)
        if known is not None:
            outcome.owned, outcome.whole = known.owned, known.whole
        self._outcomes[sent.content] = outcome

    def _forget(self, change: Change) -> None:
        self._outcomes.clear()


def _said_in(metadata: Any, *, is_new: bool = True) -> bytes | None:
    """What metadata says of an object whatever its name; None if it is long, or says what it should not."""
    if type(metadata) is not dict:
        return None
    if is_new and not (
        metadata.keys() <= _METADATA
        and type(metadata.get("name", "")) is str
        and type(metadata.get("namespace", "")) is str
    ):
        return None
    said = _encode({field: value for field, value in metadata.items() if field in _SAID})
    return said if len(said) <= _LONGEST_METADATA else None


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
