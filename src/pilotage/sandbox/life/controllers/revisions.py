"""The history of a StatefulSet or DaemonSet: one ControllerRevision per version of its pod template.

The revision of the current template is found by what it holds, whatever its name. Going back to an older template gives
that revision the highest number again. Revisions that no pod has are forgotten beyond `revisionHistoryLimit`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

import msgspec

from pilotage.sandbox.errors import ApiError
from pilotage.sandbox.life.controllers.controller import ControllerContext, Object, controller_reference
from pilotage.sandbox.storage.store import Key

REVISIONS: Final = "controllerrevisions.apps"
REVISION_HASH: Final = "controller-revision-hash"

_SAFE_DIGITS: Final = "bcdfghjklmnpqrstvwxz2456789"
_HISTORY_LIMIT: Final = 10


@dataclass(frozen=True, slots=True)
class Revisions:
    """The history of one owner, and which of it is current."""

    current: Object
    """Of the template that the owner has now."""
    others: Sequence[Object]
    """From the oldest on."""

    def template_of(self, name: str) -> Object | None:
        """The pod template of the revision with this name."""
        for revision in (self.current, *self.others):
            if revision["metadata"]["name"] == name:
                template: Object = {k: v for k, v in revision["data"]["spec"]["template"].items() if k != "$patch"}
                return template
        return None


class RevisionHistory:
    """Finds, makes, numbers and forgets the revisions of owners."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def of(self, owner: Object) -> Revisions:
        found = self._found(owner)
        wanted = revision_data(owner)
        current = next((one for one in reversed(found) if one["data"] == wanted), None)
        newest = found[-1]["revision"] if found else 0
        if current is None:
            return Revisions(self._create(owner, wanted, newest + 1), found)
        if current["revision"] != newest:
            current["revision"] = newest + 1
            current = self._context.api.update(
                REVISIONS, owner["metadata"]["namespace"], current["metadata"]["name"], current
            )
        return Revisions(current, [one for one in found if one["metadata"]["uid"] != current["metadata"]["uid"]])

    def forget_old(self, owner: Object, revisions: Revisions, in_use: Iterable[str]) -> None:
        """Delete the oldest of those that are beyond the limit; `in_use` are names and hashes that pods carry."""
        used = set(in_use)
        idle = [one for one in revisions.others if not used & {one["metadata"]["name"], hash_of(one)}]
        limit = owner["spec"].get("revisionHistoryLimit")
        for revision in idle[: max(len(idle) - (_HISTORY_LIMIT if limit is None else int(limit)), 0)]:
            facts = self._context.index.by_uid(revision["metadata"]["uid"])
            if facts is not None:
                self._context.delete(facts)

    def _found(self, owner: Object) -> list[Object]:
        uid = owner["metadata"]["uid"]
        mine = [facts for facts in self._context.index.dependents(uid) if facts.key.resource == REVISIONS]
        found = [obj for facts in mine if not facts.is_deleting and (obj := self._context.read(facts.key))]
        return sorted(found, key=lambda one: (one["revision"], one["metadata"]["name"]))

    def _create(self, owner: Object, data: Object, number: int) -> Object:
        metadata = owner["metadata"]
        collisions = (owner.get("status") or {}).get("collisionCount") or 0
        digest = _hash(data, collisions)
        labels = {**((owner["spec"]["template"].get("metadata") or {}).get("labels") or {})}
        revision = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": f"{metadata['name']}-{digest}",
                "labels": {**labels, REVISION_HASH: digest},
                "annotations": dict(metadata.get("annotations") or {}),
                "ownerReferences": [controller_reference(owner)],
            },
            # Clients compare it with the spec byte by byte, as Go writes maps: in the order of their keys.
            "data": msgspec.json.decode(msgspec.json.encode(data, order="sorted")),
            "revision": number,
        }
        try:
            return self._context.api.create(REVISIONS, metadata["namespace"], revision)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            # The revision of another owner has this name: another hash is tried next time.
            owner.setdefault("status", {})["collisionCount"] = collisions + 1
            resource = f"{owner['kind'].lower()}s.apps"
            self._context.write_status(Key(resource, metadata["namespace"], metadata["name"]), owner)
            raise


def hash_of(revision: Object) -> str:
    return str((revision["metadata"].get("labels") or {}).get(REVISION_HASH, ""))


def revision_data(owner: Object) -> Object:
    """What a revision holds: a patch that replaces the template."""
    return {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}


def _hash(data: Any, collisions: int) -> str:
    encoded = msgspec.json.encode((data, collisions), order="deterministic")
    return "".join(_SAFE_DIGITS[int(digit)] for digit in f"{crc32(encoded):010d}")
