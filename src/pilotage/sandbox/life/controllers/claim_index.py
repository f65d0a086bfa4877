"""Which ResourceClaims a pod has reserved, and which pods wait for a ResourceClaimTemplate: kept from changes."""

from __future__ import annotations

from typing import Final

from pilotage.sandbox.life.facts import ClaimFacts
from pilotage.sandbox.storage.store import Key

RESOURCE_CLAIMS: Final = "resourceclaims.resource.k8s.io"
TEMPLATES: Final = "resourceclaimtemplates.resource.k8s.io"


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
