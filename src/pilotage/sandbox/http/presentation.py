"""Records as answers: objects, tables or metadata; one, many, or as watch events.

The common case, objects in the version in which they are stored, joins bytes that already exist. Everything else
decodes, reshapes and encodes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pilotage.sandbox.errors import bad_request
from pilotage.sandbox.http.exchange import Request, encode_json
from pilotage.sandbox.http.negotiation import View, view_for
from pilotage.sandbox.http.paging import Page
from pilotage.sandbox.http.tables import render_table
from pilotage.sandbox.kinds.resources import ResourceType
from pilotage.sandbox.rules.conversion import from_storage, served_body
from pilotage.sandbox.storage.records import Record

Include = Literal["None", "Metadata", "Object"]


@dataclass(frozen=True, slots=True)
class Presentation:
    """How one client wants to see one kind."""

    resource_type: ResourceType
    view: View
    include: Include
    now: float

    @property
    def is_verbatim(self) -> bool:
        """The stored bytes are the answer."""
        return self.view is View.OBJECT and self.resource_type.is_stored_as_served

    def one(self, record: Record) -> bytes:
        if self.view is View.OBJECT:
            return served_body(self.resource_type, record)
        if self.view is View.METADATA:
            return encode_json(_metadata_only(record.object()))
        return encode_json(self._table([record]))

    def many(self, page: Page, *, tells_remaining: bool) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(page.revision)}
        if page.continue_token:
            metadata["continue"] = page.continue_token
            if tells_remaining:
                metadata["remainingItemCount"] = page.remaining
        if self.view is View.TABLE:
            return encode_json({**self._table(page.records), "metadata": metadata})
        return b"".join(
            (
                encode_json({**self._list_type(), "metadata": metadata})[:-1],
                b',"items":[',
                b",".join([self.one(record) for record in page.records]),
                b"]}",
            )
        )

    def bookmark(self, revision: int, *, ends_initial: bool) -> bytes:
        """The object of a BOOKMARK event: nothing but a resource version."""
        metadata: dict[str, Any] = {"resourceVersion": str(revision), "creationTimestamp": None}
        if ends_initial:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        kind = {"kind": self.resource_type.kind, "apiVersion": self.resource_type.api_version}
        if self.view is View.METADATA:
            kind = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        if self.view is View.TABLE:
            row = {"cells": [], "object": {**kind, "metadata": metadata}}
            table = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": str(revision)}}
            return encode_json({**table, "columnDefinitions": [], "rows": [row]})
        return encode_json({**kind, "metadata": metadata})

    def _table(self, records: Sequence[Record]) -> dict[str, Any]:
        table = render_table(
            self.resource_type.kind,
            [record.object() for record in records],
            self.now,
            include=self.include,
            columns=self.resource_type.printer_columns or None,
        )
        if self.include == "Object" and not self.resource_type.is_stored_as_served:
            for row in table["rows"]:
                row["object"] = from_storage(self.resource_type, row["object"])
        if len(records) == 1:
            table["metadata"] = {"resourceVersion": str(records[0].revision)}
        return table

    def _list_type(self) -> dict[str, str]:
        if self.view is View.METADATA:
            return {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
        return {"kind": self.resource_type.list_kind, "apiVersion": self.resource_type.api_version}


def presentation_for(request: Request, resource_type: ResourceType, now: float) -> Presentation:
    include = request.query.get("includeObject") or "Metadata"
    if include not in ("None", "Metadata", "Object"):
        raise bad_request(f'unrecognized includeObject value: "{include}" (None, Metadata or Object)')
    return Presentation(resource_type, view_for(request.headers.get("accept", "")), include, now)  # type: ignore[arg-type]


def _metadata_only(obj: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
