"""What calls that change a part of one object by a JSON merge patch have in common."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance
from pilotage.model.kinds import KindInfo

_MERGE_PATCH = "application/merge-patch+json"


class MergePatch(ApiCall):
    """PATCH an object; `patch` names the uid, and the version if it is meant for that version only."""

    __slots__ = ("_name", "_namespace", "_patch", "_resource", "_subresource", "_uid")

    lane: ClassVar[Lane] = Lane.EVICT
    relevance: ClassVar[int] = Relevance.BINDING
    is_repeatable: ClassVar[bool] = True

    def __init__(
        self, resource: KindInfo, namespace: str, name: str, uid: str, patch: dict[str, Any], subresource: str = ""
    ) -> None:
        self._resource = resource
        self._namespace = namespace
        self._name = name
        self._uid = uid
        self._patch = patch
        self._subresource = subresource

    @property
    def object_key(self) -> str:
        return f"{self._uid}/{self.kind}"

    async def perform(self, writer: ApiWriter) -> None:
        await writer.patch(
            self._resource,
            self._namespace,
            self._name,
            msgspec.json.encode(self._patch),
            content_type=_MERGE_PATCH,
            subresource=self._subresource,
        )
