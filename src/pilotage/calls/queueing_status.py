"""Write the status of a Workload, or of a queue, as it is when its turn comes; read a Workload that has changed.

Nothing is lost by what others write meanwhile: the status is written for the version that it was worked out from, and
rejected (409) if there is a newer one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from pilotage.api.calls import ApiCall, ApiWriter, Lane, Relevance
from pilotage.model import KINDS
from pilotage.model.kinds import KindInfo
from pilotage.model.kueue import Workload

_MERGE_PATCH = "application/merge-patch+json"

Body = Callable[[], dict[str, Any] | None]
"""Metadata (uid, version) and status; None if there is nothing to write any more."""


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Written(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_written = msgspec.json.Decoder(_Written)


class QueueingStatus(ApiCall):
    """PATCH the status subresource of one of Kueue's kinds."""

    __slots__ = ("_body", "_name", "_namespace", "_resource", "written_version")

    kind: ClassVar[str] = "queueing_status"
    lane: ClassVar[Lane] = Lane.STATUS
    relevance: ClassVar[int] = Relevance.STATUS
    is_repeatable: ClassVar[bool] = True

    def __init__(self, resource: KindInfo, namespace: str, name: str, body: Body) -> None:
        self._resource = resource
        self._namespace = namespace
        self._name = name
        self._body = body
        self.written_version = ""
        """The version that the API server gave to the result; "" if nothing was written."""

    @property
    def object_key(self) -> str:
        return f"{self._resource.plural}/{self._namespace}/{self._name}"

    async def perform(self, writer: ApiWriter) -> None:
        body = self._body()
        if body is None:
            return
        answer = await writer.patch(
            self._resource,
            self._namespace,
            self._name,
            msgspec.json.encode(body),
            content_type=_MERGE_PATCH,
            subresource="status",
        )
        self.written_version = _written.decode(answer).metadata.resource_version


class WorkloadReading(ApiCall):
    """GET a workload of which the watch has not brought the newest version."""

    __slots__ = ("_name", "_namespace", "found")

    kind: ClassVar[str] = "workload_reading"
    lane: ClassVar[Lane] = Lane.STATUS
    relevance: ClassVar[int] = Relevance.STATUS
    is_repeatable: ClassVar[bool] = True

    def __init__(self, namespace: str, name: str) -> None:
        self._namespace = namespace
        self._name = name
        self.found: Workload | None = None

    @property
    def object_key(self) -> str:
        return f"{self._namespace}/{self._name}/{self.kind}"

    async def perform(self, writer: ApiWriter) -> None:
        self.found = KINDS["workloads"].decode(await writer.get(KINDS["workloads"], self._namespace, self._name))
