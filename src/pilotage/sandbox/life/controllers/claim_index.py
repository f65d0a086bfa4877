"""Which ResourceClaims a pod has reserved, and which pods wait for a ResourceClaimTemplate: kept from changes."""

from __future__ import annotations

from typing import Final

import msgspec

from pilotage.sandbox.storage.store import Key, Record

RESOURCE_CLAIMS: Final = "resourceclaims.resource.k8s.io"
TEMPLATES: Final = "resourceclaimtemplates.resource.k8s.io"


class _Consumer(msgspec.Struct):
    uid: str = ""


class _Status(msgspec.Struct, rename="camel"):
    reserved_for: tuple[_Consumer, ...] | None = None


class _Claim(msgspec.Struct):
    status: _Status | None = None


_decode = msgspec.json.Decoder(_Claim).decode
_RESERVED: Final = b'"reservedFor"'


class ClaimIndex:
    """Claims by the uid of the pod that reserved them; waiting pods by template."""

    def __init__(self) -> None:
        self._consumers_of: dict[Key, tuple[str, ...]] = {}
        self._reserved_by: dict[str, dict[Key, None]] = {}
        self._waiting: dict[Key, dict[Key, None]] = {}

    def put(self, record: Record) -> None:
        consumers = _consumers(record)
        if self._consumers_of.get(record.key, ()) == consumers:
            return
        self.remove(record.key)
        if consumers:
            self._consumers_of[record.key] = consumers
        for uid in consumers:
            self._reserved_by.setdefault(uid, {})[record.key] = None

    def remove(self, claim: Key) -> None:
        for uid in self._consumers_of.pop(claim, ()):
            claims = self._reserved_by.get(uid, {})
            claims.pop(claim, None)
            if not claims:
                self._reserved_by.pop(uid, None)

    def consumers_of(self, claim: Key) -> tuple[str, ...]:
        """The uids of those that reserved the claim."""
        return self._consumers_of.get(claim, ())

    def has_reserved(self, uid: str) -> bool:
        return uid in self._reserved_by

    def reserved_by(self, uid: str) -> list[Key]:
        return list(self._reserved_by.get(uid, ()))

    def wait(self, pod: Key, template: Key) -> None:
        self._waiting.setdefault(template, {})[pod] = None

    def stop_waiting(self, template: Key) -> list[Key]:
        """The pods that waited for the template; they wait no longer."""
        return list(self._waiting.pop(template, ()))


def _consumers(record: Record) -> tuple[str, ...]:
    # Looking for the word takes less time than decoding, and a claim has it from its allocation on only.
    if _RESERVED not in record.body:
        return ()
    status = _decode(record.body).status
    return tuple(one.uid for one in (status.reserved_for if status else None) or ())
